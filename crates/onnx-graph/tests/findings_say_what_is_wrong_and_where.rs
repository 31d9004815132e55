//! X1, X3, X16: a check names the graph, the node and the tensor, and looks at every value without being led astray.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{bytes, field::*, graph, number, outputs, within, write};
use onnx_graph::{
    Attribute,
    ElementType::{self, Bfloat16, Float16, Float32, Float64, Int64, Uint8},
    Finding, GraphBuilder, Model, Rule, Severity, Weight, Weights,
};

fn check(model: &Model) -> Vec<Finding> {
    model.check("m.onnx".as_ref(), &Weights::inline())
}

fn of(findings: &[Finding], rule: Rule) -> Vec<String> {
    findings.iter().filter(|f| f.rule == rule).map(ToString::to_string).collect()
}

#[test]
fn a_line_says_it_all() {
    let branch = GraphBuilder::new("branch").node("Relu", ["nowhere"], ["b"]).untyped_output("b");
    let model = outputs(graph(&["x"]), &["y"])
        .node("Neg", ["x"], ["n"])
        .input("c", ElementType::Bool, [])
        .node_with(
            "If",
            ["c"],
            ["y"],
            [("then_branch", Attribute::Graph(branch.clone())), ("else_branch", Attribute::Graph(branch))],
        )
        .build();
    let findings = check(&model);
    let expected = ["then", "else"].map(|which| {
        format!(
            "error: m.onnx: 1.{which}_branch: node 0 Relu: `nowhere`: nothing gives this value [undefined]"
        )
    });
    assert_eq!(of(&findings, Rule::Undefined), expected);
    let found = findings.iter().find(|f| f.rule == Rule::Undefined).unwrap();
    let node = found.node.as_ref().unwrap();
    assert_eq!((found.graph.as_str(), found.scope.as_str()), ("m.onnx", "1.then_branch"));
    assert_eq!((node.op_type.as_str(), node.index, found.value.as_deref()), ("Relu", 0, Some("nowhere")));
    assert_eq!(found.severity, Severity::Error);
}

#[test]
fn text_of_the_model_cannot_break_the_line_nor_fill_the_memory() {
    let long = "x".repeat(100_000);
    let model = outputs(graph(&[]), &["two\nlines \u{202e}", &long]).build();
    let findings = model.check(Path::new("a\nb.onnx"), &Weights::inline());
    let lines = of(&findings, Rule::Output);
    assert_eq!(lines[0], "error: a\\nb.onnx: `two\\nlines \\u{202e}`: nothing gives this output [output]");
    assert!(lines[1].len() < 300 && lines[1].contains("(100000 bytes)"), "{}", lines[1]);
}

