//! Convolutions and matrix products.

use crate::{Dim, Shape};

use super::{
    dims::{agree, broadcast, size, times},
    op::{Op, Value},
    pooling::Windows,
};

/// Also for `DeformConv`, whose first two inputs are the same.
pub(super) fn conv(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(op.element(0), conv_shape(op, 0, 1))])
}

/// Shape of the convolution of input `x` with the kernels `w`.
pub(super) fn conv_shape(op: &Op<'_, '_>, x: usize, w: usize) -> Shape {
    let kernels = op.dims(w);
    let channels = kernels.and_then(|k| k.first()).cloned().unwrap_or(Dim::Unknown);
    let windows = Windows::of(op);
    spatial(op, x, w, channels, &|i, axes, dim, kernel| windows.count(i, axes, dim, kernel))
}

/// Batch, `channels`, and of each spatial axis what `rule` says for its number, the number of axes, its dim and its kernel.
fn spatial(
    op: &Op<'_, '_>,
    x: usize,
    w: usize,
    channels: Dim,
    rule: &dyn Fn(usize, usize, &Dim, i64) -> Option<Dim>,
) -> Shape {
    let (input, kernels) = (op.dims(x), op.dims(w));
    let rank = op.rank(x).or(op.rank(w))?;
    let axes = rank.checked_sub(2)?;
    let batch = input.and_then(|d| d.first()).cloned().unwrap_or(Dim::Unknown);
    let mut dims = vec![batch, channels];
    for i in 0..axes {
        let dim = input.and_then(|d| d.get(i + 2)).unwrap_or(&Dim::Unknown);
        let kernel = match op.ints("kernel_shape") {
            Some(kernel) if !kernel.is_empty() => kernel.get(i).copied(),
            _ => kernels.and_then(|k| k.get(i + 2)?.size()).and_then(|k| i64::try_from(k).ok()),
        };
        let dim = kernel.and_then(|kernel| rule(i, axes, dim, kernel));
        dims.push(dim.unwrap_or(Dim::Unknown));
    }
    Some(dims)
}

pub(super) fn conv_transpose(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let windows = Windows::of(op);
    let group = u64::try_from(op.int("group").unwrap_or(1)).ok()?;
    let channels = op.dims(1).and_then(|w| w.get(1)).map_or(Dim::Unknown, |c| times(c, group));
    let (wanted, more) = (op.ints("output_shape"), op.ints("output_padding"));
    let rule = |i: usize, axes: usize, dim: &Dim, kernel: i64| {
        if let Some(wanted) = wanted.filter(|w| !w.is_empty()) {
            // Some exporters list batch and channels too.
            return wanted.get(i + wanted.len().checked_sub(axes)?).map(|&d| size(d.into()));
        }
        let [stride, dilation, before, after] = windows.along(i, axes)?;
        let dim = i128::from(dim.size()?);
        if windows.same() {
            return Some(size(dim.checked_mul(stride)?));
        }
        let more = i128::from(more.filter(|m| !m.is_empty()).map_or(Some(0), |m| m.get(i).copied())?);
        let span = dilation.checked_mul(i128::from(kernel) - 1)?;
        Some(size(stride.checked_mul(dim.checked_sub(1)?)? + more + span + 1 - before - after))
    };
    Some(vec![Value::new(op.element(0), spatial(op, 0, 1, channels, &rule))])
}

pub(super) fn gemm(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let at = |input: usize, turned: bool, i: usize| {
        op.dims(input).and_then(|d| d.get(if turned { 1 - i } else { i })).cloned().unwrap_or(Dim::Unknown)
    };
    let dims = vec![at(0, op.flag("transA"), 0), at(1, op.flag("transB"), 1)];
    Some(vec![Value::of(op.element(0), dims)])
}

pub(super) fn matmul(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(1)).and_then(|(a, b)| product_dims(a, b));
    Some(vec![Value::new(op.element(0), shape)])
}

