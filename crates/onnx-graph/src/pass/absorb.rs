use crate::{
    Dim, ElementType, Result, ValueType,
    attributes::{axis, from_int, int, perm},
};

use super::{
    attention::{BY_HEAD, TURNED, by_head},
    editor::{Editor, NodeId, is},
    linear::{Linear, find_linear},
    reshapes::{self, OPSET_OF_RESHAPE},
    transposes,
};

pub(super) fn run(editor: &mut Editor<'_>) -> Result<usize> {
    let mut matched = 0;
    for id in editor.order() {
        let Some(attention) = Attention::find(editor, id)? else { continue };
        matched += usize::from(attention.absorb(editor)?);
    }
    Ok(matched)
}

/// Attention over all heads at once, all of its sizes known.
struct Attention {
    queries: Linear,
    keys: Linear,
    values: Linear,
    batch: u64,
    heads: usize,
    query_count: usize,
    key_count: usize,
    /// What the heads give side by side, `[batch, queries, heads x channels]`.
    joined: String,
}

/// The layer behind the attention.
struct Output {
    linear: Linear,
    value: String,
}

impl Attention {
    /// Fails where `id` is no `Softmax` within an attention, or not everything about it is known.
    fn find(editor: &Editor<'_>, id: NodeId) -> Result<Option<Self>> {
        let Some(outline) = Outline::find(editor, id) else { return Ok(None) };
        let (Some(queries), Some(keys), Some(values)) = (
            find_linear(editor, &outline.queries.layer)?,
            find_linear(editor, &outline.keys.layer)?,
            find_linear(editor, &outline.values.layer)?,
        ) else {
            return Ok(None);
        };
        let heads = outline.queries.heads;
        let (q, k, v) = (&outline.queries, &outline.keys, &outline.values);
        let sizes_fit = [k.heads, v.heads].iter().all(|&other| other == heads)
            && (k.batch, v.batch, v.tokens) == (q.batch, q.batch, k.tokens)
            && queries.outs == keys.outs
            && [&queries, &keys, &values].iter().all(|layer| heads > 0 && layer.outs % heads == 0);
        Ok(sizes_fit.then_some(Self {
            batch: q.batch,
            heads,
            query_count: q.tokens,
            key_count: k.tokens,
            joined: outline.joined,
            queries,
            keys,
            values,
        }))
    }

    /// Rewrites where that takes fewer multiplications.
    fn absorb(&self, editor: &mut Editor<'_>) -> Result<bool> {
        let layers = [&self.queries, &self.keys, &self.values];
        let elements: usize = layers.iter().map(|layer| layer.weight.len() + layer.outs).sum();
        // The layer behind is no larger than the one before it, or nearly.
        if !editor.has_room(elements.saturating_mul(2)) || editor.opset < OPSET_OF_RESHAPE {
            return Ok(false);
        }
        let few_queries = self.products_few_queries();
        let output = self.output(editor)?;
        let few_keys = output.as_ref().map(|output| self.products_few_keys(output));
        let now = self.products_now();
        // What the layer behind costs is not in the one count and in the other.
        let behind = output.as_ref().map_or(0, |output| wide(self.query_count) * area(&output.linear));
        if few_queries < now && few_keys.is_none_or(|few_keys| few_queries + behind <= few_keys) {
            let value = self.build_few_queries(editor);
            return Ok(editor.substitute(&self.joined, &value));
        }
        match (output, few_keys) {
            (Some(output), Some(few_keys)) if few_keys < now + behind => {
                let value = self.build_few_keys(editor, &output);
                Ok(editor.substitute(&output.value, &value))
            }
            _ => Ok(false),
        }
    }

    /// The linear layer that alone reads the result.
    fn output(&self, editor: &Editor<'_>) -> Result<Option<Output>> {
        let mut value = self.joined.clone();
        // As far as the chain of single readers goes, the farthest linear layer of this very source.
        let mut found = None;
        for _ in 0..8 {
            if !editor.is_private(&value) {
                break;
            }
            let Some(&user) = editor.users(&value).first() else { break };
            let Some(output) = editor.node(user).and_then(|node| node.output.first()) else { break };
            value.clone_from(output);
            if let Some(linear) = find_linear(editor, &value)?.filter(|linear| linear.source == self.joined) {
                found = Some(Output { linear, value: value.clone() });
            }
        }
        Ok(found)
    }

