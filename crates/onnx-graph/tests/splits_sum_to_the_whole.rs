//! A split model computes what the whole does, and nothing about the split is told in advance.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/run.rs"]
mod run;

use std::collections::HashMap;

use common::inlined;
use onnx_graph::{
    Attribute::Ints, Dim, ElementType::Float32, Error, GraphBuilder, Model, Split, Weight, Weights,
};
use run::run_with;

fn dims<const N: usize>(sizes: [u64; N]) -> [Dim; N] {
    sizes.map(Dim::Static)
}

/// Both parts, one after the other, and the whole: every output to the bit.
fn assert_sum(whole: &Model, split: &Split) {
    let mut known: HashMap<String, (Vec<usize>, Vec<f32>)> = HashMap::new();
    let expected = run_with(whole, &known);
    for part in [&split.early, &split.late].into_iter().flatten() {
        let found = run_with(part, &known);
        known.extend(found);
    }
    for (name, (shape, values)) in expected {
        let (found_shape, found) = known.get(&name).unwrap_or_else(|| panic!("`{name}` is missing"));
        assert_eq!(&shape, found_shape, "{name}");
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&values), bits(found), "{name}");
    }
}

/// `image` and `points` meet in `mask`; `image` alone gives `embedding`, and much of `mask` as well.
fn decoder() -> Model {
    GraphBuilder::new("g")
        .input("points", Float32, dims([2, 4]))
        .input("image", Float32, dims([3, 4]))
        .weight("w", Weight::float32([4, 4], &run::values("w", 16)))
        .node("MatMul", ["image", "w"], ["keys"])
        .node_with("Transpose", ["keys"], ["turned"], [("perm", Ints(vec![1, 0]))])
        .node("Relu", ["keys"], ["embedding"])
        .node("Neg", ["w"], ["constant"])
        .node("MatMul", ["points", "constant"], ["queries"])
        .node("MatMul", ["queries", "turned"], ["mask"])
        .output("mask", Float32, dims([2, 3]))
        .output("embedding", Float32, dims([3, 4]))
        .build()
}

#[test]
fn nodes_that_need_no_prompt_are_computed_early() {
    let whole = decoder();
    let split = whole.split(&["image"], &Weights::inline()).unwrap();
    let (early, late) = (split.early.as_ref().unwrap(), split.late.as_ref().unwrap());
    let carried: Vec<String> = split.carried.iter().map(ToString::to_string).collect();
    assert_eq!(carried, ["turned float32[4,3]"]);
    assert_eq!((early.node_count(), late.node_count()), (3, 3));
    let names = |ports: Vec<onnx_graph::Port>| ports.into_iter().map(|port| port.name).collect::<Vec<_>>();
    assert_eq!(names(early.outputs()), ["turned", "embedding"]);
    assert_eq!(names(late.inputs()), ["turned", "points"]);
    assert_sum(&whole, &split);
}

#[test]
fn what_cannot_be_separated_is_not() {
    let whole = decoder();
    let all = whole.split(&["image", "points"], &Weights::inline()).unwrap();
    assert!(all.late.is_none() && all.carried.is_empty());
    assert_sum(&whole, &all);
    let nothing = whole.split(&[], &Weights::inline()).unwrap();
    assert!(nothing.early.is_none());
    assert_sum(&whole, &nothing);
    let error = whole.split(&["keys"], &Weights::inline()).unwrap_err();
    assert!(matches!(error, Error::UnknownValue { ref name } if name == "keys"));
}

/// An input that both parts read, a value that is output and carried, and an output that is an input.
#[test]
fn shared_values_go_where_they_are_needed() {
    let whole = GraphBuilder::new("g")
        .input("image", Float32, dims([4]))
        .input("points", Float32, dims([4]))
        .node("Relu", ["image"], ["features"])
        .node("Add", ["features", "image"], ["sum"])
        .node("Mul", ["sum", "points"], ["a"])
        .node("Mul", ["image", "points"], ["b"])
        .output("features", Float32, dims([4]))
        .output("sum", Float32, dims([4]))
        .output("a", Float32, dims([4]))
        .output("b", Float32, dims([4]))
        .build();
    let split = whole.split(&["image"], &Weights::inline()).unwrap();
    let late: Vec<String> = split.late.as_ref().unwrap().inputs().into_iter().map(|p| p.name).collect();
    assert_eq!(late, ["sum", "image", "points"]);
    assert_sum(&whole, &split);
}

