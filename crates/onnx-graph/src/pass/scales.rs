use crate::Result;

use super::{
    editor::{Editor, NodeId, is},
    linear::{factor, keeps_its_digits},
};

/// Operators through which a factor passes: they move elements, or choose among them.
const MOVERS: &[&str] = &["Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"];

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        let Some(node) = editor.node(id) else { continue };
        let [output] = node.output.as_slice() else { continue };
        let output = output.clone();
        let Some((input, factor)) = factor(editor, node)? else { continue };
        let Some(parts) = layer_before(editor, &input, factor)? else { continue };
        let named = parts.iter().filter_map(|&(id, place)| editor.node(id)?.input.get(place));
        let elements =
            named.filter_map(|name| editor.types.sizes(name)).map(|sizes| sizes.iter().product::<u64>());
        let elements = usize::try_from(elements.sum::<u64>()).unwrap_or(usize::MAX);
        let fits = editor.has_room(elements) && stay_in_range(editor, &parts, factor)?;
        if !fits || !editor.substitute(&output, &input) {
            continue;
        }
        editor.remove(id);
        scale(editor, &parts, factor)?;
        matched += 1;
    }
    Ok(matched)
}

/// The places among a node's inputs that hold the constants to be multiplied.
type Parts = Vec<(NodeId, usize)>;

/// The linear layer whose result, and nothing else, becomes `value`.
fn layer_before(editor: &Editor<'_>, value: &str, factor: f32) -> Result<Option<Parts>> {
    let mut value = value.to_owned();
    loop {
        if !editor.is_private(&value) {
            return Ok(None);
        }
        let Some(id) = editor.producer(&value) else { return Ok(None) };
        let Some(node) = editor.node(id) else { return Ok(None) };
        // The largest element stays the largest under a positive factor.
        let moves = MOVERS.iter().any(|operator| is(node, operator)) || (is(node, "MaxPool") && factor > 0.0);
        if moves && node.output.len() == 1 {
            let Some(input) = node.input.first() else { return Ok(None) };
            value.clone_from(input);
            continue;
        }
        if is(node, "Add") {
            let [a, b] = node.input.as_slice() else { return Ok(None) };
            let (product, bias) = if editor.constant(b).is_some() { (a, 1) } else { (b, 0) };
            let weight = (editor.is_private(product)).then(|| editor.made_by(product, "MatMul")).flatten();
            let Some((product, _)) = weight.filter(|(_, node)| has_floats(editor, node.input.get(1))) else {
                return Ok(None);
            };
            let parts = vec![(product, 1), (id, bias)];
            return Ok(has_floats(editor, node.input.get(bias)).then_some(parts));
        }
        if is(node, "MatMul") || is(node, "Conv") || is(node, "ConvTranspose") {
            let bias = node.input.get(2).filter(|bias| !bias.is_empty());
            let known =
                has_floats(editor, node.input.get(1)) && bias.is_none_or(|b| has_floats(editor, Some(b)));
            let parts = [(id, 1)].into_iter().chain(bias.map(|_| (id, 2))).collect();
            return Ok(known.then_some(parts));
        }
        return Ok(None);
    }
}

/// Weights that the factor takes out of range would no longer be what they were.
fn stay_in_range(editor: &Editor<'_>, parts: &Parts, factor: f32) -> Result<bool> {
    for &(id, place) in parts {
        let Some(name) = editor.node(id).and_then(|node| node.input.get(place)) else { return Ok(false) };
        let Some((_, values)) = editor.floats(name)? else { return Ok(false) };
        if !values.iter().all(|&value| keeps_its_digits(value, factor)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_floats(editor: &Editor<'_>, value: Option<&String>) -> bool {
    value.is_some_and(|value| editor.is_float_constant(value))
}

fn scale(editor: &mut Editor<'_>, parts: &Parts, factor: f32) -> Result<()> {
    for &(id, place) in parts {
        let Some(name) = editor.node(id).and_then(|node| node.input.get(place)).cloned() else { continue };
        let Some((dims, mut values)) = editor.floats(&name)? else { continue };
        for value in &mut values {
            *value *= factor;
        }
        let scaled = editor.add_floats(&format!("{name}_scaled"), &dims, &values);
        let Some(mut node) = editor.node(id).cloned() else { continue };
        node.input[place] = scaled;
        editor.replace(id, node);
    }
    Ok(())
}
