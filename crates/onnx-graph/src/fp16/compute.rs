//! Weights and arithmetic in half precision.

use std::collections::HashSet;

use super::{
    Fp16Options, Fp16Report, KeptReason, KeptTensor,
    convert::{self, Tally, element_type},
    fence::Need,
    frame::{Frame, Home},
    names::Names,
    retype::{self, retyped},
    rules,
    survey::{Choices, Needs},
};
use crate::{
    ElementType::{self, Float16, Float32},
    Model, Port, Result, Weights,
    attributes::from_int,
    model::{port_name, sparse_name, tensor_name},
    nodes::Node,
    proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto},
};

pub(super) fn convert(
    model: &Model,
    weights: &Weights,
    options: &Fp16Options,
) -> Result<(ModelProto, Fp16Report)> {
    let policy = Policy::of(model, options);
    let mut converter = Converter {
        model,
        weights,
        keep_io: options.keep_io,
        needs: Needs::of(model.graph(), &policy),
        policy,
        names: Names::of(model),
        frames: Vec::new(),
        tally: Tally::default(),
        report: Fp16Report::default(),
    };
    let graph = converter.main_graph()?;
    let Converter { tally, report, .. } = converter;
    let report = Fp16Report { clamped: tally.clamped, raised: tally.raised, ..report };
    Ok((model.with_graph(graph).into_proto(), report))
}

/// What stays in single precision.
struct Policy<'m> {
    options: &'m Fp16Options,
    opset: i64,
    /// Domain and name of the model's own functions.
    functions: HashSet<(&'m str, &'m str)>,
}

impl<'m> Policy<'m> {
    fn of(model: &'m Model, options: &'m Fp16Options) -> Self {
        let text = |field: &'m Option<String>| field.as_deref().unwrap_or_default();
        let functions = model.proto().functions.iter().map(|f| (text(&f.domain), text(&f.name)));
        Self { options, opset: model.opset("").unwrap_or_default(), functions: functions.collect() }
    }
}

impl Choices for Policy<'_> {
    fn is_fenced(&self, node: &NodeProto) -> bool {
        let read = Node::new(node);
        self.options.blocked_operators.contains(read.op_type())
            || (!read.name().is_empty() && self.options.blocked_nodes.contains(read.name()))
            || rules::knows_no_half(node, self.opset)
            || self.functions.contains(&(read.domain(), read.op_type()))
    }

    fn is_float_input(&self, node: &NodeProto, index: usize) -> bool {
        rules::float_inputs(Node::new(node).op_type(), self.opset).contains(&index)
    }
}

pub(super) struct Converter<'m> {
    pub(super) model: &'m Model,
    pub(super) weights: &'m Weights,
    pub(super) keep_io: bool,
    policy: Policy<'m>,
    needs: Needs<'m>,
    pub(super) names: Names,
    /// The graph that is being converted, within those around it.
    pub(super) frames: Vec<Frame<'m>>,
    tally: Tally,
    pub(super) report: Fp16Report,
}

impl<'m> Converter<'m> {
    fn main_graph(&mut self) -> Result<GraphProto> {
        let graph = self.model.graph();
        let mut frame = Frame::new(graph);
        let mut ports = HashSet::new();
        let is_float = |info: &ValueInfoProto| Port::from_proto(info).element_type == Float32;
        let mut at_the_end = Vec::new();
        if self.keep_io {
            for (index, input) in graph.input.iter().enumerate().filter(|(_, input)| is_float(input)) {
                let (name, half) = (port_name(input), self.names.fresh(&format!("graph_input_cast_{index}")));
                frame.push(cast_node(&format!("graph_input_cast{index}"), name, &half, Float16));
                frame.record(input, &half, Float16);
                frame.homes.insert(name, Home::half(half));
                ports.insert(name);
            }
            let made: HashSet<&str> = graph.node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
            for (index, output) in graph.output.iter().enumerate().filter(|(_, output)| is_float(output)) {
                let name = port_name(output);
                if made.contains(name) && ports.insert(name) {
                    let half = self.names.fresh(&format!("graph_output_cast_{index}"));
                    let node = format!("graph_output_cast{index}");
                    at_the_end.push(cast_node(&node, &half, name, Float32));
                    frame.record(output, &half, Float16);
                    frame.homes.insert(name, Home::half(half));
                } else {
                    // An input or an initializer that is given out as it is.
                    ports.insert(name);
                }
            }
        }
        self.report.casts_added += frame.nodes.len() + at_the_end.len();
        let mut converted = self.graph(frame, &ports)?;
        converted.node.extend(at_the_end);
        if self.keep_io {
            converted.input.clone_from(&graph.input);
            converted.output.clone_from(&graph.output);
        }
        Ok(converted)
    }