#[test]
fn a_million_faults_are_a_hundred_findings_and_a_count() {
    let names: Vec<String> = (0..1000).map(|i| format!("v{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let findings = check(&outputs(graph(&[]), &names).build());
    let lines = of(&findings, Rule::Output);
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "error: m.onnx: 900 more of this kind [output]");
}

#[test]
fn cycles_and_order() {
    let cycle = outputs(graph(&["x"]), &["c"])
        .node("Add", ["x", "b"], ["a"])
        .node("Relu", ["a"], ["b"])
        .node("Relu", ["b"], ["c"])
        .build();
    let findings = check(&cycle);
    assert_eq!(of(&findings, Rule::Cycle).len(), 1);
    assert!(of(&findings, Rule::Cycle)[0].contains("`a`"));
    let disorder =
        outputs(graph(&["x"]), &["b"]).node("Relu", ["a"], ["b"]).node("Relu", ["x"], ["a"]).build();
    let findings = check(&disorder);
    assert_eq!((of(&findings, Rule::Order).len(), of(&findings, Rule::Cycle).len()), (1, 0));
}

#[test]
fn element_types_follow_from_node_to_node() {
    // Half precision by Cast meets single precision two nodes later, with nothing recorded in between.
    let model = outputs(graph(&["x"]), &["z"])
        .node_with("Cast", ["x"], ["half"], [("to", Attribute::Int(10))])
        .node("Relu", ["half"], ["positive"])
        .node("Add", ["positive", "x"], ["z"])
        .build();
    let lines = of(&check(&model), Rule::ElementType);
    let expected = "error: m.onnx: node 2 Add: `x`: `B` is float32 where another input of one type with it is float16 \
                    [element-type]";
    assert_eq!(lines, [expected]);
    // What an attribute says is followed too.
    let constant = |attribute: (&'static str, Attribute)| {
        outputs(graph(&["x"]), &["y"])
            .node_with("Constant", [], ["k"], [attribute])
            .node("Add", ["x", "k"], ["y"])
            .build()
    };
    let faults = |attribute| of(&check(&constant(attribute)), Rule::ElementType).len();
    assert_eq!(faults(("value", Attribute::Tensor(Weight::float32([1], &[1.0])))), 0);
    assert_eq!(faults(("value", Attribute::Tensor(Weight::int64([1], &[1])))), 1);
    assert_eq!(faults(("value_float", Attribute::Float(1.0))), 0);
    assert_eq!(faults(("value_int", Attribute::Int(1))), 1);
}

/// A model whose only weight has these bytes.
fn with_weight(element_type: ElementType, values: &[u8]) -> Model {
    let count = values.len() as u64 * 8 / element_type.bits().unwrap();
    GraphBuilder::new("test").weight("w", Weight::raw(element_type, [count], values.to_vec())).build()
}

#[test]
fn values_that_are_not_finite_are_counted_in_every_float_type() {
    let single = [1.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-45, -0.0];
    let single: Vec<u8> = single.iter().flat_map(|v| v.to_le_bytes()).collect();
    let double = [1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, -0.0];
    let double: Vec<u8> = double.iter().flat_map(|v| v.to_le_bytes()).collect();
    // One, the smallest and the largest NaN, both infinities, the largest number, the smallest, minus zero.
    let half: [u16; 8] = [0x3c00, 0x7c01, 0xffff, 0x7c00, 0xfc00, 0x7bff, 0x0001, 0x8000];
    let brain: [u16; 8] = [0x3f80, 0x7f81, 0xffff, 0x7f80, 0xff80, 0x7f7f, 0x0001, 0x8000];
    let bytes = |halves: [u16; 8]| -> Vec<u8> { halves.iter().flat_map(|v| v.to_le_bytes()).collect() };
    for (element_type, values) in
        [(Float32, single), (Float64, double), (Float16, bytes(half)), (Bfloat16, bytes(brain))]
    {
        let width = element_type.bits().unwrap() as usize / 8;
        let findings = check(&with_weight(element_type, &values));
        let expected = "warning: m.onnx: `w`: 2 values are NaN, 2 are infinite [non-finite]";
        assert_eq!(of(&findings, Rule::NonFinite), [expected], "{element_type}");
        // Infinities alone are how attention masks are written.
        let findings = check(&with_weight(element_type, &values[3 * width..]));
        let expected = "note: m.onnx: `w`: 2 values are infinite [non-finite]";
        assert_eq!(of(&findings, Rule::NonFinite), [expected], "{element_type}");
        let findings = check(&with_weight(element_type, &values[5 * width..]));
        assert!(of(&findings, Rule::NonFinite).is_empty(), "{element_type}");
    }
    // The same bits are ordinary numbers where they are integers.
    assert!(of(&check(&with_weight(Int64, &[0xff; 8])), Rule::NonFinite).is_empty());
}

/// Larger than a piece that is read at once, and no multiple of it.
const COUNT: usize = 40_001;

#[test]
fn sidecars_are_read_to_their_last_value() {
    let folder = tempfile::tempdir().unwrap();
    let mut values = vec![1.0_f32; COUNT];
    values[COUNT - 1] = f32::NAN;
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    write(folder.path(), "w.data", [&[0; 64][..], &data].concat());
    let entries = [("location", "w.data"), ("offset", "64")];
    let model = GraphBuilder::new("test")
        .weight("w", Weight::external(Float32, [COUNT as u64], &entries))
        .weight("too long", Weight::external(Float32, [COUNT as u64 + 1], &entries))
        .weight("missing", Weight::external(Float32, [1], &[("location", "gone.data")]))
        .weight("unsafe", Weight::external(Float32, [1], &[("location", "../w.data")]))
        .weight("text", Weight::external(Float32, [1], &[("location", "w.data"), ("offset", "x")]))
        .weight("length", Weight::external(Float32, [1], &[("location", "w.data"), ("length", "5")]))
        .build();
    let path = write(folder.path(), "m.onnx", model.to_bytes().unwrap());
    let findings = model.check(&path, &Weights::in_folder(folder.path()));
    let lines = of(&findings, Rule::NonFinite);
    assert!(lines.len() == 1 && lines[0].contains("`w`: 1 values are NaN, 0"), "{lines:?}");
    let rules: Vec<(&str, Severity)> = findings
        .iter()
        .filter(|f| f.rule == Rule::ExternalData)
        .map(|f| (f.value.as_deref().unwrap(), f.severity))
        .collect();
    let expected = ["too long", "missing", "unsafe", "text", "length"].map(|name| (name, Severity::Error));
    assert_eq!(rules, expected);
    // Without a folder, what cannot be seen is said.
    let findings = check(&model);
    let expected = "note: m.onnx: the values of 3 tensors lie in sidecars that were not looked at [not-read]";
    assert_eq!(of(&findings, Rule::NotRead), [expected]);
}

#[cfg(unix)]
#[test]
fn a_sidecar_that_leaves_the_folder_by_a_link_is_not_read() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = write(elsewhere.path(), "secret", f32::NAN.to_le_bytes());
    std::os::unix::fs::symlink(secret, folder.path().join("w.data")).unwrap();
    let model = GraphBuilder::new("test")
        .weight("w", Weight::external(Float32, [1], &[("location", "w.data")]))
        .build();
    let path = write(folder.path(), "m.onnx", model.to_bytes().unwrap());
    let findings = model.check(&path, &Weights::in_folder(folder.path()));
    assert_eq!(of(&findings, Rule::ExternalData).len(), 1);
    assert!(of(&findings, Rule::NonFinite).is_empty());
}