    fn channels(&self) -> (usize, usize) {
        (self.queries.outs / self.heads, self.values.outs / self.heads)
    }

    /// Multiplications of queries, keys, values, scores and result.
    fn products_now(&self) -> u128 {
        let [n, m, _] = self.counts();
        let [of_queries, of_keys, of_values] = [&self.queries, &self.keys, &self.values].map(area);
        n * of_queries
            + m * (of_keys + of_values)
            + n * m * (wide(self.queries.outs) + wide(self.values.outs))
    }

    fn products_few_queries(&self) -> u128 {
        let [n, m, heads] = self.counts();
        let of_queries = n * (area(&self.queries) + wide(self.queries.outs) * wide(self.keys.ins));
        of_queries + heads * n * m * (wide(self.keys.ins) + wide(self.values.ins)) + n * area(&self.values)
    }

    fn products_few_keys(&self, output: &Output) -> u128 {
        let [n, m, heads] = self.counts();
        let layers = [&self.keys, &self.values, &self.queries, &output.linear];
        let of_keys = m * layers.map(area).iter().sum::<u128>();
        of_keys + heads * n * m * (wide(self.queries.ins) + wide(output.linear.outs))
    }

    /// Queries, keys, heads.
    fn counts(&self) -> [u128; 3] {
        [self.query_count, self.key_count, self.heads].map(wide)
    }

    /// (q . Wk) . x in place of q . (Wk x), and (weights . x) . Wv in place of weights . (x Wv). What the keys' bias adds
    /// to a query's scores is the same for all keys, which the softmax does not see; the values' bias is added once,
    /// since the weights of a query sum to one.
    fn build_few_queries(&self, editor: &mut Editor<'_>) -> String {
        let hint = self.joined.clone();
        let (heads, n) = (self.heads as i64, self.query_count as i64);
        let (of_key, of_value) = self.channels();
        let queries = by_head(editor, &self.queries, self.heads, BY_HEAD, &hint);
        let weight = per_head(&self.keys, self.heads, true);
        let weight =
            editor.add_floats("keys", &[1, self.heads as u64, of_key as u64, self.keys.ins as u64], &weight);
        let moved = add(
            editor,
            "MatMul",
            &[&queries, &weight],
            &self.shape(&[self.heads, self.query_count, self.keys.ins]),
            &hint,
        );
        let moved = reshapes::add(editor, &moved, &[0, heads * n, self.keys.ins as i64], &hint);
        let turned = transposes::add(editor, &self.keys.source, &[0, 2, 1], &hint);
        let rows = self.heads * self.query_count;
        let scores = add(editor, "MatMul", &[&moved, &turned], &self.shape(&[rows, self.key_count]), &hint);
        let weights = softmax(editor, &scores, &self.shape(&[rows, self.key_count]), &hint);
        let mixed = add(
            editor,
            "MatMul",
            &[&weights, &self.values.source],
            &self.shape(&[rows, self.values.ins]),
            &hint,
        );
        let mixed = reshapes::add(editor, &mixed, &[0, heads, n, self.values.ins as i64], &hint);
        let weight = per_head(&self.values, self.heads, false);
        let weight = editor.add_floats(
            "values",
            &[1, self.heads as u64, self.values.ins as u64, of_value as u64],
            &weight,
        );
        let shape = self.shape(&[self.heads, self.query_count, of_value]);
        let mut result = add(editor, "MatMul", &[&mixed, &weight], &shape, &hint);
        if let Some(bias) = &self.values.bias {
            let bias = editor.add_floats("values_bias", &[1, self.heads as u64, 1, of_value as u64], bias);
            result = add(editor, "Add", &[&result, &bias], &shape, &hint);
        }
        let by_token = transposes::add(editor, &result, BY_HEAD, &hint);
        reshapes::add(editor, &by_token, &[0, 0, self.values.outs as i64], &hint)
    }

