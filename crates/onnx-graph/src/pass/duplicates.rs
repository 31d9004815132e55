use std::collections::HashMap;

use buffa::{Message, MessageField};

use crate::{
    model::tensor_name,
    nodes::Node,
    proto::{NodeProto, TensorProto},
    tensors::sub_graphs,
};

use super::editor::{Editor, is_standard};

/// Larger constants are worth neither reading nor comparing.
const SMALL: u64 = 4096;

pub(super) fn run(editor: &mut Editor<'_>) -> usize {
    let mut matched = constants(editor);
    let mut first: HashMap<Vec<u8>, Vec<String>> = HashMap::new();
    for id in editor.order() {
        let Some(node) = editor.node(id).filter(|node| computes_the_same_each_time(node)) else { continue };
        let outputs = node.output.clone();
        let Ok(key) = essence(node).try_encode_to_vec() else { continue };
        let Some(same) = first.get(&key).cloned() else {
            first.insert(key, outputs);
            continue;
        };
        // An output that is left out of one may be wanted of the other.
        let matching = same.len() == outputs.len()
            && same.iter().zip(&outputs).all(|(a, b)| a.is_empty() == b.is_empty());
        // All or none: a node half of whose outputs moved would still be there.
        let movable = outputs.iter().all(|output| !editor.is_seen(output));
        if matching && movable && outputs.iter().zip(&same).all(|(old, new)| editor.substitute(old, new)) {
            editor.remove(id);
            matched += 1;
        }
    }
    matched
}

fn computes_the_same_each_time(node: &NodeProto) -> bool {
    // What a sub-graph computes may be another thing each time.
    let plain = !node.attribute.iter().any(|attribute| sub_graphs(attribute).next().is_some());
    plain && is_standard(node) && !Node::new(node).is_random()
}

/// Equal small constants become one.
fn constants(editor: &mut Editor<'_>) -> usize {
    let mut first: HashMap<(i32, Vec<i64>, Vec<u8>), String> = HashMap::new();
    let mut same = Vec::new();
    for tensor in editor.constants() {
        let count = tensor.dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(u64::try_from(dim).ok()?));
        if count.is_none_or(|count| count > SMALL) {
            continue;
        }
        // Texts have no bytes to compare.
        let Ok(bytes) = editor.weights().bytes(tensor) else { continue };
        let key = (tensor.data_type.unwrap_or_default(), tensor.dims.clone(), bytes.into_owned());
        let name = tensor_name(tensor).to_owned();
        match first.get(&key) {
            Some(other) => same.push((name, other.clone())),
            None => drop(first.insert(key, name)),
        }
    }
    let used = |editor: &Editor<'_>, name: &str| !editor.users(name).is_empty() && !editor.is_seen(name);
    same.iter().filter(|(old, new)| used(editor, old) && editor.substitute(old, new)).count()
}

/// The same node under no name, giving nothing: what two nodes have in common that compute the same.
fn essence(node: &NodeProto) -> NodeProto {
    let mut attribute = node.attribute.clone();
    attribute.sort_by(|a, b| a.name.cmp(&b.name));
    for one in &mut attribute {
        one.doc_string = None;
        if let Some(tensor) = one.t.as_option() {
            one.t = MessageField::some(TensorProto { name: None, doc_string: None, ..tensor.clone() });
        }
    }
    NodeProto {
        name: None,
        doc_string: None,
        output: Vec::new(),
        metadata_props: Vec::new(),
        attribute,
        ..node.clone()
    }
}
