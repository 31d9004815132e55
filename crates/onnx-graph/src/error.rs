use std::path::PathBuf;

/// What can go wrong while a model is read, checked, walked, cut or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Something else than a regular file stands where the model should be.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file holds more bytes than [`ReadLimits::max_bytes`](crate::ReadLimits::max_bytes).
    #[error("{} has {found} bytes, more than the limit of {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes in the file.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The bytes are not an ONNX model.
    #[error("{origin} is not an ONNX model: {reason}")]
    NotOnnx {
        /// Path of the file, or a word for bytes in memory.
        origin: String,
        /// What was found instead, or the decoder's words.
        reason: String,
    },
    /// The model has no graph.
    #[error("{origin} holds an ONNX model without a graph")]
    NoGraph {
        /// Path of the file, or a word for bytes in memory.
        origin: String,
    },
    /// A value that was asked for is not produced or fed anywhere in the graph.
    #[error("the graph has no value `{name}`")]
    UnknownValue {
        /// The name asked for.
        name: String,
    },
    /// Two nodes of one graph, or a node and an input or initializer, define the same value.
    #[error("the value `{name}` is defined twice")]
    DefinedTwice {
        /// The value's name.
        name: String,
    },
    /// A node needs its own result, so that no order of evaluation exists.
    #[error("the value `{name}` depends on itself")]
    Cycle {
        /// A value on the cycle.
        name: String,
    },
    /// A cut leaves out an input that the wanted outputs need.
    #[error("the cut at {outputs:?} also needs the graph input `{input}`")]
    CutNeedsInput {
        /// The outputs wanted of the cut.
        outputs: Vec<String>,
        /// The graph input that was not among the cut's inputs.
        input: String,
    },
    /// Sub-graphs are nested more deeply than [`ReadLimits::max_nesting`](crate::ReadLimits::max_nesting).
    #[error("sub-graphs are nested more than {limit} deep")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// A tensor kept outside the model breaks one of the rules for its location or its size.
    #[error("{}: external data of tensor `{tensor}` at `{location}`: {rule}", graph.display())]
    ExternalData {
        /// The model's path.
        graph: PathBuf,
        /// The tensor's name (empty for a nameless attribute tensor).
        tensor: String,
        /// The location as written in the model.
        location: String,
        /// The rule that is broken.
        rule: ExternalDataRule,
    },
    /// A tensor is not what its dims and its type say, or not what is needed of it.
    #[error("tensor `{tensor}`: {reason}")]
    Tensor {
        /// The tensor's name (empty for a nameless attribute tensor).
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// A tensor's values lie in a sidecar, and nobody said in which folder the model is.
    #[error("the values of tensor `{tensor}` lie outside of the model, whose folder is not known")]
    NoFolder {
        /// The tensor's name.
        tensor: String,
    },
    /// A value that a part of a model would give to another has no known element type, or is no dense tensor.
    #[error("`{value}` cannot be carried from one part to the other: it is no tensor, or of unknown type")]
    UntypedPort {
        /// The value.
        value: String,
    },
    /// There is no pass of this name.
    #[error("there is no pass `{name}`; there are: {}", crate::Pass::ALL.iter().map(|pass| pass.name()).collect::<Vec<_>>().join(", "))]
    UnknownPass {
        /// The name asked for.
        name: String,
    },
    /// A file could not be written. What was there before is still there.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// With its weights inside, the model would be larger than a protobuf may be.
    #[error(
        "{} would hold {needed} bytes of weights, and a protobuf ends at {limit}: save it with a sidecar",
        path.display()
    )]
    TooLargeInline {
        /// The file that was to be written.
        path: PathBuf,
        /// Bytes of the tensors that would come in from sidecars.
        needed: u64,
        /// Bytes that a protobuf may have.
        limit: u64,
    },
    /// A model that keeps its sidecars was to be saved into another folder than theirs, where it would not find them.
    #[error(
        "tensor `{tensor}` lies in a sidecar in {}, out of reach of a model in {}: save it with a sidecar of its \
         own, or inline",
        from.display(),
        to.display()
    )]
    SidecarOutOfReach {
        /// The tensor's name (empty for a nameless attribute tensor).
        tensor: String,
        /// Folder of the sidecars.
        from: PathBuf,
        /// Folder of the model.
        to: PathBuf,
    },
    /// A sidecar cannot be written as the options say.
    #[error("no sidecar can be written: {reason}")]
    SidecarOption {
        /// Which option, and what it may be.
        reason: String,
    },
    /// Another file has the sidecar's name. It is not replaced: a model may be using it.
    #[error("{} is there already, with other bytes: choose another name for the sidecar", path.display())]
    SidecarTaken {
        /// The file.
        path: PathBuf,
    },
    /// A rewrite must know the type of a value, and the model neither records it nor lets it be inferred.
    #[error("the type of `{value}` is not known, and the node `{node}` ({op_type}) is rewritten by it")]
    UntypedValue {
        /// The value.
        value: String,
        /// The node that reads or gives it; its own name, often empty.
        node: String,
        /// The node's operator.
        op_type: String,
    },
    /// A value cannot be brought to half precision: it holds tensors that no `Cast` reaches.
    #[error(
        "`{value}` is a sequence, an optional value or a map of float32 tensors, which cannot be brought to half precision"
    )]
    NoHalf {
        /// The value.
        value: String,
    },
    /// The model imports a version of the standard operators that a rewrite cannot be written in, or none.
    #[error("the standard operators of version {needed} or newer are needed, the model imports {found}")]
    Opset {
        /// The oldest version that will do.
        needed: i64,
        /// The version imported; 0 where there is none.
        found: i64,
    },
    /// The model could not be encoded.
    #[error("cannot encode the model: {reason}")]
    Encode {
        /// The encoder's words.
        reason: String,
    },
    /// A rule file is not of the form that [`Rules`](crate::Rules) reads.
    #[error("{origin}, line {line}: {reason}")]
    Rules {
        /// Which rules.
        origin: String,
        /// Line in the text, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// No execution target has this name.
    #[error("`{name}` is no execution target; there are {}", crate::Target::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    UnknownTarget {
        /// The name.
        name: String,
    },
}

