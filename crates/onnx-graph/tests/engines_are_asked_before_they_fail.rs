//! A model that an engine cannot load by its versions is told so, with what it needs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field::MODEL_GRAPH, number};
use onnx_graph::{EngineLimits, Model, Severity};

fn model(ir: u64, opset: u64) -> Model {
    let parts = [number(1, ir), bytes(8, number(2, opset)), bytes(MODEL_GRAPH, bytes(2, "g"))];
    Model::from_bytes(parts.concat()).unwrap()
}

fn said(ir: u64, opset: u64, engine: &str, version: &str) -> Vec<String> {
    let limits = EngineLimits::find(engine, version).unwrap();
    model(ir, opset).check_engine("m.onnx".as_ref(), limits).iter().map(ToString::to_string).collect()
}

#[test]
fn limits_hold_at_their_edges() {
    // What onnxruntime of each version loaded, and what it did not.
    for (version, ir, opset) in [("1.24.4", 13, 25), ("1.25", 13, 26), ("1.31.1", 13, 26), ("1.32.0", 14, 28)]
    {
        assert!(said(ir, opset, "onnxruntime", version).is_empty(), "{version}");
        assert_eq!(said(ir + 1, opset, "onnxruntime", version).len(), 1, "{version}");
        assert_eq!(said(ir, opset + 1, "onnxruntime", version).len(), 1, "{version}");
    }
    assert!(said(99, 99, "rten", "0.27").is_empty());
}

#[test]
fn what_is_needed_is_said() {
    let expected = "error: m.onnx: onnxruntime 1.24 loads operator sets up to 25, the model has 26: it needs onnxruntime \
                    1.25 or newer [engine]";
    assert_eq!(said(8, 26, "onnxruntime", "1.24"), [expected]);
    let lines = said(14, 28, "onnxruntime", "1.30");
    assert!(
        lines.len() == 2 && lines.iter().all(|l| l.contains("needs onnxruntime 1.32 or newer")),
        "{lines:?}"
    );
    let lines = said(15, 28, "onnxruntime", "1.32");
    assert!(lines[0].contains("needs a newer version than any known here"), "{lines:?}");
}

#[test]
fn old_operator_sets_are_a_warning() {
    let limits = EngineLimits::find("onnxruntime", "1.32").unwrap();
    let found = model(3, 6).check_engine("m.onnx".as_ref(), limits);
    assert_eq!(found.iter().map(|f| f.severity).collect::<Vec<_>>(), [Severity::Warning]);
    assert!(model(3, 7).check_engine("m.onnx".as_ref(), limits).is_empty());
}

#[test]
fn only_known_versions_are_found() {
    for (engine, version) in [("onnxruntime", "1.23"), ("onnxruntime", "1"), ("tract", "0.23"), ("rten", "")]
    {
        assert!(EngineLimits::find(engine, version).is_none(), "{engine} {version}");
    }
    assert_eq!(EngineLimits::known().len(), 10);
}
