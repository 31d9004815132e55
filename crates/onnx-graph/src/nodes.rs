use std::collections::BTreeSet;

use crate::{
    ElementType, Model,
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
    /// The operator, such as `Conv`.
    pub fn op_type(self) -> &'m str {
        self.proto.op_type.as_deref().unwrap_or_default()
    }

    /// The operator's domain; empty for the standard operators.
    pub fn domain(self) -> &'m str {
        match self.proto.domain.as_deref().unwrap_or_default() {
            "ai.onnx" => "",
            domain => domain,
        }
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

    fn attribute(self, name: &str) -> Option<&'m AttributeProto> {
        self.proto.attribute.iter().find(|a| a.name.as_deref() == Some(name))
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
        let same = |found: &str| found == domain || (domain.is_empty() && found == "ai.onnx");
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

    /// Names of the 64-bit integer constants, in the file, with a value that does not fit 32 bits: initializers by their
    /// own name, tensors of `Constant` nodes by the value's.
    pub fn wide_integers(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let graphs = self.graphs();
        for tensor in graphs.iter().flat_map(|g| &g.initializer).filter(|t| is_wide(t)) {
            found.insert(tensor_name(tensor));
        }
        for node in self.nodes().into_iter().filter(|n| n.op_type() == "Constant") {
            let wide = |a: &AttributeProto| {
                a.t.as_option().is_some_and(is_wide)
                    || a.i.into_iter().chain(a.ints.iter().copied()).any(|v| i32::try_from(v).is_err())
            };
            if node.proto.attribute.iter().any(wide) {
                found.extend(node.outputs());
            }
        }
        found
    }

    /// The main graph and every sub-graph.
    fn graphs(&self) -> Vec<&GraphProto> {
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
        all.push(Node { proto });
        for graph in proto.attribute.iter().flat_map(sub_graphs) {
            collect(&graph.node, all);
        }
    }
}

fn is_wide(tensor: &TensorProto) -> bool {
    if ElementType::from_onnx(tensor.data_type.unwrap_or_default()) != ElementType::Int64 {
        return false;
    }
    let raw = tensor.raw_data.iter().flat_map(|raw| raw.chunks_exact(8));
    let raw = raw.filter_map(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes);
    raw.chain(tensor.int64_data.iter().copied()).any(|v| i32::try_from(v).is_err())
}
