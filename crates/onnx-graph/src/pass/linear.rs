//! Linear layers in the forms that exporters write them in.

use crate::{
    Result,
    attributes::{int, ints, perm},
    proto::NodeProto,
};

use super::{
    editor::{Editor, NodeId, is},
    reshapes::axes,
};

/// `source . weight + bias` along the last dim.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// The value that is multiplied, channels last.
    pub(super) source: String,
    /// `[ins, outs]`, row by row.
    pub(super) weight: Vec<f32>,
    pub(super) ins: usize,
    pub(super) outs: usize,
    pub(super) bias: Option<Vec<f32>>,
}

impl Linear {
    /// Multiplies the layer's result. False, with nothing changed, where numbers would overflow or lose digits.
    pub(super) fn scale(&mut self, by: f32) -> bool {
        let all = || self.weight.iter().chain(self.bias.iter().flatten());
        let keeps = all().all(|&value| keeps_its_digits(value, by));
        if keeps {
            self.weight.iter_mut().chain(self.bias.iter_mut().flatten()).for_each(|value| *value *= by);
        }
        keeps
    }
}

/// Whether a number times another is one of full precision again, as far as it was one before.
pub(super) fn keeps_its_digits(value: f32, by: f32) -> bool {
    let product = value * by;
    !value.is_finite() || value == 0.0 || (product.is_finite() && product.abs() >= f32::MIN_POSITIVE)
}

/// A 1x1 convolution that is nothing but a product at each place.
pub(super) struct Pointwise {
    /// The convolution's input, channels second.
    pub(super) input: String,
    /// A constant of dims `[outs, ins, 1, ...]`.
    pub(super) weight: String,
    /// Any value of dims `[outs]`.
    pub(super) bias: Option<String>,
    pub(super) ins: usize,
    pub(super) outs: usize,
    /// Rank of input and output.
    pub(super) rank: usize,
}

impl Pointwise {
    /// Fails where `id` is no such convolution: another kernel, groups, strides or padding.
    pub(super) fn find(editor: &Editor<'_>, id: NodeId) -> Option<Self> {
        let node = editor.node(id).filter(|node| is(node, "Conv"))?;
        let (input, weight) = (node.input.first()?, node.input.get(1)?);
        let dims: Vec<usize> =
            editor.constant(weight)?.dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
        let (&[outs, ins], kernel) = dims.split_first_chunk::<2>()?;
        let all =
            |name: &str, wanted: i64| ints(node, name).is_none_or(|found| found.iter().all(|&v| v == wanted));
        // Padding "as needed" needs none here.
        let plain =
            all("strides", 1) && all("pads", 0) && int(node, "group").is_none_or(|groups| groups == 1);
        if kernel.is_empty() || kernel.iter().any(|&size| size != 1) || !plain || ins == 0 {
            return None;
        }
        let bias = node.input.get(2).filter(|bias| !bias.is_empty()).cloned();
        Some(Self { input: input.clone(), weight: weight.clone(), bias, ins, outs, rank: dims.len() })
    }

    /// The weight as `[ins, outs]`.
    pub(super) fn matrix(&self, editor: &Editor<'_>) -> Result<Option<Vec<f32>>> {
        let Some((_, values)) = editor.floats(&self.weight)? else { return Ok(None) };
        let at = |i: usize, o: usize| values.get(o * self.ins + i).copied().unwrap_or_default();
        Ok(Some((0..self.ins).flat_map(|i| (0..self.outs).map(move |o| at(i, o))).collect()))
    }
}

/// `[0, last, 1, 2, ...]`: channels from last to second.
pub(super) fn to_first(rank: usize) -> Vec<usize> {
    [0, rank.saturating_sub(1)].into_iter().chain(1..rank.saturating_sub(1)).collect()
}

