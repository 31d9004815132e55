//! Values of a graph: each defined once, before it is used.

use std::collections::{HashMap, HashSet};

use super::{
    Checker,
    finding::{At, Rule, Severity, short},
    nodes::Known,
};
use crate::{
    ElementType,
    model::{initializer_names, port_name, sparse_name, tensor_name},
    order::{in_order, left_out, needed_nodes},
    proto::{AttributeProto, GraphProto, NodeProto, ValueInfoProto, type_proto},
};

/// The values of one graph, as far as the check has come.
#[derive(Debug, Default)]
pub(super) struct Frame<'m> {
    /// Values that are there now, with their element types where these are known.
    defined: HashMap<&'m str, Option<ElementType>>,
    /// Values that some node of the graph gives, now or later.
    given: HashSet<&'m str>,
    used: HashSet<&'m str>,
    /// Element types that the graph records of inner values and outputs.
    recorded: HashMap<&'m str, ElementType>,
    /// Whether a node used what a later one gives.
    disordered: bool,
}

impl<'m> Frame<'m> {
    pub(super) fn of_nodes(nodes: &'m [NodeProto]) -> Self {
        let given = nodes.iter().flat_map(|node| &node.output).map(String::as_str).collect();
        Self { given, ..Self::default() }
    }

    pub(super) fn defines(&self, name: &str) -> bool {
        self.defined.contains_key(name)
    }
}

impl<'m> Checker<'m> {
    pub(super) fn main_graph(&mut self) {
        let model = self.model;
        self.graph(&model.graph, "");
    }

    /// Recursion follows sub-graphs, whose depth the decoder bounds.
    fn graph(&mut self, graph: &'m GraphProto, scope: &str) {
        let at = At { scope, ..At::default() };
        let main = self.frames.is_empty();
        if graph.name.as_deref().unwrap_or_default().is_empty() {
            self.findings.error(Rule::Name, at, || "the graph has no name".to_owned());
        }
        let mut frame = Frame::of_nodes(&graph.node);
        for info in graph.value_info.iter().chain(&graph.output) {
            if let Some(element) = element_of(info) {
                frame.recorded.insert(port_name(info), element);
            }
        }
        self.frames.push(frame);
        if main {
            for port in graph.input.iter().chain(&graph.output) {
                self.port(port, at);
            }
        }
        for input in &graph.input {
            self.define(port_name(input), element_of(input), at);
        }
        if main && graph.output.is_empty() {
            self.findings.warning(Rule::Output, at, || "the graph has no output".to_owned());
        }
        self.initializers(graph, at, main);
        self.nodes(&graph.node, scope);
        for output in &graph.output {
            let name = port_name(output);
            if let Some(frame) = self.frames.last_mut() {
                frame.used.insert(name);
                if !frame.defines(name) {
                    self.findings
                        .error(Rule::Output, at.value(name), || "nothing gives this output".to_owned());
                }
            }
        }
        self.records(graph, at);
        if let Some(frame) = self.frames.pop() {
            self.unused(graph, &frame, at, main);
        }
    }

    /// A port of the main graph.
    fn port(&mut self, port: &'m ValueInfoProto, at: At<'_>) {
        let at = at.value(port_name(port));
        let value = port.r#type.as_option().and_then(|t| t.value.as_ref());
        let (element, shape) = match value {
            None => {
                self.findings.error(Rule::Port, at, || "this input or output has no type".to_owned());
                return;
            }
            Some(type_proto::Value::TensorType(tensor)) => (tensor.elem_type, tensor.shape.is_set()),
            Some(type_proto::Value::SparseTensorType(tensor)) => (tensor.elem_type, tensor.shape.is_set()),
            Some(_) => return,
        };
        if !shape {
            self.findings.error(Rule::Port, at, || "this input or output has no shape".to_owned());
        }
        let element = ElementType::from_onnx(element.unwrap_or_default());
        if matches!(element, ElementType::Undefined | ElementType::Other(_)) {
            self.findings
                .error(Rule::ElementType, at, || format!("the element type of this port is {element}"));
        }
    }

