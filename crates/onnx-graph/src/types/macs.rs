//! Multiply-accumulates of matrix products, convolutions and attention.

use serde::Serialize;

use crate::{Dim, Model, Result, Weights};

use super::{
    attention::{self, Sizes},
    infer::{Driver, Met},
    linear,
    op::{Op, Value},
};

/// The multiply-accumulates of one node, or that they cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeMacs {
    /// The operator, with its domain in front where that is not the standard one.
    pub operator: String,
    /// The node's name, often empty.
    pub name: String,
    /// Its first output.
    pub output: String,
    /// The model's function that the node stands in; such a node is there once for each call.
    pub function: Option<String>,
    /// Whether it stands in a sub-graph, and runs never, once or many times.
    pub in_sub_graph: bool,
    /// Multiply-accumulates of one run; `None` where a size they need is not known or they exceed 64 bits.
    pub macs: Option<u64>,
}

/// How much a model computes: the multiply-accumulates of `Conv`, `ConvTranspose`, `Gemm`, `MatMul`, their quantised and
/// fused kin, `Einsum` of two operands, and the attention operators. Additions, activations, normalisations and softmax
/// are not counted; one multiply-accumulate is two floating-point operations.
///
/// Counted is what the operator's definition asks for: a transposed convolution in full before its pads are cut off,
/// attention without regard to masks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macs {
    nodes: Vec<NodeMacs>,
}

impl Macs {
    /// Counts the nodes of the main graph, of its sub-graphs, and of functions at each call. Fails as
    /// [`Types::infer`](crate::Types::infer).
    pub fn count(model: &Model, weights: &Weights) -> Result<Self> {
        let mut nodes = Vec::new();
        Driver::new(model, weights, &mut |met| nodes.extend(node_macs(met))).run()?;
        Ok(Self { nodes })
    }

    /// Every node that multiplies, in the order of evaluation: with a number, or with the word that there is none. Among
    /// the latter are operators known to multiply that have no rule here, and those of other domains than ONNX's own,
    /// about which nothing can be said.
    pub fn nodes(&self) -> &[NodeMacs] {
        &self.nodes
    }

    /// The nodes without a number.
    pub fn unknown(&self) -> impl Iterator<Item = &NodeMacs> {
        self.nodes.iter().filter(|node| node.macs.is_none())
    }

    /// The sum over the nodes outside of sub-graphs that have a number; `None` beyond 64 bits.
    pub fn total(&self) -> Option<u64> {
        self.sum(false)
    }

    /// The same of the nodes in sub-graphs, each as if it ran once.
    pub fn in_sub_graphs(&self) -> Option<u64> {
        self.sum(true)
    }

    fn sum(&self, in_sub_graph: bool) -> Option<u64> {
        let mut nodes = self.nodes.iter().filter(|node| node.in_sub_graph == in_sub_graph);
        nodes.try_fold(0_u64, |sum, node| sum.checked_add(node.macs.unwrap_or(0)))
    }
}

/// `None` for a node that multiplies nothing.
fn node_macs(met: &Met<'_, '_>) -> Option<NodeMacs> {
    let op = met.op;
    let macs = match work(op, met.outputs) {
        Work::Macs(macs) => macs,
        Work::Nothing if met.unfollowed => None,
        Work::Nothing => return None,
    };
    let operator = match op.domain() {
        "" => op.op_type().to_owned(),
        domain => format!("{domain}.{}", op.op_type()),
    };
    Some(NodeMacs {
        operator,
        name: op.node.name.clone().unwrap_or_default(),
        output: op.node.output.first().cloned().unwrap_or_default(),
        function: met.function.map(str::to_owned),
        in_sub_graph: met.in_sub_graph,
        macs,
    })
}

/// What an operator multiplies.
enum Work {
    Nothing,
    /// So much, where it can be told.
    Macs(Option<u64>),
}

