//! The description of a model and its JSON: four kinds of dims kept apart, every node counted once (X9, X1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field};
use onnx_graph::{
    Attribute,
    ElementType::{Bool, Float32, Int8, Int64},
    GraphBuilder, Model, Weight,
};
use serde_json::json;

fn model() -> Model {
    let branch = |out: &str| {
        GraphBuilder::new("b")
            .weight("inner", Weight::int64([1], &[1]))
            .node("Relu", ["x"], [out])
            .node("Add", [out, "x"], ["sum"])
            .untyped_output("sum")
    };
    let graph = GraphBuilder::new("g")
        .input("x", Float32, [0.into(), 3.into(), "n".into(), "?".into()])
        .input("c", Bool, [])
        .input("w", Float32, [2.into(), 2.into()])
        .weight("w", Weight::float32([2, 2], &[0.0; 4]))
        .weight("q", Weight::raw(Int8, [3], vec![0; 3]))
        .weight("far", Weight::external(Float32, [5], &[("location", "m.data"), ("offset", "100")]))
        .node_with("Constant", [], ["k"], [("value_ints", Attribute::Ints(vec![1, 2]))])
        .node_with("Constant", [], ["t"], [("value", Attribute::Tensor(Weight::float32([2], &[0.0; 2])))])
        .node_with(
            "If",
            ["c"],
            ["y"],
            [("then_branch", Attribute::Graph(branch("r"))), ("else_branch", Attribute::Graph(branch("s")))],
        )
        .node("Relu", ["x"], ["z"])
        .node("MatMul", ["w", "w"], ["p"])
        .output("y", Float32, [0.into()])
        .output("z", Float32, ["a".into(), "b".into(), "c".into(), "d".into()])
        .output("p", Float32, [2.into(), 9.into()])
        .build();
    let node = [bytes(1, "a"), bytes(2, "b"), bytes(4, "Relu")].concat();
    let function = [bytes(1, "F"), bytes(10, "mine"), bytes(field::FUNCTION_NODE, node)].concat();
    Model::from_bytes([graph.to_bytes().unwrap(), bytes(field::MODEL_FUNCTION, function)].concat()).unwrap()
}

#[test]
fn as_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let mut found = serde_json::to_value(model().describe(Some(&path)).unwrap()).unwrap();
    let operator = |operator: &str, main: usize, sub_graphs: usize, functions: usize| json!({ "domain": "", "operator": operator, "main": main, "sub_graphs": sub_graphs, "functions": functions });
    let tensors = |element_type: &str, tensors: u64, parameters: u64, bytes: u64| json!({ "element_type": element_type, "tensors": tensors, "parameters": parameters, "bytes": bytes });
    let expected = json!({
        "ir_version": 8,
        "producer_name": "onnx-graph",
        "producer_version": env!("CARGO_PKG_VERSION"),
        "opsets": [{ "domain": "", "version": 17 }],
        "functions": [{ "domain": "mine", "name": "F", "nodes": 1 }],
        "inputs": [
            { "name": "x", "element_type": "float32", "shape": [0, 3, "n", null] },
            { "name": "c", "element_type": "bool", "shape": [] },
        ],
        "outputs": [
            // The branches give four dims, the file one: the graph is believed.
            { "name": "y", "element_type": "float32", "shape": [0, 3, "n", null], "depends_on": ["c", "x"] },
            { "name": "z", "element_type": "float32", "shape": [0, 3, "n", "d"], "depends_on": ["x"] },
            { "name": "p", "element_type": "float32", "shape": [2, 2], "depends_on": [] },
        ],
        "nodes": { "main": 5, "sub_graphs": 4, "functions": 1 },
        "operators": [
            operator("Relu", 1, 2, 1),
            operator("Add", 0, 2, 0),
            operator("Constant", 2, 0, 0),
            operator("If", 1, 0, 0),
            operator("MatMul", 1, 0, 0),
        ],
        "initializers": [tensors("float32", 2, 9, 36), tensors("int64", 2, 2, 16), tensors("int8", 1, 3, 3)],
        "constants": [tensors("int64", 1, 2, 16), tensors("float32", 1, 2, 8)],
        "sidecars": [{ "location": "m.data", "tensors": 1, "needed_bytes": 120, "file_bytes": null }],
        "precision": "fp32",
        "quantized": true,
        "macs": 8,
        "macs_in_sub_graphs": 0,
        "macs_unknown": [],
        "contradictions": [
            {
                "value": "y",
                "recorded": { "element_type": "float32", "shape": [0] },
                "inferred": { "element_type": "float32", "shape": [0, 3, "n", null] },
            },
            {
                "value": "p",
                "recorded": { "element_type": "float32", "shape": [2, 9] },
                "inferred": { "element_type": "float32", "shape": [2, 2] },
            },
        ],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());

    std::fs::write(folder.path().join("m.data"), [0; 130]).unwrap();
    found = serde_json::to_value(model().describe(Some(&path)).unwrap()).unwrap();
    assert_eq!(found["sidecars"][0]["file_bytes"], 130);
}

#[test]
fn every_node_is_counted_once() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/structures");
    let mut models = common::fixture_graphs();
    models.extend(["published-encoder.onnx", "plain-decoder.onnx"].map(|name| folder.join(name)));
    for path in models {
        let model = Model::read(&path).unwrap();
        let d = model.describe(Some(&path)).unwrap();
        assert_eq!(d.nodes.total(), model.nodes().len(), "{}", path.display());
        assert_eq!(d.operators.iter().map(|o| o.nodes.total()).sum::<usize>(), d.nodes.total());
        assert!(d.operators.is_sorted_by_key(|o| std::cmp::Reverse(o.nodes.total())));
    }
    let of_ours = model();
    assert_eq!(of_ours.describe(None).unwrap().nodes.total(), of_ours.nodes().len());
}

#[test]
fn tensors_that_are_no_size() {
    let model = |dims: [u64; 2]| {
        let external = Weight::raw(Int64, dims, Vec::new());
        GraphBuilder::new("g").weight("w", external).build()
    };
    assert!(model([0, 5]).describe(None).is_ok());
    let error = model([1 << 40, 1 << 40]).describe(None).unwrap_err();
    assert!(error.to_string().contains("tensor `w`"), "{error}");
}
