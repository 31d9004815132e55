use crate::{
    Dim, ValueType,
    attributes::{from_ints, perm},
    proto::AttributeProto,
};

use super::editor::{Editor, NodeId, is};

pub(super) fn run(editor: &mut Editor<'_>) -> usize {
    let mut matched = 0;
    for id in editor.order() {
        matched += usize::from(merge(editor, id).is_some());
    }
    matched
}

/// A transposition of a transposition is one of the first one's input.
fn merge(editor: &mut Editor<'_>, id: NodeId) -> Option<()> {
    let node = editor.node(id).filter(|node| is(node, "Transpose"))?;
    let ([input], [output]) = (node.input.as_slice(), node.output.as_slice()) else { return None };
    let (_, before) = editor.made_by(input, "Transpose")?;
    let [source] = before.input.as_slice() else { return None };
    let rank = editor.types.rank(source);
    let (first, second) = (perm(before, rank)?, perm(node, rank)?);
    if first.len() != second.len() {
        return None;
    }
    let both: Vec<usize> = second.iter().map(|&axis| first[axis]).collect();
    let (source, output) = (source.clone(), output.clone());
    if both.iter().enumerate().all(|(at, &axis)| at == axis) {
        if !editor.substitute(&output, &source) {
            return None;
        }
        editor.remove(id);
        return Some(());
    }
    let mut node = node.clone();
    node.input = vec![source];
    node.attribute = vec![from_axes(&both)];
    editor.replace(id, node);
    Some(())
}

/// Adds a transposition.
pub(super) fn add(editor: &mut Editor<'_>, input: &str, axes: &[usize], hint: &str) -> String {
    let transposed = editor.types.get(input).map(|found| {
        let moved = |dims: &Vec<Dim>| axes.iter().map(|&axis| dims.get(axis).cloned()).collect();
        ValueType { element_type: found.element_type, shape: found.shape.as_ref().and_then(moved) }
    });
    editor.add("Transpose", &[input], vec![from_axes(axes)], hint, transposed)
}

fn from_axes(axes: &[usize]) -> AttributeProto {
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    from_ints("perm", &axes)
}
