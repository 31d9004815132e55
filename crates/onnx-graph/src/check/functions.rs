//! Model-local functions: a graph each, which sees nothing but its inputs.

use std::collections::{BTreeSet, HashMap};

use super::{
    Checker,
    finding::{At, Rule, short},
    graphs::Frame,
    key,
};
use crate::{
    nodes::{domain_of, normal},
    order::{in_order, left_out},
    proto::{FunctionProto, NodeProto},
};

impl<'m> Checker<'m> {
    pub(super) fn functions(&mut self) {
        let functions = &self.model.functions;
        for function in functions {
            let sizes = (function.input.len(), function.output.len());
            if self.functions.insert(key(function), sizes).is_some() {
                let at = At::default().value(key(function).1);
                self.findings.error(Rule::DefinedTwice, at, || "two functions have this name".to_owned());
            }
        }
        self.recursion();
        for function in functions {
            let (domain, name, _) = key(function);
            let scope = format!("function {}:{}", short(domain), short(name));
            // A function brings its own operator sets.
            let imports = &function.opset_import;
            let own = imports.iter().map(|i| (normal(i.domain.as_deref()), i.version.unwrap_or_default()));
            let models = std::mem::replace(&mut self.opsets, own.collect());
            self.in_function = true;
            self.function(function, &scope);
            self.in_function = false;
            self.opsets = models;
        }
    }

    fn function(&mut self, function: &'m FunctionProto, scope: &str) {
        let at = At { scope, ..At::default() };
        if function.name.as_deref().unwrap_or_default().is_empty() {
            self.findings.error(Rule::Name, at, || "a function has no name".to_owned());
        }
        if function.opset_import.is_empty() {
            self.findings.error(Rule::Function, at, || "the function imports no operator set".to_owned());
        }
        self.frames.push(Frame::of_nodes(&function.node));
        for input in &function.input {
            self.define(input, None, at);
        }
        self.nodes(&function.node, scope);
        for output in &function.output {
            if !self.frames.last().is_some_and(|frame| frame.defines(output)) {
                self.findings
                    .error(Rule::Output, at.value(output), || "the function does not give it".to_owned());
            }
        }
        self.frames.pop();
        self.attribute_tensors(&function.attribute_proto, at);
    }

    /// A function that calls itself, by whatever way, can never be expanded.
    fn recursion(&mut self) {
        let by_key: HashMap<_, usize> =
            self.model.functions.iter().enumerate().map(|(index, function)| (key(function), index)).collect();
        let callees = |function: &'m FunctionProto| {
            let mut called = BTreeSet::new();
            calls(&function.node, &by_key, &mut called);
            called
        };
        let needs: Vec<_> = self.model.functions.iter().map(callees).collect();
        if let Some(index) = left_out(&in_order(&needs), needs.len()) {
            let name = self.model.functions.get(index).map_or("", |function| key(function).1);
            self.findings
                .error(Rule::Cycle, At::default().value(name), || "the function calls itself".to_owned());
        }
    }
}

/// Functions that nodes call, sub-graphs included, whose depth the decoder bounds.
fn calls<'m>(
    nodes: &'m [NodeProto],
    functions: &HashMap<(&'m str, &'m str, &'m str), usize>,
    called: &mut BTreeSet<usize>,
) {
    for node in nodes {
        let name = node.op_type.as_deref().unwrap_or_default();
        let key = (domain_of(node), name, node.overload.as_deref().unwrap_or_default());
        called.extend(functions.get(&key));
        for graph in node.attribute.iter().flat_map(crate::tensors::sub_graphs) {
            calls(&graph.node, functions, called);
        }
    }
}
