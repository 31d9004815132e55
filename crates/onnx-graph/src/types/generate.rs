//! Operators that make values rather than transform them.

use crate::{Dim, ElementType};

use super::{
    dims::{MAX_RANK, size},
    op::{Item, Op, Value, declared, declared_dims},
};

pub(super) fn constant(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let list = |element, length: usize| Value::of(element, vec![size(length as i128)]);
    let a = |name| op.attribute(name);
    let value = if let Some(tensor) = a("value").and_then(|a| a.t.as_option()) {
        declared(tensor)
    } else if let Some(sparse) = a("sparse_value").and_then(|a| a.sparse_tensor.as_option()) {
        Value::of(declared(&sparse.values).element, declared_dims(&sparse.dims))
    } else if a("value_int").is_some() {
        Value::of(ElementType::Int64, Vec::new())
    } else if a("value_float").is_some() {
        Value::of(ElementType::Float32, Vec::new())
    } else if a("value_string").is_some() {
        Value::of(ElementType::String, Vec::new())
    } else if let Some(a) = a("value_ints") {
        list(ElementType::Int64, a.ints.len())
    } else if let Some(a) = a("value_floats") {
        list(ElementType::Float32, a.floats.len())
    } else {
        list(ElementType::String, a("value_strings")?.strings.len())
    };
    Some(vec![value])
}

pub(super) fn constant_of_shape(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.attribute("value").and_then(|a| a.t.as_option()).map(|t| declared(t).element);
    let length = match op.dims(0) {
        Some([Dim::Static(n)]) => usize::try_from(*n).ok().filter(|n| *n <= MAX_RANK),
        _ => None,
    };
    let shape = match op.items(0) {
        Some(items) => Some(items.iter().map(Item::dim).collect()),
        None => length.map(|rank| vec![Dim::Unknown; rank]),
    };
    Some(vec![Value::new(element.unwrap_or(ElementType::Float32), shape)])
}

/// Number of elements of a range; half-open, so that an end on the wrong side makes it empty.
pub(super) fn range_length(op: &Op<'_, '_>) -> Option<i128> {
    match (op.items(0)?, op.items(1)?, op.items(2)?) {
        ([Item::Int(start)], [Item::Int(end)], [Item::Int(step)]) => {
            let (room, step) = (i128::from(*end) - i128::from(*start), i128::from(*step));
            let whole = room.checked_div(step)?;
            let more = i128::from(room % step != 0 && (room > 0) == (step > 0));
            Some((whole + more).max(0))
        }
        ([Item::Float(start)], [Item::Float(end)], [Item::Float(step)]) => {
            let length = (f64::from(end - start) / f64::from(*step)).ceil();
            (length < 9.0e18 && length.is_finite()).then(|| length.max(0.0) as i128)
        }
        _ => None,
    }
}

pub(super) fn range(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let length = match (op.items(0), op.items(1), op.items(2)) {
        // From 0 in steps of 1: as many as the end says.
        (Some([Item::Int(0)]), Some([Item::Symbol(end)]), Some([Item::Int(1)])) => Dim::Symbolic(end.clone()),
        _ => range_length(op).map_or(Dim::Unknown, size),
    };
    Some(vec![Value::of(op.element(0), vec![length])])
}

/// Of an input's shape, and of its type unless another is asked for.
pub(super) fn like(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let value = op.like(0);
    Some(vec![Value::new(op.element_attribute("dtype").unwrap_or(value.element), value.shape)])
}

pub(super) fn random(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.element_attribute("dtype").unwrap_or(ElementType::Float32);
    Some(vec![Value::new(element, op.ints("shape").map(declared_dims))])
}
