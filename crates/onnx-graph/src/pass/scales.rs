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
        let Some(parts) = layer_before(editor, &input, factor) else { continue };
        let named = parts.iter().filter_map(|&(id, place)| editor.node(id)?.input.get(place));
        let elements =
            named.filter_map(|name| editor.types.sizes(name)).map(|sizes| sizes.iter().product::<u64>());
        let elements = usize::try_from(elements.sum::<u64>()).unwrap_or(usize::MAX);
        if !editor.has_room(elements) {
            continue;
        }
        let Some(scaled) = scaled(editor, &parts, factor)? else { continue };
        if !editor.substitute(&output, &input) {
            continue;
        }
        editor.remove(id);
        for constant in scaled {
            put(editor, &constant);
        }
        matched += 1;
    }
    Ok(matched)
}

/// The places among a node's inputs that hold the constants to be multiplied.
type Parts = Vec<(NodeId, usize)>;

/// The linear layer whose result, and nothing else, becomes `value`.
fn layer_before(editor: &Editor<'_>, value: &str, factor: f32) -> Option<Parts> {
    let mut value = value.to_owned();
    loop {
        let id = editor.producer(&value).filter(|_| editor.is_private(&value))?;
        let node = editor.node(id)?;
        // The largest element stays the largest under a positive factor.
        let moves = MOVERS.iter().any(|operator| is(node, operator)) || (is(node, "MaxPool") && factor > 0.0);
        if moves && node.output.len() == 1 {
            value.clone_from(node.input.first()?);
            continue;
        }
        if is(node, "Add") {
            let [a, b] = node.input.as_slice() else { return None };
            let (product, bias) = if editor.constant(b).is_some() { (a, 1) } else { (b, 0) };
            let (product, layer) =
                editor.made_by(product, "MatMul").filter(|_| editor.is_private(product))?;
            let known = has_floats(editor, layer.input.get(1)) && has_floats(editor, node.input.get(bias));
            return known.then(|| vec![(product, 1), (id, bias)]);
        }
        if is(node, "MatMul") || is(node, "Conv") || is(node, "ConvTranspose") {
            let bias = node.input.get(2).filter(|bias| !bias.is_empty());
            let known =
                has_floats(editor, node.input.get(1)) && bias.is_none_or(|b| has_floats(editor, Some(b)));
            let parts = [(id, 1)].into_iter().chain(bias.map(|_| (id, 2))).collect();
            return known.then_some(parts);
        }
        return None;
    }
}

fn has_floats(editor: &Editor<'_>, value: Option<&String>) -> bool {
    value.is_some_and(|value| editor.is_float_constant(value))
}

/// A constant after the factor, and where it is read.
struct Scaled {
    id: NodeId,
    place: usize,
    name: String,
    dims: Vec<u64>,
    values: Vec<f32>,
}

/// The constants, multiplied; `None` where the factor takes one out of the range of full precision.
fn scaled(editor: &Editor<'_>, parts: &Parts, factor: f32) -> Result<Option<Vec<Scaled>>> {
    let mut all = Vec::with_capacity(parts.len());
    for &(id, place) in parts {
        let Some(name) = editor.node(id).and_then(|node| node.input.get(place)) else { return Ok(None) };
        let Some((dims, mut values)) = editor.floats(name)? else { return Ok(None) };
        if !values.iter().all(|&value| keeps_its_digits(value, factor)) {
            return Ok(None);
        }
        for value in &mut values {
            *value *= factor;
        }
        all.push(Scaled { id, place, name: name.clone(), dims, values });
    }
    Ok(Some(all))
}

fn put(editor: &mut Editor<'_>, constant: &Scaled) {
    let Scaled { id, place, name, dims, values } = constant;
    let Some(mut node) = editor.node(*id).cloned() else { return };
    node.input[*place] = editor.add_floats(&format!("{name}_scaled"), dims, values);
    editor.replace(*id, node);
}
