//! XD1, XD3, XD+, X11: every place in a model that can hold a tensor is looked at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, external_tensor, field::*, graph, number, within, write};
use onnx_graph::{
    Attribute, ElementType::Float32, Error, ExternalDataRule, GraphBuilder, Model, Weight, external_data,
};

fn external(location: &str) -> Weight {
    Weight::external(Float32, [1], &[("location", location)])
}

fn locations(model: &Model) -> Vec<String> {
    let list = external_data::list(model, "model.onnx".as_ref()).unwrap();
    list.into_iter().map(|e| e.location).collect()
}

/// Found where it is beside the model; missed where it is not.
fn found_and_missed(model: &Model) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "model.onnx", model.to_bytes().unwrap());
    let sidecar = write(folder.path(), "weights.data", [0; 4]);
    let found = external_data::verify(&path, folder.path()).unwrap();
    assert_eq!(found, [sidecar.canonicalize().unwrap()]);
    std::fs::remove_file(sidecar).unwrap();
    let error = external_data::verify(&path, folder.path()).unwrap_err();
    let Error::ExternalData { rule, location, graph, .. } = error else { panic!("{error:?}") };
    assert_eq!((rule, location.as_str(), graph), (ExternalDataRule::Missing, "weights.data", path));
}

#[test]
fn initializer() {
    found_and_missed(&graph(&[]).weight("w", external("weights.data")).build());
}

#[test]
fn constant_in_a_branch() {
    let constant = [("value", Attribute::Tensor(external("weights.data")))];
    let mut branch = GraphBuilder::new("branch").node_with("Constant", [], ["c"], constant);
    for _ in 0..2 {
        found_and_missed(
            &graph(&["x"])
                .node_with("If", ["x"], ["y"], [("else_branch", Attribute::Graph(branch.clone()))])
                .build(),
        );
        // Once more, one level down.
        let within = [("then_branch", Attribute::Graph(branch))];
        branch = GraphBuilder::new("outer").node_with("If", ["x"], ["y"], within);
    }
}

#[test]
fn places_that_exporters_seldom_use() {
    let attribute = [MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE];
    let places: [(&str, &[u64]); 16] = [
        ("sparse values", &[MODEL_GRAPH, GRAPH_SPARSE, SPARSE_VALUES]),
        ("sparse indices", &[MODEL_GRAPH, GRAPH_SPARSE, SPARSE_INDICES]),
        ("attribute without a type", &[&attribute[..], &[ATTRIBUTE_TENSOR]].concat()),
        ("TENSORS", &[&attribute[..], &[ATTRIBUTE_TENSORS]].concat()),
        ("SPARSE_TENSOR values", &[&attribute[..], &[ATTRIBUTE_SPARSE, SPARSE_VALUES]].concat()),
        ("SPARSE_TENSOR indices", &[&attribute[..], &[ATTRIBUTE_SPARSE, SPARSE_INDICES]].concat()),
        ("SPARSE_TENSORS values", &[&attribute[..], &[ATTRIBUTE_SPARSES, SPARSE_VALUES]].concat()),
        ("SPARSE_TENSORS indices", &[&attribute[..], &[ATTRIBUTE_SPARSES, SPARSE_INDICES]].concat()),
        ("GRAPH", &[&attribute[..], &[ATTRIBUTE_GRAPH, GRAPH_INITIALIZER]].concat()),
        ("GRAPHS", &[&attribute[..], &[ATTRIBUTE_GRAPHS, GRAPH_INITIALIZER]].concat()),
        ("function node", &[MODEL_FUNCTION, FUNCTION_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR]),
        ("function default", &[MODEL_FUNCTION, FUNCTION_DEFAULT, ATTRIBUTE_TENSOR]),
        (
            "graph as function default",
            &[MODEL_FUNCTION, FUNCTION_DEFAULT, ATTRIBUTE_GRAPH, GRAPH_INITIALIZER],
        ),
        ("training start", &[MODEL_TRAINING, TRAINING_INITIALIZATION, GRAPH_INITIALIZER]),
        ("training step", &[MODEL_TRAINING, TRAINING_ALGORITHM, GRAPH_INITIALIZER]),
        (
            "training node",
            &[MODEL_TRAINING, TRAINING_ALGORITHM, GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR],
        ),
    ];
    for (place, fields) in places {
        // The graph that every model needs stands first; fields of one message merge.
        let model = [bytes(MODEL_GRAPH, []), within(fields, external_tensor("hidden", "hidden.data"))];
        let model = Model::from_bytes(model.concat()).unwrap();
        assert_eq!(locations(&model), ["hidden.data"], "{place}");
    }
}

/// An attribute that calls itself an integer but holds a tensor.
#[test]
fn an_attribute_that_lies_about_its_type() {
    let tensor = bytes(ATTRIBUTE_TENSOR, external_tensor("hidden", "hidden.data"));
    let attribute = [tensor, number(ATTRIBUTE_TYPE, 2)].concat();
    let model = within(&[MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE], attribute);
    assert_eq!(locations(&Model::from_bytes(model).unwrap()), ["hidden.data"]);
}

#[test]
fn each_file_once_in_the_order_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let graph = ["b.data", "a.data", "./b.data", "sub\\c.data"]
        .into_iter()
        .fold(graph(&[]), |g, location| g.weight(location, external(location)));
    let path = write(folder.path(), "model.onnx", graph.build().to_bytes().unwrap());
    let files = ["b.data", "a.data", "sub/c.data"]
        .map(|name| write(folder.path(), name, [0; 4]).canonicalize().unwrap());
    assert_eq!(external_data::verify(&path, folder.path()).unwrap(), files);
}

#[test]
fn tensors_in_the_model_need_no_file() {
    let model = graph(&[]).weight("w", Weight::int64([2], &[1, 2])).build();
    assert!(locations(&model).is_empty());
}

/// X1: what each tensor needs, without looking at any file.
#[test]
fn the_list_says_which_bytes() {
    let entries = [("location", "w.data"), ("offset", "4096"), ("length", "24"), ("checksum", "x")];
    let model = graph(&[]).weight("w", Weight::external(Float32, [2, 3], &entries)).build();
    let list = external_data::list(&model, "model.onnx".as_ref()).unwrap();
    let entry = &list[0];
    assert_eq!((entry.tensor.as_str(), entry.location.as_str()), ("w", "w.data"));
    assert_eq!((entry.offset, entry.length), (4096, 24));
}
