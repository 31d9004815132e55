//! The main graph as nodes joined by values, for those who look for patterns in it.

use std::collections::{HashMap, HashSet};

use crate::{
    Model,
    model::{initializer_names, port_name},
    nodes::domain_of,
    proto::NodeProto,
    walk::needed_by,
};

/// Nodes by their place in the file, and who reads what of whom.
#[derive(Debug)]
pub(crate) struct Flow<'m> {
    pub(crate) nodes: &'m [NodeProto],
    /// Of each node, the nodes whose values it reads (captured ones included), each once.
    pub(crate) sources: Vec<Vec<usize>>,
    /// Of each node, the nodes that read its values, each once.
    pub(crate) users: Vec<Vec<usize>>,
    /// Nodes, each behind its sources; those on a cycle are left out.
    pub(crate) order: Vec<usize>,
    /// Place of each node in `order`; `usize::MAX` for those left out.
    pub(crate) place: Vec<usize>,
    producer: HashMap<&'m str, usize>,
    constants: HashSet<&'m str>,
    inputs: Vec<&'m str>,
    readers: HashMap<&'m str, Vec<usize>>,
}

impl<'m> Flow<'m> {
    /// Of values that two nodes give, the first counts: this is for looking, not for running.
    pub(crate) fn new(model: &'m Model) -> Self {
        let graph = model.graph();
        let constants: HashSet<&str> = initializer_names(graph).collect();
        let mut producer = HashMap::new();
        for (index, node) in graph.node.iter().enumerate() {
            for output in node.output.iter().filter(|o| !o.is_empty()) {
                producer.entry(output.as_str()).or_insert(index);
            }
        }
        let mut users = vec![Vec::new(); graph.node.len()];
        let mut sources = Vec::with_capacity(graph.node.len());
        let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, node) in graph.node.iter().enumerate() {
            let needs = needed_by(node);
            let mut of: Vec<usize> = needs.iter().filter_map(|n| producer.get(n).copied()).collect();
            for need in needs.into_iter().filter(|n| !producer.contains_key(n) && !constants.contains(n)) {
                readers.entry(need).or_default().push(index);
            }
            of.sort_unstable();
            of.dedup();
            for &source in &of {
                users[source].push(index);
            }
            sources.push(of);
        }
        let order = order(&sources, &users);
        let mut place = vec![usize::MAX; graph.node.len()];
        order.iter().enumerate().for_each(|(at, &node)| place[node] = at);
        let inputs = graph.input.iter().map(port_name).filter(|n| !constants.contains(n)).collect();
        Self { nodes: &graph.node, sources, users, order, place, producer, constants, inputs, readers }
    }

    /// The node that gives a value.
    pub(crate) fn producer(&self, value: &str) -> Option<usize> {
        self.producer.get(value).copied()
    }

    /// Names of the graph's inputs that have no default.
    pub(crate) fn inputs(&self) -> &[&'m str] {
        &self.inputs
    }

    /// True for an initializer.
    pub(crate) fn is_weight(&self, value: &str) -> bool {
        self.constants.contains(value)
    }

    /// The name of a node's input, where it has one at this place.
    pub(crate) fn input(&self, node: usize, at: usize) -> Option<&'m str> {
        self.nodes.get(node)?.input.get(at).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The node that gives a node's input at this place.
    pub(crate) fn source(&self, node: usize, at: usize) -> Option<usize> {
        self.producer(self.input(node, at)?)
    }

    /// The name of a node's first output.
    pub(crate) fn output(&self, node: usize) -> Option<&'m str> {
        self.nodes.get(node)?.output.first().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The operator of a node of the standard set; empty for any other.
    pub(crate) fn op(&self, node: usize) -> &'m str {
        self.nodes.get(node).map_or("", standard_op)
    }

    /// The only user of a node's values.
    pub(crate) fn only_user(&self, node: usize) -> Option<usize> {
        match self.users.get(node).map(Vec::as_slice) {
            Some([user]) => Some(*user),
            _ => None,
        }
    }

    /// Marks `from` and all nodes behind them.
    pub(crate) fn ancestors(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        self.spread(from, &self.sources)
    }

    /// Marks `from` and all nodes that depend on them.
    pub(crate) fn descendants(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        self.spread(from, &self.users)
    }

    fn spread(&self, from: impl IntoIterator<Item = usize>, edges: &[Vec<usize>]) -> Vec<bool> {
        let mut seen = vec![false; self.nodes.len()];
        let mut waiting: Vec<usize> = from.into_iter().collect();
        while let Some(node) = waiting.pop() {
            if let Some(mark) = seen.get_mut(node).filter(|mark| !**mark) {
                *mark = true;
                waiting.extend(&edges[node]);
            }
        }
        seen
    }

    /// Nodes that read a graph input.
    pub(crate) fn readers(&self, input: &str) -> &[usize] {
        self.readers.get(input).map_or(&[], Vec::as_slice)
    }
}

/// The operator of a node of the standard set; empty for any other.
pub(crate) fn standard_op(node: &NodeProto) -> &str {
    if domain_of(node).is_empty() { node.op_type.as_deref().unwrap_or_default() } else { "" }
}

fn order(sources: &[Vec<usize>], users: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = sources.iter().map(Vec::len).collect();
    // First in, first out: nodes of a sorted file keep close to their order.
    let mut order: Vec<usize> = (0..sources.len()).filter(|&node| missing[node] == 0).collect();
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        for &user in &users[node] {
            missing[user] -= 1;
            if missing[user] == 0 {
                order.push(user);
            }
        }
    }
    order
}
