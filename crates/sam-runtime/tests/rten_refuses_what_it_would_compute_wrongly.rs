//! rten takes some operators without a word and computes them in another way than ONNX says; such graphs are refused
//! before they run, and their neighbours are not. What it panics on becomes an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use ndarray::ArrayD;
use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Float32},
    GraphBuilder, Model, Weight,
};
use sam_runtime::{
    Error, Tensor,
    engine::{self, EngineChoice, EngineOptions, Session},
};

fn load(engine: EngineChoice, model: &Model) -> sam_runtime::Result<Box<dyn Session>> {
    let mut options = EngineOptions::default();
    options.choice = engine;
    engine::open(&options)?.load(model, Path::new("."), "graph")
}

fn image() -> [Dim; 4] {
    [1, 1, 4, 4].map(Dim::Static)
}

/// `x` through `nodes` to `y`.
fn model(opset: i64, nodes: impl FnOnce(GraphBuilder) -> GraphBuilder) -> Model {
    let graph = GraphBuilder::new("graph").opset(opset).input("x", Float32, image());
    nodes(graph).output("y", Float32, ["?".into(), "?".into(), "?".into(), "?".into()]).build()
}

/// One operator without attributes, of one input.
fn operator(op: &'static str) -> Model {
    model(17, move |g| g.node(op, ["x"], ["y"]))
}

fn reduce_mean(noop: i64) -> Model {
    model(18, move |g| {
        let attributes = [("keepdims", Attribute::Int(1)), ("noop_with_empty_axes", Attribute::Int(noop))];
        g.node_with("ReduceMean", ["x"], ["y"], attributes)
    })
}

fn text(word: &str) -> Attribute {
    Attribute::Text(word.to_owned())
}

fn resize(mode: &'static str) -> Model {
    model(17, move |g| {
        g.weight("roi", Weight::float32([0], &[]))
            .weight("scales", Weight::float32([4], &[1.0, 1.0, 2.0, 2.0]))
            .node_with("Resize", ["x", "roi", "scales"], ["y"], [("mode", text(mode))])
    })
}

