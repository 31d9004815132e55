//! The order in which things that need each other come.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap},
};

use crate::{proto::NodeProto, walk::needed_by};

/// Every number behind those that it needs, but for those on a cycle and behind one; of those that could come next, the
/// lowest. What is needed must be a number that `needs` has.
pub(crate) fn in_order(needs: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (index, needs) in needs.iter().enumerate() {
        for &need in needs {
            users[need].push(index);
        }
    }
    let mut missing: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..needs.len()).filter(|&index| missing[index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &user in &users[index] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    order
}

/// The lowest of `count` numbers that an order leaves out.
pub(crate) fn left_out(order: &[usize], count: usize) -> Option<usize> {
    let mut ordered = vec![false; count];
    for &index in order {
        ordered[index] = true;
    }
    ordered.iter().position(|&ordered| !ordered)
}

/// The nodes that a node needs, by who gives which value.
pub(crate) fn needed_nodes(node: &NodeProto, producer: &HashMap<&str, usize>) -> BTreeSet<usize> {
    needed_by(node).into_iter().filter_map(|need| producer.get(need).copied()).collect()
}
