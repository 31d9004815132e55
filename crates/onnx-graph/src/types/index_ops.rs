//! Operators that pick elements by position.

use crate::{Dim, ElementType, attributes::axis};

use super::{
    dims::{ONE, size},
    op::{Item, List, Op, Value},
};

/// One axis of a `Slice`: which elements it takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) axis: usize,
    pub(super) start: Item,
    pub(super) end: Item,
    pub(super) step: Item,
}

/// The axes that a `Slice` cuts; `None` where they cannot be told.
pub(super) fn cuts(op: &Op<'_, '_>, rank: usize) -> Option<Vec<Cut>> {
    // Attributes before operator set 10.
    let list = |name: &str, i: usize| -> Option<Vec<Item>> {
        if op.opset < 10 {
            return op.ints(name).map(|ints| ints.iter().map(|i| Item::Int(*i)).collect());
        }
        match op.input(i)? {
            value if value.content.is_some() => value.content.clone(),
            value => match value.dims()? {
                [Dim::Static(n)] if *n <= rank as u64 => Some(vec![Item::Unknown; usize::try_from(*n).ok()?]),
                _ => None,
            },
        }
    };
    let (starts, ends) = (list("starts", 1)?, list("ends", 2)?);
    let axes = match op.list("axes", 3, 10) {
        List::Absent => (0..starts.len().min(rank)).collect(),
        List::Known(axes) => axes.iter().map(|a| axis(*a, rank)).collect::<Option<Vec<_>>>()?,
        List::Unknown => return None,
    };
    let steps = if op.opset < 10 || op.input(4).is_none() { None } else { list("steps", 4) };
    let no_steps = op.opset < 10 || op.input(4).is_none();
    let cut = |(i, axis): (usize, usize)| {
        let step = if no_steps { Some(Item::Int(1)) } else { steps.as_ref()?.get(i).cloned() };
        Some(Cut { axis, start: starts.get(i)?.clone(), end: ends.get(i)?.clone(), step: step? })
    };
    axes.into_iter().enumerate().map(cut).collect()
}

/// First index, number of elements and step that a cut takes of `dim` elements.
pub(super) fn range(dim: u64, start: i64, end: i64, step: i64) -> Option<(i64, u64, i64)> {
    let dim = i128::from(dim);
    let (start, end, wide) = (i128::from(start), i128::from(end), i128::from(step));
    let from_end = |at: i128| if at < 0 { at + dim } else { at };
    // Backwards, the end may be in front of the first element.
    let (first, last) = match step {
        0 => return None,
        1.. => (0, dim),
        _ => (-1, dim - 1),
    };
    let (start, end) = (from_end(start).clamp(first, last), from_end(end).clamp(first, last));
    let room = if step > 0 { end - start } else { start - end };
    let taken = if room <= 0 { 0 } else { (room + wide.abs() - 1) / wide.abs() };
    Some((i64::try_from(start).ok()?, u64::try_from(taken).ok()?, step))
}

fn sliced(dim: &Dim, cut: &Cut) -> Dim {
    match (dim, &cut.start, &cut.end, &cut.step) {
        (Dim::Static(n), Item::Int(start), Item::Int(end), Item::Int(step)) => {
            range(*n, *start, *end, *step).map_or(Dim::Unknown, |(_, taken, _)| size(taken.into()))
        }
        // All of it: to what exporters write for the end, or to its own size. The other way round as well.
        (dim, Item::Int(0), Item::Int(end), Item::Int(1)) if *end >= i64::from(i32::MAX) => dim.clone(),
        (Dim::Symbolic(name), Item::Int(0), Item::Symbol(end), Item::Int(1)) if name == end => dim.clone(),
        (dim, Item::Int(-1), Item::Int(end), Item::Int(-1)) if *end <= i64::from(-i32::MAX) => dim.clone(),
        _ => Dim::Unknown,
    }
}

pub(super) fn slice(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let mut value = op.like(0);
    if let Some(dims) = &mut value.shape {
        match cuts(op, dims.len()) {
            Some(cuts) => cuts.iter().for_each(|cut| dims[cut.axis] = sliced(&dims[cut.axis], cut)),
            None => dims.fill(Dim::Unknown),
        }
    }
    Some(vec![value])
}

pub(super) fn gather(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(1)).and_then(|(data, indices)| {
        let at = op.axis("axis", 0, data.len())?;
        Some([data.get(..at)?, indices, data.get(at + 1..)?].concat())
    });
    Some(vec![Value::new(op.element(0), shape)])
}

pub(super) fn gather_elements(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(op.element(0), op.like(1).shape)])
}

pub(super) fn gather_nd(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(1)).and_then(|(data, indices)| {
        let batch = usize::try_from(op.int("batch_dims").unwrap_or(0)).ok()?;
        let [front @ .., last] = indices else { return None };
        let taken = batch.checked_add(usize::try_from(last.size()?).ok()?)?;
        Some([front, data.get(taken..)?].concat())
    });
    Some(vec![Value::new(op.element(0), shape)])
}

