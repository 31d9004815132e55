//! Goes through the graphs of a model in the order of evaluation and asks the operators' rules.

use std::collections::{HashMap, HashSet};

use crate::{
    Dim, Model, Port, Result, Weights,
    model::{initializer_names, port_name, sparse_name, tensor_name},
    nodes::{domain_of, normal},
    proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto},
};

use super::{
    content,
    keep::Kept,
    op::{Bound, Op, UNKNOWN, Value, declared, declared_dims},
    order::order,
    rules,
};

/// Levels of sub-graphs and functions that are followed, one in another; deeper ones are unknown.
const MAX_LEVELS: usize = 32;
/// Nodes of functions that are gone through, all calls together. Functions that call each other could make it endless.
const MAX_INLINED: usize = 1 << 16;
/// Bytes of a symbol's name; longer ones are unknown dims, since every value would copy them.
const MAX_NAME: usize = 256;
/// From this version of the intermediate representation on, an initializer that is listed as an input is a mere default.
const DEFAULTS_SINCE: i64 = 4;

/// A node that was met, with what is known of its values.
#[derive(Debug)]
pub(super) struct Met<'o, 'm> {
    pub(super) op: &'o Op<'o, 'm>,
    pub(super) outputs: &'o [Value],
    /// The function that the node stands in.
    pub(super) function: Option<&'m str>,
    /// Whether it stands in a sub-graph, which may run never or many times.
    pub(super) in_sub_graph: bool,
    /// Whether it is a call of one of the model's functions that was not followed.
    pub(super) unfollowed: bool,
}

/// What all nodes of the main graph, or of one function, have in common.
#[derive(Debug)]
pub(super) struct Frame<'m> {
    opsets: HashMap<&'m str, i64>,
    bound: Bound<'m>,
    function: Option<&'m str>,
}

/// The values of one graph, and the graphs around it.
#[derive(Debug)]
pub(super) struct Scope<'s, 'm> {
    values: HashMap<&'m str, Value>,
    parent: Option<&'s Scope<'s, 'm>>,
    frame: &'s Frame<'m>,
    pub(super) level: usize,
}

impl Scope<'_, '_> {
    fn get(&self, name: &str) -> &Value {
        let mut scope = self;
        loop {
            match (scope.values.get(name), scope.parent) {
                (Some(value), _) => return value,
                (None, Some(parent)) => scope = parent,
                (None, None) => return &UNKNOWN,
            }
        }
    }
}

/// One inference.
pub(super) struct Driver<'m, 'v> {
    model: &'m Model,
    weights: &'m Weights,
    functions: HashMap<[&'m str; 3], &'m FunctionProto>,
    inlined: usize,
    pub(super) kept: Kept,
    visit: &'v mut dyn FnMut(&Met<'_, 'm>),
}

impl<'m, 'v> Driver<'m, 'v> {
    pub(super) fn new(
        model: &'m Model,
        weights: &'m Weights,
        visit: &'v mut dyn FnMut(&Met<'_, 'm>),
    ) -> Self {
        let text = |field: &'m Option<String>| field.as_deref().unwrap_or_default();
        let functions = &model.proto().functions;
        let functions =
            functions.iter().map(|f| ([text(&f.domain), text(&f.name), text(&f.overload)], f)).collect();
        Self { model, weights, functions, inlined: 0, kept: Kept::default(), visit }
    }

    pub(super) fn run(mut self) -> Result<Kept> {
        let opsets = opsets(&self.model.proto().opset_import);
        let frame = Frame { opsets, bound: Bound::new(), function: None };
        self.graph(self.model.graph(), None, None, &frame, 0)?;
        Ok(self.kept)
    }

    /// Goes through a graph and gives what is known of its outputs. `feeds` are those of a sub-graph's inputs; the main
    /// graph's inputs are what they are recorded as.
    pub(super) fn graph(
        &mut self,
        graph: &'m GraphProto,
        feeds: Option<&[Value]>,
        parent: Option<&Scope<'_, 'm>>,
        frame: &Frame<'m>,
        level: usize,
    ) -> Result<Vec<Value>> {
        let mut recorded: HashMap<&str, Value> = HashMap::new();
        for info in graph.value_info.iter().chain(&graph.output).chain(&graph.input) {
            let Port { element_type, shape, .. } = Port::from_proto(info);
            let mut value = Value::new(element_type, shape);
            for dim in value.shape.iter_mut().flatten() {
                if matches!(dim, Dim::Symbolic(name) if name.len() > MAX_NAME) {
                    *dim = Dim::Unknown;
                }
            }
            if let Some(other) = recorded.get(port_name(info)) {
                value = self.kept.settle(port_name(info), value, Some(other), false);
            }
            recorded.insert(port_name(info), value);
        }
        let mut scope = Scope { values: HashMap::new(), parent, frame, level };
        let listed: HashSet<&str> = graph.input.iter().map(port_name).collect();
        let may_change = |name| listed.contains(name) && self.model.ir_version() >= DEFAULTS_SINCE;
        for tensor in &graph.initializer {
            let name = tensor_name(tensor);
            let mut value = declared(tensor);
            value.content = if may_change(name) { None } else { content::read(tensor, self.weights) };
            scope.values.insert(name, self.kept.afford(value));
        }
        for sparse in &graph.sparse_initializer {
            let element = declared(&sparse.values).element;
            scope.values.insert(sparse_name(sparse), Value::of(element, declared_dims(&sparse.dims)));
        }
        for (i, info) in graph.input.iter().enumerate() {
            let name = port_name(info);
            if !scope.values.contains_key(name) {
                let feed = feeds.and_then(|f| f.get(i)).unwrap_or(&UNKNOWN).clone();
                let value = self.kept.settle(name, feed, recorded.get(name), frame.function.is_none());
                scope.values.insert(name, value);
            }
        }
        let initializers: HashSet<&str> = initializer_names(graph).collect();
        let inputs = listed.difference(&initializers).copied();
        let defined = initializer_names(graph).chain(inputs);
        for index in order(&graph.node, defined)? {
            let node = &graph.node[index];
            self.step(node, &mut scope, &recorded)?;
        }
        // What no node gives, as the file has it; so are the values on a cycle.
        for (name, value) in recorded {
            scope.values.entry(name).or_insert(value);
        }
        let outputs = graph.output.iter().map(|info| scope.get(port_name(info)).clone()).collect();
        if frame.function.is_none() {
            self.kept.keep(scope.values, parent.is_none());
        }
        Ok(outputs)
    }