#[test]
fn inputs_are_grouped_by_the_outputs_that_need_them() {
    assert_eq!(decoder().input_groups().unwrap(), [["points", "image"]]);
    let encoder = GraphBuilder::new("g")
        .input("labels", Float32, dims([2]))
        .input("image", Float32, dims([2]))
        .input("unused", Float32, dims([2]))
        .input("points", Float32, dims([2]))
        .weight("w", Weight::float32([2], &[1.0, 2.0]))
        .node("Relu", ["image"], ["embedding"])
        .node("Add", ["points", "labels"], ["prompt"])
        .node("Neg", ["labels"], ["mask"])
        .node("Neg", ["w"], ["constant"])
        .output("embedding", Float32, dims([2]))
        .output("prompt", Float32, dims([2]))
        .output("mask", Float32, dims([2]))
        .output("constant", Float32, dims([2]))
        .build();
    let expected: [&[&str]; 2] = [&["labels", "points"], &["image"]];
    assert_eq!(encoder.input_groups().unwrap(), expected);
    let split = encoder.split(&["image"], &Weights::inline()).unwrap();
    assert_sum(&encoder, &split);
}

/// A recorded shape may be wrong; what is carried has the shape that follows from the graph.
#[test]
fn carried_values_have_their_true_types() {
    let n = || [Dim::from("n"), Dim::Static(3)];
    let whole = GraphBuilder::new("g")
        .input("image", Float32, n())
        .input("points", Float32, n())
        .value("features", Float32, dims([1, 3]))
        .node("Relu", ["image"], ["features"])
        .node("Add", ["features", "points"], ["mask"])
        .output("mask", Float32, n())
        .build();
    let split = whole.split(&["image"], &Weights::inline()).unwrap();
    assert_eq!(split.carried[0].to_string(), "features float32[n,3]");
    assert_sum(&whole, &split);
}

/// What is random is not computed in both parts.
#[test]
fn what_is_random_is_computed_once() {
    let whole = GraphBuilder::new("g")
        .input("image", Float32, dims([2]))
        .input("points", Float32, dims([2]))
        .weight("half", Weight::float32([2], &[0.5, 0.5]))
        .node("Bernoulli", ["half"], ["noise"])
        .node("Add", ["image", "noise"], ["embedding"])
        .node("Add", ["points", "noise"], ["mask"])
        .output("embedding", Float32, dims([2]))
        .output("mask", Float32, dims([2]))
        .build();
    let split = whole.split(&["image"], &Weights::inline()).unwrap();
    let random = |part: &Option<Model>| {
        part.iter().flat_map(Model::nodes).filter(|node| node.op_type() == "Bernoulli").count()
    };
    assert_eq!((random(&split.early), random(&split.late)), (1, 0));
    assert_eq!(split.carried[0].name, "noise");
}

#[test]
fn what_is_no_tensor_is_not_carried() {
    let whole = GraphBuilder::new("g")
        .input("image", Float32, dims([2]))
        .input("points", Float32, dims([2]))
        .node("SequenceConstruct", ["image", "image"], ["both"])
        .node("SequenceAt", ["both", "zero"], ["features"])
        .weight("zero", Weight::int64([], &[0]))
        .node("SequenceInsert", ["both", "points"], ["all"])
        .node("SequenceAt", ["all", "zero"], ["mask"])
        .output("mask", Float32, dims([2]))
        .build();
    let error = whole.split(&["image"], &Weights::inline()).unwrap_err();
    assert!(matches!(error, Error::UntypedPort { ref value } if value == "both"), "{error:?}");
}

/// The pair in `fixtures/`: the encoder falls apart into two, most of the decoder needs the prompt.
#[test]
fn the_fixture_pair_is_split() {
    let [encoder, decoder] = <[_; 2]>::try_from(common::fixture_graphs()).unwrap();
    for (path, groups) in [(encoder, 2), (decoder, 1)] {
        let weights = Weights::in_folder(path.parent().unwrap());
        let model = inlined(&Model::read(&path).unwrap(), &weights);
        let found = model.input_groups().unwrap();
        assert_eq!(found.len(), groups, "{found:?}");
        for group in found {
            let group: Vec<&str> = group.iter().map(String::as_str).collect();
            for early in [group.as_slice(), &group[..1]] {
                assert_sum(&model, &model.split(early, &Weights::inline()).unwrap());
            }
        }
    }
}

#[test]
fn values_are_followed_both_ways() {
    let model = decoder();
    let walk = onnx_graph::Dependences::new(&model).unwrap();
    let names =
        |found: std::collections::BTreeSet<&str>| found.into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(walk.values_from("keys").unwrap()), ["embedding", "mask", "turned"]);
    assert_eq!(names(walk.values_from("mask").unwrap()), [""; 0]);
    assert_eq!(names(walk.values_behind("queries").unwrap()), ["constant", "points", "w"]);
    assert_eq!(names(walk.values_behind("image").unwrap()), ["image"; 0]);
    assert!(matches!(walk.values_from("no"), Err(Error::UnknownValue { .. })));
    assert!(matches!(walk.values_behind("no"), Err(Error::UnknownValue { .. })));
}
