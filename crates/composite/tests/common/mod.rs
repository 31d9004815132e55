//! Graphs written as their ports are printed, and folders that hold them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use composite::{Composite, Error, GraphFile, Pair, Result, Rule, Wiring, select};
use onnx_graph::{Dim, ElementType, GraphBuilder, Model, Port, PrecisionClass, Weight};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Ports from `name type[dims] name type[dims]`, as they print themselves; `[...]` is an unknown rank.
pub(crate) fn ports(text: &str) -> Vec<Port> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let port = |couple: &[&str]| {
        let (element_type, dims) = couple[1].trim_end_matches(']').split_once('[').unwrap();
        let shape = (dims != "...").then(|| dims.split_terminator(',').map(dim).collect());
        Port { name: couple[0].to_owned(), element_type: type_named(element_type), shape }
    };
    words.chunks(2).map(port).collect()
}

fn dim(text: &str) -> Dim {
    text.parse().map_or_else(|_| Dim::from(text), Dim::Static)
}

fn type_named(name: &str) -> ElementType {
    (0..30).map(ElementType::from_onnx).find(|t| t.to_string() == name).unwrap()
}

/// A graph with these ports and one node that makes all outputs from all inputs, which is enough for pairing.
pub(crate) fn graph(inputs: &str, outputs: &str) -> GraphBuilder {
    let names = |text| ports(text).into_iter().map(|p| p.name).collect::<BTreeSet<_>>();
    let (fed, given) = (names(inputs), names(outputs));
    let graph = only_ports(inputs, outputs);
    graph.node("All", fed.iter().map(String::as_str), given.iter().map(String::as_str))
}

/// A graph with these ports and no nodes.
pub(crate) fn only_ports(inputs: &str, outputs: &str) -> GraphBuilder {
    let (inputs, outputs) = (ports(inputs), ports(outputs));
    let graph = inputs.into_iter().fold(GraphBuilder::new("test"), |g, port| {
        g.input(&port.name, port.element_type, port.shape.unwrap())
    });
    outputs.into_iter().fold(graph, |g, port| g.output(&port.name, port.element_type, port.shape.unwrap()))
}

/// The same with a weight of this type, which decides the precision.
pub(crate) fn weighing(graph: GraphBuilder, element_type: ElementType) -> GraphBuilder {
    graph.weight("weight", Weight::raw(element_type, [0], vec![]))
}

pub(crate) fn file(path: &str, graph: GraphBuilder) -> GraphFile {
    GraphFile::new(path.into(), &graph.build()).unwrap()
}

/// Case CP2's pair.
pub(crate) const ENCODER: (&str, &str) = (
    "image float32[1,3,64,64] coordinates float32[1,2,2] labels float32[1,2]",
    "embedding float32[1,8,4,4] sparse float32[1,3,8]",
);
pub(crate) const DECODER: (&str, &str) =
    ("embedding float32[1,8,4,4] sparse float32[1,3,8]", "mask float32[1,1,16,16] quality float32[1,1]");

pub(crate) fn encoder() -> GraphBuilder {
    graph(ENCODER.0, ENCODER.1)
}

pub(crate) fn decoder() -> GraphBuilder {
    graph(DECODER.0, DECODER.1)
}

/// What is chosen where single precision is asked for.
pub(crate) fn choose(graphs: &[GraphFile]) -> Result<Pair> {
    select(Path::new("release"), graphs, Vec::new(), &[PrecisionClass::Fp32], &Wiring::new())
}

/// The decoder's inputs with the outputs that feed them, as `input <- output` where the names differ.
pub(crate) fn wires(pair: &Pair) -> Vec<String> {
    let wire = |w: &composite::Wire| {
        if w.input == w.output { w.input.clone() } else { format!("{} <- {}", w.input, w.output) }
    };
    pair.wires.iter().map(wire).collect()
}

/// What is chosen of two graphs.
pub(crate) fn join(encoder: GraphBuilder, decoder: GraphBuilder) -> Result<Pair> {
    choose(&[file("encoder.onnx", encoder), file("decoder.onnx", decoder)])
}

