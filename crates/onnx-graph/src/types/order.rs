//! The order in which a graph's nodes can be evaluated.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
};

use crate::{Error, Result, proto::NodeProto, walk::needed_by};

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
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut missing = vec![0_usize; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let before: HashSet<usize> =
            needed_by(node).iter().filter_map(|n| producer.get(n).copied()).collect();
        missing[index] = before.len();
        for producer in before {
            users[producer].push(index);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|i| missing[*i] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &user in &users[index] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    Ok(order)
}
