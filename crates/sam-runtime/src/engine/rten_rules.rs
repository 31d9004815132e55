//! What rten 0.27 computes as ONNX says, found by running both engines and ONNX's reference evaluator on about a thousand small
//! graphs. Everything else is refused: its masks could be wrong without an error.

use std::{collections::BTreeSet, path::Path};

use onnx_graph::{ElementType, Model, Node, Result};

/// Standard operators that agreed with ONNX Runtime in every form that was tried, but for those that [`node_objection`]
/// names. Left out for what was seen: `ArgMax` and `ArgMin` (ties), `TopK` (ties), `CastLike` (to bool), `ConvInteger` (padding),
/// `QuantizeLinear` and `DequantizeLinear` (the default axis), `Softplus` (beyond 88), `LSTM` and `GRU` (lengths), `ReduceL2` (its sign
/// without axes), `CumSum` (wide integers).
const COMPARED: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Ceil",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "DepthToSpace",
    "Div",
    "DynamicQuantizeLinear",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GridSample",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "If",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "Loop",
    "LpNormalization",
    "MatMul",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "RMSNormalization",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RotaryEmbedding",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Shape",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Size",
    "Slice",
    "Softmax",
    "Softsign",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
    "Xor",
];

/// The same of ONNX Runtime's own operators.
const COMPARED_CONTRIB: &[&str] = &["FastGelu", "Gelu", "MultiHeadAttention", "SkipLayerNormalization"];

/// The first reason why rten must not run a model whose sidecars are in `folder`.
pub(super) fn objection(model: &Model, folder: &Path) -> Result<Option<String>> {
    let opset = model.opset("").unwrap_or_default();
    let by_node = model.nodes().into_iter().find_map(|node| node_objection(node, opset));
    if let Some(found) = by_node.or_else(|| type_objection(model)) {
        return Ok(Some(found));
    }
    integer_objection(model, folder)
}

fn node_objection(node: Node<'_>, opset: i64) -> Option<String> {
    let op = node.op_type();
    let compared = match node.domain() {
        "" => COMPARED,
        "com.microsoft" => COMPARED_CONTRIB,
        _ => &[],
    };
    if !compared.contains(&op) {
        return Some(format!("{op}, which was not found to agree,"));
    }
    if !node.domain().is_empty() {
        return None;
    }
    match op {
        // Before 13 they flatten to two dims at `axis`; rten always takes the one axis.
        "Softmax" | "LogSoftmax" | "Hardmax" if opset < 13 => Some(format!("{op} of operator set {opset}")),
        // Taken as linear.
        "Resize" if node.text("mode") == Some("cubic") => Some("Resize with mode cubic".to_owned()),
        // Rounded the other way at one half.
        "Resize" if node.text("nearest_mode") == Some("round_prefer_ceil") => {
            Some("Resize with nearest mode round_prefer_ceil".to_owned())
        }
        // Reduces over all axes, or keeps another shape.
        _ if node.int("noop_with_empty_axes").is_some_and(|noop| noop != 0) => {
            Some(format!("{op} with noop_with_empty_axes"))
        }
        // What does not fit saturates, where ONNX Runtime wraps.
        "Cast"
            if [ElementType::Int8, ElementType::Uint8]
                .iter()
                .any(|t| node.int("to") == Some(i64::from(t.to_onnx()))) =>
        {
            Some("Cast to 8-bit integers".to_owned())
        }
        // Truncated to an integer: 0.3 becomes false.
        "Cast" if node.int("to") == Some(i64::from(ElementType::Bool.to_onnx())) => {
            Some("Cast to bool".to_owned())
        }
        // Taken as SAME_UPPER.
        _ if node.text("auto_pad") == Some("SAME_LOWER") => Some(format!("{op} with auto_pad SAME_LOWER")),
        _ => None,
    }
}

/// Other floats are computed in single precision, other integers in 32 bits.
fn type_objection(model: &Model) -> Option<String> {
    use ElementType::{Bool, Float32, Int8, Int32, Int64, String, Uint8, Undefined};
    let known = [Undefined, Float32, Int32, Int64, Int8, Uint8, Bool, String];
    model.element_types().into_iter().find(|t| !known.contains(t)).map(|t| format!("values of type {t}"))
}

/// 64-bit integers are cut to 32 bits. Only the starts, ends and steps of `Slice` survive that: exporters write "to the end"
/// as a very large number. Operators that merely arrange numbers hand the question on to who uses them.
fn integer_objection(model: &Model, folder: &Path) -> Result<Option<String>> {
    let mut wide: BTreeSet<&str> = model.wide_integers(folder)?;
    let nodes = model.nodes();
    // Nodes stand in an order in which each value is given before it is used.
    for node in &nodes {
        let arranges = matches!(node.op_type(), "Identity" | "Unsqueeze" | "Squeeze" | "Concat" | "Reshape");
        for (place, input) in node.inputs().enumerate() {
            if !wide.contains(input) {
                continue;
            }
            match node.op_type() {
                "Slice" if place > 0 => {}
                "Reshape" if place > 0 => return Ok(Some(too_wide(input, node.op_type()))),
                _ if arranges => wide.extend(node.outputs()),
                op => return Ok(Some(too_wide(input, op))),
            }
        }
    }
    let outputs = model.outputs();
    let given = outputs.iter().find(|port| wide.contains(port.name.as_str()));
    Ok(given.map(|port| too_wide(&port.name, "an output")))
}

fn too_wide(name: &str, op: &str) -> String {
    format!("the integer constant `{name}`, beyond 32 bits, in {op}")
}