fn work(op: &Op<'_, '_>, outputs: &[Value]) -> Work {
    let result = outputs.first();
    Work::Macs(match (op.domain(), op.op_type()) {
        ("", "Conv" | "ConvInteger" | "DeformConv") | ("com.microsoft", "FusedConv") => {
            convolved(result, op.dims(1))
        }
        ("", "QLinearConv") => convolved(result, op.dims(3)),
        // Each element of the input goes through the kernels of its group.
        ("", "ConvTranspose") => convolved(op.input(0), op.dims(1)),
        ("", "MatMul" | "MatMulInteger") => matrix(result, op.dims(0), op.dims(1)),
        ("", "QLinearMatMul") => matrix(result, op.dims(0), op.dims(3)),
        ("com.microsoft", "FusedMatMul") => {
            linear::fused_operands(op).and_then(|(a, b)| matrix(result, Some(&a), Some(&b)))
        }
        ("", "Gemm") | ("com.microsoft", "FusedGemm") => {
            let at = |input: usize, axis: bool| op.dims(input).and_then(|d| size(d.get(usize::from(axis))?));
            let common = at(0, !op.flag("transA")).or_else(|| at(1, op.flag("transB")));
            common.and_then(|k| product(&[k, elements(result)?]))
        }
        ("", "Einsum") => match op.inputs.len() {
            0 | 1 => return Work::Nothing,
            2 => linear::einsum_space(op).and_then(|labels| volume(&labels)),
            _ => None,
        },
        ("", "Attention") => attention::standard_sizes(op).and_then(|sizes| attended(&sizes)),
        ("com.microsoft", "MultiHeadAttention") => {
            attention::multi_head_sizes(op).and_then(|sizes| attended(&sizes))
        }
        ("com.microsoft", "Attention") => projected(op),
        // They multiply, and have no rule.
        ("", "GRU" | "LSTM" | "RNN" | "DFT" | "STFT" | "Det") => None,
        ("", _) => return Work::Nothing,
        ("com.microsoft", _) if !outputs.is_empty() => return Work::Nothing,
        _ => None,
    })
}

fn size(dim: &Dim) -> Option<u64> {
    dim.size()
}

fn product(sizes: &[u64]) -> Option<u64> {
    // Nothing at all is nothing, however large the other sizes are.
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1_u64, |all, size| all.checked_mul(*size))
}

fn volume(dims: &[Dim]) -> Option<u64> {
    product(&dims.iter().map(size).collect::<Option<Vec<_>>>()?)
}

fn elements(value: Option<&Value>) -> Option<u64> {
    volume(value?.dims()?)
}

/// Each element of `value` with all but the first axis of the kernels.
fn convolved(value: Option<&Value>, kernels: Option<&[Dim]>) -> Option<u64> {
    product(&[elements(value)?, volume(kernels?.get(1..)?)?])
}

/// Each element of the result is a product along the operands' common axis, which either of them tells.
fn matrix(result: Option<&Value>, left: Option<&[Dim]>, right: Option<&[Dim]>) -> Option<u64> {
    let of_right = || right.and_then(|dims| size(dims.get(dims.len().saturating_sub(2))?));
    let common = left.and_then(|dims| size(dims.last()?)).or_else(of_right)?;
    product(&[elements(result)?, common])
}

/// Queries with keys, and the weights that come of it with values.
fn attended(s: &Sizes) -> Option<u64> {
    let pairs = product(&[size(&s.batch)?, size(&s.heads)?, size(&s.queries)?, size(&s.keys)?])?;
    product(&[pairs, size(&s.key_size)?.checked_add(size(&s.value_size)?)?])
}

/// Attention behind the projection of its one input.
fn projected(op: &Op<'_, '_>) -> Option<u64> {
    let projection = product(&[elements(op.input(0))?, size(op.dims(1)?.get(1)?)?])?;
    projection.checked_add(attended(&attention::packed_sizes(op)?)?)
}
