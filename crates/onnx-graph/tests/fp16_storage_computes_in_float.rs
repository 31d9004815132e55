//! Weights stored in half precision come back before anything reads them: only initializers change, each behind a `Cast`, and
//! widening undoes it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/decoded.rs"]
mod decoded;

use half::f16;
use onnx_graph::{
    Attribute, Dim,
    ElementType::{Bool, Float16, Float32, Int64},
    Error, Fp16Options, GraphBuilder, KeptReason, Model, PrecisionClass, Severity, Weight, Weights,
    external_data,
};

const FOUR: [f32; 4] = [1.0, 0.1, -2.5, 3e-3];

fn options() -> Fp16Options {
    Fp16Options::storage().min_elements(4)
}

fn store(model: &Model) -> Model {
    model.to_fp16(&Weights::inline(), &options()).unwrap().0
}

fn weight() -> Weight {
    Weight::float32([4], &FOUR)
}

/// A graph with weights of every kind; `branch` reads one that it captures.
fn everything() -> Model {
    let then = GraphBuilder::new("then")
        .weight("inner", weight())
        .node("Add", ["w", "inner"], ["t"])
        .untyped_output("t");
    let otherwise = GraphBuilder::new("else").node("Add", ["w", "w"], ["e"]).untyped_output("e");
    GraphBuilder::new("test")
        .input("c", Bool, [])
        .input("x", Float32, [4.into()])
        .input("default", Float32, [4.into()])
        .weight("w", weight())
        .weight("default", weight())
        .weight("small", Weight::float32([3], &[1.0, 2.0, 3.0]))
        .weight("wide", Weight::float32([4], &[1.0, 2.0, 3.0, 1e5]))
        .weight("ids", Weight::int64([4], &[1, 2, 3, 4]))
        .weight("given_out", weight())
        .node("Mul", ["x", "w"], ["m"])
        .node("Add", ["m", "wide"], ["n"])
        .node("Add", ["n", "default"], ["y"])
        .node_with(
            "If",
            ["c"],
            ["z"],
            [("then_branch", Attribute::Graph(then)), ("else_branch", Attribute::Graph(otherwise))],
        )
        .output("y", Float32, [4.into()])
        .output("z", Float32, [4.into()])
        .output("given_out", Float32, [4.into()])
        .build()
}

#[test]
fn only_initializers_change() {
    let model = everything();
    let (stored, report) = model.to_fp16(&Weights::inline(), &options()).unwrap();
    let (before, after) = (decoded::lines(&model), decoded::lines(&stored));
    let gone: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
    let name = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
    let gone: Vec<String> = gone.into_iter().map(|line| name(line)).collect();
    assert_eq!(gone, ["inner", "given_out", "w"]);
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line) && line.contains("Cast")).collect();
    assert_eq!(
        new,
        [
            ".then_branch/Cast inner_from_fp16: inner_fp16 -> inner to=1",
            "Cast given_out_from_fp16: given_out_fp16 -> given_out to=1",
            "Cast w_from_fp16: w_fp16 -> w to=1",
        ]
    );
    assert_eq!(decoded::disorder(&decoded::decoded(&stored).graph, &[]), [""; 0]);
    assert_eq!((report.tensors_converted, report.casts_added), (3, 3));
    assert_eq!((report.nodes_before, report.nodes_after), (6, 9));
    assert_eq!(report.bytes_before - report.bytes_after, 3 * 8);
    let kept: Vec<_> = report.kept.iter().map(|k| (k.name.as_str(), k.reason)).collect();
    let expected = [("default", KeptReason::Port), ("small", KeptReason::Small), ("wide", KeptReason::Range)];
    assert_eq!(kept, expected);
}

#[test]
fn widening_undoes_it_but_for_the_rounding() {
    let model = everything();
    let widened = store(&model).widened(&Weights::inline()).unwrap();
    let without_digest = |model: &Model| -> Vec<String> {
        let lines = decoded::lines(model).into_iter();
        lines
            .map(|l| if l.contains("weight") { l.rsplit_once(' ').unwrap().0.to_owned() } else { l })
            .collect()
    };
    assert_eq!(without_digest(&widened), without_digest(&model));
    assert!(!widened.element_types().contains(&Float16));
    let widened = decoded::decoded(&widened);
    let bytes = decoded::raw(decoded::initializer(&widened, "w").unwrap());
    let rounded: Vec<u8> = FOUR.iter().flat_map(|&v| f16::from_f32(v).to_f32().to_le_bytes()).collect();
    assert_eq!(bytes, rounded);
}

#[test]
fn it_counts_as_what_it_computes_in() {
    let model = GraphBuilder::new("test")
        .input("x", Float32, [4.into()])
        .weight("w", weight())
        .node("Add", ["x", "w"], ["y"])
        .output("y", Float32, [4.into()])
        .build();
    let precision = |options: Fp16Options| model.to_fp16(&Weights::inline(), &options).unwrap().0.precision();
    assert_eq!(precision(options()), PrecisionClass::Fp32);
    assert_eq!(precision(Fp16Options::compute()), PrecisionClass::Fp16);
}

#[test]
fn doing_it_again_changes_nothing() {
    for options in [options(), Fp16Options::compute()] {
        let (once, report) = everything().to_fp16(&Weights::inline(), &options).unwrap();
        assert!(!report.already);
        let (twice, report) = once.to_fp16(&Weights::inline(), &options).unwrap();
        assert!(report.already, "{options:?}");
        assert_eq!(once, twice);
        assert_eq!((report.casts_added, report.nodes_before), (0, report.nodes_after));
    }
}

