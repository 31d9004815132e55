//! Sequences and optional values, whose elements no `Cast` reaches.

use crate::{
    ElementType::Float32,
    Error, Model, Result,
    model::port_name,
    proto::{TypeProto, type_proto::Value},
};

/// Refuses a model that records a sequence, an optional value or a map of float32: between halves and single precision there is no
/// cast for it, and its type would no longer be that of what is put in.
pub(super) fn refuse(model: &Model) -> Result<()> {
    for graph in model.graphs() {
        for info in graph.input.iter().chain(&graph.output).chain(&graph.value_info) {
            if info.r#type.as_option().is_some_and(|t| holds_floats(t, false)) {
                return Err(Error::NoHalf { value: port_name(info).to_owned() });
            }
        }
    }
    Ok(())
}

/// Depth is bounded by the decoder.
fn holds_floats(of: &TypeProto, inside: bool) -> bool {
    let deeper = |of: Option<&TypeProto>| of.is_some_and(|of| holds_floats(of, true));
    match &of.value {
        Some(Value::TensorType(tensor)) => inside && tensor.elem_type == Some(Float32.to_onnx()),
        Some(Value::SequenceType(sequence)) => deeper(sequence.elem_type.as_option()),
        Some(Value::OptionalType(optional)) => deeper(optional.elem_type.as_option()),
        Some(Value::MapType(map)) => deeper(map.value_type.as_option()),
        _ => false,
    }
}
