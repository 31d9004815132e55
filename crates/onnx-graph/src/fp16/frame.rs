//! One graph while it is converted: what it defines, what its nodes have become.

use std::collections::{HashMap, HashSet};

use crate::{
    ElementType, Error, Model, Port, Result, Types, ValueType, Weights,
    builder::value_info,
    model::{initializer_names, port_name},
    proto::{GraphProto, NodeProto, ValueInfoProto},
    types::order,
    walk::{captured_by, defined_by},
};

/// The names by which a value can be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Home {
    /// In half precision, or as it is if it is no float.
    pub(super) half: Option<String>,
    /// In single precision.
    pub(super) single: Option<String>,
}

impl Home {
    pub(super) fn half(name: impl Into<String>) -> Self {
        Self { half: Some(name.into()), single: None }
    }

    pub(super) fn single(name: impl Into<String>) -> Self {
        Self { half: None, single: Some(name.into()) }
    }

    /// Whether the value itself stays in single precision; a `Cast` may give it in half as well.
    pub(super) fn stays(&self, value: &str) -> bool {
        self.single.as_deref() == Some(value)
    }
}

pub(super) struct Frame<'m> {
    /// The graph as it was.
    pub(super) graph: &'m GraphProto,
    defined: HashSet<&'m str>,
    /// Where that is not in half precision under the value's own name.
    pub(super) homes: HashMap<&'m str, Home>,
    pub(super) nodes: Vec<NodeProto>,
    /// Types of new values.
    pub(super) values: Vec<ValueInfoProto>,
    types: Option<Types>,
}

impl<'m> Frame<'m> {
    pub(super) fn new(graph: &'m GraphProto) -> Self {
        let defined = defined_by(graph).collect();
        Self { graph, defined, homes: HashMap::new(), nodes: Vec::new(), values: Vec::new(), types: None }
    }

    pub(super) fn defines(&self, value: &str) -> bool {
        self.defined.contains(value)
    }

    pub(super) fn home(&self, value: &str) -> Option<Home> {
        let own = self.defined.get(value)?;
        Some(self.homes.get(value).cloned().unwrap_or_else(|| Home::half(*own)))
    }

    /// Says that a value can be read as `name`, too.
    pub(super) fn set(&mut self, value: &str, element: ElementType, name: &str) {
        if let Some(&own) = self.defined.get(value) {
            let home = self.homes.entry(own).or_insert_with(|| Home::half(own));
            let place = if element == ElementType::Float16 { &mut home.half } else { &mut home.single };
            *place = Some(name.to_owned());
        }
    }

    /// The nodes in an order of evaluation, which is the graph's own wherever that is one.
    pub(super) fn order(&self) -> Result<Vec<&'m NodeProto>> {
        let weights: HashSet<&str> = initializer_names(self.graph).collect();
        let inputs = self.graph.input.iter().map(port_name).filter(|name| !weights.contains(name));
        let order = order(&self.graph.node, inputs.chain(initializer_names(self.graph)))?;
        if order.len() < self.graph.node.len() {
            let reached: HashSet<usize> = order.into_iter().collect();
            let stuck = self.graph.node.iter().enumerate().find(|(index, _)| !reached.contains(index));
            let name = stuck.and_then(|(_, node)| node.output.first()).cloned();
            return Err(Error::Cycle { name: name.unwrap_or_default() });
        }
        Ok(order.into_iter().filter_map(|index| self.graph.node.get(index)).collect())
    }

    pub(super) fn push(&mut self, node: NodeProto) {
        self.nodes.push(node);
    }

    /// Records a type under another name and with other elements.
    pub(super) fn record(&mut self, like: &ValueInfoProto, name: &str, element: ElementType) {
        self.values.push(value_info(name, element, Port::from_proto(like).shape));
    }
}

/// The type that a value of the frame at `depth` has in the model as it was. A sub-graph is inferred as a model of its own,
/// which is fed what it captures; the depth of that is bounded as the sub-graphs' is.
pub(super) fn type_of(
    frames: &mut [Frame<'_>],
    depth: usize,
    value: &str,
    model: &Model,
    weights: &Weights,
) -> Result<Option<ValueType>> {
    let Some(graph) = frames.get(depth).map(|frame| frame.graph) else { return Ok(None) };
    if frames[depth].types.is_none() {
        let types = if depth == 0 {
            Types::infer(model, weights)?
        } else {
            let mut alone = graph.clone();
            for captured in captured_by(graph) {
                let outer = frames.get(..depth).and_then(|f| f.iter().rposition(|f| f.defines(captured)));
                let Some(outer) = outer else { continue };
                if let Some(known) = type_of(frames, outer, captured, model, weights)? {
                    alone.input.push(value_info(captured, known.element_type, known.shape));
                }
            }
            Types::infer(&model.with_graph(alone), weights)?
        };
        frames[depth].types = Some(types);
    }
    Ok(frames[depth].types.as_ref().and_then(|types| types.get(value)).cloned())
}