    /// Converts the graph of `frame`; float initializers named in `ports` stay. Depth is bounded by the decoder.
    fn graph(&mut self, mut frame: Frame<'m>, ports: &HashSet<&str>) -> Result<GraphProto> {
        let graph = frame.graph;
        let mut initializers = Vec::with_capacity(graph.initializer.len());
        for tensor in &graph.initializer {
            let name = tensor_name(tensor);
            let listed = || graph.input.iter().any(|input| port_name(input) == name);
            let kept = match element_type(tensor) {
                Float32 if ports.contains(name) => Some(KeptReason::Port),
                Float32 if !self.needs.contains(graph, name) && !listed() => Some(KeptReason::NoHalfUser),
                _ => None,
            };
            if let Some(reason) = kept {
                frame.homes.entry(name).or_insert_with(|| Home::single(name));
                self.report.kept.push(KeptTensor { name: name.to_owned(), reason });
            }
            initializers.push(if kept.is_none() { self.tensor(tensor)? } else { tensor.clone() });
        }
        for sparse in &graph.sparse_initializer {
            let name = sparse_name(sparse);
            if element_type(&sparse.values) == Float32 {
                frame.homes.insert(name, Home::single(name));
                self.report.kept.push(KeptTensor { name: name.to_owned(), reason: KeptReason::Sparse });
            }
        }
        let nodes = frame.order()?;
        self.frames.push(frame);
        for node in nodes {
            self.node(node)?;
        }
        let mut output: Vec<ValueInfoProto> = graph.output.iter().map(retyped).collect();
        // A sub-graph's result may be a value from around it.
        if self.frames.len() > 1 {
            for info in &mut output {
                info.name = Some(self.read(port_name(info).to_owned().as_str(), Need::Half, None)?);
            }
        }
        let Some(frame) = self.frames.pop() else { return Ok(graph.clone()) };
        // ONNX Runtime's converter changes the record of a weight that stays as well, and reads it through a `Cast` for that.
        let recorded = |info: &ValueInfoProto| {
            let name = port_name(info);
            let stays = frame.homes.get(name).is_some_and(|home| home.stays(name));
            if stays { info.clone() } else { retyped(info) }
        };
        let value_info = graph.value_info.iter().map(recorded).chain(frame.values).collect();
        Ok(GraphProto {
            node: frame.nodes,
            name: graph.name.clone(),
            initializer: initializers,
            doc_string: graph.doc_string.clone(),
            input: graph.input.iter().map(retyped).collect(),
            output,
            value_info,
            quantization_annotation: graph.quantization_annotation.clone(),
            sparse_initializer: graph.sparse_initializer.clone(),
            metadata_props: graph.metadata_props.clone(),
            __buffa_unknown_fields: graph.__buffa_unknown_fields.clone(),
        })
    }

    fn node(&mut self, node: &'m NodeProto) -> Result<()> {
        if self.policy.is_fenced(node) {
            return self.fenced_node(node);
        }
        let mut new = NodeProto { attribute: Vec::new(), ..node.clone() };
        for (index, input) in new.input.iter_mut().enumerate() {
            let single = self.policy.is_float_input(node, index);
            *input = self.read(input, if single { Need::SurelySingle } else { Need::Half }, Some(node))?;
        }
        for output in &mut new.output {
            *output = self.read(output, Need::Half, Some(node))?;
        }
        for attribute in &node.attribute {
            let attribute = self.attribute(attribute)?;
            new.attribute.push(attribute);
        }
        self.report.tensors_converted += retype::set_types(&mut new, &mut self.tally);
        self.push(new);
        Ok(())
    }

    pub(super) fn push(&mut self, node: NodeProto) {
        if let Some(frame) = self.frames.last_mut() {
            frame.push(node);
        }
    }

    /// A tensor of a graph or an attribute, in halves if it was in float32.
    fn tensor(&mut self, tensor: &TensorProto) -> Result<TensorProto> {
        if element_type(tensor) != Float32 {
            return Ok(tensor.clone());
        }
        self.report.tensors_converted += 1;
        convert::narrowed(tensor, self.weights, &mut self.tally)
    }

    fn attribute(&mut self, attribute: &'m AttributeProto) -> Result<AttributeProto> {
        let mut new = attribute.clone();
        if let (Some(new), Some(tensor)) = (new.t.as_option_mut(), attribute.t.as_option()) {
            *new = self.tensor(tensor)?;
        }
        for (new, tensor) in new.tensors.iter_mut().zip(&attribute.tensors) {
            *new = self.tensor(tensor)?;
        }
        if let (Some(new), Some(graph)) = (new.g.as_option_mut(), attribute.g.as_option()) {
            *new = self.graph(Frame::new(graph), &HashSet::new())?;
        }
        for (new, graph) in new.graphs.iter_mut().zip(&attribute.graphs) {
            *new = self.graph(Frame::new(graph), &HashSet::new())?;
        }
        Ok(new)
    }
}

/// A `Cast` node.
pub(super) fn cast_node(name: &str, from: &str, to: &str, element: ElementType) -> NodeProto {
    NodeProto {
        name: Some(name.to_owned()),
        op_type: Some("Cast".to_owned()),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        attribute: vec![from_int("to", i64::from(element.to_onnx()))],
        ..Default::default()
    }
}
