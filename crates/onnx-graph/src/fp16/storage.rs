//! Weights stored in half precision for a graph that computes in float32.

use std::collections::{HashMap, HashSet};

use super::{
    Fp16Options, Fp16Report, KeptReason, KeptTensor,
    compute::cast_node,
    convert::{self, element_type},
    inlined,
    names::Names,
};
use crate::{
    ElementType, Model, Result, Weights, external_data,
    model::{port_name, tensor_name},
    nodes::Node,
    proto::{GraphProto, ModelProto, NodeProto, TensorProto},
    walk::needed_by,
};

/// Puts the initializers of every graph into halves, each behind a `Cast`.
pub(super) fn store(
    model: &Model,
    weights: &Weights,
    options: &Fp16Options,
) -> Result<(ModelProto, Fp16Report)> {
    let mut graph = model.graph().clone();
    let mut report = Fp16Report::default();
    store_in(&mut graph, weights, options, &mut Names::of(model), &mut report)?;
    Ok((model.with_graph(graph).into_proto(), report))
}

/// Depth is bounded by the decoder.
fn store_in(
    graph: &mut GraphProto,
    weights: &Weights,
    options: &Fp16Options,
    names: &mut Names,
    report: &mut Fp16Report,
) -> Result<()> {
    let ports: HashSet<String> = graph.input.iter().map(|i| port_name(i).to_owned()).collect();
    let mut casts = Vec::new();
    for tensor in &mut graph.initializer {
        if element_type(tensor) != ElementType::Float32 {
            continue;
        }
        let name = tensor_name(tensor).to_owned();
        let bytes = external_data::byte_length(tensor).unwrap_or_default();
        let stored = if ports.contains(&name) {
            Err(KeptReason::Port)
        } else if bytes / 4 < options.min_elements.max(1) {
            Err(KeptReason::Small)
        } else {
            convert::rounded(tensor, weights)?.ok_or(KeptReason::Range)
        };
        match stored {
            Err(reason) => report.kept.push(KeptTensor { name, reason }),
            Ok(halves) => {
                let stored = names.fresh(&format!("{name}_fp16"));
                let node = format!("{name}_from_fp16");
                casts.push(cast_node(&node, &stored, &name, ElementType::Float32));
                *tensor = TensorProto { name: Some(stored), ..halves };
                report.tensors_converted += 1;
            }
        }
    }
    for sparse in &graph.sparse_initializer {
        if element_type(&sparse.values) == ElementType::Float32 {
            let name = tensor_name(&sparse.values).to_owned();
            report.kept.push(KeptTensor { name, reason: KeptReason::Sparse });
        }
    }
    report.casts_added += casts.len();
    // What is recorded of a weight was not held against it before, and would now be of a node's result.
    let given: HashSet<&str> = casts.iter().flat_map(|cast| cast.output.iter().map(String::as_str)).collect();
    graph.value_info.retain(|info| !given.contains(port_name(info)));
    let sub_graphs = graph.node.iter_mut().flat_map(|n| &mut n.attribute);
    for inner in sub_graphs.flat_map(|a| a.g.as_option_mut().into_iter().chain(&mut a.graphs)) {
        store_in(inner, weights, options, names, report)?;
    }
    graph.node.splice(0..0, casts);
    Ok(())
}

/// The weights of one graph that are stored in half precision and read in float32 only.
pub(crate) fn stored_count(graph: &GraphProto) -> usize {
    let Stored { casts, used } = Stored::of(graph);
    let weights = casts.iter().filter_map(|&at| graph.node.get(at)?.input.first());
    weights.map(String::as_str).filter(|weight| !used.contains(weight)).collect::<HashSet<_>>().len()
}

impl Model {
    /// The model with each weight that is stored in half precision and cast to float32 widened in place: the `Cast` goes,
    /// and what it gave becomes the weight, of exactly the halves' values. A weight that is read in half precision as well
    /// stays beside its widened copy. Initializers of all graphs are looked at.
    ///
    /// This undoes [`Fp16Options::storage`], but for the rounding, for engines that know no half precision. What computes in
    /// half precision is left as it is. All tensors are inside, about as many bytes as in float32.
    ///
    /// Fails where a weight cannot be read.
    pub fn widened(&self, weights: &Weights) -> Result<Self> {
        let mut model = self.proto().clone();
        if let Some(graph) = model.graph.as_option_mut() {
            widen_in(graph, weights)?;
        }
        inlined(model, weights)
    }
}

/// Depth is bounded by the decoder.
fn widen_in(graph: &mut GraphProto, weights: &Weights) -> Result<()> {
    let (casts, used) = {
        let stored = Stored::of(graph);
        (stored.casts, stored.used.into_iter().map(str::to_owned).collect::<HashSet<String>>())
    };
    let mut wanted: HashMap<String, Vec<String>> = HashMap::new();
    for node in casts.iter().filter_map(|&at| graph.node.get(at)) {
        if let (Some(stored), Some(name)) = (node.input.first(), node.output.first()) {
            wanted.entry(stored.clone()).or_default().push(name.clone());
        }
    }
    let mut initializers = Vec::with_capacity(graph.initializer.len());
    for tensor in std::mem::take(&mut graph.initializer) {
        let names = wanted.remove(tensor_name(&tensor)).unwrap_or_default();
        if !names.is_empty() {
            let single = convert::widened(&tensor, weights)?;
            // Copies share their bytes.
            initializers
                .extend(names.iter().map(|n| TensorProto { name: Some(n.clone()), ..single.clone() }));
        }
        if names.is_empty() || used.contains(tensor_name(&tensor)) {
            initializers.push(tensor);
        }
    }
    graph.initializer = initializers;
    let mut at = 0..;
    graph.node.retain(|_| at.next().is_none_or(|index| casts.binary_search(&index).is_err()));
    let attributes = graph.node.iter_mut().flat_map(|n| &mut n.attribute);
    for inner in attributes.flat_map(|a| a.g.as_option_mut().into_iter().chain(&mut a.graphs)) {
        widen_in(inner, weights)?;
    }
    Ok(())
}

/// The weights of one graph that are stored in half precision.
struct Stored<'g> {
    /// Places of the nodes that cast one to float32, in order.
    casts: Vec<usize>,
    /// Values that anything else reads.
    used: HashSet<&'g str>,
}

impl<'g> Stored<'g> {
    fn of(graph: &'g GraphProto) -> Self {
        let ports: HashSet<&str> = graph.input.iter().map(port_name).collect();
        let halves = graph.initializer.iter().filter(|t| element_type(t) == ElementType::Float16);
        let halves: HashSet<&str> = halves.map(tensor_name).filter(|name| !ports.contains(name)).collect();
        let mut stored = Self { casts: Vec::new(), used: graph.output.iter().map(port_name).collect() };
        for (index, node) in graph.node.iter().enumerate() {
            if is_cast_of(node, &halves) {
                stored.casts.push(index);
            } else {
                stored.used.extend(needed_by(node));
            }
        }
        stored
    }
}

fn is_cast_of(node: &NodeProto, weights: &HashSet<&str>) -> bool {
    let read = Node::new(node);
    let to_float = read.int("to") == Some(i64::from(ElementType::Float32.to_onnx()));
    read.domain().is_empty()
        && read.op_type() == "Cast"
        && to_float
        && read.inputs().next().is_some_and(|input| weights.contains(input))
        && read.outputs().next().is_some_and(|output| !output.is_empty())
}
