use crate::{ElementType, Result, weights::inline_tensor};

use super::{
    editor::{Editor, NodeId, is_standard},
    evaluate::{Value, evaluate},
};

/// A constant may always grow to this many elements: shapes and small tables.
const SMALL: usize = 1024;

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    // In the order of evaluation, so that one run folds whole chains.
    for id in editor.order() {
        matched += usize::from(fold(editor, id)?);
    }
    Ok(matched)
}

fn fold(editor: &mut Editor<'_>, id: NodeId) -> Result<bool> {
    let Some(node) = editor.node(id).filter(|node| is_standard(node)) else { return Ok(false) };
    let [output] = node.output.as_slice() else { return Ok(false) };
    if editor.is_seen(output) || node.input.is_empty() {
        return Ok(false);
    }
    let (node, output) = (node.clone(), output.clone());
    if node.op_type.as_deref() == Some("Shape") {
        // The one thing that is known of a value without its elements.
        let sizes = node.input.first().and_then(|input| editor.types.sizes(input));
        let plain = node.attribute.is_empty();
        let Some(sizes) = sizes.filter(|_| plain) else { return Ok(false) };
        let sizes: Option<Vec<i64>> = sizes.into_iter().map(|size| i64::try_from(size).ok()).collect();
        let Some(sizes) = sizes else { return Ok(false) };
        let value = Value::int64s(vec![sizes.len()], sizes);
        return Ok(put(editor, id, &output, &value));
    }
    if !node.input.iter().all(|input| input.is_empty() || editor.constant(input).is_some()) {
        return Ok(false);
    }
    let mut inputs = Vec::with_capacity(node.input.len());
    for input in &node.input {
        let Some(tensor) = editor.constant(input) else {
            inputs.push(None);
            continue;
        };
        let known = matches!(
            ElementType::from_onnx(tensor.data_type.unwrap_or_default()),
            ElementType::Float32 | ElementType::Int64 | ElementType::Int32 | ElementType::Bool
        );
        if !known {
            return Ok(false);
        }
        match Value::read(tensor, editor.weights())? {
            Some(value) => inputs.push(Some(value)),
            None => return Ok(false),
        }
    }
    let largest = inputs.iter().flatten().map(Value::len).max().unwrap_or_default().max(SMALL);
    match evaluate(&node, &inputs, editor.opset, largest) {
        Some(value) => Ok(put(editor, id, &output, &value)),
        None => Ok(false),
    }
}

fn put(editor: &mut Editor<'_>, id: NodeId, output: &str, value: &Value) -> bool {
    editor.remove(id);
    editor.add_tensor(inline_tensor(output, value.element(), &value.dims_i64(), value.to_bytes()));
    true
}
