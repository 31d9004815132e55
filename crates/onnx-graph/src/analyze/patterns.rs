//! Operators that exporters write as several nodes. A pattern whose shapes are not known never matches (case AN1).

use super::flow::Flow;
use crate::{Types, attributes};

/// Nodes that together do what one operator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    /// The node that gives the result.
    pub(crate) last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Mean, deviation, variance, root, quotient, over the last or the channel axis.
    LayerNormalization,
    /// Half of x times one plus erf of x over the root of two.
    Gelu,
    /// A product, a softmax over its last axis, a product with it.
    Attention,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LayerNormalization => "SUBGRAPH/LayerNormalization",
            Self::Gelu => "SUBGRAPH/Gelu",
            Self::Attention => "SUBGRAPH/Attention",
        }
    }
}

/// All patterns of the main graph, in the order of their last nodes.
pub(crate) fn find(flow: &Flow<'_>, types: &Types) -> Vec<Found> {
    let found = (0..flow.nodes.len()).filter_map(|node| match flow.op(node) {
        "Div" => layer_normalization(flow, types, node),
        "Erf" => gelu(flow, node),
        "Softmax" => attention(flow, types, node),
        _ => None,
    });
    let mut found: Vec<Found> = found.collect();
    found.sort_by_key(|f| f.last);
    found
}

/// Seen from the quotient: (x - mean) / sqrt(mean of squares + epsilon), then perhaps a scale and a shift by weights.
fn layer_normalization(flow: &Flow<'_>, types: &Types, div: usize) -> Option<Found> {
    let deviation = flow.source(div, 0).filter(|&n| flow.op(n) == "Sub")?;
    let root = flow.source(div, 1).filter(|&n| flow.op(n) == "Sqrt")?;
    let sum = flow.source(root, 0).filter(|&n| flow.op(n) == "Add")?;
    let variance =
        [0, 1].into_iter().filter_map(|at| flow.source(sum, at)).find(|&n| flow.op(n) == "ReduceMean")?;
    let square = flow.source(variance, 0).filter(|&n| matches!(flow.op(n), "Pow" | "Mul"))?;
    let mean = flow.source(deviation, 1).filter(|&n| flow.op(n) == "ReduceMean")?;
    if flow.source(square, 0) != Some(deviation) || flow.input(mean, 0) != flow.input(deviation, 0) {
        return None;
    }
    // Over one axis: the mean keeps the rank and has one element where the input has more.
    let whole = types.sizes(flow.input(mean, 0)?)?;
    let reduced = types.sizes(flow.output(mean)?)?;
    let axes: Vec<usize> = (0..whole.len()).filter(|&i| reduced.get(i) != whole.get(i)).collect();
    let [axis] = axes[..] else { return None };
    if reduced.len() != whole.len() || !(axis + 1 == whole.len() || (axis == 1 && whole.len() == 4)) {
        return None;
    }
    let mut last = div;
    for op in ["Mul", "Add"] {
        let by_weight = |&n: &usize| {
            flow.op(n) == op && (0..2).any(|at| flow.input(n, at).is_some_and(|v| flow.is_weight(v)))
        };
        match flow.only_user(last).filter(by_weight) {
            Some(next) => last = next,
            None => break,
        }
    }
    Some(Found { kind: Kind::LayerNormalization, last })
}

/// x -> Div or Mul by a constant -> Erf -> Add -> Mul with x -> Mul by one half, the last two in either order.
fn gelu(flow: &Flow<'_>, erf: usize) -> Option<Found> {
    let scaled = flow.source(erf, 0).filter(|&n| matches!(flow.op(n), "Div" | "Mul"))?;
    let x = (0..2).filter_map(|at| flow.input(scaled, at)).find(|v| !flow.is_weight(v))?;
    let plus = flow.only_user(erf).filter(|&n| flow.op(n) == "Add")?;
    let first = flow.only_user(plus).filter(|&n| flow.op(n) == "Mul")?;
    let last = flow.only_user(first).filter(|&n| flow.op(n) == "Mul").unwrap_or(first);
    let halved = flow.producer(x);
    let takes_x = |n: usize| {
        (0..2).filter_map(|at| flow.input(n, at)).any(|v| {
            v == x
                || flow.producer(v).is_some_and(|p| {
                    flow.op(p) == "Mul" && Some(p) != halved && (0..2).any(|at| flow.input(p, at) == Some(x))
                })
        })
    };
    (takes_x(first) || takes_x(last)).then_some(Found { kind: Kind::Gelu, last })
}

/// A softmax over the last axis between two products of values that are both computed.
fn attention(flow: &Flow<'_>, types: &Types, softmax: usize) -> Option<Found> {
    let rank = types.sizes(flow.input(softmax, 0)?)?.len();
    let axis = attributes::int(flow.nodes.get(softmax)?, "axis").unwrap_or(-1);
    if axis != -1 && usize::try_from(axis).ok() != rank.checked_sub(1) {
        return None;
    }
    let last = attention_around(flow, softmax)?;
    Some(Found { kind: Kind::Attention, last })
}

/// The product that takes a softmax whose input comes from a product, whatever the shapes.
pub(crate) fn attention_around(flow: &Flow<'_>, softmax: usize) -> Option<usize> {
    /// Scales, masks and changes of layout that may stand between.
    const BETWEEN: [&str; 9] =
        ["Mul", "Div", "Add", "Cast", "Identity", "Dropout", "Reshape", "Transpose", "Where"];
    const STEPS: usize = 6;
    let product = |&n: &usize| matches!(flow.op(n), "MatMul" | "Einsum" | "Gemm");
    let mut before = flow.source(softmax, 0)?;
    for _ in 0..STEPS {
        if product(&before) || !BETWEEN.contains(&flow.op(before)) {
            break;
        }
        before = flow.source(before, 0).or_else(|| flow.source(before, 1))?;
    }
    let mut after = flow.only_user(softmax)?;
    for _ in 0..STEPS {
        if product(&after) || !BETWEEN.contains(&flow.op(after)) {
            break;
        }
        after = flow.only_user(after)?;
    }
    (product(&before) && product(&after)).then_some(after)
}
