//! Operators that move elements without changing them: reshaping, joining, repeating.

use crate::{Dim, ElementType, attributes::axis};

use super::{
    dims::{ONE, agree, broadcast, divide, product, quotient, size as dim_of, sum, times},
    op::{Item, List, Op, Value},
};

/// Rank of the shape that input `i` holds, where its own shape tells.
fn length(op: &Op<'_, '_>, i: usize) -> Option<usize> {
    match op.dims(i)? {
        [Dim::Static(n)] => usize::try_from(*n).ok().filter(|n| *n <= super::dims::MAX_RANK),
        _ => None,
    }
}

fn one(op: &Op<'_, '_>, shape: Option<Vec<Dim>>) -> Option<Vec<Value>> {
    Some(vec![Value::new(op.element(0), shape)])
}

pub(super) fn reshape(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // An attribute before operator set 5.
    let wanted: Option<Vec<Item>> = match op.ints("shape") {
        Some(ints) if op.opset < 5 => Some(ints.iter().map(|i| Item::Int(*i)).collect()),
        _ => op.items(1).map(<[Item]>::to_vec),
    };
    let Some(wanted) = wanted else {
        return one(op, length(op, 1).map(|rank| vec![Dim::Unknown; rank]));
    };
    one(op, reshaped(op.dims(0), &wanted, op.flag("allowzero")))
}

fn reshaped(data: Option<&[Dim]>, wanted: &[Item], allow_zero: bool) -> Option<Vec<Dim>> {
    let mut dims = Vec::with_capacity(wanted.len());
    let mut inferred = None;
    // Sizes that are copied stand on both sides, whatever they are.
    let mut rest: Vec<Option<&Dim>> = data.unwrap_or_default().iter().map(Some).collect();
    let mut others = Vec::new();
    for (i, item) in wanted.iter().enumerate() {
        match item {
            Item::Int(-1) if inferred.is_none() => {
                inferred = Some(i);
                dims.push(Dim::Unknown);
            }
            Item::Int(0) if !allow_zero => {
                let copied = data.map_or(Some(&Dim::Unknown), |d| d.get(i))?;
                dims.push(copied.clone());
                if let Some(rest) = rest.get_mut(i) {
                    *rest = None;
                }
            }
            Item::Int(n) if *n < 0 => return None,
            item => {
                dims.push(item.dim());
                others.push(item.dim());
            }
        }
    }
    // What is not known may turn out to be -1 or 0; then nothing can be said of the one to be inferred.
    let all_known = wanted.iter().all(|w| matches!(w, Item::Int(_) | Item::Symbol(_)));
    let rest: Vec<Dim> = rest.into_iter().flatten().cloned().collect();
    match inferred {
        Some(i) if all_known && data.is_some() => dims[i] = quotient(&rest, &others),
        // The last unknown size follows from the others.
        None if data.is_some() => {
            let mut unknown = others.iter().filter(|d| **d == Dim::Unknown);
            if unknown.next().is_some() && unknown.next().is_none() {
                let known: Vec<Dim> = others.iter().filter(|d| **d != Dim::Unknown).cloned().collect();
                let found = quotient(&rest, &known);
                let place = wanted.iter().position(|w| matches!(w, Item::Unknown));
                if let Some(i) = place.filter(|_| found.size() != Some(0)) {
                    dims[i] = found;
                }
            }
        }
        _ => {}
    }
    Some(dims)
}

pub(super) fn flatten(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let parts = op.dims(0).and_then(|dims| {
        let at = op.int("axis").unwrap_or(1);
        let at = if usize::try_from(at) == Ok(dims.len()) { dims.len() } else { axis(at, dims.len())? };
        dims.split_at_checked(at)
    });
    let dims = parts.map_or(vec![Dim::Unknown; 2], |(a, b)| vec![product(a), product(b)]);
    one(op, Some(dims))
}

pub(super) fn squeeze(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let squeezed = |dims: &[Dim]| match op.list("axes", 1, 13) {
        List::Unknown => None,
        List::Absent => {
            // Any size that is not fixed may turn out to be 1.
            let fixed = dims.iter().all(|d| d.size().is_some());
            fixed.then(|| dims.iter().filter(|d| **d != ONE).cloned().collect())
        }
        // Some engines take no axes for all of size 1, some for none.
        List::Known(axes) if axes.is_empty() && dims.contains(&ONE) => None,
        List::Known(axes) => {
            let axes = axes.iter().map(|a| axis(*a, dims.len())).collect::<Option<Vec<_>>>()?;
            let kept = dims.iter().enumerate().filter(|(i, _)| !axes.contains(i));
            Some(kept.map(|(_, d)| d.clone()).collect())
        }
    };
    one(op, op.dims(0).and_then(squeezed))
}

pub(super) fn unsqueeze(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let unsqueezed = |dims: &[Dim]| {
        let List::Known(axes) = op.list("axes", 1, 13) else { return None };
        let rank = dims.len().checked_add(axes.len()).filter(|r| *r <= super::dims::MAX_RANK)?;
        let axes = axes.iter().map(|a| axis(*a, rank)).collect::<Option<Vec<_>>>()?;
        let mut old = dims.iter();
        let at = |i| if axes.contains(&i) { Some(ONE) } else { old.next().cloned() };
        (0..rank).map(at).collect::<Option<Vec<_>>>()
    };
    one(op, op.dims(0).and_then(unsqueezed))
}

/// The order in which a transposition takes the axes of its input.
pub(super) fn permutation(op: &Op<'_, '_>, rank: usize) -> Option<Vec<usize>> {
    match op.ints("perm") {
        None | Some([]) => Some((0..rank).rev().collect()),
        Some(perm) => {
            let perm = perm.iter().map(|p| axis(*p, rank)).collect::<Option<Vec<_>>>()?;
            (perm.len() == rank && (0..rank).all(|i| perm.contains(&i))).then_some(perm)
        }
    }
}

