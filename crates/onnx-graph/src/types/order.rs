//! The order in which a graph's nodes can be evaluated.

use std::collections::{HashMap, HashSet};

use crate::{
    Error, Result,
    order::{in_order, needed_nodes},
    proto::NodeProto,
};

/// The nodes in the order of evaluation, which is the file's wherever that is one. Those on a cycle, and behind one, are
/// left out. Fails with [`Error::DefinedTwice`].
pub(crate) fn order<'m>(
    nodes: &'m [NodeProto],
    defined: impl Iterator<Item = &'m str>,
) -> Result<Vec<usize>> {
    let twice = |name: &str| Error::DefinedTwice { name: name.to_owned() };
    let mut names = HashSet::new();
    for name in defined {
        if !names.insert(name) {
            return Err(twice(name));
        }
    }
    let mut producer = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for output in node.output.iter().map(String::as_str).filter(|o| !o.is_empty()) {
            if names.contains(output) || producer.insert(output, index).is_some() {
                return Err(twice(output));
            }
        }
    }
    Ok(in_order(&nodes.iter().map(|node| needed_nodes(node, &producer)).collect::<Vec<_>>()))
}
