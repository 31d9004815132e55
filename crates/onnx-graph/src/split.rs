use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    Dependences, ElementType, Error, Model, Port, Result, Types, Weights, builder::value_info,
    model::port_name, walk::needed_by,
};

/// A model in two: what can be computed from some inputs alone, and the rest.
///
/// Run one after the other, with [`carried`](Self::carried) handed on, they compute what the whole does, with the same
/// operations in the same order: bit for bit, unless an engine fuses operators that the seam separates. Both read weights
/// where the whole does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Split {
    /// Gives every carried value, and those of the whole's outputs that need the early inputs alone. `None` where
    /// nothing can be computed early.
    pub early: Option<Model>,
    /// Takes the carried values and the whole's inputs that it still reads; gives the remaining outputs. `None` where
    /// there are none.
    pub late: Option<Model>,
    /// The values that the late part takes from the early one, in the order in which they are computed.
    pub carried: Vec<Port>,
}

impl Model {
    /// The graph's inputs that can be separated: two are in one group where some output depends on both. Outputs that
    /// depend on no input belong to no group, inputs that no output needs are left out; groups are in the order of their
    /// first input.
    ///
    /// The published SAM 2 encoder has two groups: the image, and the points with their labels.
    pub fn input_groups(&self) -> Result<Vec<Vec<String>>> {
        let outputs = self.outputs();
        let names: Vec<&str> = outputs.iter().map(|port| port.name.as_str()).collect();
        let walk = Dependences::new(self)?;
        let mut groups: Vec<BTreeSet<&str>> = Vec::new();
        for inputs in walk.inputs_of_each(&names)?.into_iter().filter(|inputs| !inputs.is_empty()) {
            let (touched, mut apart): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| !group.is_disjoint(&inputs));
            apart.push(touched.into_iter().fold(inputs, |all, group| &all | &group));
            groups = apart;
        }
        let order: HashMap<String, usize> =
            self.inputs().into_iter().enumerate().map(|(at, port)| (port.name, at)).collect();
        let at = |name: &str| order.get(name).copied().unwrap_or(usize::MAX);
        let mut groups: Vec<Vec<String>> = groups
            .into_iter()
            .map(|group| {
                let mut group: Vec<String> = group.into_iter().map(str::to_owned).collect();
                group.sort_by_key(|name| at(name));
                group
            })
            .collect();
        groups.sort_by_key(|group| group.first().map_or(usize::MAX, |name| at(name)));
        Ok(groups)
    }

    /// Splits by what depends on `early_inputs` alone: the image part of an encoder, or those nodes of a decoder that
    /// need no prompt. What depends on no input at all is computed in whichever part needs it, unless something in the
    /// graph is random: then early.
    ///
    /// Fails with [`Error::UnknownValue`] for a name that is no input of the graph, with [`Error::UntypedPort`] where a
    /// value that would be carried has no known element type or is no dense tensor, and as [`cut`](Self::cut) does.
    pub fn split(&self, early_inputs: &[&str], weights: &Weights) -> Result<Split> {
        // What the file records of inner values may be of another graph.
        let types = Types::infer(&self.unrecorded(), weights)?;
        let graph = self.graph();
        let walk = Dependences::new(self)?;
        let inputs = self.inputs();
        if let Some(&unknown) =
            early_inputs.iter().find(|&&name| !inputs.iter().any(|port| port.name == name))
        {
            return Err(Error::UnknownValue { name: unknown.to_owned() });
        }
        let (nodes, values): (Vec<usize>, Vec<&str>) = graph
            .node
            .iter()
            .enumerate()
            .filter_map(|(node, proto)| Some((node, proto.output.iter().find(|o| !o.is_empty())?.as_str())))
            .unzip();
        let early_inputs: HashSet<&str> = early_inputs.iter().copied().collect();
        // What is random must not be computed twice: then everything that needs no input is computed early.
        let random = self.nodes().iter().any(|node| node.is_random());
        let comes_early = |needs: &BTreeSet<&str>| {
            (random || !needs.is_empty()) && needs.iter().all(|input| early_inputs.contains(input))
        };
        let needs = walk.inputs_of_each(&values)?;
        let early: HashSet<usize> = nodes
            .into_iter()
            .zip(&needs)
            .filter(|(_, needs)| comes_early(needs))
            .map(|(node, _)| node)
            .collect();
        let early_values: HashSet<&str> =
            early.iter().flat_map(|&node| &graph.node[node].output).map(String::as_str).collect();
        let (early_outputs, late_outputs): (Vec<&str>, Vec<&str>) = graph
            .output
            .iter()
            .map(port_name)
            .partition(|output| early_values.contains(output) || early_inputs.contains(output));
        // Only what an output needs: a dead node's values are nobody's.
        let wanted = walk.reach(&late_outputs, &HashSet::new())?.nodes;
        let read_late: BTreeSet<&str> = wanted
            .iter()
            .filter(|node| !early.contains(node))
            .flat_map(|&node| needed_by(&graph.node[node]))
            .collect();
        let carried: Vec<&str> = graph
            .node
            .iter()
            .flat_map(|node| node.output.iter().map(String::as_str))
            .filter(|value| early_values.contains(value) && read_late.contains(value))
            .collect();
        let mut early_needs: Vec<&str> = carried.clone();
        early_needs.extend(early_outputs.iter().filter(|output| !carried.contains(output)));
        let names: Vec<&str> = inputs.iter().map(|port| port.name.as_str()).collect();
        let part = |inputs: &[&str], outputs: &[&str]| -> Result<Option<Self>> {
            (!outputs.is_empty())
                .then(|| Ok(self.cut(inputs, outputs)?.with_port_types(&types, self)))
                .transpose()
        };
        let late_inputs: Vec<&str> = carried.iter().chain(&names).copied().collect();
        let late = part(&late_inputs, &late_outputs)?;
        let carried = late.as_ref().map_or_else(Vec::new, |late| {
            late.inputs().into_iter().filter(|port| carried.contains(&port.name.as_str())).collect()
        });
        if let Some(port) = carried.iter().find(|port| port.element_type == ElementType::Undefined) {
            return Err(Error::UntypedPort { value: port.name.clone() });
        }
        Ok(Split { early: part(&names, &early_needs)?, late, carried })
    }

    /// Ports that are none of the whole's have the inferred types.
    fn with_port_types(self, types: &Types, whole: &Self) -> Self {
        let mut graph = self.graph().clone();
        for (ports, own) in
            [(&mut graph.input, &whole.graph().input), (&mut graph.output, &whole.graph().output)]
        {
            let own: HashSet<&str> = own.iter().map(port_name).collect();
            for port in ports.iter_mut().filter(|port| !own.contains(port_name(port))) {
                let name = port_name(port).to_owned();
                let found = types.get(&name);
                let element = found.map_or(ElementType::Undefined, |found| found.element_type);
                *port = value_info(&name, element, found.and_then(|found| found.shape.clone()));
            }
        }
        self.with_graph(graph)
    }
}
