use std::{collections::HashSet, fs::File, io::Read, path::Path};

use buffa::{DecodeOptions, Message, MessageField, bytes::Bytes};

use crate::{
    ElementType, Error, Port, PrecisionClass, Result, fp16,
    proto::{GraphProto, ModelProto, SparseTensorProto, TensorProto, ValueInfoProto},
    tensors,
};

/// Levels of messages that are decoded at most: what fits a thread's stack with room to spare, in debug builds too.
const MAX_LEVELS: u32 = 100;

/// How much a model may demand of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of the model file itself (sidecars are not read). Default 2 GiB - 1, protobuf's own limit.
    pub max_bytes: u64,
    /// Levels of sub-graphs within attributes. Default 24; more than 28 are never read, since the decoder recurses and stops
    /// at 100 levels of messages.
    pub max_nesting: usize,
    /// Bytes of memory for the decoded lists (nodes, tensors, names), beyond the file's own bytes, which weights in
    /// the file keep sharing. Default 256 MiB, enough for about a million nodes. Below the limit they take at most
    /// 1024 times the file's bytes: two for an empty attribute, the costliest message, are almost a KiB in memory.
    pub max_list_memory: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_bytes: (1 << 31) - 1, max_nesting: 24, max_list_memory: 256 << 20 }
    }
}

/// An operator set that a model imports.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpsetImport {
    /// Domain; empty for the standard operators.
    pub domain: String,
    /// Version of the operator set.
    pub version: i64,
}

/// An ONNX model in memory: the decoded protobuf, unknown fields included, with external tensors left on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    proto: ModelProto,
}

