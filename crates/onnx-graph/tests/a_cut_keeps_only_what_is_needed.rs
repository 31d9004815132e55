//! A cut is the model that one would have built for the part alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{ANY, bytes, graph, outputs, within};
use onnx_graph::{
    Attribute, Dim,
    ElementType::{Float32, Int64},
    Error, GraphBuilder, Model, Weight, external_data,
};

fn weight() -> Weight {
    Weight::float32([1], &[1.0])
}

/// Both branches of an encoder as it is published, with nodes of the two mixed.
#[test]
fn two_branches_come_apart() {
    let model = graph(&["image", "points", "labels"])
        .weight("kernel", weight())
        .weight("table", weight())
        .node("Cos", ["points"], ["code"])
        .node("Conv", ["image", "kernel"], ["features"])
        .value("features", Float32, ["n".into()])
        .node("Mul", ["code", "table"], ["weighed"])
        .value("weighed", Int64, ["m".into()])
        .node("Relu", ["features"], ["embedding"])
        .node("Add", ["weighed", "labels"], ["sparse"]);
    let model = outputs(model, &["embedding", "sparse"]).build();

    let image = graph(&["image"])
        .weight("kernel", weight())
        .node("Conv", ["image", "kernel"], ["features"])
        .value("features", Float32, ["n".into()])
        .node("Relu", ["features"], ["embedding"]);
    assert_eq!(model.cut(&["image"], &["embedding"]).unwrap(), outputs(image, &["embedding"]).build());

    // Inputs keep the order that was asked for; one that is not needed goes.
    let prompt = graph(&["labels", "points"])
        .weight("table", weight())
        .node("Cos", ["points"], ["code"])
        .node("Mul", ["code", "table"], ["weighed"])
        .value("weighed", Int64, ["m".into()])
        .node("Add", ["weighed", "labels"], ["sparse"]);
    let cut = model.cut(&["labels", "image", "points"], &["sparse"]).unwrap();
    assert_eq!(cut, outputs(prompt, &["sparse"]).build());
}

#[test]
fn an_inner_value_becomes_an_input() {
    let model = graph(&["x"])
        .weight("w", weight())
        .node("Conv", ["x", "w"], ["middle"])
        .node("Relu", ["middle"], ["other"])
        .node("Add", ["middle", "other"], ["y"])
        .value("middle", Int64, ["n".into(), 3.into()]);
    let model = outputs(model, &["y"]).build();
    let tail = GraphBuilder::new("test")
        .input("middle", Int64, ["n".into(), 3.into()])
        .node("Relu", ["middle"], ["other"])
        .node("Add", ["middle", "other"], ["y"]);
    assert_eq!(model.cut(&["middle"], &["y"]).unwrap(), outputs(tail, &["y"]).build());
    // As an output it keeps its type, and is not listed twice.
    let head = graph(&["x"]).weight("w", weight()).node("Conv", ["x", "w"], ["middle"]);
    let head = head.output("middle", Int64, ["n".into(), 3.into()]).build();
    assert_eq!(model.cut(&["x"], &["middle"]).unwrap(), head);
    // A value without a recorded type stays without.
    let untyped = model.cut(&["x"], &["other"]).unwrap().outputs();
    assert_eq!(untyped[0].to_string(), "other undefined[...]");
}

#[test]
fn captured_values_are_needed() {
    let branch = || {
        let inner = GraphBuilder::new("inner").node("Mul", ["w", "shifted"], ["out"]).untyped_output("out");
        GraphBuilder::new("branch")
            .node_with("If", ["flag"], ["z"], [("then_branch", Attribute::Graph(inner))])
            .untyped_output("z")
    };
    let model = graph(&["flag", "x", "other"])
        .weight("w", weight())
        .weight("unneeded", weight())
        .node("Neg", ["x"], ["shifted"])
        .node_with("If", ["flag"], ["y"], [("then_branch", Attribute::Graph(branch()))])
        .node("Abs", ["other"], ["beside"]);
    let model = outputs(model, &["y", "beside"]).build();
    let part = graph(&["x", "flag"]).weight("w", weight()).node("Neg", ["x"], ["shifted"]).node_with(
        "If",
        ["flag"],
        ["y"],
        [("then_branch", Attribute::Graph(branch()))],
    );
    assert_eq!(model.cut(&["x", "flag"], &["y"]).unwrap(), outputs(part, &["y"]).build());
    // An input that only a sub-graph of a sub-graph reads.
    let tail = model.cut(&["flag", "shifted"], &["y"]).unwrap();
    assert_eq!(tail.inputs().iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["flag", "shifted"]);
}

