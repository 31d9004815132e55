use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    Error, Model, Result,
    model::{initializer_names, port_name},
    order::{in_order, left_out},
    proto::{GraphProto, NodeProto},
    tensors::sub_graphs,
};

/// Who produces and who needs each value of a model's main graph.
///
/// A node needs its inputs and whatever its sub-graphs (`If`, `Loop`, `Scan`) capture from the main graph.
#[derive(Debug)]
pub struct Dependences<'m> {
    nodes: &'m [NodeProto],
    needs: Vec<Vec<&'m str>>,
    producer: HashMap<&'m str, usize>,
    inputs: BTreeSet<&'m str>,
    initializers: HashSet<&'m str>,
}

impl<'m> Dependences<'m> {
    /// Indexes the main graph. Fails with [`Error::DefinedTwice`] where two nodes produce one value, a node produces an
    /// input or initializer, or two initializers or inputs have one name: engines would each choose another.
    pub fn new(model: &'m Model) -> Result<Self> {
        let graph = model.graph();
        let mut initializers = HashSet::new();
        if let Some(twice) = initializer_names(graph).find(|name| !initializers.insert(*name)) {
            return Err(Error::DefinedTwice { name: twice.to_owned() });
        }
        let inputs: BTreeSet<&str> =
            graph.input.iter().map(port_name).filter(|n| !initializers.contains(n)).collect();
        let mut producer = HashMap::new();
        for (index, node) in graph.node.iter().enumerate() {
            // An empty output name marks an optional output that is left out.
            for output in node.output.iter().map(String::as_str).filter(|o| !o.is_empty()) {
                let fed = inputs.contains(output) || initializers.contains(output);
                if producer.insert(output, index).is_some() || fed {
                    return Err(Error::DefinedTwice { name: output.to_owned() });
                }
            }
        }
        let needs = graph.node.iter().map(|node| needed_by(node).into_iter().collect()).collect();
        Ok(Self { nodes: &graph.node, needs, producer, inputs, initializers })
    }

