//! A graph while it is rewritten: nodes by number, with who produces and who reads each value kept up to date.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    Dim, ElementType, Error, Model, Result, Types, ValueType, Weights,
    model::{initializer_names, port_name, tensor_name},
    nodes::domain_of,
    order::{in_order, left_out},
    proto::{AttributeProto, GraphProto, NodeProto, TensorProto},
    tensors::sub_graphs,
    walk::{captured_by, needed_by},
    weights::inline_tensor,
};

/// Numbers of nodes stay what they are while others come and go.
pub(crate) type NodeId = usize;

/// Elements of a constant that a pass computes with at most: larger ones are left where they are.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 28;
/// New constants have at most so many times the elements of the old ones, and some: shapes and tables.
const GROWTH: u64 = 4;
const SMALL_GROWTH: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Editor<'a> {
    graph: GraphProto,
    nodes: Vec<Option<NodeProto>>,
    pub(crate) opset: i64,
    pub(crate) types: Types,
    weights: &'a Weights,
    producer: HashMap<String, NodeId>,
    uses: HashMap<String, Vec<NodeId>>,
    /// Read in sub-graphs: such values keep their names.
    captured: HashSet<String>,
    outputs: HashSet<String>,
    inputs: HashSet<String>,
    constants: HashMap<String, usize>,
    names: HashSet<String>,
    fresh: usize,
    /// Elements that new constants may still have.
    room: u64,
    /// Whether there are new constants.
    added: bool,
}

impl<'a> Editor<'a> {
    /// Takes the main graph of a model apart. Fails where that is no proper graph: a value defined twice, or needing
    /// itself.
    pub(crate) fn new(model: &Model, weights: &'a Weights) -> Result<Self> {
        let mut graph = model.graph().clone();
        let nodes: Vec<_> = std::mem::take(&mut graph.node).into_iter().map(Some).collect();
        let inputs: HashSet<String> = graph.input.iter().map(|i| port_name(i).to_owned()).collect();
        // What is listed as an input too may be fed with something else.
        let constants = graph.initializer.iter().enumerate();
        let constants: HashMap<String, usize> = constants
            .map(|(at, tensor)| (tensor_name(tensor).to_owned(), at))
            .filter(|(name, _)| !inputs.contains(name))
            .collect();
        let mut editor = Self {
            outputs: graph.output.iter().map(|o| port_name(o).to_owned()).collect(),
            names: inputs.clone(),
            graph,
            nodes,
            opset: model.opset("").unwrap_or(1),
            // This finds what is defined twice, too.
            types: Types::infer(&model.unrecorded(), weights)?,
            weights,
            producer: HashMap::new(),
            uses: HashMap::new(),
            captured: HashSet::new(),
            inputs,
            constants,
            fresh: 0,
            room: 0,
            added: false,
        };
        // What annotations name keeps its name.
        for annotation in &editor.graph.quantization_annotation {
            let parameters =
                annotation.quant_parameter_tensor_names.iter().filter_map(|entry| entry.value.clone());
            editor.captured.extend(annotation.tensor_name.iter().cloned().chain(parameters));
        }
        editor.names.extend(initializer_names(&editor.graph).map(str::to_owned));
        let elements = editor.graph.initializer.iter().map(elements);
        editor.room = elements.fold(SMALL_GROWTH, |sum, n| sum.saturating_add(n.saturating_mul(GROWTH)));
        for id in 0..editor.nodes.len() {
            editor.connect(id);
        }
        editor.whole_order().map(|_| editor)
    }

    /// The model with the rewritten graph. Nodes that are still what they were keep their order.
    pub(crate) fn finish(mut self, model: &Model) -> Result<Model> {
        self.drop_unused_constants();
        let order = self.whole_order()?;
        let mut graph = self.graph;
        let mut nodes = self.nodes;
        graph.node = order.into_iter().filter_map(|id| nodes.get_mut(id)?.take()).collect();
        let known: HashSet<&str> =
            graph.node.iter().flat_map(|node| node.output.iter().map(String::as_str)).collect();
        graph.value_info.retain(|info| known.contains(port_name(info)));
        graph.quantization_annotation.retain(|annotation| {
            annotation.tensor_name.as_deref().is_some_and(|name| self.names.contains(name))
        });
        let mut rewritten = model.with_graph(graph).into_proto();
        // Before version 4 every initializer had to be an input as well, which new ones are not.
        if self.added {
            rewritten.ir_version = rewritten.ir_version.max(Some(4));
        }
        Ok(Model::from_proto(rewritten))
    }

