use crate::{
    Dim, Result, ValueType,
    attributes::{axis, from_int, int, perm},
};

use super::{
    editor::{Editor, NodeId, is},
    linear::{Linear, find_linear, scaled},
    pointwise::add_product,
    reshapes::{self, OPSET_OF_RESHAPE},
    transposes,
};

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        matched += usize::from(rewrite(editor, id)?);
    }
    Ok(matched)
}

/// Queries, keys and values of one head.
type Head = [Linear; 3];

fn rewrite(editor: &mut Editor<'_>, id: NodeId) -> Result<bool> {
    let Some(node) = editor.node(id).filter(|node| is(node, "Concat") && node.input.len() > 1) else {
        return Ok(false);
    };
    let ([output], inputs) = (node.output.as_slice(), node.input.clone()) else { return Ok(false) };
    let output = output.clone();
    if int(node, "axis").and_then(|a| axis(a, RANK)) != Some(RANK - 1) || editor.is_seen(&output) {
        return Ok(false);
    }
    let mut heads: Vec<Head> = Vec::with_capacity(inputs.len());
    for input in &inputs {
        match head(editor, input)? {
            Some(head) if heads.first().is_none_or(|first| alike(first, &head)) => heads.push(head),
            _ => return Ok(false),
        }
    }
    let all = [0, 1, 2].map(|role| joined(&heads, role));
    let [Some(queries), Some(keys), Some(values)] = all else { return Ok(false) };
    let rank = |value: &str| editor.types.rank(value);
    let batch = |value: &str| editor.types.get(value).and_then(|t| t.shape.as_ref()?.first().cloned());
    let layers = [&queries, &keys, &values];
    let alike = layers
        .iter()
        .all(|linear| rank(&linear.source) == Some(RANK) && batch(&linear.source) == batch(&queries.source));
    let elements = layers.iter().map(|linear| linear.weight.len() + linear.outs).sum();
    if !alike || !editor.has_room(elements) || editor.opset < OPSET_OF_RESHAPE {
        return Ok(false);
    }
    let batched = build(editor, heads.len(), &queries, &keys, &values, &output);
    let moved = editor.substitute(&output, &batched);
    if moved {
        editor.remove(id);
    }
    Ok(moved)
}

/// Batch, tokens, channels.
const RANK: usize = 3;

/// softmax(queries . keys) . values of one head, scales in the weights.
fn head(editor: &Editor<'_>, value: &str) -> Result<Option<Head>> {
    let Some((_, product)) = editor.made_by(value, "MatMul") else { return Ok(None) };
    let [weights, values] = product.input.as_slice() else { return Ok(None) };
    let Some((_, softmax)) = editor.made_by(weights, "Softmax") else { return Ok(None) };
    let default = if editor.opset < 13 { 1 } else { -1 };
    if axis(int(softmax, "axis").unwrap_or(default), RANK) != Some(RANK - 1) {
        return Ok(None);
    }
    let Some(scores) = softmax.input.first() else { return Ok(None) };
    let (scores, factor) = scaled(editor, scores)?.unwrap_or_else(|| (scores.clone(), 1.0));
    let Some((_, scores)) = editor.made_by(&scores, "MatMul") else { return Ok(None) };
    let [queries, keys] = scores.input.as_slice() else { return Ok(None) };
    let (keys, of_keys) = scaled(editor, keys)?.unwrap_or_else(|| (keys.clone(), 1.0));
    let Some((_, turned)) = editor.made_by(&keys, "Transpose") else { return Ok(None) };
    if perm(turned, Some(RANK)) != Some(vec![0, 2, 1]) {
        return Ok(None);
    }
    let Some(keys) = turned.input.first() else { return Ok(None) };
    let (Some(mut queries), Some(mut keys), Some(values)) =
        (find_linear(editor, queries)?, find_linear(editor, keys)?, find_linear(editor, values)?)
    else {
        return Ok(None);
    };
    let kept = queries.scale(factor) && keys.scale(of_keys);
    Ok(kept.then_some([queries, keys, values]))
}

