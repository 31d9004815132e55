//! Every place in a model where a tensor can hide.

use crate::{
    Error, Result,
    proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto},
};

/// Calls `visit` for every tensor of the model: initializers, sparse values and indices, tensors in attributes (whatever
/// type the attribute claims), in sub-graphs, in functions' nodes and attribute defaults, and in training graphs.
///
/// Recursion follows sub-graphs only, whose depth the decoder bounds.
pub(crate) fn for_each<'m>(
    model: &'m ModelProto,
    visit: &mut dyn FnMut(&'m TensorProto) -> Result<()>,
) -> Result<()> {
    if let Some(graph) = model.graph.as_option() {
        in_graph(graph, visit)?;
    }
    for function in &model.functions {
        in_nodes(&function.node, visit)?;
        in_attributes(&function.attribute_proto, visit)?;
    }
    for training in &model.training_info {
        for graph in [&training.initialization, &training.algorithm].into_iter().filter_map(|g| g.as_option())
        {
            in_graph(graph, visit)?;
        }
    }
    Ok(())
}

fn in_graph<'m>(graph: &'m GraphProto, visit: &mut dyn FnMut(&'m TensorProto) -> Result<()>) -> Result<()> {
    graph.initializer.iter().try_for_each(&mut *visit)?;
    for sparse in &graph.sparse_initializer {
        in_sparse(sparse, visit)?;
    }
    in_nodes(&graph.node, visit)
}

fn in_nodes<'m>(nodes: &'m [NodeProto], visit: &mut dyn FnMut(&'m TensorProto) -> Result<()>) -> Result<()> {
    nodes.iter().try_for_each(|node| in_attributes(&node.attribute, visit))
}

fn in_attributes<'m>(
    attributes: &'m [AttributeProto],
    visit: &mut dyn FnMut(&'m TensorProto) -> Result<()>,
) -> Result<()> {
    for attribute in attributes {
        attribute.t.as_option().map_or(Ok(()), &mut *visit)?;
        attribute.tensors.iter().try_for_each(&mut *visit)?;
        for sparse in attribute.sparse_tensor.as_option().into_iter().chain(&attribute.sparse_tensors) {
            in_sparse(sparse, visit)?;
        }
        for graph in sub_graphs(attribute) {
            in_graph(graph, visit)?;
        }
    }
    Ok(())
}

fn in_sparse<'m>(
    sparse: &'m SparseTensorProto,
    visit: &mut dyn FnMut(&'m TensorProto) -> Result<()>,
) -> Result<()> {
    [&sparse.values, &sparse.indices].into_iter().filter_map(|t| t.as_option()).try_for_each(visit)
}

/// The graphs held by one attribute.
pub(crate) fn sub_graphs(attribute: &AttributeProto) -> impl Iterator<Item = &GraphProto> {
    attribute.g.as_option().into_iter().chain(&attribute.graphs)
}

/// Fails where sub-graphs nest more than `limit` levels deep, anywhere in the model.
pub(crate) fn check_nesting(model: &ModelProto, limit: usize) -> Result<()> {
    let mut waiting: Vec<(&AttributeProto, usize)> = Vec::new();
    let training = model.training_info.iter().flat_map(|t| [&t.initialization, &t.algorithm]);
    for graph in [&model.graph].into_iter().chain(training).filter_map(|g| g.as_option()) {
        waiting.extend(graph.node.iter().flat_map(|n| &n.attribute).map(|a| (a, 0)));
    }
    for function in &model.functions {
        let of_nodes = function.node.iter().flat_map(|n| &n.attribute);
        waiting.extend(of_nodes.chain(&function.attribute_proto).map(|a| (a, 0)));
    }
    while let Some((attribute, depth)) = waiting.pop() {
        for graph in sub_graphs(attribute) {
            if depth == limit {
                return Err(Error::TooDeep { limit });
            }
            waiting.extend(graph.node.iter().flat_map(|n| &n.attribute).map(|a| (a, depth + 1)));
        }
    }
    Ok(())
}

/// Whether a tensor has its elements, or some of them, in the model itself.
pub(crate) fn holds_bytes(tensor: &TensorProto) -> bool {
    tensor.raw_data.as_ref().is_some_and(|raw| !raw.is_empty())
        || !tensor.float_data.is_empty()
        || !tensor.double_data.is_empty()
        || !tensor.int32_data.is_empty()
        || !tensor.int64_data.is_empty()
        || !tensor.uint64_data.is_empty()
        || !tensor.string_data.is_empty()
}