    /// The graph inputs that `value` depends on, sorted by name. An initializer, or a value computed from constants
    /// alone, depends on none.
    pub fn inputs_of(&self, value: &str) -> Result<BTreeSet<&'m str>> {
        Ok(self.reach(&[value], &HashSet::new())?.inputs)
    }

    /// [`inputs_of`](Self::inputs_of) for many values at once: one walk over the graph for each 64 inputs met, however
    /// many values there are.
    pub fn inputs_of_each(&self, values: &[&str]) -> Result<Vec<BTreeSet<&'m str>>> {
        let reach = self.reach(values, &HashSet::new())?;
        let inputs: Vec<&str> = reach.inputs.iter().copied().collect();
        let mut found = vec![BTreeSet::new(); values.len()];
        for some in inputs.chunks(u64::BITS as usize) {
            let bit: HashMap<&str, u64> = some.iter().enumerate().map(|(i, name)| (*name, 1 << i)).collect();
            let mut of_node: HashMap<usize, u64> = HashMap::with_capacity(reach.order.len());
            let of = |value: &str, of_node: &HashMap<usize, u64>| match self.producer.get(value) {
                Some(node) => of_node.get(node).copied().unwrap_or_default(),
                None => bit.get(value).copied().unwrap_or_default(),
            };
            for &node in &reach.order {
                let bits = self.needs[node].iter().fold(0, |bits, need| bits | of(need, &of_node));
                of_node.insert(node, bits);
            }
            for (value, found) in values.iter().zip(&mut found) {
                let bits = of(value, &of_node);
                found.extend(
                    some.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, name)| *name),
                );
            }
        }
        Ok(found)
    }

    /// The values that are computed from `value`, directly or through others, sorted by name.
    ///
    /// Fails with [`Error::UnknownValue`] for a name that the graph does not have.
    pub fn values_from(&self, value: &str) -> Result<BTreeSet<&'m str>> {
        let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (node, needs) in self.needs.iter().enumerate() {
            for need in needs {
                readers.entry(need).or_default().push(node);
            }
        }
        let mut found = BTreeSet::new();
        let mut waiting = vec![self.known(value)?];
        while let Some(value) = waiting.pop() {
            // A node that reads two of the values is met twice and passed once.
            for node in readers.remove(value).unwrap_or_default() {
                let outputs = self.nodes[node].output.iter().map(String::as_str).filter(|o| !o.is_empty());
                waiting.extend(outputs.filter(|output| found.insert(*output)));
            }
        }
        Ok(found)
    }

    /// The values that `value` is computed from, directly or through others, inputs and initializers included, sorted
    /// by name.
    ///
    /// Fails with [`Error::UnknownValue`] for a name that the graph does not have, and with [`Error::Cycle`].
    pub fn values_behind(&self, value: &str) -> Result<BTreeSet<&'m str>> {
        let reach = self.reach(&[value], &HashSet::new())?;
        let mut found: BTreeSet<&str> = reach.inputs.iter().chain(&reach.initializers).copied().collect();
        found.extend(reach.nodes.iter().flat_map(|&node| self.needs[node].iter().copied()));
        found.remove(value);
        Ok(found)
    }

    /// Walks back from `outputs`, not past the values in `stop`.
    pub(crate) fn reach(&self, outputs: &[&str], stop: &HashSet<&str>) -> Result<Reach<'m>> {
        let mut reach = Reach::default();
        let mut waiting = Vec::new();
        for &output in outputs {
            waiting.push(self.known(output)?);
        }
        let mut seen: HashSet<&str> = HashSet::new();
        while let Some(value) = waiting.pop() {
            if stop.contains(value) || !seen.insert(value) {
                continue;
            }
            if let Some(&node) = self.producer.get(value) {
                if reach.nodes.insert(node) {
                    for &need in &self.needs[node] {
                        waiting.push(self.known(need)?);
                    }
                }
            } else if self.inputs.contains(value) {
                reach.inputs.insert(value);
            } else {
                reach.initializers.insert(value);
            }
        }
        reach.order = self.order(&reach)?;
        Ok(reach)
    }

    /// The graph's own copy of a name, or the error that no such value exists.
    pub(crate) fn known(&self, name: &str) -> Result<&'m str> {
        let found = match self.producer.get_key_value(name) {
            Some((key, _)) => Some(*key),
            None => self.inputs.get(name).or_else(|| self.initializers.get(name)).copied(),
        };
        found.ok_or_else(|| Error::UnknownValue { name: name.to_owned() })
    }

    /// The reached nodes, each behind those that it needs. They stand in any order in a malformed file, and a cycle among
    /// them can never be evaluated.
    fn order(&self, reach: &Reach<'m>) -> Result<Vec<usize>> {
        let nodes: Vec<usize> = reach.nodes.iter().copied().collect();
        let place: HashMap<usize, usize> = nodes.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let needed = |&node: &usize| {
            let producers = self.needs[node].iter().filter_map(|need| self.producer.get(need));
            producers.filter_map(|producer| place.get(producer).copied()).collect()
        };
        let needs: Vec<BTreeSet<usize>> = nodes.iter().map(needed).collect();
        let order = in_order(&needs);
        match left_out(&order, nodes.len()) {
            None => Ok(order.into_iter().map(|at| nodes[at]).collect()),
            Some(at) => {
                let name = self.nodes[nodes[at]].output.iter().find(|o| !o.is_empty()).cloned();
                Err(Error::Cycle { name: name.unwrap_or_default() })
            }
        }
    }
}

/// What a backward walk met.
#[derive(Debug, Default)]
pub(crate) struct Reach<'m> {
    pub(crate) nodes: BTreeSet<usize>,
    pub(crate) inputs: BTreeSet<&'m str>,
    pub(crate) initializers: HashSet<&'m str>,
    /// The nodes, each behind those that it needs.
    order: Vec<usize>,
}

/// All values that a node reads from the graph it stands in: its inputs and what its sub-graphs capture.
pub(crate) fn needed_by(node: &NodeProto) -> BTreeSet<&str> {
    let mut needs: BTreeSet<&str> = node.input.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
    for graph in node.attribute.iter().flat_map(sub_graphs) {
        needs.extend(captured_by(graph));
    }
    needs
}

/// Values that a sub-graph uses but does not define. Depth is bounded by the decoder's own limit.
pub(crate) fn captured_by(graph: &GraphProto) -> BTreeSet<&str> {
    let mut used: BTreeSet<&str> = graph.node.iter().flat_map(needed_by).collect();
    used.extend(graph.output.iter().map(port_name));
    for name in defined_by(graph) {
        used.remove(name);
    }
    used
}

/// Values that a graph is given or makes: its inputs, initializers and what its nodes give.
pub(crate) fn defined_by(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let given = graph.input.iter().map(port_name).chain(initializer_names(graph));
    let made = graph.node.iter().flat_map(|n| &n.output).map(String::as_str);
    given.chain(made).filter(|name| !name.is_empty())
}