fn convolution(pad: &'static str) -> Model {
    model(17, move |g| {
        let weight = Weight::float32([1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let ones = || Attribute::Ints(vec![1, 1]);
        let attributes = [("auto_pad", text(pad)), ("strides", ones()), ("dilations", ones())];
        g.weight("w", weight).node_with("Conv", ["x", "w"], ["y"], attributes)
    })
}

fn softmax(opset: i64) -> Model {
    model(opset, |g| g.node_with("Softmax", ["x"], ["y"], [("axis", Attribute::Int(1))]))
}

fn cast(to: ElementType) -> Model {
    model(17, move |g| {
        g.node_with("Cast", ["x"], ["cast"], [("to", Attribute::Int(i64::from(to.to_onnx())))]).node_with(
            "Cast",
            ["cast"],
            ["y"],
            [("to", Attribute::Int(1))],
        )
    })
}

/// The end of a slice, as exporters write "to the end", or a factor.
fn wide(in_slice: bool) -> Model {
    model(17, move |g| {
        let g = g.weight("big", Weight::int64([1], &[i64::MAX])).weight("zero", Weight::int64([1], &[0]));
        if in_slice {
            g.weight("axis", Weight::int64([1], &[2])).node("Slice", ["x", "zero", "big", "axis"], ["y"])
        } else {
            g.node("Add", ["big", "zero"], ["sum"])
                .node_with("Cast", ["sum"], ["float"], [("to", Attribute::Int(1))])
                .node("Mul", ["x", "float"], ["y"])
        }
    })
}

/// "To the end" as `torch` writes it: the number goes through other nodes first.
fn wide_by_detour(used_as_number: bool) -> Model {
    model(17, move |g| {
        let g = g
            .weight("big", Weight::int64([], &[i64::MAX]))
            .weight("zero", Weight::int64([1], &[0]))
            .weight("axis", Weight::int64([1], &[2]))
            .node("Unsqueeze", ["big", "zero"], ["list"])
            .node_with("Concat", ["list"], ["ends"], [("axis", Attribute::Int(0))]);
        if used_as_number {
            g.node_with("Cast", ["ends"], ["float"], [("to", Attribute::Int(1))]).node(
                "Mul",
                ["x", "float"],
                ["y"],
            )
        } else {
            g.node("Slice", ["x", "zero", "ends", "axis"], ["y"])
        }
    })
}

#[test]
fn each_objection_names_what_it_is_about() {
    common::require_onnxruntime();
    for (model, said) in [
        (softmax(12), "Softmax of operator set 12"),
        (resize("cubic"), "Resize with mode cubic"),
        (convolution("SAME_LOWER"), "Conv with auto_pad SAME_LOWER"),
        (cast(ElementType::Bool), "Cast to bool"),
        (cast(ElementType::Float64), "values of type float64"),
        (cast(ElementType::Float16), "values of type float16"),
        (wide(false), "the integer constant `big`, beyond 32 bits, in Add"),
        (operator("Softplus"), "Softplus, which was not found to agree,"),
        (operator("ReduceL2"), "ReduceL2, which was not found to agree,"),
        (reduce_mean(1), "ReduceMean with noop_with_empty_axes"),
        (cast(ElementType::Uint8), "Cast to 8-bit integers"),
        (wide_by_detour(true), "the integer constant `ends`, beyond 32 bits, in Cast"),
    ] {
        let error = load(EngineChoice::Rten, &model).unwrap_err();
        assert!(matches!(error, Error::Load { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(said) && message.contains("use ONNX Runtime"), "{message}");
        // ONNX Runtime, which the message sends to, takes it.
        load(EngineChoice::Ort, &model).unwrap_or_else(|e| panic!("{said}: {e}"));
    }
}

#[test]
fn their_neighbours_run_and_agree() {
    for model in [
        softmax(13),
        resize("linear"),
        convolution("SAME_UPPER"),
        cast(ElementType::Int32),
        wide(true),
        wide_by_detour(false),
        reduce_mean(0),
        operator("Softsign"),
    ] {
        let x =
            Tensor::F32(ArrayD::from_shape_fn(vec![1, 1, 4, 4], |i| (i[2] * 4 + i[3]) as f32 * 0.3 - 2.0));
        let run = |engine| {
            let outputs = load(engine, &model).unwrap().run(&[("x", &x)]).unwrap();
            outputs.into_iter().next().unwrap().1
        };
        let [rten, ort] = common::engines().map(run);
        assert_eq!(rten.shape(), ort.shape());
        let (a, b) = (rten.as_f32().unwrap(), ort.as_f32().unwrap());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "{a} {b}");
    }
}

/// An `If` in an `If` that captures a value from outside: valid, and more than rten 0.27 can plan.
#[test]
fn a_panic_inside_the_engine_is_an_error() {
    let zero = || Attribute::Tensor(Weight::float32([], &[0.0]));
    let inner = |value: &'static str| {
        GraphBuilder::new("inner").node("Add", ["outer", value], ["z"]).untyped_output("z")
    };
    let branch = || {
        GraphBuilder::new("branch")
            .node_with("Constant", [], ["c"], [("value", zero())])
            .node_with(
                "If",
                ["flag"],
                ["w"],
                [
                    ("then_branch", Attribute::Graph(inner("c"))),
                    ("else_branch", Attribute::Graph(inner("c"))),
                ],
            )
            .untyped_output("w")
    };
    let model = model(17, |g| {
        g.weight("limit", Weight::float32([], &[1e9]))
            .node("ReduceMax", ["x"], ["largest"])
            .node("Less", ["largest", "limit"], ["kept"])
            .node("Squeeze", ["kept"], ["flag"])
            .node("Add", ["x", "limit"], ["outer"])
            .node_with(
                "If",
                ["flag"],
                ["y"],
                [("then_branch", Attribute::Graph(branch())), ("else_branch", Attribute::Graph(branch()))],
            )
    });
    let x = Tensor::F32(ArrayD::zeros(vec![1, 1, 4, 4]));
    let result = load(EngineChoice::Rten, &model).and_then(|session| session.run(&[("x", &x)]));
    // A newer rten may run it; the program must go on either way.
    if let Err(error) = result {
        assert!(matches!(error, Error::Load { .. } | Error::Run { .. }), "{error:?}");
    }
}
