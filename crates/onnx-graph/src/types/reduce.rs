//! Reductions along axes, and normalisations that give their statistics as well.

use crate::{Dim, ElementType, attributes::axis};

use super::{
    dims::ONE,
    op::{List, Op, Value},
};

pub(super) fn reduce(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // The axes became an input of `ReduceSum` earlier than of the others.
    let since = if op.op_type() == "ReduceSum" { 13 } else { 18 };
    let keep = op.int("keepdims").is_none_or(|keep| keep != 0);
    let reduced = |dims: &[Dim]| {
        let rank = dims.len();
        let axes = match op.list("axes", 1, since) {
            List::Unknown => return keep.then(|| vec![Dim::Unknown; rank]),
            List::Absent => Vec::new(),
            List::Known(axes) => axes.iter().map(|a| axis(*a, rank)).collect::<Option<Vec<_>>>()?,
        };
        if axes.is_empty() && op.flag("noop_with_empty_axes") {
            return Some(dims.to_vec());
        }
        let gone = |i: usize| axes.is_empty() || axes.contains(&i);
        let dims = dims.iter().enumerate();
        Some(if keep {
            dims.map(|(i, d)| if gone(i) { ONE } else { d.clone() }).collect()
        } else {
            dims.filter(|(i, _)| !gone(*i)).map(|(_, d)| d.clone()).collect()
        })
    };
    Some(vec![Value::new(op.element(0), op.dims(0).and_then(reduced))])
}

/// The data, and per channel up to four statistics.
pub(super) fn batch_normalization(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let channels = op.dims(0).and_then(|dims| dims.get(1).cloned()).unwrap_or(Dim::Unknown);
    let statistic = |i: usize| Value::of(op.element(i), vec![channels.clone()]);
    Some(vec![op.like(0), statistic(3), statistic(4), statistic(3), statistic(4)])
}

/// The data, its mean and its inverse deviation; the axes from `axis` on are normalised.
pub(super) fn layer_normalization(op: &Op<'_, '_>, input: usize) -> Option<Vec<Value>> {
    let data = op.like(input);
    let stash = op.element_attribute("stash_type").unwrap_or(ElementType::Float32);
    let statistic = data.dims().and_then(|dims| {
        let at = op.axis("axis", -1, dims.len())?;
        Some(dims.iter().enumerate().map(|(i, d)| if i < at { d.clone() } else { ONE }).collect())
    });
    let statistic = Value::new(stash, statistic);
    Some(vec![data, statistic.clone(), statistic])
}

/// As a layer normalisation of the last axis, with the sum of both inputs as the fourth output.
pub(super) fn skip_layer_normalization(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let mut values = layer_normalization(op, 0)?;
    values.push(op.like(0));
    Some(values)
}