    /// x . (Wq k) in place of (x Wq) . k, and weights . (v Wo) in place of (weights . v) . Wo.
    fn build_few_keys(&self, editor: &mut Editor<'_>, output: &Output) -> String {
        let hint = output.value.clone();
        let (heads, m) = (self.heads as i64, self.key_count as i64);
        let (of_key, of_value) = self.channels();
        let (n, all) = (self.query_count, self.heads * self.key_count);
        let keys = by_head(editor, &self.keys, self.heads, TURNED, &hint);
        let weight = per_head(&self.queries, self.heads, false);
        let weight = editor.add_floats(
            "queries",
            &[1, self.heads as u64, self.queries.ins as u64, of_key as u64],
            &weight,
        );
        let moved = add(
            editor,
            "MatMul",
            &[&weight, &keys],
            &self.shape(&[self.heads, self.queries.ins, self.key_count]),
            &hint,
        );
        let moved = transposes::add(editor, &moved, BY_HEAD, &hint);
        let moved = reshapes::add(editor, &moved, &[0, 0, heads * m], &hint);
        let mut scores =
            add(editor, "MatMul", &[&self.queries.source, &moved], &self.shape(&[n, all]), &hint);
        if let Some(bias) = &self.queries.bias {
            let bias = editor.add_floats("queries_bias", &[1, self.heads as u64, 1, of_key as u64], bias);
            let row =
                add(editor, "MatMul", &[&bias, &keys], &self.shape(&[self.heads, 1, self.key_count]), &hint);
            let row = reshapes::add(editor, &row, &[0, 1, heads * m], &hint);
            scores = add(editor, "Add", &[&scores, &row], &self.shape(&[n, all]), &hint);
        }
        let scores = reshapes::add(editor, &scores, &[0, 0, heads, m], &hint);
        let weights = softmax(editor, &scores, &self.shape(&[n, self.heads, self.key_count]), &hint);
        let weights = reshapes::add(editor, &weights, &[0, 0, heads * m], &hint);
        let values = by_head(editor, &self.values, self.heads, BY_HEAD, &hint);
        let outs = output.linear.outs;
        // Rows of the layer behind are the heads' channels, one head after the other.
        let weight = editor.add_floats(
            "output",
            &[1, self.heads as u64, of_value as u64, outs as u64],
            &output.linear.weight,
        );
        let moved = add(
            editor,
            "MatMul",
            &[&values, &weight],
            &self.shape(&[self.heads, self.key_count, outs]),
            &hint,
        );
        let moved = reshapes::add(editor, &moved, &[0, heads * m, outs as i64], &hint);
        let result = add(editor, "MatMul", &[&weights, &moved], &self.shape(&[n, outs]), &hint);
        match &output.linear.bias {
            Some(bias) => {
                let bias = editor.add_floats("output_bias", &[outs as u64], bias);
                add(editor, "Add", &[&result, &bias], &self.shape(&[n, outs]), &hint)
            }
            None => result,
        }
    }

    fn shape(&self, dims: &[usize]) -> Vec<u64> {
        [self.batch].into_iter().chain(dims.iter().map(|&dim| dim as u64)).collect()
    }
}

fn wide(count: usize) -> u128 {
    count as u128
}

/// Multiplications of a layer for each token.
fn area(linear: &Linear) -> u128 {
    wide(linear.ins) * wide(linear.outs)
}

/// The layer's weight head by head: `[heads, channels, ins]` where `turned`, else `[heads, ins, channels]`.
fn per_head(linear: &Linear, heads: usize, turned: bool) -> Vec<f32> {
    let channels = linear.outs / heads;
    let at = |row: usize, column: usize| {
        linear.weight.get(row * linear.outs + column).copied().unwrap_or_default()
    };
    let mut weight = Vec::with_capacity(linear.weight.len());
    for head in 0..heads {
        let columns = head * channels..(head + 1) * channels;
        if turned {
            weight.extend(columns.flat_map(|column| (0..linear.ins).map(move |row| at(row, column))));
        } else {
            weight.extend((0..linear.ins).flat_map(|row| columns.clone().map(move |column| at(row, column))));
        }
    }
    weight
}

