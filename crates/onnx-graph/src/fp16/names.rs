//! Names of values: new ones that nobody has, and others in place of captured ones.

use std::collections::{HashMap, HashSet};

use crate::{
    Model,
    model::port_name,
    proto::{GraphProto, NodeProto},
    walk::defined_by,
};

/// The names that a model's graphs use.
#[derive(Debug)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    pub(super) fn of(model: &Model) -> Self {
        let mut taken = HashSet::new();
        for graph in model.graphs() {
            taken.extend(defined_by(graph).map(str::to_owned));
            taken.extend(graph.node.iter().flat_map(|n| &n.input).cloned());
        }
        Self { taken }
    }

    /// `wanted`, with a number behind it where that is taken.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let numbered = (1_u64..).map(|n| format!("{wanted}_{n}"));
        let free = std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !self.taken.contains(name));
        let name = free.unwrap_or_default(); // the numbers do not run out
        self.taken.insert(name.clone());
        name
    }
}

/// Puts other names in place of values that a node's sub-graphs take from around them. Depth is bounded by the decoder.
pub(super) fn rename_captured(node: &mut NodeProto, names: &HashMap<&str, String>) {
    let graphs = node.attribute.iter_mut().flat_map(|a| a.g.as_option_mut().into_iter().chain(&mut a.graphs));
    for graph in graphs {
        rename_in(graph, names);
    }
}

fn rename_in(graph: &mut GraphProto, names: &HashMap<&str, String>) {
    let own: HashSet<String> = defined_by(graph).map(str::to_owned).collect();
    let outer: HashMap<&str, String> =
        names.iter().filter(|(name, _)| !own.contains(**name)).map(|(n, new)| (*n, new.clone())).collect();
    if outer.is_empty() {
        return;
    }
    for node in &mut graph.node {
        for input in &mut node.input {
            if let Some(new) = outer.get(input.as_str()) {
                input.clone_from(new);
            }
        }
        rename_captured(node, &outer);
    }
    for output in &mut graph.output {
        if let Some(new) = outer.get(port_name(output)) {
            output.name = Some(new.clone());
        }
    }
}