    /// Adds what one node gives.
    fn step(
        &mut self,
        node: &'m NodeProto,
        scope: &mut Scope<'_, 'm>,
        recorded: &HashMap<&str, Value>,
    ) -> Result<()> {
        let mut values = self.node(node, scope)?.into_iter();
        for name in &node.output {
            let inferred = values.next().unwrap_or_else(|| UNKNOWN.clone());
            if !name.is_empty() {
                let in_main = scope.frame.function.is_none();
                let value = self.kept.settle(name, inferred, recorded.get(name.as_str()), in_main);
                scope.values.insert(name, value);
            }
        }
        Ok(())
    }

    fn node(&mut self, node: &'m NodeProto, scope: &Scope<'_, 'm>) -> Result<Vec<Value>> {
        let input = |name: &'m String| (!name.is_empty()).then(|| scope.get(name));
        let op = Op {
            node,
            inputs: node.input.iter().map(input).collect(),
            // Models that import nothing are of the first version.
            opset: scope.frame.opsets.get(domain_of(node)).copied().unwrap_or(1),
            bound: &scope.frame.bound,
        };
        let key = [domain_of(node), op.op_type(), node.overload.as_deref().unwrap_or_default()];
        let function = self.functions.get(&key).copied();
        let mut outputs = match function {
            Some(function) => {
                if let Some(outputs) = self.call(function, &op, scope.level)? {
                    return Ok(outputs);
                }
                Vec::new()
            }
            None if scope.level < MAX_LEVELS => match self.control(&op, scope)? {
                Some(outputs) => outputs,
                None => rules::apply(&op),
            },
            None => rules::apply(&op),
        };
        outputs.truncate(node.output.len());
        if function.is_none() {
            content::fill(&op, &mut outputs, self.weights);
        }
        (self.visit)(&Met {
            op: &op,
            outputs: &outputs,
            function: scope.frame.function,
            in_sub_graph: scope.parent.is_some(),
            unfollowed: function.is_some(),
        });
        Ok(outputs)
    }

    /// A sub-graph of a node, which sees the values around it.
    pub(super) fn sub_graph(
        &mut self,
        op: &Op<'_, 'm>,
        attribute: &str,
        feeds: &[Value],
        scope: &Scope<'_, 'm>,
    ) -> Result<Option<Vec<Value>>> {
        let Some(graph) = op.attribute(attribute).and_then(|a| a.g.as_option()) else { return Ok(None) };
        self.graph(graph, Some(feeds), Some(scope), scope.frame, scope.level + 1).map(Some)
    }

    /// The body of a function with the inputs and attributes of one call; `None` where it is not followed.
    fn call(
        &mut self,
        function: &'m FunctionProto,
        op: &Op<'_, 'm>,
        level: usize,
    ) -> Result<Option<Vec<Value>>> {
        self.inlined = self.inlined.saturating_add(function.node.len()).saturating_add(1);
        if level >= MAX_LEVELS || self.inlined > MAX_INLINED {
            return Ok(None);
        }
        let mut bound = Bound::new();
        for default in &function.attribute_proto {
            bound.insert(default.name.as_deref().unwrap_or_default(), default);
        }
        let given = op.node.attribute.iter().filter_map(|a| a.name.as_deref());
        bound.extend(given.filter_map(|name| Some((name, op.attribute(name)?))));
        let mut opsets = opsets(&function.opset_import);
        if opsets.is_empty() {
            opsets = self::opsets(&self.model.proto().opset_import);
        }
        let frame = Frame { opsets, bound, function: function.name.as_deref().or(Some("")) };
        let feeds = function.input.iter().zip(&op.inputs);
        let feeds = feeds.map(|(name, value)| (name.as_str(), value.unwrap_or(&UNKNOWN).clone())).collect();
        let mut scope = Scope { values: feeds, parent: None, frame: &frame, level: level + 1 };
        for index in order(&function.node, function.input.iter().map(String::as_str))? {
            self.step(&function.node[index], &mut scope, &HashMap::new())?;
        }
        Ok(Some(function.output.iter().map(|name| scope.get(name).clone()).collect()))
    }
}

fn opsets(imports: &[OperatorSetIdProto]) -> HashMap<&str, i64> {
    imports.iter().map(|o| (normal(o.domain.as_deref()), o.version.unwrap_or_default())).collect()
}

impl std::fmt::Debug for Driver<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("inlined", &self.inlined).finish_non_exhaustive()
    }
}
