//! Every node of a model with what is known where it stands.

use std::collections::{HashMap, HashSet};

use super::flow::standard_op;
use crate::{
    Dim, ElementType, Model, Port, Types, ValueType,
    model::{initializer_names, port_name, tensor_name},
    nodes::{domain_of, normal},
    proto::{GraphProto, NodeProto, OperatorSetIdProto, ValueInfoProto},
    tensors::sub_graphs,
};

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// In the main graph, at this place.
    Main(usize),
    /// In a sub-graph of the main graph's node at this place.
    SubGraph(usize),
    /// In the model's function with this number, or in a sub-graph there.
    Function(usize),
}

/// A node and what is known around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'m> {
    pub(crate) node: &'m NodeProto,
    pub(crate) within: Within,
    scopes: &'m Scopes<'m>,
    scope: usize,
}

/// One level of names.
#[derive(Debug, Default)]
struct Scope<'m> {
    values: HashMap<&'m str, ValueType>,
    constants: HashSet<&'m str>,
    /// The scope whose names are seen from here.
    outer: Option<usize>,
    opsets: &'m [OperatorSetIdProto],
}

/// All levels of names of a model; the first is the main graph's.
#[derive(Debug)]
pub(crate) struct Scopes<'m> {
    all: Vec<Scope<'m>>,
    nodes: Vec<(&'m NodeProto, Within, usize)>,
    types: &'m Types,
}

impl<'m> Scopes<'m> {
    pub(crate) fn new(model: &'m Model, types: &'m Types) -> Self {
        let mut scopes = Self { all: Vec::new(), nodes: Vec::new(), types };
        let opsets = model.proto().opset_import.as_slice();
        let graph = model.graph();
        let mut main = of_graph(graph, None, opsets);
        // What is inferred of the main graph is more than what it records.
        main.values.clear();
        scopes.all.push(main);
        for (at, node) in graph.node.iter().enumerate() {
            scopes.nodes.push((node, Within::Main(at), 0));
            scopes.collect(node, Within::SubGraph(at), 0);
        }
        for (at, function) in model.proto().functions.iter().enumerate() {
            let mut scope = Scope { opsets: &function.opset_import, ..Scope::default() };
            scope.constants = constants(&function.node);
            scope.values = recorded(&function.value_info);
            let own = scopes.all.len();
            scopes.all.push(scope);
            for node in &function.node {
                scopes.nodes.push((node, Within::Function(at), own));
                scopes.collect(node, Within::Function(at), own);
            }
        }
        scopes
    }

    /// Nodes of sub-graphs, right behind the node that holds them. The decoder bounds how deep they nest.
    fn collect(&mut self, node: &'m NodeProto, within: Within, outer: usize) {
        for graph in node.attribute.iter().flat_map(sub_graphs) {
            let own = self.all.len();
            let opsets = self.all[outer].opsets;
            self.all.push(of_graph(graph, Some(outer), opsets));
            for node in &graph.node {
                self.nodes.push((node, within, own));
                self.collect(node, within, own);
            }
        }
    }

    /// All nodes: the main graph's with those of their sub-graphs behind them, then the functions'.
    pub(crate) fn places(&'m self) -> impl Iterator<Item = Place<'m>> {
        self.nodes.iter().map(|&(node, within, scope)| Place { node, within, scopes: self, scope })
    }
}

impl<'m> Place<'m> {
    /// The operator's domain; empty for the standard operators.
    pub(crate) fn domain(&self) -> &'m str {
        domain_of(self.node)
    }

    /// The operator.
    pub(crate) fn operator(&self) -> &'m str {
        self.node.op_type.as_deref().unwrap_or_default()
    }

    /// The version of the node's operator set that is imported here.
    pub(crate) fn opset(&self) -> Option<i64> {
        let own = |import: &&OperatorSetIdProto| normal(import.domain.as_deref()) == self.domain();
        self.scopes.all[self.scope].opsets.iter().find(own).map(|import| import.version.unwrap_or_default())
    }

    /// The name of an input that is given.
    pub(crate) fn input(&self, at: usize) -> Option<&'m str> {
        self.node.input.get(at).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The type of a value that is seen from here.
    pub(crate) fn value(&self, name: &str) -> Option<&'m ValueType> {
        let mut scope = Some(self.scope);
        while let Some(at) = scope.filter(|at| *at != 0) {
            let here = &self.scopes.all[at];
            if let Some(value) = here.values.get(name) {
                return Some(value);
            }
            scope = here.outer;
        }
        // A function sees nothing of the main graph.
        scope.and_then(|_| self.scopes.types.get(name))
    }

    /// True for a weight, or the result of a Constant, that is seen from here.
    pub(crate) fn is_constant(&self, name: &str) -> bool {
        let mut scope = Some(self.scope);
        while let Some(at) = scope {
            let here = &self.scopes.all[at];
            if here.constants.contains(name) {
                return true;
            }
            scope = here.outer;
        }
        false
    }
}

fn of_graph<'m>(graph: &'m GraphProto, outer: Option<usize>, opsets: &'m [OperatorSetIdProto]) -> Scope<'m> {
    let mut values = recorded(graph.value_info.iter().chain(&graph.output).chain(&graph.input));
    for tensor in &graph.initializer {
        let element_type = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        let dim = |&dim: &i64| u64::try_from(dim).map_or(Dim::Unknown, Dim::Static);
        values.insert(
            tensor_name(tensor),
            ValueType { element_type, shape: Some(tensor.dims.iter().map(dim).collect()) },
        );
    }
    let mut constants = constants(&graph.node);
    constants.extend(initializer_names(graph));
    Scope { values, constants, outer, opsets }
}

fn constants(nodes: &[NodeProto]) -> HashSet<&str> {
    let given = nodes.iter().filter(|node| standard_op(node) == "Constant").flat_map(|node| &node.output);
    given.map(String::as_str).collect()
}

fn recorded<'m>(values: impl IntoIterator<Item = &'m ValueInfoProto>) -> HashMap<&'m str, ValueType> {
    let of = |info: &'m ValueInfoProto| {
        let Port { element_type, shape, .. } = Port::from_proto(info);
        (port_name(info), ValueType { element_type, shape })
    };
    values.into_iter().map(of).collect()
}