/// `[0, 2, 3, ..., 1]`: channels from second to last.
pub(super) fn to_last(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

/// The input of a transposition with these axes that gives `value`.
pub(super) fn transposed_from(editor: &Editor<'_>, value: &str, wanted: &[usize]) -> Option<String> {
    let (_, node) = editor.made_by(value, "Transpose")?;
    let axes = perm(node, Some(wanted.len()))?;
    (axes == wanted).then(|| node.input.first().cloned())?
}

/// The input of an `Unsqueeze` or `Squeeze` of just the dim 1 that gives `value` (of `rank` with that dim).
pub(super) fn at_one(editor: &Editor<'_>, value: &str, operator: &str, rank: usize) -> Option<String> {
    let (id, node) = editor.made_by(value, operator)?;
    let at = axes(editor, id, Some(rank)).ok()??;
    (at == [1]).then(|| node.input.first().cloned())?
}

/// The linear layer that gives `value`, along the last dim: a matrix product with a constant, perhaps with a constant
/// added, or a 1x1 convolution between its two transpositions. Products with one number on the way are in its weights.
pub(super) fn find_linear(editor: &Editor<'_>, value: &str) -> Result<Option<Linear>> {
    if let Some((inner, factor)) = scaled(editor, value)? {
        let mut found = product(editor, &inner)?;
        return Ok(found.take_if(|linear| linear.scale(factor)));
    }
    product(editor, value)
}

fn product(editor: &Editor<'_>, value: &str) -> Result<Option<Linear>> {
    match matrix_product(editor, value)? {
        Some(linear) => Ok(Some(linear)),
        None => convolution(editor, value),
    }
}

fn matrix_product(editor: &Editor<'_>, value: &str) -> Result<Option<Linear>> {
    let sum = editor.made_by(value, "Add").and_then(|(_, node)| match node.input.as_slice() {
        [a, b] if editor.constant(b).is_some() => Some((a.clone(), b.clone())),
        [a, b] if editor.constant(a).is_some() => Some((b.clone(), a.clone())),
        _ => None,
    });
    let (value, bias) = sum.map_or((value.to_owned(), None), |(value, bias)| (value, Some(bias)));
    let Some((_, node)) = editor.made_by(&value, "MatMul") else { return Ok(None) };
    let [source, weight] = node.input.as_slice() else { return Ok(None) };
    let Some((dims, weight)) = editor.floats(weight)? else { return Ok(None) };
    let [ins, outs] = dims.as_slice() else { return Ok(None) };
    let (ins, outs) = (*ins as usize, *outs as usize);
    let bias = match bias {
        None => None,
        Some(bias) => match editor.floats(&bias)? {
            Some((dims, values)) if dims == [outs as u64] => Some(values),
            _ => return Ok(None),
        },
    };
    Ok(Some(Linear { source: source.clone(), weight, ins, outs, bias }))
}

fn convolution(editor: &Editor<'_>, value: &str) -> Result<Option<Linear>> {
    // Where tokens of rank 3 are convolved, they are images of height 1 meanwhile.
    let squeezed = at_one(editor, value, "Squeeze", 4);
    let last = squeezed.as_deref().unwrap_or(value);
    let Some(first) = transposed_from(editor, last, &to_last(4)) else { return Ok(None) };
    let Some(conv) = editor.producer(&first).and_then(|id| Pointwise::find(editor, id)) else {
        return Ok(None);
    };
    let Some(source) = transposed_from(editor, &conv.input, &to_first(4)).filter(|_| conv.rank == 4) else {
        return Ok(None);
    };
    let source = match (squeezed.is_some(), at_one(editor, &source, "Unsqueeze", 4)) {
        (false, _) => source,
        (true, Some(tokens)) => tokens,
        (true, None) => return Ok(None),
    };
    let bias = match &conv.bias {
        None => None,
        Some(bias) => match editor.floats(bias)? {
            Some((_, values)) if values.len() == conv.outs => Some(values),
            _ => return Ok(None),
        },
    };
    let weight = conv.matrix(editor)?;
    Ok(weight.map(|weight| Linear { source, weight, ins: conv.ins, outs: conv.outs, bias }))
}

/// The value that is multiplied with, or divided by, one constant number to give `value`, and the factor.
pub(super) fn scaled(editor: &Editor<'_>, value: &str) -> Result<Option<(String, f32)>> {
    let Some(node) = editor.producer(value).and_then(|id| editor.node(id)) else { return Ok(None) };
    factor(editor, node)
}

/// What a node multiplies with one constant number, if it leaves the shape as it is, and the number.
pub(super) fn factor(editor: &Editor<'_>, node: &NodeProto) -> Result<Option<(String, f32)>> {
    let [a, b] = node.input.as_slice() else { return Ok(None) };
    let rank = |value: &str| editor.types.rank(value);
    let fits = |kept: &str, number: &str| rank(kept).is_some_and(|kept| rank(number) <= Some(kept));
    if is(node, "Mul") {
        for (kept, number) in [(a, b), (b, a)] {
            if let Some(factor) = editor.scalar(number)?.filter(|f| f.is_finite() && fits(kept, number)) {
                return Ok(Some((kept.clone(), factor)));
            }
        }
    } else if is(node, "Div")
        && let Some(divisor) = editor.scalar(b)?.filter(|_| fits(a, b))
    {
        // Products with the reciprocal round otherwise, by one unit at most.
        return Ok((1.0 / divisor).is_finite().then(|| (a.clone(), 1.0 / divisor)));
    }
    Ok(None)
}