pub(super) fn transpose(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let turned = |dims: &[Dim]| {
        permutation(op, dims.len())?.into_iter().map(|i| dims.get(i).cloned()).collect::<Option<Vec<_>>>()
    };
    let unknown = || op.ints("perm").map(|perm| vec![Dim::Unknown; perm.len()]);
    one(op, op.dims(0).map_or_else(unknown, turned))
}

pub(super) fn concat(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let all: Vec<usize> = (0..op.inputs.len()).collect();
    Some(vec![Value::new(op.given().next()?.element, concatenated(op, &all))])
}

/// Dims of the named inputs put behind each other along the axis of the attribute.
pub(super) fn concatenated(op: &Op<'_, '_>, inputs: &[usize]) -> Option<Vec<Dim>> {
    let rank = inputs.iter().find_map(|&i| op.rank(i))?;
    // The default was 1 in operator set 1.
    let along = op.axis("axis", 1, rank)?;
    let mut dims = vec![Dim::Unknown; rank];
    let mut total = Dim::Static(0);
    for &i in inputs {
        let Some(of_input) = op.dims(i) else {
            total = Dim::Unknown;
            continue;
        };
        if of_input.len() != rank {
            return None;
        }
        for (dim, other) in dims.iter_mut().zip(of_input) {
            *dim = agree(dim, other);
        }
        // An unknown part makes an unknown whole, whatever comes behind it.
        total = if total == Dim::Unknown { total } else { sum(&total, of_input.get(along)?) };
    }
    *dims.get_mut(along)? = total;
    Some(dims)
}

pub(super) fn expand(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let unknown = |rank| vec![Dim::Unknown; rank];
    let wanted: Option<Vec<Dim>> = match op.items(1) {
        Some(items) => Some(items.iter().map(Item::dim).collect()),
        None => length(op, 1).map(unknown),
    };
    one(op, op.dims(0).zip(wanted).map(|(dims, wanted)| broadcast(dims, &wanted)))
}

pub(super) fn tile(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let repeats = op.items(1);
    let repeated = |(i, dim): (usize, &Dim)| match repeats.and_then(|r| r.get(i)) {
        Some(Item::Int(n)) => u64::try_from(*n).map_or(Dim::Unknown, |n| times(dim, n)),
        Some(other) => product(&[dim.clone(), other.dim()]),
        None => Dim::Unknown,
    };
    one(op, op.dims(0).map(|dims| dims.iter().enumerate().map(repeated).collect()))
}

pub(super) fn pad(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let padded = |dims: &[Dim]| {
        let rank = dims.len();
        // Called `paddings` in operator set 1.
        let pads = match op.list(if op.opset < 2 { "paddings" } else { "pads" }, 1, 11) {
            List::Known(pads) => Some(pads),
            _ => None,
        };
        let axes = match op.list("axes", 3, 18) {
            List::Absent => Some((0..rank).collect::<Vec<_>>()),
            List::Known(axes) => axes.iter().map(|a| axis(*a, rank)).collect(),
            List::Unknown => None,
        };
        let (Some(pads), Some(axes)) = (pads, axes) else { return vec![Dim::Unknown; rank] };
        let mut dims = dims.to_vec();
        for (i, at) in axes.iter().enumerate() {
            let more = pads.get(i).zip(pads.get(i + axes.len()));
            let more = more.map(|(before, after)| i128::from(*before) + i128::from(*after));
            if let Some(dim) = dims.get_mut(*at) {
                *dim = match (&dim, more) {
                    (dim, Some(0)) => (*dim).clone(),
                    (Dim::Static(n), Some(more)) => dim_of(i128::from(*n) + more),
                    _ => Dim::Unknown,
                };
            }
        }
        dims
    };
    one(op, op.dims(0).map(padded))
}

/// The part of a value's dims that `Shape` gives.
pub(super) fn shape_range<'d>(op: &Op<'_, '_>, dims: &'d [Dim]) -> Option<&'d [Dim]> {
    let rank = i64::try_from(dims.len()).ok()?;
    let clamp =
        |at: i64| usize::try_from((if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank)).ok();
    let (start, end) = (clamp(op.int("start").unwrap_or(0))?, clamp(op.int("end").unwrap_or(rank))?);
    Some(dims.get(start..end).unwrap_or_default())
}

pub(super) fn shape(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let known = op.dims(0).and_then(|dims| shape_range(op, dims));
    let length = known.map_or(Dim::Unknown, |dims| dim_of(dims.len() as i128));
    Some(vec![Value::of(ElementType::Int64, vec![length])])
}

pub(super) fn size(_op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::of(ElementType::Int64, Vec::new())])
}

fn block(op: &Op<'_, '_>) -> Option<u64> {
    op.int("blocksize").and_then(|b| u64::try_from(b).ok()).filter(|b| (1..=1 << 16).contains(b))
}

pub(super) fn depth_to_space(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let block = block(op)?;
    let moved = match op.dims(0) {
        Some([n, c, h, w]) => {
            Some(vec![n.clone(), divide(c, block * block), times(h, block), times(w, block)])
        }
        _ => None,
    };
    one(op, moved)
}

pub(super) fn space_to_depth(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let block = block(op)?;
    let moved = match op.dims(0) {
        Some([n, c, h, w]) => {
            Some(vec![n.clone(), times(c, block * block), divide(h, block), divide(w, block)])
        }
        _ => None,
    };
    one(op, moved)
}
