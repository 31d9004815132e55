use std::{collections::BTreeSet, path::Path};

use crate::{
    ElementType, Model, Result, attributes, external_data,
    model::tensor_name,
    proto::{AttributeProto, GraphProto, NodeProto, TensorProto, type_proto},
    tensors::{self, sub_graphs},
};

/// One node, read only.
#[derive(Debug, Clone, Copy)]
pub struct Node<'m> {
    proto: &'m NodeProto,
}

impl<'m> Node<'m> {
    pub(crate) fn new(proto: &'m NodeProto) -> Self {
        Self { proto }
    }

    /// The operator, such as `Conv`.
    pub fn op_type(self) -> &'m str {
        self.proto.op_type.as_deref().unwrap_or_default()
    }

    /// The operator's domain; empty for the standard operators.
    pub fn domain(self) -> &'m str {
        domain_of(self.proto)
    }

    /// The node's own name, often empty.
    pub fn name(self) -> &'m str {
        self.proto.name.as_deref().unwrap_or_default()
    }

    /// Names of the values it reads; an empty one stands for an optional input that is left out.
    pub fn inputs(self) -> impl Iterator<Item = &'m str> + use<'m> {
        self.proto.input.iter().map(String::as_str)
    }

    /// Names of the values it gives.
    pub fn outputs(self) -> impl Iterator<Item = &'m str> + use<'m> {
        self.proto.output.iter().map(String::as_str)
    }

    /// An attribute that is one integer.
    pub fn int(self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    /// An attribute that is text.
    pub fn text(self, name: &str) -> Option<&'m str> {
        std::str::from_utf8(self.attribute(name)?.s.as_ref()?).ok()
    }

    pub(crate) fn attributes(self) -> &'m [AttributeProto] {
        &self.proto.attribute
    }

    fn attribute(self, name: &str) -> Option<&'m AttributeProto> {
        attributes::find(self.proto, name)
    }
}

/// Operators of which each call gives something else, or may.
const RANDOM: &[&str] = &[
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
    "Dropout",
];

impl Node<'_> {
    pub(crate) fn is_random(self) -> bool {
        RANDOM.contains(&self.op_type())
    }
}

/// The domain of a node's operator; empty for the standard ones.
pub(crate) fn domain_of(node: &NodeProto) -> &str {
    normal(node.domain.as_deref())
}

/// The standard operators' domain has two names; here it is the empty one.
pub(crate) fn normal(domain: Option<&str>) -> &str {
    match domain.unwrap_or_default() {
        "ai.onnx" => "",
        domain => domain,
    }
}

impl Model {
    /// All nodes: the main graph's, those of sub-graphs right after the node that holds them, then those of functions.
    pub fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Vec::new();
        collect(&self.graph().node, &mut nodes);
        for function in &self.proto().functions {
            collect(&function.node, &mut nodes);
        }
        nodes
    }

    /// The version of an imported operator set; the standard operators' domain is empty.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let same = |found: &str| found == domain || normal(Some(found)) == domain;
        self.opset_imports().into_iter().find(|o| same(&o.domain)).map(|o| o.version)
    }

    /// Every element type that the model speaks of: of weights, of attributes, of recorded values and ports, and what
    /// `Cast` gives.
    pub fn element_types(&self) -> BTreeSet<ElementType> {
        let mut found = BTreeSet::new();
        // The visitor never fails, so neither does the visit.
        let _ = tensors::for_each(self.proto(), &mut |tensor| {
            found.insert(ElementType::from_onnx(tensor.data_type.unwrap_or_default()));
            Ok(())
        });
        for node in self.nodes().iter().filter(|n| n.op_type() == "Cast") {
            found.extend(node.int("to").and_then(|to| i32::try_from(to).ok()).map(ElementType::from_onnx));
        }
        for graph in self.graphs() {
            for value in graph.input.iter().chain(&graph.output).chain(&graph.value_info) {
                let recorded = value.r#type.as_option().and_then(|t| t.value.as_ref());
                if let Some(type_proto::Value::TensorType(tensor)) = recorded {
                    found.insert(ElementType::from_onnx(tensor.elem_type.unwrap_or_default()));
                }
            }
        }
        found
    }

    /// Names of the 64-bit integer constants with a value that does not fit 32 bits: initializers by their own name,
    /// tensors of `Constant` nodes by the value's. Those that lie in a sidecar are read from `folder`.
    pub fn wide_integers(&self, folder: &Path) -> Result<BTreeSet<&str>> {
        let mut found = BTreeSet::new();
        for tensor in self.graphs().iter().flat_map(|g| &g.initializer) {
            if is_wide(tensor, folder)? {
                found.insert(tensor_name(tensor));
            }
        }
        for node in self.nodes().into_iter().filter(|n| matches!(n.op_type(), "Constant" | "ConstantOfShape"))
        {
            for attribute in &node.proto.attribute {
                let numbers = attribute.i.into_iter().chain(attribute.ints.iter().copied());
                let tensor = attribute.t.as_option().map_or(Ok(false), |tensor| is_wide(tensor, folder))?;
                if tensor || numbers.into_iter().any(does_not_fit) {
                    found.extend(node.outputs());
                }
            }
        }
        Ok(found)
    }

    /// The main graph and every sub-graph.
    pub(crate) fn graphs(&self) -> Vec<&GraphProto> {
        let mut graphs = vec![self.graph()];
        for node in self.nodes() {
            graphs.extend(node.proto.attribute.iter().flat_map(sub_graphs));
        }
        graphs
    }
}

/// Depth is bounded by the decoder.
fn collect<'m>(nodes: &'m [NodeProto], all: &mut Vec<Node<'m>>) {
    for proto in nodes {
        all.push(Node::new(proto));
        for graph in proto.attribute.iter().flat_map(sub_graphs) {
            collect(&graph.node, all);
        }
    }
}

fn does_not_fit(value: i64) -> bool {
    i32::try_from(value).is_err()
}

fn is_wide(tensor: &TensorProto, folder: &Path) -> Result<bool> {
    if ElementType::from_onnx(tensor.data_type.unwrap_or_default()) != ElementType::Int64 {
        return Ok(false);
    }
    let wide = |bytes: &[u8]| {
        let numbers = bytes.chunks_exact(8).filter_map(|number| number.try_into().ok());
        numbers.map(i64::from_le_bytes).any(does_not_fit)
    };
    if tensor.data_location == Some(external_data::EXTERNAL) {
        return Ok(wide(&external_data::read(tensor, folder)?));
    }
    let inside = tensor.raw_data.as_ref().is_some_and(|raw| wide(raw));
    Ok(inside || tensor.int64_data.iter().copied().any(does_not_fit))
}
