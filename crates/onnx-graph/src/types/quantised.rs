//! Operators on 8-bit integers and the conversions to and from them.

use crate::ElementType;

use super::{
    dims::broadcast,
    linear::{conv_shape, product_dims},
    op::{Op, Value},
    shape_ops::concatenated,
};

/// The zero point's type, else the attribute's, else uint8.
pub(super) fn quantize(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = match op.input(2) {
        Some(zero_point) => zero_point.element,
        None => op.element_attribute("output_dtype").unwrap_or(ElementType::Uint8),
    };
    Some(vec![Value::new(element, op.like(0).shape)])
}

/// The scale's type, unless the attribute (operator set 23) asks for another.
pub(super) fn dequantize(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let element = op.element_attribute("output_dtype").unwrap_or(op.element(1));
    Some(vec![Value::new(element, op.like(0).shape)])
}

pub(super) fn dynamic_quantize(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![
        Value::new(ElementType::Uint8, op.like(0).shape),
        Value::of(ElementType::Float32, Vec::new()),
        Value::of(ElementType::Uint8, Vec::new()),
    ])
}

pub(super) fn qlinear_conv(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(op.element(7), conv_shape(op, 0, 3))])
}

pub(super) fn qlinear_matmul(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(3)).and_then(|(a, b)| product_dims(a, b));
    Some(vec![Value::new(op.element(7), shape)])
}

pub(super) fn matmul_integer(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(1)).and_then(|(a, b)| product_dims(a, b));
    Some(vec![Value::new(ElementType::Int32, shape)])
}

pub(super) fn conv_integer(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    Some(vec![Value::new(ElementType::Int32, conv_shape(op, 0, 1))])
}

/// Operands, each with scale and zero point: a, its two, b, its two, then the result's two.
pub(super) fn qlinear_binary(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let shape = op.dims(0).zip(op.dims(3)).map(|(a, b)| broadcast(a, b));
    Some(vec![Value::new(op.element(0), shape)])
}

/// The result's scale and zero point, then each part with its own two.
pub(super) fn qlinear_concat(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let parts: Vec<usize> = (2..op.inputs.len()).step_by(3).collect();
    Some(vec![Value::new(op.element(1), concatenated(op, &parts))])
}