impl Model {
    /// Reads a model file with the default [`ReadLimits`]. Sidecars are neither opened nor checked:
    /// [`external_data::verify`](crate::external_data::verify) does that.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_with_limits(path, ReadLimits::default())
    }

    /// Reads a model file, refusing what exceeds `limits`.
    pub fn read_with_limits(path: impl AsRef<Path>, limits: ReadLimits) -> Result<Self> {
        let path = path.as_ref();
        let io = |source| Error::Io { path: path.to_owned(), source };
        // Before opening: opening a pipe waits for a writer.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let too_large = |found| Error::TooLarge { path: path.to_owned(), found, limit: limits.max_bytes };
        if metadata.len() > limits.max_bytes {
            return Err(too_large(metadata.len()));
        }
        let mut bytes = Vec::new();
        // The file may grow: the reader is bounded as well.
        file.take(limits.max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > limits.max_bytes {
            return Err(too_large(bytes.len() as u64));
        }
        Self::decode(bytes.into(), &path.display().to_string(), limits)
    }

    /// Decodes a model from memory with the default [`ReadLimits`].
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        Self::decode(bytes.into().into(), "the given buffer", ReadLimits::default())
    }

    fn decode(mut bytes: Bytes, origin: &str, limits: ReadLimits) -> Result<Self> {
        let not_onnx = |reason: String| Error::NotOnnx { origin: origin.to_owned(), reason };
        if let Some(other) = looks_like_another_format(&bytes) {
            return Err(not_onnx(other.to_owned()));
        }
        let size = bytes.len();
        // Each sub-graph takes three levels of messages (node, attribute, graph), its tensors and types a few more.
        let levels = limits.max_nesting.saturating_mul(3).saturating_add(16);
        let options = DecodeOptions::new()
            .with_recursion_limit(u32::try_from(levels).map_or(MAX_LEVELS, |l| l.min(MAX_LEVELS)))
            .with_max_message_size(usize::try_from(limits.max_bytes).unwrap_or(usize::MAX))
            .with_element_memory_limit(limits.max_list_memory);
        // Decoding from `Bytes` lets weights inside the file stay slices of it.
        let proto: ModelProto =
            options.decode(&mut bytes).map_err(|e| not_onnx(format!("{e} ({size} bytes)")))?;
        if proto.graph.is_unset() {
            return Err(Error::NoGraph { origin: origin.to_owned() });
        }
        let model = Self { proto };
        tensors::check_nesting(&model.proto, limits.max_nesting)?;
        Ok(model)
    }

    /// Encodes the model; external tensors stay references to their sidecars.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.proto.try_encode_to_vec().map_err(|e| Error::Encode { reason: e.to_string() })
    }

    /// What a caller feeds: the graph's inputs in their order, without those that an initializer gives a default.
    pub fn inputs(&self) -> Vec<Port> {
        let graph = self.graph();
        let defaults: HashSet<&str> = initializer_names(graph).collect();
        graph.input.iter().filter(|i| !defaults.contains(port_name(i))).map(Port::from_proto).collect()
    }

    /// The graph's outputs in their order.
    pub fn outputs(&self) -> Vec<Port> {
        self.graph().output.iter().map(Port::from_proto).collect()
    }

    /// Version of ONNX's intermediate representation.
    pub fn ir_version(&self) -> i64 {
        self.proto.ir_version.unwrap_or_default()
    }

    /// The operator sets the model imports.
    pub fn opset_imports(&self) -> Vec<OpsetImport> {
        let imports = self.proto.opset_import.iter();
        imports
            .map(|o| OpsetImport {
                domain: o.domain.clone().unwrap_or_default(),
                version: o.version.unwrap_or_default(),
            })
            .collect()
    }

    /// Number of nodes in the main graph.
    pub fn node_count(&self) -> usize {
        self.graph().node.len()
    }

    /// The floating-point type that most of the main graph's initializers have; single precision where it is among those
    /// that are level, and where there are none (reference 2.3: `Constant` nodes are not counted). A weight that is only
    /// stored in half precision counts as single, which is what the graph computes in.
    pub fn precision(&self) -> PrecisionClass {
        use PrecisionClass::{Bf16, Fp16, Fp32, Fp64};
        let count = |t| self.initializer_types().filter(|&found| found == t).count();
        let stored = fp16::stored_count(self.graph());
        let halves = count(ElementType::Float16).saturating_sub(stored);
        let others =
            [(halves, Fp16), (count(ElementType::Bfloat16), Bf16), (count(ElementType::Float64), Fp64)];
        let single = (count(ElementType::Float32).saturating_add(stored), Fp32);
        others.into_iter().fold(single, |most, next| if next.0 > most.0 { next } else { most }).1
    }

    /// True where an initializer of the main graph holds 8-bit integers.
    pub fn is_quantized(&self) -> bool {
        self.initializer_types().any(|t| matches!(t, ElementType::Int8 | ElementType::Uint8))
    }

    fn initializer_types(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.graph().initializer.iter().map(|t| ElementType::from_onnx(t.data_type.unwrap_or_default()))
    }

    pub(crate) fn proto(&self) -> &ModelProto {
        &self.proto
    }

    pub(crate) fn from_proto(proto: ModelProto) -> Self {
        Self { proto }
    }

    /// The same model around another main graph, without training information, which speaks of the old one.
    pub(crate) fn with_graph(&self, graph: GraphProto) -> Self {
        let old = &self.proto;
        Self::from_proto(ModelProto {
            ir_version: old.ir_version,
            opset_import: old.opset_import.clone(),
            producer_name: old.producer_name.clone(),
            producer_version: old.producer_version.clone(),
            domain: old.domain.clone(),
            model_version: old.model_version,
            doc_string: old.doc_string.clone(),
            graph: MessageField::some(graph),
            metadata_props: old.metadata_props.clone(),
            training_info: Vec::new(),
            functions: old.functions.clone(),
            __buffa_unknown_fields: old.__buffa_unknown_fields.clone(),
        })
    }

    /// The same model without what the file records of inner values and outputs, which may be of another graph.
    pub(crate) fn unrecorded(&self) -> Self {
        let mut graph = self.graph().clone();
        graph.value_info.clear();
        for output in &mut graph.output {
            output.r#type = MessageField::none();
        }
        self.with_graph(graph)
    }

    pub(crate) fn into_proto(self) -> ModelProto {
        self.proto
    }

    pub(crate) fn graph(&self) -> &GraphProto {
        // `decode` refuses a model without a graph; an unset field reads as an empty graph.
        &self.proto.graph
    }
}

/// Names of the dense and sparse initializers of one graph.
pub(crate) fn initializer_names(graph: &GraphProto) -> impl Iterator<Item = &str> {
    graph.initializer.iter().map(tensor_name).chain(graph.sparse_initializer.iter().map(sparse_name))
}

pub(crate) fn port_name(port: &ValueInfoProto) -> &str {
    port.name.as_deref().unwrap_or_default()
}

pub(crate) fn tensor_name(tensor: &TensorProto) -> &str {
    tensor.name.as_deref().unwrap_or_default()
}

/// A sparse initializer is named by its values.
pub(crate) fn sparse_name(sparse: &SparseTensorProto) -> &str {
    tensor_name(&sparse.values)
}

/// Files that users hand over in place of a model, told by their first bytes (case X6).
fn looks_like_another_format(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.trim_ascii_start();
    if bytes.is_empty() {
        Some("the file is empty")
    } else if bytes.starts_with(b"version https://git-lfs") {
        Some("it is a git-LFS pointer, the model itself was not fetched")
    } else if text.starts_with(b"<!") || text.starts_with(b"<?") || starts_with_tag(text) {
        Some("it is a page of HTML or XML, probably an error page saved in place of the model")
    } else if bytes.starts_with(b"PK\x03\x04") {
        Some("it is a zip archive")
    } else {
        None
    }
}

fn starts_with_tag(text: &[u8]) -> bool {
    text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"<html"))
}