    fn initializers(&mut self, graph: &'m GraphProto, at: At<'_>, main: bool) {
        // Before IR 4 an initializer was the default of an input and nothing else.
        let inputs: HashSet<&str> = graph.input.iter().map(port_name).collect();
        let need_inputs = main && (1..4).contains(&self.model.ir_version.unwrap_or_default());
        let dense = graph.initializer.iter().map(|t| (tensor_name(t), t.data_type));
        let sparse = graph.sparse_initializer.iter().map(|s| (sparse_name(s), s.values.data_type));
        let mut seen = HashSet::new();
        for (name, element) in dense.chain(sparse) {
            let at = at.value(name);
            if !name.is_empty() && !seen.insert(name) {
                self.findings.error(Rule::DefinedTwice, at, || "two initializers have this name".to_owned());
            } else if need_inputs && !inputs.contains(name) {
                self.findings.error(Rule::IrVersion, at, || {
                    "before IR version 4 an initializer has to be an input as well".to_owned()
                });
            }
            let element = ElementType::from_onnx(element.unwrap_or_default());
            if !inputs.contains(name) && !self.frames.last().is_some_and(|frame| frame.defines(name)) {
                self.define(name, Some(element), at);
            } else if let Some(Some(port)) = self.frames.last().and_then(|f| f.defined.get(name)).copied()
                && port != element
            {
                self.findings.error(Rule::ElementType, at, || {
                    format!("the initializer is {element}, the input that it is the default of {port}")
                });
            }
        }
        self.tensors_of(graph, at.scope);
    }

    pub(super) fn nodes(&mut self, nodes: &'m [NodeProto], scope: &str) {
        let mut names = HashSet::new();
        for (index, node) in nodes.iter().enumerate() {
            let name = node.name.as_deref().unwrap_or_default();
            let at = At {
                scope,
                node: Some((name, node.op_type.as_deref().unwrap_or_default(), index)),
                value: None,
            };
            if !name.is_empty() && !names.insert(name) {
                self.findings.warning(Rule::Name, at, || {
                    "two nodes have this name, which ONNX Runtime 1.32 refuses".to_owned()
                });
            }
            let inputs: Known = node.input.iter().map(|input| self.use_value(input, at)).collect();
            self.attribute_tensors(&node.attribute, at);
            for attribute in &node.attribute {
                self.sub_graphs(attribute, index, scope);
            }
            let outputs = self.node(node, &inputs, at);
            for (output, element) in node.output.iter().zip(outputs).filter(|(o, _)| !o.is_empty()) {
                let recorded =
                    self.frames.last().and_then(|frame| frame.recorded.get(output.as_str())).copied();
                if let (Some(element), Some(recorded)) = (element, recorded)
                    && element != recorded
                {
                    self.findings.error(Rule::ElementType, at.value(output), || {
                        format!("it is {element}, and {recorded} is recorded of it")
                    });
                }
                self.define(output, element.or(recorded), at);
            }
        }
        if self.frames.last().is_some_and(|frame| frame.disordered) {
            self.cycle(nodes, scope);
        }
    }

    fn sub_graphs(&mut self, attribute: &'m AttributeProto, node: usize, scope: &str) {
        for graph in crate::tensors::sub_graphs(attribute) {
            let name = short(attribute.name.as_deref().unwrap_or_default());
            let way = if scope.is_empty() { String::new() } else { format!("{scope}/") };
            self.graph(graph, &format!("{way}{node}.{name}"));
        }
    }

