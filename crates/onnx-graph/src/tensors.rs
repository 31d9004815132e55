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

/// What a tensor is to the one that visits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A dense tensor, or the values of a sparse one.
    Values,
    /// Where the values of a sparse tensor are.
    Indices,
}

type VisitMut<'v> = dyn FnMut(&mut TensorProto, Role) -> Result<()> + 'v;

/// [`for_each`] with tensors that can be changed, in the same order.
pub(crate) fn for_each_mut(model: &mut ModelProto, visit: &mut VisitMut<'_>) -> Result<()> {
    if let Some(graph) = model.graph.as_option_mut() {
        in_graph_mut(graph, visit)?;
    }
    for function in &mut model.functions {
        in_nodes_mut(&mut function.node, visit)?;
        in_attributes_mut(&mut function.attribute_proto, visit)?;
    }
    for training in &mut model.training_info {
        let graphs = [&mut training.initialization, &mut training.algorithm];
        for graph in graphs.into_iter().filter_map(|g| g.as_option_mut()) {
            in_graph_mut(graph, visit)?;
        }
    }
    Ok(())
}

fn in_graph_mut(graph: &mut GraphProto, visit: &mut VisitMut<'_>) -> Result<()> {
    graph.initializer.iter_mut().try_for_each(|tensor| visit(tensor, Role::Values))?;
    graph.sparse_initializer.iter_mut().try_for_each(|sparse| in_sparse_mut(sparse, visit))?;
    in_nodes_mut(&mut graph.node, visit)
}

fn in_nodes_mut(nodes: &mut [NodeProto], visit: &mut VisitMut<'_>) -> Result<()> {
    nodes.iter_mut().try_for_each(|node| in_attributes_mut(&mut node.attribute, visit))
}

fn in_attributes_mut(attributes: &mut [AttributeProto], visit: &mut VisitMut<'_>) -> Result<()> {
    for attribute in attributes {
        for tensor in attribute.t.as_option_mut().into_iter().chain(&mut attribute.tensors) {
            visit(tensor, Role::Values)?;
        }
        let sparse = attribute.sparse_tensor.as_option_mut().into_iter().chain(&mut attribute.sparse_tensors);
        sparse.into_iter().try_for_each(|sparse| in_sparse_mut(sparse, visit))?;
        for graph in attribute.g.as_option_mut().into_iter().chain(&mut attribute.graphs) {
            in_graph_mut(graph, visit)?;
        }
    }
    Ok(())
}

fn in_sparse_mut(sparse: &mut SparseTensorProto, visit: &mut VisitMut<'_>) -> Result<()> {
    sparse.values.as_option_mut().map_or(Ok(()), |tensor| visit(tensor, Role::Values))?;
    sparse.indices.as_option_mut().map_or(Ok(()), |tensor| visit(tensor, Role::Indices))
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
