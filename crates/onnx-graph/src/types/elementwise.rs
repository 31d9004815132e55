//! Operators that treat each element alone, with the broadcasting rules of ONNX.

use crate::{ElementType, Shape};

use super::{
    dims::broadcast,
    op::{Op, Value},
};

/// From this operator set on, shapes are broadcast both ways; below, the result has the first operand's shape.
const MULTIDIRECTIONAL: i64 = 7;

/// The first type that is known among these inputs, which have to have one.
fn common(op: &Op<'_, '_>, inputs: &[usize]) -> ElementType {
    let known = inputs.iter().map(|&i| op.element(i)).find(|e| *e != ElementType::Undefined);
    known.unwrap_or(ElementType::Undefined)
}

/// The common shape of some inputs; unknown as soon as one is.
fn common_shape(op: &Op<'_, '_>, inputs: impl IntoIterator<Item = usize>) -> Shape {
    inputs.into_iter().try_fold(Vec::new(), |all, i| Some(broadcast(&all, op.dims(i)?)))
}

fn operands(op: &Op<'_, '_>) -> Shape {
    if op.domain().is_empty() && op.opset < MULTIDIRECTIONAL {
        return op.dims(0).map(<[_]>::to_vec);
    }
    common_shape(op, [0, 1])
}

pub(super) fn binary(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    // The exponent's type may be another one; the result has the base's.
    let element = if op.op_type() == "Pow" { op.element(0) } else { common(op, &[0, 1]) };
    Some(vec![Value::new(element, operands(op))])
}

pub(super) fn comparison(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(ElementType::Bool, operands(op))])
}

pub(super) fn variadic(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let all: Vec<usize> = (0..op.inputs.len()).collect();
    Some(vec![Value::new(common(op, &all), common_shape(op, all))])
}

pub(super) fn choice(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(common(op, &[1, 2]), common_shape(op, [0, 1, 2]))])
}

pub(super) fn test(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(ElementType::Bool, op.like(0).shape)])
}

pub(super) fn cast(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let to = op.element_attribute("to").unwrap_or(ElementType::Undefined);
    Some(vec![Value::new(to, op.like(0).shape)])
}

pub(super) fn cast_like(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(op.element(1), op.like(0).shape)])
}

/// The mask was of the data's type before operator set 10.
pub(super) fn dropout(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let data = op.like(0);
    let element = if op.opset < 10 { data.element } else { ElementType::Bool };
    let mask = Value::new(element, data.shape.clone());
    Some(vec![data, mask])
}