#[test]
fn what_is_stored_can_be_computed() {
    let model = everything();
    let compute = Fp16Options::compute();
    let direct = model.to_fp16(&Weights::inline(), &compute).unwrap().0;
    let over_storage = store(&model).to_fp16(&Weights::inline(), &compute).unwrap().0;
    // A weight that is an output itself stays in float32, rounded once.
    let lines = |model: &Model| {
        let lines = decoded::lines(model).into_iter();
        lines.filter(|l| !l.starts_with("weight given_out")).collect::<Vec<_>>()
    };
    assert_eq!(lines(&over_storage), lines(&direct));
}

#[test]
fn a_weight_read_in_both_precisions_is_there_in_both() {
    let halves: Vec<u8> = FOUR.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
    let model = GraphBuilder::new("test")
        .input("x", Float16, [4.into()])
        .weight("h", Weight::raw(Float16, [4], halves))
        .node("Add", ["x", "h"], ["y"])
        .node_with("Cast", ["h"], ["a"], [("to", Attribute::Int(1))])
        .node_with("Cast", ["h"], ["b"], [("to", Attribute::Int(1))])
        .node_with("Cast", ["h"], ["i"], [("to", Attribute::Int(7))])
        .node("Add", ["a", "b"], ["z"])
        .output("y", Float16, [4.into()])
        .output("z", Float32, [4.into()])
        .output("i", Int64, [4.into()])
        .build();
    let widened = decoded::decoded(&model.widened(&Weights::inline()).unwrap());
    let names: Vec<_> = widened.graph.initializer.iter().map(|t| decoded::text(&t.name)).collect();
    assert_eq!(names, ["a", "b", "h"]);
    let ops: Vec<_> = widened.graph.node.iter().map(|n| n.output.join(",")).collect();
    assert_eq!(ops, ["y", "i", "z"]);
}

#[test]
fn a_name_that_is_taken_gets_a_number() {
    let model = GraphBuilder::new("test")
        .input("w_fp16", Float32, [4.into()])
        .weight("w", weight())
        .node("Add", ["w_fp16", "w"], ["w_fp16_1"])
        .output("w_fp16_1", Float32, [4.into()])
        .build();
    let stored = store(&model);
    assert!(decoded::lines(&stored).contains(&"Cast w_from_fp16: w_fp16_2 -> w to=1".to_owned()));
}

#[test]
fn weights_in_a_sidecar_are_read_from_it_and_end_inside() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = FOUR.iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.path().join("model.data"), [vec![9; 4], bytes].concat()).unwrap();
    let external = |entries: &[(&str, &str)]| {
        let weight = Weight::external(Float32, [4], entries);
        GraphBuilder::new("test")
            .input("x", Float32, [4.into()])
            .weight("w", weight)
            .node("Add", ["x", "w"], ["y"])
            .output("y", Float32, [4.into()])
            .build()
    };
    let model = external(&[("location", "model.data"), ("offset", "4"), ("length", "16")]);
    let weights = Weights::in_folder(folder.path());
    let inside = GraphBuilder::new("test")
        .input("x", Float32, [4.into()])
        .weight("w", weight())
        .node("Add", ["x", "w"], ["y"])
        .output("y", Float32, [4.into()])
        .build();
    for options in [options(), Fp16Options::compute()] {
        let (converted, _) = model.to_fp16(&weights, &options).unwrap();
        assert_eq!(converted, inside.to_fp16(&Weights::inline(), &options).unwrap().0);
        assert!(matches!(model.to_fp16(&Weights::inline(), &options), Err(Error::NoFolder { .. })));
        let short = external(&[("location", "model.data"), ("offset", "8"), ("length", "16")]);
        assert!(matches!(short.to_fp16(&weights, &options), Err(Error::Tensor { .. })));
    }
}

#[test]
fn a_weight_that_is_kept_ends_inside_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.data"), 7_i64.to_le_bytes()).unwrap();
    let entries = [("location", "model.data")];
    let model = GraphBuilder::new("test")
        .weight("ids", Weight::external(Int64, [1], &entries))
        .output("ids", Int64, [1.into()])
        .build();
    let weights = Weights::in_folder(folder.path());
    for inside in [
        model.to_fp16(&weights, &options()).unwrap().0,
        model.to_fp16(&weights, &Fp16Options::compute()).unwrap().0,
        model.widened(&weights).unwrap(),
    ] {
        assert!(external_data::list(&inside, folder.path()).unwrap().is_empty());
    }
}

#[test]
fn an_opset_without_the_cast_is_named() {
    for options in [options(), Fp16Options::compute()] {
        let old = GraphBuilder::new("test").opset(5).build();
        let found = old.to_fp16(&Weights::inline(), &options);
        assert!(matches!(found, Err(Error::Opset { needed: 6, found: 5 })), "{found:?}");
    }
}

/// A wrong record of a weight is nobody's business until the weight becomes a node's result.
#[test]
fn records_of_stored_weights_go() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, [Dim::Static(2)])
        .value("w", Bool, [Dim::Static(7)])
        .weight("w", Weight::float32([2], &[1.0, 2.0]))
        .node("Add", ["x", "w"], ["y"])
        .output("y", Float32, [Dim::Static(2)])
        .build();
    let options = Fp16Options::storage().min_elements(0);
    let (stored, _) = model.to_fp16(&Weights::inline(), &options).unwrap();
    let findings = stored.check("m.onnx".as_ref(), &Weights::inline());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note), "{findings:?}");
}
