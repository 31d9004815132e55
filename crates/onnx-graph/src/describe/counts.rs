//! Numbers of nodes, of tensors and of bytes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    path::Path,
};

use buffa::bytes::Bytes;

use crate::{
    ElementType, Error, Model, Result, external_data,
    model::tensor_name,
    nodes::Node,
    proto::{NodeProto, TensorProto},
    tensors::sub_graphs,
};

use super::{NodeCounts, OperatorCount, SidecarDescription, TensorCount};

/// Where a node stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    Main,
    SubGraph,
    Function,
}

/// Calls `visit` for the nodes and those of their sub-graphs, whose depth the decoder bounds.
fn visit<'m>(nodes: &'m [NodeProto], place: Place, visitor: &mut dyn FnMut(&'m NodeProto, Place)) {
    for node in nodes {
        visitor(node, place);
        let inner = if matches!(place, Place::Function) { place } else { Place::SubGraph };
        for graph in node.attribute.iter().flat_map(sub_graphs) {
            visit(&graph.node, inner, visitor);
        }
    }
}

/// Nodes of a function's body with those of its sub-graphs.
pub(super) fn nodes(body: &[NodeProto]) -> usize {
    let mut count = 0;
    visit(body, Place::Function, &mut |_, _| count += 1);
    count
}

pub(super) fn operators(model: &Model) -> (NodeCounts, Vec<OperatorCount>) {
    let mut all = NodeCounts::default();
    let mut by_operator: BTreeMap<(&str, &str), NodeCounts> = BTreeMap::new();
    let mut count = |node, place| {
        let node = Node::new(node);
        for counts in [&mut all, by_operator.entry((node.domain(), node.op_type())).or_default()] {
            match place {
                Place::Main => counts.main += 1,
                Place::SubGraph => counts.sub_graphs += 1,
                Place::Function => counts.functions += 1,
            }
        }
    };
    visit(&model.graph().node, Place::Main, &mut count);
    for function in &model.proto().functions {
        visit(&function.node, Place::Function, &mut count);
    }
    let operator = |((domain, operator), nodes): ((&str, &str), NodeCounts)| OperatorCount {
        domain: domain.to_owned(),
        operator: operator.to_owned(),
        nodes,
    };
    let mut operators: Vec<_> = by_operator.into_iter().map(operator).collect();
    operators.sort_by_key(|o| Reverse(o.nodes.total()));
    (all, operators)
}

/// Numbers of tensors by element type.
#[derive(Debug, Default)]
struct Tensors {
    counts: BTreeMap<ElementType, TensorCount>,
}

impl Tensors {
    fn add(&mut self, tensor: &TensorProto) -> Result<()> {
        let element_type = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        let fail = |reason: String| Error::Tensor { tensor: tensor_name(tensor).to_owned(), reason };
        let elements = external_data::elements(tensor).map_err(|rule| fail(rule.to_string()))?;
        let bytes = if element_type.bits().is_some() {
            external_data::byte_length(tensor).map_err(|rule| fail(rule.to_string()))?
        } else {
            // Strings, and what has no fixed size: as much as is there.
            let parts = tensor.string_data.iter().chain(&tensor.raw_data);
            parts.map(Bytes::len).fold(0, usize::saturating_add) as u64
        };
        self.add_counted(element_type, elements, bytes)
            .ok_or_else(|| fail("all tensors together have more bytes than can be counted".to_owned()))
    }

    fn add_counted(&mut self, element_type: ElementType, elements: u64, bytes: u64) -> Option<()> {
        let none = TensorCount { element_type, tensors: 0, parameters: 0, bytes: 0 };
        let count = self.counts.entry(element_type).or_insert(none);
        count.tensors += 1;
        count.parameters = count.parameters.checked_add(elements)?;
        count.bytes = count.bytes.checked_add(bytes)?;
        Some(())
    }

    fn most_bytes_first(self) -> Vec<TensorCount> {
        let mut counts: Vec<_> = self.counts.into_values().collect();
        counts.sort_by_key(|count| Reverse(count.bytes));
        counts
    }
}

pub(super) fn initializers(model: &Model) -> Result<Vec<TensorCount>> {
    let mut tensors = Tensors::default();
    for graph in model.graphs() {
        let sparse = graph.sparse_initializer.iter().filter_map(|s| s.values.as_option());
        graph.initializer.iter().chain(sparse).try_for_each(|tensor| tensors.add(tensor))?;
    }
    Ok(tensors.most_bytes_first())
}

pub(super) fn constants(model: &Model) -> Result<Vec<TensorCount>> {
    let mut tensors = Tensors::default();
    for node in model.nodes().into_iter().filter(|n| n.domain().is_empty() && n.op_type() == "Constant") {
        for attribute in node.attributes() {
            let sparse = attribute.sparse_tensor.as_option().and_then(|s| s.values.as_option());
            attribute.t.as_option().into_iter().chain(sparse).try_for_each(|tensor| tensors.add(tensor))?;
            let texts = attribute.s.iter().chain(&attribute.strings);
            let lists = [
                (ElementType::Int64, attribute.i.iter().chain(&attribute.ints).count(), 8),
                (ElementType::Float32, attribute.f.iter().chain(&attribute.floats).count(), 4),
                (ElementType::String, texts.clone().count(), 0),
            ];
            for (element_type, elements, width) in lists.into_iter().filter(|(_, elements, _)| *elements > 0)
            {
                let of_texts: usize = if width == 0 { texts.clone().map(Bytes::len).sum() } else { 0 };
                let bytes = elements.saturating_mul(width).saturating_add(of_texts);
                // These lie in memory: they can be counted.
                let _ = tensors.add_counted(element_type, elements as u64, bytes as u64);
            }
        }
    }
    Ok(tensors.most_bytes_first())
}

/// The files that the model's tensors lie in, by the model alone and by what is on the disk.
pub(super) fn sidecars(model: &Model, graph: Option<&Path>) -> Result<Vec<SidecarDescription>> {
    let mut sidecars: Vec<SidecarDescription> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for tensor in external_data::list(model, graph.unwrap_or(Path::new("the model")))? {
        let place = *places.entry(tensor.location.clone()).or_insert_with(|| {
            let path = graph.map(|graph| graph.parent().unwrap_or(Path::new("")).join(&tensor.location));
            let file = path.and_then(|path| path.metadata().ok()).filter(std::fs::Metadata::is_file);
            let file_bytes = file.map(|file| file.len());
            let location = tensor.location.clone();
            sidecars.push(SidecarDescription { location, tensors: 0, needed_bytes: 0, file_bytes });
            sidecars.len() - 1
        });
        let end = tensor.offset.checked_add(tensor.length);
        let sidecar = &mut sidecars[place];
        sidecar.tensors += 1;
        sidecar.needed_bytes = sidecar.needed_bytes.max(end.unwrap_or(u64::MAX));
    }
    Ok(sidecars)
}
