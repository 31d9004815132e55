//! Which inputs a value depends on: by the nodes' inputs and by what their sub-graphs capture, in whatever order they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{graph, outputs};
use onnx_graph::{Attribute, Dependences, Error, GraphBuilder, Model, Weight};

fn inputs_of(model: &Model, value: &str) -> Vec<String> {
    let walk = Dependences::new(model).unwrap();
    let inputs = walk.inputs_of(value).unwrap();
    // Asked alone, and among others: the same answer.
    assert_eq!(walk.inputs_of_each(&[value, value]).unwrap(), [inputs.clone(), inputs.clone()]);
    inputs.into_iter().map(str::to_owned).collect()
}

/// More inputs than fit one walk, and as many values.
#[test]
fn many_values_and_many_inputs() {
    let names: Vec<String> = (0..150).map(|i| format!("x{i}")).collect();
    let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let sums: Vec<String> = (0..150).map(|i| format!("s{i}")).collect();
    let mut chain = graph(&inputs);
    for i in 0..150 {
        let before = if i == 0 { "x0" } else { sums[i - 1].as_str() };
        chain = chain.node("Add", [before, inputs[i]], [sums[i].as_str()]);
    }
    let model = chain.build();
    let walk = Dependences::new(&model).unwrap();
    let asked: Vec<&str> = sums.iter().map(String::as_str).collect();
    for (i, found) in walk.inputs_of_each(&asked).unwrap().into_iter().enumerate() {
        assert_eq!(found, inputs[..=i].iter().copied().collect(), "s{i}");
    }
}

#[test]
fn chains_diamonds_and_constants() {
    let model = graph(&["a", "b", "unused"])
        // Not in the order of evaluation.
        .node("Add", ["left", "right"], ["bottom"])
        .node("Split", ["a"], ["left", "second"])
        .node("Mul", ["second", "w"], ["right"])
        .node("Clip", ["b", "", "w"], ["clipped", ""])
        .node("Dropout", ["a"], ["dropped", ""])
        .node("Add", ["clipped", "bottom"], ["all"])
        .node("Neg", ["w"], ["constant"])
        .node("Neg", ["a"], ["nobody_reads"])
        .weight("w", Weight::float32([1], &[1.0]))
        .build();
    for (value, inputs) in [
        ("bottom", &["a"][..]),
        ("clipped", &["b"]),
        ("all", &["a", "b"]),
        ("constant", &[]),
        ("w", &[]),
        ("a", &["a"]),
        ("unused", &["unused"]),
        ("nobody_reads", &["a"]),
    ] {
        assert_eq!(inputs_of(&model, value), inputs, "{value}");
    }
}

#[test]
fn a_listed_default_is_no_input() {
    let model =
        graph(&["x", "w"]).weight("w", Weight::float32([1], &[1.0])).node("Add", ["x", "w"], ["y"]).build();
    assert_eq!(inputs_of(&model, "y"), ["x"]);
}

/// `If` around `If`: the inner branch reads values of the main graph, of the outer branch, and of its own.
#[test]
fn sub_graphs_capture() {
    let inner = GraphBuilder::new("inner")
        .weight("own", Weight::float32([1], &[1.0]))
        .node("Add", ["captured_twice", "outer_local"], ["inner_local"])
        .node("Add", ["inner_local", "own"], ["inner_out"])
        .untyped_output("inner_out");
    // This branch only names its result, which is a value of the main graph.
    let passing = GraphBuilder::new("passing").untyped_output("passed");
    let outer = GraphBuilder::new("outer")
        .node("Neg", ["captured_once"], ["outer_local"])
        .node_with("If", ["condition"], ["outer_out"], [("then_branch", Attribute::Graph(inner))])
        .untyped_output("outer_out");
    let model = graph(&["x", "captured_once", "captured_twice", "passed", "condition", "own", "unused"])
        .node_with(
            "If",
            ["x"],
            ["y"],
            [("then_branch", Attribute::Graph(outer)), ("else_branch", Attribute::Graph(passing))],
        )
        .build();
    assert_eq!(inputs_of(&model, "y"), ["captured_once", "captured_twice", "condition", "passed", "x"]);
}

#[test]
fn a_sub_graphs_own_inputs_capture_nothing() {
    let body = graph(&["state"]).node("Add", ["state", "x"], ["next"]).untyped_output("next");
    let model = graph(&["x", "state", "first"])
        .node_with("Loop", ["", "", "first"], ["y"], [("body", Attribute::Graph(body))])
        .build();
    assert_eq!(inputs_of(&model, "y"), ["first", "x"]);
}

#[test]
fn cycles_have_no_order() {
    let captured = GraphBuilder::new("branch").untyped_output("y");
    for (name, model) in [
        ("y", graph(&["x"]).node("Add", ["x", "y"], ["y"])),
        (
            "p",
            graph(&["x"]).node("Add", ["x", "q"], ["p"]).node("Neg", ["p"], ["q"]).node("Neg", ["q"], ["y"]),
        ),
        ("y", graph(&["x"]).node_with("If", ["x"], ["y"], [("then_branch", Attribute::Graph(captured))])),
    ] {
        let model = outputs(model.node("Neg", ["x"], ["beside"]), &["y"]).build();
        let error = Dependences::new(&model).unwrap().inputs_of("y").unwrap_err();
        assert!(matches!(&error, Error::Cycle { name: found } if found == name), "{error:?}");
        assert!(matches!(model.cut(&["x"], &["y"]), Err(Error::Cycle { .. })));
        // What does not stand on the cycle can be told.
        assert_eq!(inputs_of(&model, "beside"), ["x"]);
    }
}

#[test]
fn a_value_has_one_producer() {
    let weight = || Weight::float32([1], &[1.0]);
    for graph in [
        graph(&["x"]).node("Neg", ["x"], ["y"]).node("Abs", ["x"], ["y"]),
        graph(&["x"]).node("Split", ["x"], ["y", "y"]),
        graph(&["x", "y"]).node("Neg", ["x"], ["y"]),
        graph(&["x"]).weight("y", weight()).node("Neg", ["x"], ["y"]),
    ] {
        let error = Dependences::new(&graph.build()).unwrap_err();
        assert!(matches!(&error, Error::DefinedTwice { name } if name == "y"), "{error:?}");
    }
}

#[test]
fn values_that_nothing_gives() {
    let model = graph(&["x"]).node("Add", ["x", "nothing"], ["y"]).build();
    let walk = Dependences::new(&model).unwrap();
    for (value, missing) in [("y", "nothing"), ("typo", "typo"), ("", "")] {
        let error = walk.inputs_of(value).unwrap_err();
        assert!(matches!(&error, Error::UnknownValue { name } if name == missing), "{error:?}");
    }
}

/// Engines choose one or the other: the model does not say which.
#[test]
fn two_initializers_of_one_name() {
    let model = graph(&["x"])
        .weight("w", Weight::float32([1], &[0.0]))
        .weight("w", Weight::float32([1], &[1.0]))
        .node("Add", ["x", "w"], ["y"])
        .build();
    let error = Dependences::new(&model).unwrap_err();
    assert!(matches!(&error, Error::DefinedTwice { name } if name == "w"), "{error:?}");
}
