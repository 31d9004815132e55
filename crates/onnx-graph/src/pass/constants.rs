use crate::{ElementType, attributes, proto::TensorProto, weights::inline_tensor};

use super::editor::{Editor, is};

pub(super) fn run(editor: &mut Editor<'_>) -> usize {
    let mut matched = 0;
    for id in editor.ids() {
        let Some(node) = editor.node(id).filter(|node| is(node, "Constant")) else { continue };
        let [output] = node.output.as_slice() else { continue };
        let Some(tensor) = value(node, output) else { continue };
        // An initializer cannot be an output's only source everywhere, and sub-graphs may hold the name.
        if editor.is_seen(output) || editor.is_input(output) {
            continue;
        }
        editor.remove(id);
        editor.add_tensor(tensor);
        matched += 1;
    }
    matched
}

/// What a `Constant` gives, if that is a dense tensor of numbers; texts and sparse ones stay.
fn value(node: &crate::proto::NodeProto, name: &str) -> Option<TensorProto> {
    let [attribute] = node.attribute.as_slice() else { return None };
    let list = |element, length: usize, bytes| {
        let dims: &[i64] = &[i64::try_from(length).ok()?];
        Some(inline_tensor(name, element, dims, bytes))
    };
    match attribute.name.as_deref()? {
        "value" => {
            let tensor = attributes::tensor(node, "value")?;
            Some(TensorProto { name: Some(name.to_owned()), ..tensor.clone() })
        }
        "value_int" => {
            Some(inline_tensor(name, ElementType::Int64, &[], attribute.i?.to_le_bytes().to_vec()))
        }
        "value_float" => {
            Some(inline_tensor(name, ElementType::Float32, &[], attribute.f?.to_le_bytes().to_vec()))
        }
        "value_ints" => {
            let bytes = attribute.ints.iter().flat_map(|v| v.to_le_bytes()).collect();
            list(ElementType::Int64, attribute.ints.len(), bytes)
        }
        "value_floats" => {
            let bytes = attribute.floats.iter().flat_map(|v| v.to_le_bytes()).collect();
            list(ElementType::Float32, attribute.floats.len(), bytes)
        }
        _ => None,
    }
}
