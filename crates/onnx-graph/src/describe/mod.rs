//! What there is to know of a model, in one piece that serialises.

use std::path::Path;

use serde::Serialize;

use crate::{
    Contradiction, Dependences, ElementType, Macs, Model, NodeMacs, OpsetImport, Port, PrecisionClass,
    Result, Types, Weights,
};

mod counts;

/// What there is to know of a model, made by [`Model::describe`]. The names of the fields are the keys of its JSON and
/// stay; more may come.
///
/// Dims are numbers where they are fixed (zero is a size like any other), text where they are symbols, null where nothing
/// is known; a shape of unknown rank is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// Version of ONNX's intermediate representation.
    pub ir_version: i64,
    /// The program that wrote the model; empty where the model does not say.
    pub producer_name: String,
    /// That program's version; empty where the model does not say.
    pub producer_version: String,
    /// The operator sets that are imported, in the file's order.
    pub opsets: Vec<OpsetImport>,
    /// The model's own functions.
    pub functions: Vec<FunctionDescription>,
    /// What a caller feeds.
    pub inputs: Vec<Port>,
    /// What a caller gets.
    pub outputs: Vec<OutputDescription>,
    /// Nodes by where they stand.
    pub nodes: NodeCounts,
    /// Operators, the most frequent first, then by domain and name.
    pub operators: Vec<OperatorCount>,
    /// Initializers of the main graph and of sub-graphs by element type, most bytes first. A sparse one counts with the
    /// values that it holds.
    pub initializers: Vec<TensorCount>,
    /// What `Constant` nodes hold, functions' included, in the same way.
    pub constants: Vec<TensorCount>,
    /// The files with weights that the model needs beside it, in the order of their first use.
    pub sidecars: Vec<SidecarDescription>,
    /// What most of the main graph's weights are kept in (see [`Model::precision`]).
    pub precision: PrecisionClass,
    /// Whether weights are 8-bit integers (see [`Model::is_quantized`]).
    pub quantized: bool,
    /// Multiply-accumulates outside of sub-graphs (see [`Macs::total`]).
    pub macs: Option<u64>,
    /// Multiply-accumulates in sub-graphs, each as if it ran once.
    pub macs_in_sub_graphs: Option<u64>,
    /// Nodes that multiply, or may, and are in neither number.
    pub macs_unknown: Vec<NodeMacs>,
    /// Values of which the file records another type than the graph gives.
    pub contradictions: Vec<Contradiction>,
}

/// An output, its type as far as file and graph tell, and the inputs that it depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutputDescription {
    /// The port. Where the file's record and the graph say different things, the graph is believed.
    #[serde(flatten)]
    pub port: Port,
    /// The graph inputs that it depends on, sorted.
    pub depends_on: Vec<String>,
}

/// A function that the model brings along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionDescription {
    /// Domain of the operator that it defines.
    pub domain: String,
    /// Name of the operator that it defines.
    pub name: String,
    /// Nodes of its body, those of sub-graphs included.
    pub nodes: usize,
}

/// Numbers of nodes. A function's body counts once, however often it is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeCounts {
    /// In the main graph.
    pub main: usize,
    /// In sub-graphs of the main graph, at any depth.
    pub sub_graphs: usize,
    /// In the bodies of functions and their sub-graphs.
    pub functions: usize,
}

impl NodeCounts {
    /// All nodes of the model.
    pub fn total(self) -> usize {
        self.main.saturating_add(self.sub_graphs).saturating_add(self.functions)
    }
}

/// How often an operator is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OperatorCount {
    /// Domain; empty for the standard operators.
    pub domain: String,
    /// The operator.
    pub operator: String,
    /// Where its nodes stand.
    #[serde(flatten)]
    pub nodes: NodeCounts,
}

/// Tensors of one element type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TensorCount {
    /// The type.
    pub element_type: ElementType,
    /// Number of tensors.
    pub tensors: u64,
    /// Number of their elements.
    pub parameters: u64,
    /// Bytes of their elements.
    pub bytes: u64,
}

/// A file with tensors of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SidecarDescription {
    /// Where it is, relative to the model's folder.
    pub location: String,
    /// Number of the model's tensors in it.
    pub tensors: u64,
    /// One past the last byte that a tensor takes.
    pub needed_bytes: u64,
    /// Size of the file; `None` where it is not there, or nobody said where the model is.
    pub file_bytes: Option<u64>,
}

impl Model {
    /// Describes the model. With `graph`, the path that it was read from, its sidecars are looked for beside it, and
    /// small weights in them are read where shapes depend on them; nothing else of them is.
    ///
    /// A sidecar that is missing is no error. Those of
    /// [`external_data::list`](crate::external_data::list), [`Dependences::new`] and
    /// [`Dependences::inputs_of`] are, and a tensor whose dims are no size ([`Error::Tensor`](crate::Error::Tensor)).
    pub fn describe(&self, graph: Option<&Path>) -> Result<Description> {
        let sidecars = counts::sidecars(self, graph)?;
        let all_there = sidecars.iter().all(|s| s.file_bytes.is_some());
        let folder = graph.and_then(Path::parent).filter(|_| all_there);
        let weights = folder.map_or_else(Weights::inline, Weights::in_folder);
        let types = Types::infer(self, &weights)?;
        let macs = Macs::count(self, &weights)?;
        let proto = self.proto();
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let functions = proto.functions.iter().map(|f| FunctionDescription {
            domain: text(&f.domain),
            name: text(&f.name),
            nodes: counts::nodes(&f.node),
        });
        let (nodes, operators) = counts::operators(self);
        Ok(Description {
            ir_version: self.ir_version(),
            producer_name: text(&proto.producer_name),
            producer_version: text(&proto.producer_version),
            opsets: self.opset_imports(),
            functions: functions.collect(),
            inputs: self.inputs(),
            outputs: self.described_outputs(&types)?,
            nodes,
            operators,
            initializers: counts::initializers(self)?,
            constants: counts::constants(self)?,
            sidecars,
            precision: self.precision(),
            quantized: self.is_quantized(),
            macs: macs.total(),
            macs_in_sub_graphs: macs.in_sub_graphs(),
            macs_unknown: macs.unknown().cloned().collect(),
            contradictions: types.contradictions().to_vec(),
        })
    }

    fn described_outputs(&self, types: &Types) -> Result<Vec<OutputDescription>> {
        let ports = self.outputs();
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let inputs = Dependences::new(self)?.inputs_of_each(&names)?;
        let described = ports.iter().zip(inputs).map(|(port, inputs)| {
            let mut port = port.clone();
            if let Some(found) = types.get(&port.name) {
                (port.element_type, port.shape) = (found.element_type, found.shape.clone());
            }
            OutputDescription { port, depends_on: inputs.into_iter().map(str::to_owned).collect() }
        });
        Ok(described.collect())
    }
}
