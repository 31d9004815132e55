use crate::{ElementType, Result, weights::inline_tensor};

use super::{
    editor::{Editor, NodeId, is_standard},
    evaluate::{MAX_FOLDED, Value, evaluate},
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
    // Shapes are known of values that are not.
    if let Some(value) = known_integers(editor, &output) {
        put(editor, id, &output, &value);
        return Ok(true);
    }
    if !node.input.iter().all(|input| input.is_empty() || editor.constant(input).is_some()) {
        return Ok(false);
    }
    let sizes = node.input.iter().filter_map(|input| editor.types.sizes(input));
    let elements = sizes.map(|sizes| sizes.iter().fold(1u64, |all, &size| all.saturating_mul(size)));
    if elements.fold(0u64, u64::saturating_add) > MAX_FOLDED as u64 {
        return Ok(false);
    }
    let mut inputs = Vec::with_capacity(node.input.len());
    for input in &node.input {
        let Some(tensor) = editor.constant(input) else {
            inputs.push(None);
            continue;
        };
        match Value::read(tensor, editor.weights())? {
            Some(value) => inputs.push(Some(value)),
            None => return Ok(false),
        }
    }
    let largest = inputs.iter().flatten().map(Value::len).max().unwrap_or_default().max(SMALL);
    match evaluate(&node, &inputs, editor.opset, largest) {
        Some(value) if value.len() > 0 && editor.has_room(value.len()) => {
            put(editor, id, &output, &value);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Integers that follow from the sizes in the graph.
fn known_integers(editor: &Editor<'_>, value: &str) -> Option<Value> {
    let elements = editor.types.integers(value)?.to_vec();
    let dims: Vec<usize> = editor
        .types
        .sizes(value)?
        .into_iter()
        .map(|size| usize::try_from(size).ok())
        .collect::<Option<_>>()?;
    let fits = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim)) == Some(elements.len());
    (fits && editor.types.element(value) == ElementType::Int64).then(|| Value::int64s(dims, elements))
}

fn put(editor: &mut Editor<'_>, id: NodeId, output: &str, value: &Value) {
    editor.remove(id);
    editor.add_tensor(inline_tensor(output, value.element(), &value.dims_i64(), value.to_bytes()));
}