pub(super) fn one_hot(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // The depth may come as one element of whatever shape.
    let depth = match op.items(1) {
        Some([depth]) => match depth {
            Item::Float(f) if *f >= 0.0 && *f < 1e9 => Dim::Static(*f as u64),
            depth => depth.dim(),
        },
        _ => Dim::Unknown,
    };
    let shape = op.dims(0).and_then(|indices| {
        let at = op.axis("axis", -1, indices.len() + 1)?;
        let mut dims = indices.to_vec();
        dims.insert(at, depth);
        Some(dims)
    });
    Some(vec![Value::new(op.element(2), shape)])
}

pub(super) fn compress(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let Some(at) = op.int("axis") else { return Some(vec![Value::of(op.element(0), vec![Dim::Unknown])]) };
    let mut value = op.like(0);
    if let Some(dims) = &mut value.shape {
        let at = axis(at, dims.len())?;
        dims[at] = Dim::Unknown;
    }
    Some(vec![value])
}

pub(super) fn non_zero(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // A scalar gives one row as well.
    let rank = op.rank(0).map_or(Dim::Unknown, |rank| size(rank.max(1) as i128));
    Some(vec![Value::of(ElementType::Int64, vec![rank, Dim::Unknown])])
}

pub(super) fn non_max_suppression(_op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::of(ElementType::Int64, vec![Dim::Unknown, Dim::Static(3)])])
}

pub(super) fn grid_sample(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(1)).and_then(|(data, grid)| {
        let [batch, channels, ..] = data else { return None };
        let [_, spatial @ .., _] = grid else { return None };
        Some([&[batch.clone(), channels.clone()], spatial].concat())
    });
    Some(vec![Value::new(op.element(0), shape)])
}

pub(super) fn roi_align(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let side = |name| op.int(name).map_or(ONE, |n| size(n.into()));
    let regions = op.dims(1).and_then(|d| d.first()).cloned().unwrap_or(Dim::Unknown);
    let channels = op.dims(0).and_then(|d| d.get(1)).cloned().unwrap_or(Dim::Unknown);
    Some(vec![Value::of(op.element(0), vec![regions, channels, side("output_height"), side("output_width")])])
}

pub(super) fn top_k(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // An attribute in operator set 1.
    let taken = match op.items(1) {
        _ if op.opset < 10 => op.int("k").map_or(Dim::Unknown, |k| size(k.into())),
        Some([taken]) => taken.dim(),
        _ => Dim::Unknown,
    };
    let mut value = op.like(0);
    if let Some(dims) = &mut value.shape {
        let at = op.axis("axis", -1, dims.len())?;
        dims[at] = taken;
    }
    let indices = Value::new(ElementType::Int64, value.shape.clone());
    Some(vec![value, indices])
}

pub(super) fn arg(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let mut shape = op.like(0).shape;
    if let Some(dims) = &mut shape {
        let at = op.axis("axis", 0, dims.len())?;
        if op.int("keepdims").is_none_or(|keep| keep != 0) {
            dims[at] = ONE;
        } else {
            dims.remove(at);
        }
    }
    Some(vec![Value::new(ElementType::Int64, shape)])
}

/// A node with more outputs is no network's, and each would copy the dims.
const MAX_PARTS: usize = 1024;

/// The sizes of the parts along the split axis.
fn parts(op: &Op<'_, '_>, whole: &Dim) -> Vec<Dim> {
    let count = op.outputs();
    match op.list("split", 1, 13) {
        List::Known(sizes) => sizes.iter().map(|&n| size(n.into())).collect(),
        List::Unknown => vec![Dim::Unknown; count],
        List::Absent => {
            let (Dim::Static(whole), Ok(parts)) = (whole, u64::try_from(count)) else {
                return vec![if count == 1 { whole.clone() } else { Dim::Unknown }; count];
            };
            if parts == 0 || (whole % parts > 0 && op.int("num_outputs").is_none()) {
                return vec![Dim::Unknown; count];
            }
            // From operator set 18 on, the last part is the smaller one.
            let part = whole.div_ceil(parts);
            let last = whole.checked_sub(part * (parts - 1));
            let mut sizes = vec![Dim::Static(part); count];
            if let Some(end) = sizes.last_mut() {
                *end = last.map_or(Dim::Unknown, Dim::Static);
            }
            sizes
        }
    }
}

pub(super) fn split(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.element(0);
    let at = op.rank(0).and_then(|rank| op.axis("axis", 0, rank));
    let (Some(dims), Some(at), ..=MAX_PARTS) = (op.dims(0), at, op.outputs()) else {
        return Some(vec![Value::new(element, None); op.outputs()]);
    };
    let part = |size: Dim| {
        let mut dims = dims.to_vec();
        dims[at] = size;
        Value::of(element, dims)
    };
    Some(parts(op, &dims[at]).into_iter().map(part).collect())
}
