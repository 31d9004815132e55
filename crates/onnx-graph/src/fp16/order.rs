use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
};

use crate::{
    Error, Result,
    proto::{GraphProto, NodeProto},
    walk::needed_by,
};

/// A graph's nodes, each behind those that it needs, and otherwise in the order they have.
pub(super) fn in_order(graph: &GraphProto) -> Result<Vec<&NodeProto>> {
    let mut producer = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for output in node.output.iter().filter(|o| !o.is_empty()) {
            if producer.insert(output.as_str(), index).is_some() {
                return Err(Error::DefinedTwice { name: output.clone() });
            }
        }
    }
    let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut missing = vec![0_usize; graph.node.len()];
    for (index, node) in graph.node.iter().enumerate() {
        let before: HashSet<usize> =
            needed_by(node).into_iter().filter_map(|need| producer.get(need).copied()).collect();
        missing[index] = before.len();
        for one in before {
            users.entry(one).or_default().push(index);
        }
    }
    let start = missing.iter().enumerate().filter(|(_, m)| **m == 0).map(|(index, _)| Reverse(index));
    let mut ready: BinaryHeap<Reverse<usize>> = start.collect();
    let mut order = Vec::with_capacity(graph.node.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.extend(graph.node.get(index));
        for user in users.remove(&index).unwrap_or_default() {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    match missing.iter().position(|&m| m > 0) {
        None => Ok(order),
        Some(stuck) => {
            let name = graph.node.get(stuck).and_then(|n| n.output.first()).cloned();
            Err(Error::Cycle { name: name.unwrap_or_default() })
        }
    }
}
