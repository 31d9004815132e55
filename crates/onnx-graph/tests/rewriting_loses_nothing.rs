//! A model that is read and written again has the same bytes, with fields that this version knows nothing of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, external_tensor, field, fixture_graphs, number};
use onnx_graph::Model;

/// A model with an unknown field at the end of the model, the graph, the node and the tensor.
fn with_unknown_fields() -> (Vec<u8>, [&'static str; 4]) {
    let marks = ["in the node", "in the tensor", "in the graph", "in the model"];
    let unknown = |mark: &str| bytes(field::UNKNOWN, mark);
    let node = [bytes(1, "w"), bytes(2, "y"), bytes(4, "Relu"), unknown(marks[0])].concat();
    let tensor = [external_tensor("w", "w.data"), unknown(marks[1])].concat();
    let output = bytes(field::GRAPH_OUTPUT, bytes(1, "y"));
    let graph =
        [bytes(field::GRAPH_NODE, node), bytes(field::GRAPH_INITIALIZER, tensor), output, unknown(marks[2])];
    let model = [number(1, 8), bytes(field::MODEL_GRAPH, graph.concat()), unknown(marks[3])].concat();
    (model, marks)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn unknown_fields_survive() {
    let (bytes, _) = with_unknown_fields();
    assert_eq!(Model::from_bytes(bytes.clone()).unwrap().to_bytes().unwrap(), bytes);
}

#[test]
fn unknown_fields_survive_a_cut() {
    let (bytes, marks) = with_unknown_fields();
    let cut = Model::from_bytes(bytes).unwrap().cut(&[], &["y"]).unwrap().to_bytes().unwrap();
    for mark in marks {
        assert!(contains(&cut, mark), "{mark}");
    }
}

#[test]
fn an_exporters_files_keep_every_byte() {
    for path in fixture_graphs() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(Model::read(&path).unwrap().to_bytes().unwrap() == bytes, "{}", path.display());
    }
}
