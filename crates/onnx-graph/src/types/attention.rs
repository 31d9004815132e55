//! The attention operators: ONNX's own (operator set 23) and ONNX Runtime's.

use crate::Dim;

use super::{
    dims::{divide, size, sum, times},
    op::{Op, Value},
};

fn count(op: &Op<'_, '_>, name: &str) -> Option<u64> {
    op.int(name).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
}

/// Sizes of one attention: batch, heads of queries and of keys, queries, keys (past ones included), sizes of a head.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    pub(super) batch: Dim,
    pub(super) heads: Dim,
    key_heads: Dim,
    pub(super) queries: Dim,
    pub(super) keys: Dim,
    pub(super) key_size: Dim,
    pub(super) value_size: Dim,
}

/// The sizes of ONNX's `Attention`, whose operands are [batch, heads, length, size] or [batch, length, heads * size].
pub(super) fn standard_sizes(op: &Op<'_, '_>) -> Option<Sizes> {
    let (queries, keys, values) = (op.dims(0)?, op.dims(1)?, op.dims(2)?);
    let past = |key: &Dim| match op.input(4) {
        None => Some(key.clone()),
        Some(past) => past.dims()?.get(2).map(|past| sum(past, key)),
    };
    match (queries, keys, values) {
        ([batch, heads, length, key_size], [_, key_heads, key, _], [_, _, _, value_size]) => Some(Sizes {
            batch: batch.clone(),
            heads: heads.clone(),
            key_heads: key_heads.clone(),
            queries: length.clone(),
            keys: past(key).unwrap_or(Dim::Unknown),
            key_size: key_size.clone(),
            value_size: value_size.clone(),
        }),
        ([batch, length, all], [_, key, _], [_, _, all_values]) => {
            let (heads, key_heads) = (count(op, "q_num_heads")?, count(op, "kv_num_heads")?);
            Some(Sizes {
                batch: batch.clone(),
                heads: Dim::Static(heads),
                key_heads: Dim::Static(key_heads),
                queries: length.clone(),
                keys: past(key).unwrap_or(Dim::Unknown),
                key_size: divide(all, heads),
                value_size: divide(all_values, key_heads),
            })
        }
        _ => None,
    }
}

pub(super) fn standard(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let [query, key, value] = [0, 1, 2].map(|i| op.element(i));
    let Some(h) = standard_sizes(op) else {
        return Some(vec![Value::new(query, None), Value::new(key, None), Value::new(value, None)]);
    };
    let all = match &h.heads {
        Dim::Static(heads) => times(&h.value_size, *heads),
        _ => Dim::Unknown,
    };
    let result = if op.rank(0) == Some(4) {
        vec![h.batch.clone(), h.heads.clone(), h.queries.clone(), h.value_size.clone()]
    } else {
        vec![h.batch.clone(), h.queries.clone(), all]
    };
    Some(vec![
        Value::of(query, result),
        Value::of(key, vec![h.batch.clone(), h.key_heads.clone(), h.keys.clone(), h.key_size]),
        Value::of(value, vec![h.batch.clone(), h.key_heads, h.keys.clone(), h.value_size]),
        Value::of(query, vec![h.batch, h.heads, h.queries, h.keys]),
    ])
}

/// Sizes of `com.microsoft.Attention`: one weight [size, 3 * hidden] projects the input to queries, keys and values.
pub(super) fn packed_sizes(op: &Op<'_, '_>) -> Option<Sizes> {
    let [batch, length, _] = op.dims(0)? else { return None };
    let heads = count(op, "num_heads")?;
    let [keys, values] = match op.ints("qkv_hidden_sizes") {
        Some([_, keys, values]) => [keys, values].map(|n| size((*n).into())),
        Some(_) => return None,
        None => {
            let hidden = op.dims(1)?.get(1).map(|d| divide(d, 3))?;
            [hidden.clone(), hidden]
        }
    };
    let past = match op.input(4) {
        None => Dim::Static(0),
        Some(past) => past.dims().and_then(|d| d.get(3)).cloned().unwrap_or(Dim::Unknown),
    };
    Some(Sizes {
        batch: batch.clone(),
        heads: Dim::Static(heads),
        key_heads: Dim::Static(heads),
        queries: length.clone(),
        keys: sum(&past, length),
        key_size: divide(&keys, heads),
        value_size: divide(&values, heads),
    })
}

pub(super) fn packed(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.element(0);
    let Some(h) = packed_sizes(op) else { return Some(vec![Value::new(element, None)]) };
    let hidden = h.heads.size().map_or(Dim::Unknown, |heads| times(&h.value_size, heads));
    let result = vec![h.batch.clone(), h.queries, hidden];
    let present = vec![Dim::Static(2), h.batch, h.heads, h.keys, h.key_size];
    Some(vec![Value::of(element, result), Value::of(element, present)])
}

/// Sizes of `com.microsoft.MultiHeadAttention`: projected operands [batch, length, hidden], or packed, or keys and values
/// by heads.
pub(super) fn multi_head_sizes(op: &Op<'_, '_>) -> Option<Sizes> {
    let heads = count(op, "num_heads")?;
    // Packed: [batch, length, heads, 3 or 2, size].
    let (batch, queries, key_size) = match op.dims(0)? {
        [batch, length, hidden] => (batch, length, divide(hidden, heads)),
        [batch, length, _, _, size] => (batch, length, size.clone()),
        _ => return None,
    };
    let (new, value_size) = match (op.input(1).map(|k| k.dims()), op.input(2).map(|v| v.dims())) {
        (None, None) => (queries.clone(), key_size.clone()),
        (Some(Some([_, length, _, _, size])), None)
        | (Some(Some([_, _, length, _])), Some(Some([_, _, _, size]))) => (length.clone(), size.clone()),
        (Some(Some([_, length, _])), Some(Some([_, _, hidden]))) => (length.clone(), divide(hidden, heads)),
        _ => return None,
    };
    let past = match op.input(6) {
        None => Dim::Static(0),
        Some(past) => past.dims().and_then(|d| d.get(2)).cloned().unwrap_or(Dim::Unknown),
    };
    Some(Sizes {
        batch: batch.clone(),
        heads: Dim::Static(heads),
        key_heads: Dim::Static(heads),
        queries: queries.clone(),
        keys: sum(&past, &new),
        key_size,
        value_size,
    })
}

pub(super) fn multi_head(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.element(0);
    let Some(h) = multi_head_sizes(op) else { return Some(vec![Value::new(element, None)]) };
    let hidden = h.heads.size().map_or(Dim::Unknown, |heads| times(&h.value_size, heads));
    Some(vec![
        Value::of(element, vec![h.batch.clone(), h.queries, hidden]),
        Value::of(element, vec![h.batch.clone(), h.heads.clone(), h.keys.clone(), h.key_size]),
        Value::of(element, vec![h.batch, h.heads, h.keys, h.value_size]),
    ])
}