/// Dims of a matrix product; an operand of one dim is a row on the left, a column on the right, and that dim vanishes.
pub(super) fn product_dims(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let (rows, batch_a) = match a {
        [] => return None,
        [_] => (None, &[][..]),
        [batch @ .., rows, _] => (Some(rows), batch),
    };
    let (columns, batch_b) = match b {
        [] => return None,
        [_] => (None, &[][..]),
        [batch @ .., _, columns] => (Some(columns), batch),
    };
    let mut dims = broadcast(batch_a, batch_b);
    dims.extend(rows.into_iter().chain(columns).cloned());
    Some(dims)
}

/// As `MatMul`, with either operand's last two axes changed, and its batch axes rotated behind, as its attributes say.
pub(super) fn fused_matmul(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = fused_operands(op).and_then(|(a, b)| product_dims(&a, &b));
    Some(vec![Value::new(op.element(0), shape)])
}

/// Both operands' dims as the product takes them.
pub(super) fn fused_operands(op: &Op<'_, '_>) -> Option<(Vec<Dim>, Vec<Dim>)> {
    let turned = |i: usize, matrix: &str, batch: &str| {
        let mut dims = op.dims(i)?.to_vec();
        let rank = dims.len();
        if op.flag(batch) && rank > 2 {
            // [b0, b1.., m, n] with its batch in front turned: [b1.., m, b0, n].
            dims.get_mut(..rank - 1)?.rotate_left(1);
        }
        if op.flag(matrix) && rank > 1 {
            dims.swap(rank - 2, rank - 1);
        }
        Some(dims)
    };
    Some((turned(0, "transA", "transBatchA")?, turned(1, "transB", "transBatchB")?))
}

/// An equation without an ellipsis; one with it leaves the shape unknown.
pub(super) fn einsum(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.text("equation").and_then(|equation| einsum_dims(op, equation));
    Some(vec![Value::new(op.element(0), shape)])
}

/// A label of an equation: its size, and how often it stands on the left.
type Label = (char, Dim, usize);

/// The labels of an equation by what the operands say, and the result's labels where they are written.
fn einsum_labels<'e>(op: &Op<'_, '_>, equation: &'e str) -> Option<(Vec<Label>, Option<&'e str>)> {
    let (operands, result) = match equation.split_once("->") {
        Some((operands, result)) => (operands, Some(result)),
        None => (equation, None),
    };
    let mut labels: Vec<Label> = Vec::new();
    for (i, of_operand) in operands.split(',').enumerate() {
        let (dims, letters) = (op.dims(i)?, of_operand.chars().filter(|c| !c.is_whitespace()));
        if !letters.clone().all(|c| c.is_ascii_alphabetic()) || letters.clone().count() != dims.len() {
            return None;
        }
        for (letter, dim) in letters.zip(dims) {
            match labels.iter_mut().find(|label| label.0 == letter) {
                Some((_, known, times)) => (*known, *times) = (einsum_size(known, dim), *times + 1),
                None => labels.push((letter, dim.clone(), 1)),
            }
        }
    }
    Some((labels, result))
}

/// The sizes of all labels: their product is the number of multiplications of a product of two.
pub(super) fn einsum_space(op: &Op<'_, '_>) -> Option<Vec<Dim>> {
    Some(einsum_labels(op, op.text("equation")?)?.0.into_iter().map(|label| label.1).collect())
}

fn einsum_dims(op: &Op<'_, '_>, equation: &str) -> Option<Vec<Dim>> {
    let (mut labels, result) = einsum_labels(op, equation)?;
    if let Some(result) = result {
        let of = |letter: char| labels.iter().find(|l| l.0 == letter).map(|l| l.1.clone());
        return result.chars().filter(|c| !c.is_whitespace()).map(of).collect();
    }
    // The implied result has the labels that stand once, sorted.
    labels.sort_by_key(|label| label.0);
    Some(labels.into_iter().filter(|label| label.2 == 1).map(|label| label.1).collect())
}

/// One label's size: an axis of 1 is stretched, as engines do.
fn einsum_size(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Static(1), other) | (other, Dim::Static(1)) => other.clone(),
        _ => agree(a, b),
    }
}