/// Heads of one attention read the same and have the same sizes.
fn alike(a: &Head, b: &Head) -> bool {
    a.iter().zip(b).all(|(a, b)| a.source == b.source && (a.ins, a.outs) == (b.ins, b.outs))
}

/// One layer for all heads: their columns side by side.
fn joined(heads: &[Head], role: usize) -> Option<Linear> {
    let layers: Vec<&Linear> = heads.iter().filter_map(|head| head.get(role)).collect();
    let first = layers.first()?;
    let (ins, outs) = (first.ins, first.outs);
    let mut weight = Vec::with_capacity(ins * outs * layers.len());
    for row in 0..ins {
        for layer in &layers {
            weight.extend_from_slice(layer.weight.get(row * outs..(row + 1) * outs)?);
        }
    }
    let bias = layers.iter().any(|layer| layer.bias.is_some()).then(|| {
        let of = |layer: &&Linear| layer.bias.clone().unwrap_or_else(|| vec![0.0; outs]);
        layers.iter().flat_map(of).collect()
    });
    Some(Linear { source: first.source.clone(), weight, ins, outs: outs * layers.len(), bias })
}

fn build(
    editor: &mut Editor<'_>,
    heads: usize,
    queries: &Linear,
    keys: &Linear,
    values: &Linear,
    hint: &str,
) -> String {
    let queries_by_head = by_head(editor, queries, heads, BY_HEAD, hint);
    let keys_by_head = by_head(editor, keys, heads, TURNED, hint);
    let values_by_head = by_head(editor, values, heads, BY_HEAD, hint);
    let dims = |editor: &Editor<'_>, rows: &str, columns: &str, last: usize| {
        let (rows, columns) = (editor.types.get(rows)?, editor.types.get(columns)?);
        let mut dims: Vec<Dim> = rows.shape.clone()?;
        *dims.get_mut(3)? = columns.shape.as_ref()?.get(last)?.clone();
        Some(ValueType { element_type: rows.element_type, shape: Some(dims) })
    };
    let of_scores = dims(editor, &queries_by_head, &keys_by_head, 3);
    let scores =
        editor.add("MatMul", &[&queries_by_head, &keys_by_head], Vec::new(), hint, of_scores.clone());
    let weights = editor.add("Softmax", &[&scores], vec![from_int("axis", 3)], hint, of_scores);
    let of_result = dims(editor, &queries_by_head, &values_by_head, 3);
    let result = editor.add("MatMul", &[&weights, &values_by_head], Vec::new(), hint, of_result);
    let by_token = transposes::add(editor, &result, BY_HEAD, hint);
    reshapes::add(editor, &by_token, &[0, 0, values.outs as i64], hint)
}

/// Batch, heads, tokens, channels of one head: of what is split into `[batch, tokens, heads, channels]`, and back.
pub(super) const BY_HEAD: &[usize] = &[0, 2, 1, 3];
/// The same with channels before tokens, as keys are multiplied.
pub(super) const TURNED: &[usize] = &[0, 2, 3, 1];

/// Adds a layer whose result is taken apart into heads and transposed by `axes`.
pub(super) fn by_head(
    editor: &mut Editor<'_>,
    linear: &Linear,
    heads: usize,
    axes: &[usize],
    hint: &str,
) -> String {
    let weight = editor.add_floats("heads", &[linear.ins as u64, linear.outs as u64], &linear.weight);
    let bias = linear.bias.as_ref().map(|bias| editor.add_floats("heads_bias", &[bias.len() as u64], bias));
    let all = add_product(editor, &linear.source, &weight, bias.as_deref(), linear.outs, hint);
    // A 0 keeps the dim that is there: batch and tokens may be of any size.
    let split = reshapes::add(editor, &all, &[0, 0, heads as i64, (linear.outs / heads) as i64], hint);
    transposes::add(editor, &split, axes, hint)
}