#[test]
fn equal_weights_and_unused_ones_are_noted() {
    let weight = |last: u8, dims: [u64; 2]| {
        let mut values = vec![7; 2048];
        values[2047] = last;
        Weight::raw(Uint8, dims, values)
    };
    let model = graph(&["unused"])
        .weight("first", weight(1, [2, 1024]))
        .weight("equal", weight(1, [2, 1024]))
        .weight("other", weight(2, [2, 1024]))
        .weight("other dims", weight(1, [1024, 2]))
        .build();
    let findings = check(&model);
    let expected = "note: m.onnx: `equal`: it holds the same as `first` [duplicate]";
    assert_eq!(of(&findings, Rule::Duplicate), [expected]);
    let unused: Vec<_> =
        findings.iter().filter(|f| f.rule == Rule::Unused).map(|f| f.value.clone()).collect();
    let expected = ["unused", "first", "equal", "other", "other dims"].map(|name| Some(name.to_owned()));
    assert_eq!(unused, expected);
}

#[test]
fn what_a_branch_captures_is_used() {
    let branch = GraphBuilder::new("b").node("Relu", ["w"], ["b"]).untyped_output("b");
    let model = outputs(graph(&[]), &["y"])
        .input("c", ElementType::Bool, [])
        .weight("w", Weight::float32([1], &[1.0]))
        .node_with(
            "If",
            ["c"],
            ["y"],
            [("then_branch", Attribute::Graph(branch.clone())), ("else_branch", Attribute::Graph(branch))],
        )
        .build();
    assert!(check(&model).is_empty(), "{:?}", check(&model));
}

#[test]
fn training_graphs_and_defaults_of_functions_are_looked_into() {
    let short = [number(TENSOR_DIM, 4), number(TENSOR_TYPE, 1), bytes(TENSOR_NAME, "t"), bytes(9, [0; 4])];
    for fields in [
        &[MODEL_TRAINING, TRAINING_INITIALIZATION, GRAPH_INITIALIZER][..],
        &[MODEL_TRAINING, TRAINING_ALGORITHM, GRAPH_INITIALIZER],
        &[MODEL_FUNCTION, FUNCTION_DEFAULT, ATTRIBUTE_TENSOR],
        &[MODEL_FUNCTION, FUNCTION_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR],
        &[MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_SPARSE, SPARSE_VALUES],
    ] {
        let model = [bytes(MODEL_GRAPH, []), within(fields, short.concat())].concat();
        let lines = of(&check(&Model::from_bytes(model).unwrap()), Rule::Tensor);
        assert!(
            lines.len() == 1 && lines[0].contains("4 bytes where dims and type need 16"),
            "{fields:?}: {lines:?}"
        );
    }
}

#[test]
fn the_fixture_pair_is_sound() {
    for path in common::fixture_graphs() {
        let weights = Weights::in_folder(path.parent().unwrap());
        let findings = Model::read(&path).unwrap().check(&path, &weights);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.iter().all(|f| f.severity == Severity::Note), "{lines:?}");
    }
}

/// X16: exporters record shapes that are not the graph's; engines warn of it and compute all the same.
#[test]
fn a_recorded_shape_that_is_wrong_is_a_note() {
    let dims = |sizes: [u64; 2]| sizes.map(onnx_graph::Dim::Static);
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 3]))
        .value("a", Float32, dims([3, 3]))
        .node("Relu", ["x"], ["a"])
        .node("Neg", ["a"], ["y"])
        .output("y", Float32, dims([2, 3]))
        .build();
    let findings = check(&model);
    let expected = "note: m.onnx: `a`: float32[3,3] is recorded, the graph gives float32[2,3] [recorded]";
    assert_eq!(of(&findings, Rule::Recorded), [expected]);
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note), "{findings:?}");
}
