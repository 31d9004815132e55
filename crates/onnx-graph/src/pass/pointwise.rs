use crate::{Dim, Result, ValueType, attributes::perm};

use super::{
    editor::{Editor, NodeId, is},
    linear::{Pointwise, at_one, to_first, to_last, transposed_from},
    reshapes, transposes,
};

/// With `tokens_only`, those alone that go over a list of tokens, an image of height 1.
pub(super) fn run(editor: &mut Editor<'_>, tokens_only: bool) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        if let Some(conv) = Pointwise::find(editor, id) {
            matched += usize::from(rewrite(editor, id, &conv, tokens_only)?);
        }
    }
    Ok(matched)
}

fn rewrite(editor: &mut Editor<'_>, id: NodeId, conv: &Pointwise, tokens_only: bool) -> Result<bool> {
    let (first, last) = (to_first(conv.rank), to_last(conv.rank));
    let Some(source) = transposed_from(editor, &conv.input, &first) else { return Ok(false) };
    let Some(output) = editor.node(id).and_then(|node| node.output.first()).cloned() else {
        return Ok(false);
    };
    let goes_back = |user: &NodeId| {
        let node = editor.node(*user).filter(|node| is(node, "Transpose"));
        node.and_then(|node| perm(node, Some(conv.rank))).is_some_and(|axes| axes == last)
    };
    let users = editor.users(&output);
    if users.is_empty() || !users.iter().all(goes_back) || editor.is_seen(&output) {
        return Ok(false);
    }
    let tokens = at_one(editor, &source, "Unsqueeze", conv.rank);
    if tokens_only && tokens.is_none() {
        return Ok(false);
    }
    if !editor.has_room(conv.ins.saturating_mul(conv.outs)) {
        return Ok(false);
    }
    let Some(matrix) = conv.matrix(editor)? else { return Ok(false) };
    let input = tokens.as_deref().unwrap_or(&source);
    let hint = output.clone();
    let weight =
        editor.add_floats(&format!("{}_t", conv.weight), &[conv.ins as u64, conv.outs as u64], &matrix);
    let mut value = add_product(editor, input, &weight, conv.bias.as_deref(), conv.outs, &hint);
    if tokens.is_some() {
        value = reshapes::add_unsqueeze(editor, &value, 1, &hint);
    }
    let value = transposes::add(editor, &value, &first, &hint);
    let moved = editor.substitute(&output, &value);
    if moved {
        editor.remove(id);
    }
    Ok(moved)
}

/// Adds `input . weight + bias`, whose last dim is `outs`.
pub(super) fn add_product(
    editor: &mut Editor<'_>,
    input: &str,
    weight: &str,
    bias: Option<&str>,
    outs: usize,
    hint: &str,
) -> String {
    let product = editor.types.get(input).map(|found| {
        let shape = found.shape.clone().map(|mut dims| {
            if let Some(last) = dims.last_mut() {
                *last = Dim::Static(outs as u64);
            }
            dims
        });
        ValueType { element_type: found.element_type, shape }
    });
    let value = editor.add("MatMul", &[input, weight], Vec::new(), hint, product.clone());
    match bias {
        Some(bias) => editor.add("Add", &[&value, bias], Vec::new(), hint, product),
        None => value,
    }
}
