//! What rten 0.27 takes without a word and computes in another way than ONNX says, found by running both engines and
//! ONNX's reference evaluator on small graphs. Such a graph is refused: its masks would be wrong without an error.

use onnx_graph::{ElementType, Model, Node};

/// The first reason why rten must not run a model.
pub(super) fn objection(model: &Model) -> Option<String> {
    let opset = model.opset("").unwrap_or_default();
    let by_node = model.nodes().into_iter().find_map(|node| node_objection(node, opset));
    by_node.or_else(|| type_objection(model)).or_else(|| integer_objection(model))
}

fn node_objection(node: Node<'_>, opset: i64) -> Option<String> {
    if !node.domain().is_empty() {
        return None;
    }
    let op = node.op_type();
    match op {
        // Before 13 they flatten to two dims at `axis`; rten always takes the one axis.
        "Softmax" | "LogSoftmax" | "Hardmax" if opset < 13 => Some(format!("{op} of operator set {opset}")),
        // Taken as linear.
        "Resize" if node.text("mode") == Some("cubic") => Some("Resize with mode cubic".to_owned()),
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

/// 64-bit integers are cut to 32 bits, which only `Slice`, whose ends exporters write as "very large", survives.
fn integer_objection(model: &Model) -> Option<String> {
    let wide = model.wide_integers();
    let users = model.nodes().into_iter().filter(|n| n.op_type() != "Slice");
    let mut used = users.flat_map(|n| n.inputs().filter(|i| wide.contains(i)).map(move |i| (n.op_type(), i)));
    used.next().map(|(op, name)| format!("the integer constant `{name}`, beyond 32 bits, in {op}"))
}
