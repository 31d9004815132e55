//! Which initializers anybody needs in half precision.

use std::collections::HashSet;

use crate::{
    model::port_name,
    proto::{GraphProto, NodeProto},
    tensors::sub_graphs,
    walk::defined_by,
};

/// Values that are read in half precision, each with the graph that defines it.
#[derive(Debug, Default)]
pub(super) struct Needs<'m> {
    /// A graph is told by its address: the model stays where it is while it is rewritten.
    found: HashSet<(*const GraphProto, &'m str)>,
}

/// The choices that a survey goes by.
pub(super) trait Choices {
    /// Whether a node stays in single precision as a whole, with its sub-graphs.
    fn is_fenced(&self, node: &NodeProto) -> bool;
    /// Whether this input of a node is single precision in any case.
    fn is_float_input(&self, node: &NodeProto, index: usize) -> bool;
}

impl<'m> Needs<'m> {
    /// Of the main graph and of every sub-graph that is converted with it.
    pub(super) fn of(graph: &'m GraphProto, choices: &dyn Choices) -> Self {
        let mut needs = Self::default();
        needs.survey(graph, choices, &mut Vec::new());
        needs
    }

    pub(super) fn contains(&self, graph: &GraphProto, value: &str) -> bool {
        self.found.contains(&(std::ptr::from_ref(graph), value))
    }

    /// Depth is bounded by the decoder.
    fn survey(
        &mut self,
        graph: &'m GraphProto,
        choices: &dyn Choices,
        around: &mut Vec<(&'m GraphProto, HashSet<&'m str>)>,
    ) {
        around.push((graph, defined_by(graph).collect()));
        for node in graph.node.iter().filter(|n| !choices.is_fenced(n)) {
            for (index, input) in node.input.iter().enumerate() {
                if !choices.is_float_input(node, index) {
                    self.note(input, around);
                }
            }
            for inner in node.attribute.iter().flat_map(sub_graphs) {
                self.survey(inner, choices, around);
            }
        }
        for output in &graph.output {
            self.note(port_name(output), around);
        }
        around.pop();
    }

    fn note(&mut self, value: &'m str, around: &[(&'m GraphProto, HashSet<&'m str>)]) {
        if let Some((graph, _)) = around.iter().rev().find(|(_, defined)| defined.contains(value)) {
            self.found.insert((std::ptr::from_ref(*graph), value));
        }
    }
}