    // --- reading ---

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..self.nodes.len()
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&NodeProto> {
        self.nodes.get(id)?.as_ref()
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    pub(crate) fn producer(&self, value: &str) -> Option<NodeId> {
        self.producer.get(value).copied()
    }

    /// The node that gives a value, if it is of this operator of the standard set.
    pub(crate) fn made_by(&self, value: &str, operator: &str) -> Option<(NodeId, &NodeProto)> {
        let id = self.producer(value)?;
        Some((id, self.node(id).filter(|node| is(node, operator))?))
    }

    /// Nodes that read a value, once for each place in which they do.
    pub(crate) fn users(&self, value: &str) -> &[NodeId] {
        self.uses.get(value).map_or(&[], Vec::as_slice)
    }

    /// True where just one node's one input reads the value, and nobody outside does.
    pub(crate) fn is_private(&self, value: &str) -> bool {
        self.users(value).len() == 1 && !self.is_seen(value)
    }

    /// True for outputs of the graph and for what sub-graphs read.
    pub(crate) fn is_seen(&self, value: &str) -> bool {
        self.outputs.contains(value) || self.captured.contains(value)
    }

    pub(crate) fn is_used(&self, value: &str) -> bool {
        self.is_seen(value) || !self.users(value).is_empty()
    }

    pub(crate) fn is_input(&self, value: &str) -> bool {
        self.inputs.contains(value)
    }

    /// A weight that nobody can replace from outside.
    pub(crate) fn constant(&self, value: &str) -> Option<&TensorProto> {
        self.graph.initializer.get(*self.constants.get(value)?)
    }

    /// The float32 elements of a constant and its dims; `None` where it is none, of another type, or too large.
    pub(crate) fn floats(&self, value: &str) -> Result<Option<(Vec<u64>, Vec<f32>)>> {
        let Some((tensor, dims)) = self.sized(value, ElementType::Float32) else { return Ok(None) };
        Ok(Some((dims, self.weights.floats(tensor)?)))
    }

    /// The int64 elements of a constant; `None` where it is none, of another type, or too large.
    pub(crate) fn int64s(&self, value: &str) -> Result<Option<Vec<i64>>> {
        let Some((tensor, _)) = self.sized(value, ElementType::Int64) else { return Ok(None) };
        Ok(Some(self.weights.int64s(tensor)?))
    }

    /// The one float of a constant of one element, whatever its rank.
    pub(crate) fn scalar(&self, value: &str) -> Result<Option<f32>> {
        let Some((tensor, dims)) = self.sized(value, ElementType::Float32) else { return Ok(None) };
        if dims.iter().any(|&d| d != 1) {
            return Ok(None);
        }
        Ok(self.weights.floats(tensor)?.first().copied())
    }

    fn sized(&self, value: &str, element: ElementType) -> Option<(&TensorProto, Vec<u64>)> {
        let tensor = self.constant(value)?;
        let dims: Vec<u64> = tensor.dims.iter().map(|&d| u64::try_from(d).ok()).collect::<Option<_>>()?;
        let count = dims.iter().try_fold(1u64, |all, &d| all.checked_mul(d))?;
        let fits = tensor.data_type == Some(element.to_onnx()) && count <= MAX_ELEMENTS;
        fits.then_some((tensor, dims))
    }

    /// True for a float32 constant that is not too large to be computed with.
    pub(crate) fn is_float_constant(&self, value: &str) -> bool {
        self.sized(value, ElementType::Float32).is_some()
    }

    /// Whether new constants of so many elements may be made: a model must not grow without bound.
    pub(crate) fn has_room(&self, elements: usize) -> bool {
        elements as u64 <= self.room
    }

    pub(crate) fn weights(&self) -> &Weights {
        self.weights
    }

    /// Constants in their order, each with its name.
    pub(crate) fn constants(&self) -> impl Iterator<Item = &TensorProto> {
        self.graph.initializer.iter().filter(|tensor| self.constants.contains_key(tensor_name(tensor)))
    }

    // --- writing ---

    /// Adds a node of the standard operators that gives one value, whose name is made from `hint`.
    pub(crate) fn add(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        hint: &str,
        value_type: Option<ValueType>,
    ) -> String {
        let output = self.fresh_name(hint);
        if let Some(value_type) = value_type {
            self.types.set(&output, value_type);
        }
        self.push(NodeProto {
            op_type: Some(operator.to_owned()),
            name: Some(output.clone()),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![output.clone()],
            attribute: attributes,
            ..Default::default()
        });
        output
    }

    fn push(&mut self, node: NodeProto) -> NodeId {
        self.nodes.push(Some(node));
        self.connect(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// Puts another node in a node's place; what it gives must be the same values.
    pub(crate) fn replace(&mut self, id: NodeId, node: NodeProto) {
        self.remove(id);
        if let Some(slot) = self.nodes.get_mut(id) {
            *slot = Some(node);
            self.connect(id);
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id).and_then(Option::take) else { return };
        for input in &node.input {
            if let Some(users) = self.uses.get_mut(input)
                // From the end: most nodes are removed in that order.
                && let Some(at) = users.iter().rposition(|&user| user == id)
            {
                users.remove(at);
            }
        }
        for output in &node.output {
            if self.producer.get(output) == Some(&id) {
                self.producer.remove(output);
            }
        }
    }

    /// Adds a float32 constant.
    pub(crate) fn add_floats(&mut self, hint: &str, dims: &[u64], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.add_constant(hint, ElementType::Float32, dims, bytes)
    }

    /// Adds an int64 constant of rank 1.
    pub(crate) fn add_int64s(&mut self, hint: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.add_constant(hint, ElementType::Int64, &[values.len() as u64], bytes)
    }

    pub(crate) fn add_constant(
        &mut self,
        hint: &str,
        element: ElementType,
        dims: &[u64],
        bytes: Vec<u8>,
    ) -> String {
        let name = self.fresh_name(hint);
        let signed: Vec<i64> = dims.iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
        self.add_tensor(inline_tensor(&name, element, &signed, bytes));
        name
    }

    /// Adds a constant that has its name already, which must be one that the graph lets go.
    pub(crate) fn add_tensor(&mut self, tensor: TensorProto) {
        let name = tensor_name(&tensor).to_owned();
        let element_type = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        let dims = tensor.dims.iter().map(|&d| u64::try_from(d).map_or(Dim::Unknown, Dim::Static));
        self.types.set(&name, ValueType { element_type, shape: Some(dims.collect()) });
        self.added = true;
        self.room = self.room.saturating_sub(elements(&tensor));
        self.names.insert(name.clone());
        self.constants.insert(name, self.graph.initializer.len());
        self.graph.initializer.push(tensor);
    }

    /// Lets every reader of `old` read `new`, so that nobody needs `old` any more. False, with nothing changed, where a
    /// sub-graph reads `old`, or where it is an output of the graph and `new` cannot take its name.
    pub(crate) fn substitute(&mut self, old: &str, new: &str) -> bool {
        if self.captured.contains(old) || old == new {
            return false;
        }
        if self.outputs.contains(old) {
            return self.rename_to_output(old, new);
        }
        self.read_instead(old, new);
        true
    }

    /// An output keeps its name: who gives `new` gives it under the output's, and the node that gave that goes.
    fn rename_to_output(&mut self, output: &str, new: &str) -> bool {
        let (Some(old_node), Some(node)) = (self.producer(output), self.producer(new)) else { return false };
        let gives_more = self.node(old_node).is_none_or(|node| node.output.len() != 1);
        if self.is_seen(new) || gives_more || old_node == node {
            return false;
        }
        self.remove(old_node);
        if let Some(node) = self.nodes.get_mut(node).and_then(Option::as_mut) {
            for name in node.output.iter_mut().filter(|name| *name == new) {
                output.clone_into(name);
            }
        }
        self.producer.remove(new);
        self.producer.insert(output.to_owned(), node);
        self.read_instead(new, output);
        true
    }

    fn read_instead(&mut self, old: &str, new: &str) {
        // A node that reads a value twice is listed twice.
        for id in self.uses.remove(old).unwrap_or_default() {
            let node = self.nodes.get_mut(id).and_then(Option::as_mut);
            if let Some(input) = node.and_then(|node| node.input.iter_mut().find(|input| *input == old)) {
                new.clone_into(input);
                self.uses.entry(new.to_owned()).or_default().push(id);
            }
        }
    }

    pub(crate) fn fresh_name(&mut self, hint: &str) -> String {
        loop {
            self.fresh += 1;
            let name = format!("{hint}_{}", self.fresh);
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    // --- inside ---

    fn connect(&mut self, id: NodeId) {
        let Some(Some(node)) = self.nodes.get(id) else { return };
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            self.producer.insert(output.clone(), id);
            self.names.insert(output.clone());
        }
        for input in node.input.iter().filter(|input| !input.is_empty()) {
            self.uses.entry(input.clone()).or_default().push(id);
        }
        let mut inner = Vec::new();
        for graph in node.attribute.iter().flat_map(sub_graphs) {
            all_names(graph, &mut inner);
        }
        self.names.extend(inner);
        let needs = node.attribute.iter().flat_map(sub_graphs).flat_map(captured_by);
        self.captured.extend(needs.map(str::to_owned));
    }

    fn drop_unused_constants(&mut self) {
        let read: HashSet<&str> =
            self.nodes.iter().flatten().flat_map(|node| node.input.iter().map(String::as_str)).collect();
        let (constants, outputs, captured) = (&self.constants, &self.outputs, &self.captured);
        self.graph.initializer.retain(|tensor| {
            let name = tensor_name(tensor);
            !constants.contains_key(name)
                || read.contains(name)
                || outputs.contains(name)
                || captured.contains(name)
        });
    }

    /// The order of all nodes. Fails with [`Error::Cycle`] where some need their own results.
    fn whole_order(&self) -> Result<Vec<NodeId>> {
        let mut order = in_order(&self.needs());
        if let Some(id) = left_out(&order, self.nodes.len()) {
            let name = self.node(id).and_then(|node| node.output.iter().find(|output| !output.is_empty()));
            return Err(Error::Cycle { name: name.cloned().unwrap_or_default() });
        }
        order.retain(|&id| self.node(id).is_some());
        Ok(order)
    }

    /// Every node behind those that it needs, but for those on a cycle and behind one; of those that could come next, the
    /// one with the lowest number.
    pub(crate) fn order(&self) -> Vec<NodeId> {
        let mut order = in_order(&self.needs());
        order.retain(|&id| self.node(id).is_some());
        order
    }

    /// Of each number the nodes that it needs; of one without a node, none.
    fn needs(&self) -> Vec<BTreeSet<NodeId>> {
        let needed =
            |node: &NodeProto| needed_by(node).into_iter().filter_map(|need| self.producer(need)).collect();
        self.nodes.iter().map(|node| node.as_ref().map(needed).unwrap_or_default()).collect()
    }
}

/// Elements of a tensor by its dims.
fn elements(tensor: &TensorProto) -> u64 {
    let dims = tensor.dims.iter().map(|&dim| u64::try_from(dim).unwrap_or_default());
    dims.fold(1, u64::saturating_mul)
}

/// True for a node of this operator of the standard set.
pub(crate) fn is(node: &NodeProto, operator: &str) -> bool {
    node.op_type.as_deref() == Some(operator) && is_standard(node)
}

pub(crate) fn is_standard(node: &NodeProto) -> bool {
    domain_of(node).is_empty()
}

/// Every name that a sub-graph, or one within, speaks of. The depth is bounded by the decoder.
fn all_names(graph: &GraphProto, names: &mut Vec<String>) {
    names.extend(graph.initializer.iter().map(|tensor| tensor_name(tensor).to_owned()));
    names.extend(graph.input.iter().chain(&graph.output).map(|port| port_name(port).to_owned()));
    for node in &graph.node {
        names.extend(node.input.iter().chain(&node.output).cloned());
        for inner in node.attribute.iter().flat_map(sub_graphs) {
            all_names(inner, names);
        }
    }
}
