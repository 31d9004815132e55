//! Histogram and dependence of the full-size graphs, from their structure alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use onnx_graph::{Dependences, Model, Rule, Severity, Weights, external_data};

fn structure(name: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/structures");
    Model::read(folder.join(name).with_extension("onnx")).unwrap()
}

/// Operators with their counts; those of another domain than the standard one with it.
fn histogram(model: &Model) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in model.nodes() {
        let name = match node.domain() {
            "" => node.op_type().to_owned(),
            domain => format!("{domain}:{}", node.op_type()),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Counted on the exported files by onnx 1.23, operators as `Name count`.
const HISTOGRAMS: [(&str, usize, &str); 5] = [
    (
        "published-encoder",
        589,
        "Transpose 209, Reshape 138, Conv 79, Add 30, Mul 28, MatMul 25, LayerNormalization 24, Softmax 12, Gelu 12, \
         MaxPool 6, Pad 5, Slice 5, Sub 3, Gemm 3, Concat 3, Div 1, Resize 1, Unsqueeze 1, Sin 1, Cos 1, Equal 1, Cast 1",
    ),
    (
        "published-decoder",
        1008,
        "Transpose 261, Conv 179, Squeeze 179, MatMul 113, Mul 112, Softmax 56, Unsqueeze 28, Add 18, Gemm 15, Relu 12, \
         Concat 9, LayerNormalization 9, Gather 5, Reshape 4, Slice 3, ConvTranspose 2, Gelu 2, Sigmoid 1",
    ),
    (
        "plain-encoder",
        1022,
        "Unsqueeze 111, Add 109, Transpose 89, Concat 78, Reshape 76, MatMul 76, Gather 69, Div 64, Mod 48, Shape 45, \
         Mul 44, Squeeze 36, Sub 27, LayerNormalization 24, Sqrt 24, Slice 22, Cast 17, Split 12, Softmax 12, Gelu 12, \
         Conv 7, MaxPool 6, Pad 5, Equal 5, Tile 1, Resize 1, Sin 1, Cos 1",
    ),
    (
        "plain-decoder",
        221,
        "Reshape 52, Gemm 44, Transpose 26, Add 20, Mul 13, MatMul 13, Relu 12, LayerNormalization 9, Softmax 6, \
         Gather 5, Unsqueeze 4, Slice 3, Concat 2, ConvTranspose 2, ReduceMean 2, Gelu 2, com.microsoft:Attention 1, \
         Sub 1, Pow 1, Sqrt 1, Div 1, Sigmoid 1",
    ),
    (
        "edgetam-encoder",
        309,
        "Conv 132, Add 80, Gelu 27, Mul 18, ReduceMean 10, Relu 10, Sigmoid 10, Equal 5, Cast 5, Sub 3, Concat 3, Div 1, \
         Resize 1, Unsqueeze 1, MatMul 1, Sin 1, Cos 1",
    ),
];

#[test]
fn operators_are_counted() {
    for (name, nodes, operators) in HISTOGRAMS {
        let model = structure(name);
        let expected: BTreeMap<String, usize> = operators
            .split(", ")
            .map(|entry| entry.split_once(' ').unwrap())
            .map(|(operator, count)| (operator.to_owned(), count.parse().unwrap()))
            .collect();
        assert_eq!(histogram(&model), expected, "{name}");
        assert_eq!(model.node_count(), nodes, "{name}");
        assert_eq!(expected.values().sum::<usize>(), nodes, "{name}");
    }
}

/// Outputs, each with the inputs that it depends on.
type Expected<'a> = &'a [(&'a str, &'a [&'a str])];

#[test]
fn outputs_depend_on_what_they_should() {
    const IMAGE: &[&str] = &["image"];
    const PROMPT: &[&str] = &["labels", "unnorm_coords"];
    const ALL: &[&str] =
        &["high_res_features1", "high_res_features2", "image_embeddings", "sparse_embedding"];
    let encoder = [
        ("image_embeddings", IMAGE),
        ("high_res_features1", IMAGE),
        ("high_res_features2", IMAGE),
        ("sparse_embedding", PROMPT),
    ];
    // The scores come from tokens alone: what is upscaled for the masks does not reach them.
    let decoder = [("masks", ALL), ("scores", &ALL[2..])];
    let published = [&encoder[..], &[("pix_feat", IMAGE)]].concat();
    let graphs: [(&str, Expected<'_>); 5] = [
        ("published-encoder", &published),
        ("plain-encoder", &encoder),
        ("edgetam-encoder", &encoder),
        ("published-decoder", &decoder),
        ("plain-decoder", &decoder),
    ];
    for (name, expected) in graphs {
        let model = structure(name);
        let outputs: Vec<String> = model.outputs().into_iter().map(|o| o.name).collect();
        let names: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let expected_names: Vec<&str> = expected.iter().map(|(output, _)| *output).collect();
        assert_eq!(names, expected_names, "{name}");
        let found = Dependences::new(&model).unwrap().inputs_of_each(&names).unwrap();
        for ((output, inputs), found) in expected.iter().zip(found) {
            assert_eq!(found, inputs.iter().copied().collect::<BTreeSet<_>>(), "{name}: {output}");
        }
    }
}

#[test]
fn the_prompt_part_is_small() {
    let model = structure("published-encoder");
    let cut = model.cut(&["labels", "unnorm_coords"], &["sparse_embedding"]).unwrap();
    let image = ["image_embeddings", "high_res_features1", "high_res_features2", "pix_feat"];
    let rest = model.cut(&["image"], &image).unwrap();
    // Nothing is lost and nothing is in both.
    assert_eq!((cut.node_count(), rest.node_count()), (18, 571));
}

#[test]
fn weights_are_declared_and_absent() {
    for (name, _, _) in HISTOGRAMS {
        let model = structure(name);
        let list = external_data::list(&model, name.as_ref()).unwrap();
        assert!(list.iter().all(|entry| entry.location == "weights.data"), "{name}");
        let millions = list.iter().map(|entry| entry.length).sum::<u64>() / 4_000_000;
        // SAM 2.1 tiny has 33.5 million parameters in its encoder, its decoder 4 to 5; EdgeTAM's encoder has 4.8.
        let expected = if name.ends_with("decoder") || name.starts_with("edge") { 4..=5 } else { 33..=33 };
        assert!(expected.contains(&millions), "{name}: {millions}");
    }
}

#[test]
fn nothing_is_wrong_with_them() {
    for (name, _, _) in HISTOGRAMS {
        let findings = structure(name).check(name.as_ref(), &Weights::inline());
        let grave: Vec<_> =
            findings.iter().filter(|f| f.severity > Severity::Note).map(ToString::to_string).collect();
        assert!(grave.is_empty(), "{grave:#?}");
        // Its weights are not there, and that is said.
        assert!(findings.iter().any(|f| f.rule == Rule::NotRead), "{name}");
    }
}