    /// The element type of a value that a node reads, where it is known. An empty name stands for an input left out.
    fn use_value(&mut self, name: &'m str, at: At<'_>) -> Option<ElementType> {
        if name.is_empty() {
            return None;
        }
        for frame in self.frames.iter_mut().rev() {
            if let Some(element) = frame.defined.get(name) {
                frame.used.insert(name);
                return *element;
            }
        }
        let at = at.value(name);
        if let Some(frame) = self.frames.iter_mut().rev().find(|frame| frame.given.contains(name)) {
            frame.disordered = true;
            self.findings.error(Rule::Order, at, || "it is used before the node that gives it".to_owned());
        } else {
            self.findings.error(Rule::Undefined, at, || "nothing gives this value".to_owned());
        }
        None
    }

    pub(super) fn define(&mut self, name: &'m str, element: Option<ElementType>, at: At<'_>) {
        let at = at.value(name);
        if name.is_empty() {
            self.findings.error(Rule::Name, at, || "an input or initializer has no name".to_owned());
            return;
        }
        // The frames end with the graph's own.
        if self.frames.iter().rev().skip(1).any(|frame| frame.defines(name)) {
            // ONNX's checker and ONNX Runtime refuse it of nodes, and take it of inputs and initializers.
            let severity = if at.node.is_some() { Severity::Error } else { Severity::Warning };
            let message = || "it hides a value of the graph around this one".to_owned();
            self.findings.add(severity, Rule::Shadow, at, message);
        }
        let Some(frame) = self.frames.last_mut() else { return };
        let element = element.filter(|e| !matches!(e, ElementType::Undefined | ElementType::Other(_)));
        if frame.defined.insert(name, element).is_some() {
            self.findings.error(Rule::DefinedTwice, at, || "the value is defined twice".to_owned());
        }
    }

    /// Names one value that depends on itself, if one does.
    fn cycle(&mut self, nodes: &'m [NodeProto], scope: &str) {
        let mut producer: HashMap<&str, usize> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            producer.extend(node.output.iter().map(|output| (output.as_str(), index)));
        }
        let needs: Vec<_> = nodes.iter().map(|node| needed_nodes(node, &producer)).collect();
        let Some(index) = left_out(&in_order(&needs), nodes.len()) else { return };
        if let Some(output) = nodes.get(index).and_then(|node| node.output.iter().find(|o| !o.is_empty())) {
            let at = At { scope, ..At::default() }.value(output);
            self.findings
                .error(Rule::Cycle, at, || "it depends on itself, or on a value that does".to_owned());
        }
    }

    /// Types that are recorded of inner values.
    fn records(&mut self, graph: &'m GraphProto, at: At<'_>) {
        let mut seen = HashSet::new();
        for info in &graph.value_info {
            let name = port_name(info);
            let at = at.value(name);
            if !seen.insert(name) {
                self.findings.warning(Rule::Recorded, at, || "two types are recorded of it".to_owned());
            } else if !self.frames.last().is_some_and(|frame| frame.defines(name)) {
                self.findings
                    .note(Rule::Recorded, at, || "a type is recorded, and there is no such value".to_owned());
            }
        }
    }

    fn unused(&mut self, graph: &'m GraphProto, frame: &Frame<'m>, at: At<'_>, main: bool) {
        let initializers: HashSet<&str> = initializer_names(graph).collect();
        // Bodies of loops have to take what they are given.
        let inputs = graph.input.iter().map(port_name).filter(|name| main && !initializers.contains(name));
        let inputs = inputs.map(|name| ("input", name));
        for (what, name) in inputs.chain(initializer_names(graph).map(|name| ("initializer", name))) {
            if !frame.used.contains(name) && !name.is_empty() {
                self.findings.note(Rule::Unused, at.value(name), || format!("no node uses this {what}"));
            }
        }
    }
}

/// The element type of a dense tensor; of nothing else one is known.
fn element_of(info: &ValueInfoProto) -> Option<ElementType> {
    match info.r#type.as_option()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => {
            Some(ElementType::from_onnx(tensor.elem_type.unwrap_or_default()))
        }
        _ => None,
    }
}
