//! Attributes and records that name a type.

use buffa::MessageField;

use super::{
    convert::{self, Tally},
    rules,
};
use crate::{
    ElementType::{Float16, Float32},
    attributes::from_int,
    proto::{AttributeProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, type_proto},
};

/// Makes a node's attributes speak of float16 where they speak of float32, or mean it by being left out. Gives the number
/// of tensors that this took.
pub(super) fn set_types(node: &mut NodeProto, tally: &mut Tally) -> usize {
    let op_type = node.op_type.clone().unwrap_or_default();
    let named = if op_type == "Cast" { Some(("to", false)) } else { rules::named_type(&op_type) };
    if let Some((name, float_without)) = named {
        let half = i64::from(Float16.to_onnx());
        match node.attribute.iter_mut().find(|a| a.name.as_deref() == Some(name)) {
            Some(a) if a.i == Some(i64::from(Float32.to_onnx())) => a.i = Some(half),
            None if float_without => node.attribute.push(from_int(name, half)),
            _ => {}
        }
    }
    let mut tensors = 0;
    if op_type == "Constant" {
        for attribute in &mut node.attribute {
            let (dims, values) = match attribute.name.as_deref() {
                Some("value_float") => (vec![], vec![attribute.f.unwrap_or_default()]),
                Some("value_floats") => {
                    (vec![attribute.floats.len() as i64], std::mem::take(&mut attribute.floats))
                }
                _ => continue,
            };
            *attribute = tensor_attribute(convert::half_tensor(&dims, &values, tally));
            tensors += 1;
        }
    }
    // Without a value it gives float32 zeros.
    if op_type == "ConstantOfShape" && node.attribute.is_empty() {
        node.attribute.push(tensor_attribute(convert::half_tensor(&[1], &[0.0], tally)));
    }
    tensors
}

fn tensor_attribute(tensor: TensorProto) -> AttributeProto {
    // The number is `AttributeProto.AttributeType`'s.
    let (name, r#type) = (Some("value".to_owned()), Some(4));
    AttributeProto { name, r#type, t: MessageField::some(tensor), ..Default::default() }
}

/// A record of a value's type with float16 in place of float32, in sequences and optional values too.
pub(super) fn retyped(info: &ValueInfoProto) -> ValueInfoProto {
    let mut new = info.clone();
    let mut waiting = new.r#type.as_option_mut();
    while let Some(TypeProto { value: Some(value), .. }) = waiting {
        waiting = match value {
            type_proto::Value::TensorType(tensor) => {
                if tensor.elem_type == Some(Float32.to_onnx()) {
                    tensor.elem_type = Some(Float16.to_onnx());
                }
                None
            }
            type_proto::Value::SequenceType(sequence) => sequence.elem_type.as_option_mut(),
            type_proto::Value::OptionalType(optional) => optional.elem_type.as_option_mut(),
            _ => None,
        };
    }
    new
}