#[test]
fn what_is_missing_is_named() {
    let model = graph(&["x", "mask"]).node("Mul", ["x", "mask"], ["y"]);
    let model = outputs(model, &["y"]).build();
    let error = model.cut(&["x"], &["y"]).unwrap_err();
    assert_eq!(error.to_string(), "the cut at [\"y\"] also needs the graph input `mask`");
    for (inputs, outputs) in [(&["x", "mask"][..], "typo"), (&["x", "mask", "typo"], "y")] {
        let error = model.cut(inputs, &[outputs]).unwrap_err();
        assert!(matches!(&error, Error::UnknownValue { name } if name == "typo"), "{error:?}");
    }
}

/// A node that is needed for its second result would give the first one again, beside the input of that name.
#[test]
fn a_value_is_not_both_fed_and_computed() {
    let model = graph(&["x"]).node("Split", ["x"], ["a", "b"]).node("Add", ["a", "b"], ["y"]);
    let model = outputs(model, &["y"]).build();
    let error = model.cut(&["x", "a"], &["y"]).unwrap_err();
    assert!(matches!(&error, Error::DefinedTwice { name } if name == "a"), "{error:?}");
    assert!(model.cut(&["a", "b"], &["y"]).is_ok());
}

#[test]
fn inputs_and_weights_can_be_outputs() {
    let model =
        outputs(graph(&["x"]).weight("w", weight()).node("Neg", ["x"], ["y"]), &["x", "w", "y"]).build();
    let part = outputs(graph(&["x"]).weight("w", weight()), &["x", "w"]).build();
    assert_eq!(model.cut(&["x"], &["x", "w"]).unwrap(), part);
}

/// Before version 4 of the representation every initializer was an input as well.
#[test]
fn listed_initializers_stay_listed() {
    let listed = |inputs: &[&str], weights: &[&str]| {
        weights.iter().fold(graph(inputs), |g, name| g.weight(name, weight()))
    };
    let model =
        listed(&["w", "x", "v"], &["w", "v"]).node("Mul", ["x", "w"], ["y"]).node("Neg", ["v"], ["z"]);
    let model = outputs(model, &["y", "z"]).build();
    let part = outputs(listed(&["x", "w"], &["w"]).node("Mul", ["x", "w"], ["y"]), &["y"]).build();
    assert_eq!(model.cut(&["x"], &["y"]).unwrap(), part);
}

#[test]
fn sidecars_stay_where_they_are() {
    let entries = [("location", "sub/w.data"), ("offset", "16"), ("length", "4")];
    let model = graph(&["x"])
        .weight("w", Weight::external(ANY.0, [1], &entries))
        .weight("v", Weight::external(ANY.0, [1], &[("location", "v.data")]))
        .node("Mul", ["x", "w"], ["y"])
        .node("Mul", ["x", "v"], ["z"]);
    let cut = outputs(model, &["y", "z"]).build().cut(&["x"], &["y"]).unwrap();
    let list = external_data::list(&cut, "model.onnx".as_ref()).unwrap();
    let [entry] = list.as_slice() else { panic!("{list:?}") };
    assert_eq!((entry.location.as_str(), entry.offset, entry.length), ("sub/w.data", 16, 4));
}

/// Functions may be called by any part; training speaks of the whole; the rest goes by the names that are left.
#[test]
fn what_the_builder_cannot_say() {
    use common::field::*;
    let node = |input: &str, output: &str| bytes(GRAPH_NODE, [bytes(1, input), bytes(2, output)].concat());
    let annotation = |tensor: &str| bytes(GRAPH_ANNOTATION, bytes(1, tensor));
    let sparse = |name: &str| within(&[GRAPH_SPARSE, SPARSE_VALUES], bytes(TENSOR_NAME, name));
    let output = |name: &str| bytes(GRAPH_OUTPUT, bytes(1, name));
    let function = bytes(MODEL_FUNCTION, bytes(1, "a function"));
    let training = within(&[MODEL_TRAINING, TRAINING_ALGORITHM], bytes(2, "training"));
    let graph = [
        [node("w", "y"), node("v", "z"), output("y"), output("z")].concat(),
        ["w", "v", "y", "z"].map(annotation).concat(),
        [sparse("w"), sparse("v")].concat(),
    ];
    let model = [bytes(MODEL_GRAPH, graph.concat()), training, function.clone()].concat();
    let part = [node("w", "y"), output("y"), annotation("w"), annotation("y"), sparse("w")].concat();
    let cut = Model::from_bytes(model).unwrap().cut(&[], &["y"]).unwrap();
    assert_eq!(cut, Model::from_bytes([bytes(MODEL_GRAPH, part), function].concat()).unwrap());
}

/// Shapes given with the outputs are kept with their symbols.
#[test]
fn types_stay() {
    let dims = || [1.into(), Dim::from("height"), Dim::Unknown];
    let model = GraphBuilder::new("test").opset(13).input("x", Int64, dims()).node("Neg", ["x"], ["y"]);
    let model = model.output("y", Int64, dims()).build();
    let cut = model.cut(&["x"], &["y"]).unwrap();
    assert_eq!(cut, model);
    assert_eq!((cut.ir_version(), cut.opset_imports()[0].version), (8, 13));
}