fn add(editor: &mut Editor<'_>, operator: &str, inputs: &[&str], sizes: &[u64], hint: &str) -> String {
    editor.add(operator, inputs, Vec::new(), hint, Some(floats(sizes)))
}

fn softmax(editor: &mut Editor<'_>, scores: &str, sizes: &[u64], hint: &str) -> String {
    // The last axis by its number: before operator set 13 a negative one is not sure to be understood.
    let last = sizes.len() as i64 - 1;
    editor.add("Softmax", &[scores], vec![from_int("axis", last)], hint, Some(floats(sizes)))
}

fn floats(sizes: &[u64]) -> ValueType {
    let shape = Some(sizes.iter().map(|&size| Dim::Static(size)).collect());
    ValueType { element_type: ElementType::Float32, shape }
}

/// What a layer gives, taken apart into heads.
struct Part {
    layer: String,
    batch: u64,
    tokens: usize,
    heads: usize,
}

impl Part {
    /// Behind a transposition with these axes of a `Reshape` into heads, everything static.
    fn find(editor: &Editor<'_>, value: &str, axes: &[usize]) -> Option<Self> {
        let (_, transposed) = editor.made_by(value, "Transpose")?;
        if perm(transposed, Some(4))? != axes {
            return None;
        }
        let split = transposed.input.first()?;
        let (_, reshape) = editor.made_by(split, "Reshape")?;
        let layer = reshape.input.first()?;
        let (whole, parts) = (editor.types.sizes(layer)?, editor.types.sizes(split)?);
        let (&[batch, tokens, channels], &[b, t, heads, c]) = (whole.as_slice(), parts.as_slice()) else {
            return None;
        };
        let splits = (b, t) == (batch, tokens) && heads.checked_mul(c) == Some(channels);
        let (tokens, heads) = (usize::try_from(tokens).ok()?, usize::try_from(heads).ok()?);
        // So that counting products cannot overflow 128 bits.
        let small = [tokens, heads].iter().all(|&size| size < 1 << 20) && channels < 1 << 20 && tokens > 0;
        (splits && small).then(|| Self { layer: layer.clone(), batch, tokens, heads })
    }
}

/// The nodes of an attention, before its layers are read.
struct Outline {
    queries: Part,
    keys: Part,
    values: Part,
    joined: String,
}

impl Outline {
    fn find(editor: &Editor<'_>, softmax: NodeId) -> Option<Self> {
        let node = editor.node(softmax).filter(|node| is(node, "Softmax"))?;
        let default = if editor.opset < 13 { 1 } else { -1 };
        if axis(int(node, "axis").unwrap_or(default), 4)? != 3 {
            return None;
        }
        let (scores, weights) = (node.input.first()?, node.output.first()?);
        let (_, product) = editor.made_by(scores, "MatMul")?;
        let [queries, keys] = product.input.as_slice() else { return None };
        let only = |value: &str| editor.is_private(value).then(|| editor.users(value).first().copied())?;
        let (user, _) = (only(weights)?, only(scores)?);
        let user = editor.node(user).filter(|node| is(node, "MatMul"))?;
        let [first, values] = user.input.as_slice() else { return None };
        let result = user.output.first().filter(|_| first == weights)?;
        let turned = editor.node(only(result)?).filter(|node| is(node, "Transpose"))?;
        if perm(turned, Some(4))? != BY_HEAD {
            return None;
        }
        let turned = turned.output.first()?;
        let joined = editor.node(only(turned)?).filter(|node| is(node, "Reshape"))?.output.first()?;
        let (queries, keys, values) = (
            Part::find(editor, queries, BY_HEAD)?,
            Part::find(editor, keys, TURNED)?,
            Part::find(editor, values, BY_HEAD)?,
        );
        let sizes = editor.types.sizes(joined)?;
        let joins =
            matches!(sizes.as_slice(), &[b, n, _] if b == queries.batch && n == queries.tokens as u64);
        (joins && !editor.is_seen(joined)).then(|| Self { queries, keys, values, joined: joined.clone() })
    }
}