/// Why the file of this name took no part.
pub(crate) fn rule_for(result: Result<Pair>, file: &str) -> Rule {
    let Err(Error::NoPair { graphs, .. }) = result else { panic!("{result:?}") };
    graphs.into_iter().find(|r| r.path == Path::new(file)).unwrap().rule
}

/// A folder with a pair and its metadata.
pub(crate) struct Release {
    pub(crate) dir: TempDir,
}

impl Release {
    pub(crate) fn new(encoder: GraphBuilder, decoder: GraphBuilder) -> Self {
        let release = Self { dir: tempfile::tempdir().unwrap() };
        let (encoder, decoder) = (encoder.build(), decoder.build());
        release.write("encoder.onnx", encoder.to_bytes().unwrap());
        release.write("decoder.onnx", decoder.to_bytes().unwrap());
        release.write("metadata.json", metadata(&encoder, &decoder).to_string());
        release
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn open(&self) -> Result<Composite> {
        Composite::open(self.dir.path())
    }
}

/// The publisher's ports since 0.58.0, small.
pub(crate) const PUBLISHED_INPUTS: &str =
    "image float32[1,3,64,64] unnorm_coords float32[1,2,2] labels float32[1,2]";
pub(crate) const PUBLISHED_OUTPUTS: &str = "image_embeddings float32[1,8,4,4] high_res_features1 float32[1,2,16,16] \
                                            high_res_features2 float32[1,4,8,8] sparse_embedding float32[1,3,8]";
pub(crate) const PUBLISHED_MASKS: &str = "masks float32[1,1,16,16] scores float32[1,1]";

/// An encoder with the published ports and, through `last`, `pix_feat`.
pub(crate) fn encoder_with_pix_feat(last: impl FnOnce(GraphBuilder) -> GraphBuilder) -> GraphBuilder {
    let embedding = Weight::float32([1, 8, 1, 1], &[0.5; 8]);
    let of_image = ["image_embeddings", "high_res_features1", "high_res_features2"];
    let graph = only_ports(PUBLISHED_INPUTS, PUBLISHED_OUTPUTS).node("All", ["image"], of_image).node(
        "All",
        ["unnorm_coords", "labels"],
        ["sparse_embedding"],
    );
    let pix_feat = [1, 8, 4, 4].map(Dim::Static);
    last(graph.weight("no_memory", embedding)).output("pix_feat", ElementType::Float32, pix_feat)
}

pub(crate) fn published_encoder() -> GraphBuilder {
    encoder_with_pix_feat(|g| g.node("Add", ["image_embeddings", "no_memory"], ["pix_feat"]))
}

pub(crate) fn published_decoder() -> GraphBuilder {
    graph(PUBLISHED_OUTPUTS, PUBLISHED_MASKS)
}

/// The publisher's description of a pair.
fn metadata(encoder: &Model, decoder: &Model) -> Value {
    let tensors = |ports: Vec<Port>| -> Value {
        let tensor = |port: &Port| {
            // A size that the graph leaves open has to be some number here.
            let sizes = port.shape.iter().flatten().map(|d| d.size().unwrap_or(64));
            json!({"shape": sizes.collect::<Vec<_>>(), "dtype": port.element_type.to_string()})
        };
        ports.iter().map(|p| (p.name.clone(), tensor(p))).collect::<serde_json::Map<_, _>>().into()
    };
    let entry =
        |model: &Model| json!({"inputs": tensors(model.inputs()), "outputs": tensors(model.outputs())});
    let mut document = json!({
        "runtime": "onnx",
        "precision": "float",
        "model_files": {"encoder.onnx": entry(encoder), "decoder.onnx": entry(decoder)},
    });
    let image = &mut document["model_files"]["encoder.onnx"]["inputs"]["image"];
    image["io_type"] = "image".into();
    image["value_range"] = json!([0.0, 1.0]);
    image["image_metadata"] = json!({"color_format": "rgb"});
    document
}

/// The model that the repository comes with.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny-sam/tiny-sam-onnx-float")
}