/// The ways in which a tensor's external data can be wrong.
///
/// Sources: ONNX's own description of external data (`location`, `offset`, `length`, relative to the model's folder)
/// and the public advisories CVE-2026-27489 and CVE-2026-34445, whose classes these rules close.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalDataRule {
    /// There is no `location`, or it is empty.
    #[error("no location is given")]
    NoLocation,
    /// The location is absolute, climbs with `..`, or names a drive or stream.
    #[error("the location leaves the model's folder")]
    Unsafe,
    /// Nothing is there, or something that is not a regular file.
    #[error("no such file")]
    Missing,
    /// Following links ends outside the root that the caller trusts.
    #[error("the file lies outside of the release")]
    Escapes,
    /// The location is the model file itself.
    #[error("the location is the model itself")]
    IsTheModel,
    /// A key is there twice: readers differ in which one counts.
    #[error("`{key}` is given twice")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// The tensor holds bytes in the model as well: readers differ in which ones count.
    #[error("the model holds bytes of it as well")]
    InlineToo,
    /// `offset` or `length` is not a non-negative integer.
    #[error("`{key}` is `{value}`, not a non-negative integer")]
    BadNumber {
        /// `offset` or `length`.
        key: &'static str,
        /// The text found.
        value: String,
    },
    /// The tensor's range ends after the end of the file.
    #[error("bytes {offset} to {end} are needed, the file has {file}")]
    TooShort {
        /// First byte of the tensor.
        offset: u64,
        /// One past the tensor's last byte.
        end: u64,
        /// Bytes in the file.
        file: u64,
    },
    /// `length` is not what the dims and the element type need.
    #[error("{found} bytes are given where dims and type need {expected}")]
    WrongLength {
        /// Bytes that dims and element type need.
        expected: u64,
        /// Bytes given by `length`.
        found: u64,
    },
    /// A dimension is negative, or the element count overflows.
    #[error("the dims {dims:?} are no tensor size")]
    BadDims {
        /// The dims as written.
        dims: Vec<i64>,
    },
    /// The element type has no fixed size, or is unknown, so that it cannot be kept outside.
    #[error("elements of type {element_type} cannot be kept outside the model")]
    BadType {
        /// The type's name.
        element_type: String,
    },
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
