use crate::attributes::{axis, int};

use super::{
    editor::{Editor, NodeId, is},
    reshapes::{self, OPSET_OF_RESHAPE},
};

pub(super) fn run(editor: &mut Editor<'_>) -> usize {
    editor.order().into_iter().filter_map(|id| separate(editor, id)).count()
}

/// Puts a `Reshape` to rows between a sum and the norm over its last dim.
fn separate(editor: &mut Editor<'_>, id: NodeId) -> Option<()> {
    let node = editor.node(id).filter(|node| is(node, "LayerNormalization") && node.output.len() == 1)?;
    let (input, output) = (node.input.first()?.clone(), node.output.first()?.clone());
    editor.made_by(&input, "Add")?;
    // Rows are what scale and bias are repeated over only where they have no other dims.
    let flat = |value: &String| editor.types.sizes(value).is_some_and(|sizes| sizes.len() == 1);
    if editor.opset < OPSET_OF_RESHAPE || !node.input.iter().skip(1).filter(|v| !v.is_empty()).all(flat) {
        return None;
    }
    let sizes = editor.types.sizes(&input)?;
    let (&last, rows) = sizes.split_last()?;
    let over_last = axis(int(node, "axis").unwrap_or(-1), sizes.len())? + 1 == sizes.len();
    let count =
        rows.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim)).and_then(|n| i64::try_from(n).ok())?;
    if !over_last || rows.len() != 2 || editor.is_seen(&output) || count == 0 {
        return None;
    }
    let whole: Vec<i64> = sizes.iter().map(|&size| i64::try_from(size).ok()).collect::<Option<_>>()?;
    let mut node = node.clone();
    let rows = reshapes::add(editor, &input, &[count, i64::try_from(last).ok()?], &output);
    let inner = editor.fresh_name(&output);
    if let Some(rows_type) = editor.types.get(&rows).cloned() {
        editor.types.set(&inner, rows_type);
    }
    if let Some(first) = node.input.first_mut() {
        *first = rows;
    }
    for attribute in node.attribute.iter_mut().filter(|a| a.name.as_deref() == Some("axis")) {
        attribute.i = Some(-1);
    }
    node.output = vec![inner.clone()];
    editor.replace(id, node);
    let back = reshapes::add(editor, &inner, &whole, &output);
    editor.substitute(&output, &back);
    Some(())
}
