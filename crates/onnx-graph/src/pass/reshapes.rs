use crate::{
    Dim, Result, ValueType,
    attributes::{axis, ints},
};

use super::editor::{Editor, NodeId, is};

/// Before it the shape was an attribute, and fixed.
pub(super) const OPSET_OF_RESHAPE: i64 = 5;
/// Operators that change dims and leave the elements in their order.
const VIEWS: &[&str] = &["Reshape", "Squeeze", "Unsqueeze", "Flatten"];

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        matched += usize::from(merge(editor, id)?.is_some());
    }
    Ok(matched)
}

/// A view of a view is a view of the first one's input.
fn merge(editor: &mut Editor<'_>, id: NodeId) -> Result<Option<()>> {
    let Some(node) = editor.node(id).filter(|node| is_view(node)) else { return Ok(None) };
    let (Some(input), [output]) = (node.input.first(), node.output.as_slice()) else { return Ok(None) };
    let Some(before) = editor.producer(input).and_then(|before| editor.node(before)).filter(|n| is_view(n))
    else {
        return Ok(None);
    };
    let Some(source) = before.input.first() else { return Ok(None) };
    let (source, input, output) = (source.clone(), input.clone(), output.clone());
    let undone = undoes(editor, id, &source, &input)?;
    let (from, to) = (editor.types.sizes(&source), editor.types.sizes(&output));
    if undone || (from.is_some() && from == to) {
        if !editor.substitute(&output, &source) {
            return Ok(None);
        }
        editor.remove(id);
        return Ok(Some(()));
    }
    // In a `Reshape` a zero would mean "as before"; dims that are not known cannot be written down.
    let Some(sizes) = to.filter(|sizes| !sizes.contains(&0) && editor.opset >= OPSET_OF_RESHAPE) else {
        return Ok(None);
    };
    let shape: Vec<i64> = sizes.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
    let Some(node) = editor.node(id) else { return Ok(None) };
    let mut node = node.clone();
    let shape = editor.add_int64s("shape", &shape);
    node.op_type = Some("Reshape".to_owned());
    node.attribute.clear();
    node.input = vec![source, shape];
    editor.replace(id, node);
    Ok(Some(()))
}

fn is_view(node: &crate::proto::NodeProto) -> bool {
    VIEWS.iter().any(|operator| is(node, operator))
}

/// A `Squeeze` of just the dims that the `Unsqueeze` before it has put in, whatever the other dims are.
fn undoes(editor: &Editor<'_>, id: NodeId, source: &str, input: &str) -> Result<bool> {
    let Some((before, _)) = editor.made_by(input, "Unsqueeze") else { return Ok(false) };
    let Some(rank) = editor.types.rank(source) else {
        return Ok(false);
    };
    let squeezes = editor.node(id).is_some_and(|node| is(node, "Squeeze"));
    let inner = axes(editor, before, None)?;
    let outer = axes(editor, id, None)?;
    let rank = rank + inner.as_ref().map_or(0, Vec::len);
    let normal = |axes: Option<Vec<i64>>| {
        let mut axes: Vec<usize> = axes?.into_iter().map(|a| axis(a, rank)).collect::<Option<_>>()?;
        axes.sort_unstable();
        Some(axes)
    };
    let (inner, outer) = (normal(inner), normal(outer));
    Ok(squeezes && inner.is_some() && inner == outer)
}

/// The axes of a `Squeeze` or `Unsqueeze`: an attribute before operator set 13, an input since. `rank`, if given, is
/// what negative ones count from.
pub(super) fn axes(editor: &Editor<'_>, id: NodeId, rank: Option<usize>) -> Result<Option<Vec<i64>>> {
    let Some(node) = editor.node(id) else { return Ok(None) };
    let found = match (ints(node, "axes"), node.input.get(1)) {
        (Some(axes), None) => Some(axes.to_vec()),
        (None, Some(axes)) => editor.int64s(axes)?,
        _ => None,
    };
    let Some(rank) = rank else { return Ok(found) };
    let from_front = |axes: Vec<i64>| {
        axes.into_iter()
            .map(|a| axis(a, rank).and_then(|a| i64::try_from(a).ok()))
            .collect::<Option<Vec<_>>>()
    };
    Ok(found.and_then(from_front))
}

/// Adds a dim of size 1 at `at`, by whichever form the operator set has.
pub(super) fn add_unsqueeze(editor: &mut Editor<'_>, input: &str, at: usize, hint: &str) -> String {
    let widened = editor.types.get(input).map(|found| {
        let shape = found.shape.clone().map(|mut dims| {
            dims.insert(at.min(dims.len()), Dim::Static(1));
            dims
        });
        ValueType { element_type: found.element_type, shape }
    });
    let axes = [at as i64];
    if editor.opset < 13 {
        let attribute = crate::attributes::from_ints("axes", &axes);
        return editor.add("Unsqueeze", &[input], vec![attribute], hint, widened);
    }
    let axes = editor.add_int64s("axes", &axes);
    editor.add("Unsqueeze", &[input, &axes], Vec::new(), hint, widened)
}

/// Adds a `Reshape`; a 0 in `shape` takes the input's dim at that place.
pub(super) fn add(editor: &mut Editor<'_>, input: &str, shape: &[i64], hint: &str) -> String {
    let reshaped = editor.types.get(input).map(|found| {
        let dims = found.shape.as_ref().map(|dims| {
            let dim = |(at, &size): (usize, &i64)| match u64::try_from(size) {
                Ok(0) => dims.get(at).cloned().unwrap_or(Dim::Unknown),
                Ok(size) => Dim::Static(size),
                Err(_) => Dim::Unknown,
            };
            shape.iter().enumerate().map(dim).collect()
        });
        ValueType { element_type: found.element_type, shape: dims }
    });
    let shape = editor.add_int64s("shape", shape);
    editor.add("Reshape", &[input, &shape], Vec::new(), hint, reshaped)
}
