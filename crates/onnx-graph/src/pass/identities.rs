use crate::{
    ElementType, Result,
    attributes::{int, ints, perm},
    proto::NodeProto,
};

use super::editor::{Editor, NodeId, is_standard};

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        let Some((output, input)) = does_nothing(editor, id)? else { continue };
        if editor.substitute(&output, &input) {
            editor.remove(id);
            matched += 1;
        }
    }
    Ok(matched)
}

/// The value that a node gives and the equal one that it takes.
fn does_nothing(editor: &Editor<'_>, id: NodeId) -> Result<Option<(String, String)>> {
    let Some(node) = editor.node(id).filter(|node| is_standard(node)) else { return Ok(None) };
    let Some((output, rest)) = node.output.split_first() else { return Ok(None) };
    if rest.iter().any(|other| editor.is_used(other)) {
        return Ok(None);
    }
    let Some(first) = node.input.first() else { return Ok(None) };
    let kept = match node.op_type.as_deref().unwrap_or_default() {
        "Identity" => Some(first),
        "Dropout" if !may_train(editor, node) => Some(first),
        "Cast" => {
            let found = editor.types.element(first);
            let to = int(node, "to").and_then(|to| i32::try_from(to).ok()).map(ElementType::from_onnx);
            (found != ElementType::Undefined && to == Some(found)).then_some(first)
        }
        "Reshape" | "Expand" | "Flatten" => same_shape(editor, first, output).then_some(first),
        "Transpose" => {
            let rank = editor.types.rank(first);
            perm(node, rank)
                .filter(|axes| axes.iter().enumerate().all(|(at, &axis)| at == axis))
                .map(|_| first)
        }
        "Concat" if node.input.len() == 1 => Some(first),
        "Pad" => {
            let pads = match (ints(node, "pads"), node.input.get(1)) {
                (Some(pads), _) => Some(pads.to_vec()),
                (None, Some(pads)) => editor.int64s(pads)?,
                (None, None) => None,
            };
            pads.filter(|pads| pads.iter().all(|&pad| pad == 0)).map(|_| first)
        }
        "Slice" => {
            let steps = match node.input.get(4).filter(|steps| !steps.is_empty()) {
                Some(steps) => editor.int64s(steps)?,
                None => Some(Vec::new()),
            };
            // Backwards, the same shape is another order.
            let forwards = steps.is_some_and(|steps| steps.iter().all(|&step| step > 0));
            (forwards && same_shape(editor, first, output)).then_some(first)
        }
        "Mul" => neutral(editor, node, 1.0, true)?,
        "Div" => neutral(editor, node, 1.0, false)?,
        // Not `Add`: minus zero plus zero is zero. Nor less minus zero, for the same reason.
        "Sub" => neutral(editor, node, 0.0, false)?,
        _ => None,
    };
    Ok(kept.map(|input| (output.clone(), input.clone())))
}

fn may_train(editor: &Editor<'_>, node: &NodeProto) -> bool {
    // Before operator set 7 an attribute told, from 12 on the third input does.
    let told = editor.opset < 7 && int(node, "is_test") != Some(1);
    told || node.input.get(2).is_some_and(|training| !training.is_empty())
}

fn same_shape(editor: &Editor<'_>, a: &str, b: &str) -> bool {
    editor.types.sizes(a).is_some_and(|sizes| editor.types.sizes(b) == Some(sizes))
}

/// The other operand of a node one of whose operands is this number, if the result has its shape.
fn neutral<'n>(
    editor: &Editor<'_>,
    node: &'n NodeProto,
    number: f32,
    either: bool,
) -> Result<Option<&'n String>> {
    let [a, b] = node.input.as_slice() else { return Ok(None) };
    let candidates: &[(&String, &String)] = if either { &[(a, b), (b, a)] } else { &[(a, b)] };
    let rank = |value: &str| editor.types.rank(value);
    for &(kept, other) in candidates {
        if editor.scalar(other)?.is_some_and(|found| found.to_bits() == number.to_bits())
            && rank(kept).is_some_and(|rank_of_kept| rank(other) <= Some(rank_of_kept))
        {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}
