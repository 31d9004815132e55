//! Protobuf written by hand, for what the builder cannot say and for files that no exporter would write.
#![allow(dead_code)] // every test file uses its own part

use std::path::{Path, PathBuf};

use onnx_graph::{
    Dim,
    ElementType::{self, Float32},
    GraphBuilder,
};

/// Numbers of the fields in `onnx.proto`.
pub(crate) mod field {
    pub(crate) const MODEL_GRAPH: u64 = 7;
    pub(crate) const MODEL_TRAINING: u64 = 20;
    pub(crate) const MODEL_FUNCTION: u64 = 25;
    pub(crate) const GRAPH_NODE: u64 = 1;
    pub(crate) const GRAPH_INITIALIZER: u64 = 5;
    pub(crate) const GRAPH_INPUT: u64 = 11;
    pub(crate) const GRAPH_OUTPUT: u64 = 12;
    pub(crate) const GRAPH_ANNOTATION: u64 = 14;
    pub(crate) const GRAPH_SPARSE: u64 = 15;
    pub(crate) const NODE_ATTRIBUTE: u64 = 5;
    pub(crate) const ATTRIBUTE_TENSOR: u64 = 5;
    pub(crate) const ATTRIBUTE_GRAPH: u64 = 6;
    pub(crate) const ATTRIBUTE_TENSORS: u64 = 10;
    pub(crate) const ATTRIBUTE_GRAPHS: u64 = 11;
    pub(crate) const ATTRIBUTE_TYPE: u64 = 20;
    pub(crate) const ATTRIBUTE_SPARSE: u64 = 22;
    pub(crate) const ATTRIBUTE_SPARSES: u64 = 23;
    pub(crate) const SPARSE_VALUES: u64 = 1;
    pub(crate) const SPARSE_INDICES: u64 = 2;
    pub(crate) const FUNCTION_NODE: u64 = 7;
    pub(crate) const FUNCTION_DEFAULT: u64 = 11;
    pub(crate) const TRAINING_INITIALIZATION: u64 = 1;
    pub(crate) const TRAINING_ALGORITHM: u64 = 2;
    pub(crate) const TENSOR_DIM: u64 = 1;
    pub(crate) const TENSOR_TYPE: u64 = 2;
    pub(crate) const TENSOR_NAME: u64 = 8;
    pub(crate) const TENSOR_ENTRY: u64 = 13;
    pub(crate) const TENSOR_LOCATION: u64 = 14;
    /// A number that ONNX does not use.
    pub(crate) const UNKNOWN: u64 = 1999;
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field that holds a number.
pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that holds bytes, text or a message.
pub(crate) fn bytes(field: u64, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    [varint(field << 3 | 2), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// `payload` within `fields`, the outermost first.
pub(crate) fn within(fields: &[u64], payload: Vec<u8>) -> Vec<u8> {
    fields.iter().rev().fold(payload, |inner, &field| bytes(field, inner))
}

/// A `TensorProto` of one float in a sidecar.
pub(crate) fn external_tensor(name: &str, location: &str) -> Vec<u8> {
    let entry = [bytes(1, "location"), bytes(2, location)].concat();
    let parts = [
        number(field::TENSOR_DIM, 1),
        number(field::TENSOR_TYPE, 1),
        bytes(field::TENSOR_NAME, name),
        bytes(field::TENSOR_ENTRY, entry),
        number(field::TENSOR_LOCATION, 1),
    ];
    parts.concat()
}

/// A model whose graph holds sub-graphs, one in another, `levels` deep.
pub(crate) fn nested(levels: usize) -> Vec<u8> {
    let mut graph = Vec::new();
    for _ in 0..levels {
        graph = within(&[field::GRAPH_NODE, field::NODE_ATTRIBUTE, field::ATTRIBUTE_GRAPH], graph);
    }
    bytes(field::MODEL_GRAPH, graph)
}

/// Ports that no test cares about have this type.
pub(crate) const ANY: (ElementType, [Dim; 1]) = (Float32, [Dim::Static(1)]);

/// A graph with these inputs, all of one type.
pub(crate) fn graph(inputs: &[&str]) -> GraphBuilder {
    inputs.iter().fold(GraphBuilder::new("test"), |g, input| g.input(input, ANY.0, ANY.1))
}

/// Adds outputs, all of one type.
pub(crate) fn outputs(graph: GraphBuilder, outputs: &[&str]) -> GraphBuilder {
    outputs.iter().fold(graph, |g, output| g.output(output, ANY.0, ANY.1))
}

/// Writes a file, with its folders.
pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// The two graphs of the model in `fixtures/`.
pub(crate) fn fixture_graphs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny-sam/tiny-sam-onnx-float");
    ["TinySamEncoder.onnx", "TinySamDecoder.onnx"].map(|name| folder.join(name)).to_vec()
}

/// Decodes base64, for models written down in JSON.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = (0..4).fold(0_u32, |bits, i| bits << 6 | u32::from(four.get(i).copied().unwrap_or(0)));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

/// The same model with its weights inside.
pub(crate) fn inlined(model: &onnx_graph::Model, weights: &onnx_graph::Weights) -> onnx_graph::Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inline.onnx");
    model.save(&path, weights, &onnx_graph::SaveOptions::inline()).unwrap();
    onnx_graph::Model::read(path).unwrap()
}
