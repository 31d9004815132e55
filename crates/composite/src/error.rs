use std::{
    fmt,
    path::{Path, PathBuf},
};

use onnx_graph::{Port, PrecisionClass, write_shape};

use crate::Mismatch;

/// What can go wrong between a folder of graphs and a composite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder or file could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A graph could not be read, or its sidecars are not what it says.
    #[error("{} cannot be used", path.display())]
    Graph {
        /// The graph.
        path: PathBuf,
        /// What is wrong with it.
        source: onnx_graph::Error,
    },
    /// The ports of a graph on disk are not those that it was opened with.
    #[error("{} was changed after it was opened", path.display())]
    GraphChanged {
        /// The graph.
        path: PathBuf,
    },
    /// A graph has more outputs than any encoder or decoder.
    #[error("{} has {found} outputs, more than the limit of {limit}", path.display())]
    TooManyOutputs {
        /// The graph.
        path: PathBuf,
        /// Outputs found.
        found: usize,
        /// Outputs allowed.
        limit: usize,
    },
    /// The folder has more entries than any release.
    #[error("{} holds more than {limit} files: not a model folder", folder.display())]
    TooManyFiles {
        /// The folder that was being listed.
        folder: PathBuf,
        /// Entries allowed.
        limit: usize,
    },
    /// The folder holds more graphs than any repository.
    #[error("{} holds {found} ONNX graphs, more than the limit of {limit}: name the folder of one model", folder.display())]
    TooManyGraphs {
        /// The folder.
        folder: PathBuf,
        /// Graphs found.
        found: usize,
        /// Graphs allowed.
        limit: usize,
    },
    /// No graph of the folder is an image encoder with a mask decoder to it.
    #[error("{}", no_pair(folder, graphs, other_files))]
    NoPair {
        /// The folder.
        folder: PathBuf,
        /// Every graph found, with the first rule that it broke.
        graphs: Vec<Rejection>,
        /// What the folder holds where it holds no graph: the first few names, sorted, folders with a `/` at the end.
        other_files: Vec<String>,
    },
    /// More than one pair is equally good.
    #[error("more than one encoder/decoder pair fits: {}", join(candidates.iter().map(|(e, d)| format!("{} with {}", e.display(), d.display()))))]
    SeveralPairs {
        /// The pairs, as (encoder, decoder), sorted.
        candidates: Vec<(PathBuf, PathBuf)>,
    },
    /// Two outputs of the encoder could feed one input of the decoder, and nothing says which one is meant.
    #[error("{}", ambiguous(encoder, consumed, other, *derived))]
    AmbiguousWiring {
        /// The encoder.
        encoder: PathBuf,
        /// The port that the names would join.
        consumed: String,
        /// The unused output that fits as well.
        other: String,
        /// True where one of the two is the other with a constant added.
        derived: bool,
    },
    /// The application asked for a wire that the chosen pair does not have the ends of.
    #[error("`{input}` cannot be fed from `{output}`: {} has no such input, or {} no such output", decoder.display(), encoder.display())]
    LooseWire {
        /// The decoder's input that was named.
        input: String,
        /// The encoder's output that was named.
        output: String,
        /// The encoder.
        encoder: PathBuf,
        /// The decoder.
        decoder: PathBuf,
    },
    /// A graph could not be hashed.
    #[error("cannot hash {}", path.display())]
    Hash {
        /// The graph.
        path: PathBuf,
        /// Why.
        source: release_assets::Error,
    },
    /// A composite's file is not in its form, or does not hold of the graphs that it names.
    #[error("{} is no composite: {reason}", path.display())]
    CompositeFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder cannot be taken for a build, or does not hold the build that is asked for.
    #[error("{}: {reason}", folder.display())]
    Build {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The caller ended what was being done.
    #[error("cancelled")]
    Cancelled,
    /// A recipe cannot be read, or does not fit what it is to be used for.
    #[error("{}", crate::recipe::recipe_text(path.as_deref(), reason))]
    Recipe {
        /// Its file, where it has one.
        path: Option<PathBuf>,
        /// What is wrong with it.
        reason: String,
    },
    /// A contract rule is not in its form.
    #[error("{rule} is no contract rule: {reason}")]
    ContractRule {
        /// The rule, by its file.
        rule: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The publisher's metadata is missing, malformed, or contradicts the graphs.
    #[error("{}: {rule}", path.display())]
    Metadata {
        /// The metadata file, or the folder where it should be.
        path: PathBuf,
        /// What is wrong.
        rule: MetadataRule,
    },
}

/// The ways in which `metadata.json` or `metadata.yaml` can fail its graphs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataRule {
    /// There is no such file beside the encoder.
    #[error(
        "no metadata.json or metadata.yaml beside the image encoder, so how to prepare pictures is unknown"
    )]
    Missing,
    /// Both forms of the document are there, and they say different things.
    #[error("it says other things than {}", other.display())]
    Differs {
        /// The other file.
        other: PathBuf,
    },
    /// The file is larger than any metadata.
    #[error("the file has more bytes than the limit of {limit}")]
    TooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// The file is not the document it should be.
    #[error("not the publisher's metadata: {0}")]
    Malformed(String),
    /// No entry, or several, list the inputs of a graph.
    #[error("{found} entries of model_files have the inputs of {graph}, one is needed")]
    Entries {
        /// The graph's file name.
        graph: String,
        /// Entries whose inputs are the graph's.
        found: usize,
    },
    /// A port is described in another way than the graph has it.
    #[error("port `{port}` is {described} here and {actual} in the graph")]
    PortDiffers {
        /// The port.
        port: String,
        /// As the metadata has it.
        described: String,
        /// As the graph has it.
        actual: String,
    },
    /// No input of the encoder, or several, have the role of the image.
    #[error("{found} inputs have the io_type \"image\", one is needed")]
    Images {
        /// Inputs with that role.
        found: usize,
    },
    /// The image is another input than the graph says.
    #[error("`{described}` has the io_type \"image\", but in the graph the image input is `{actual}`")]
    OtherImage {
        /// The input with that role here.
        described: String,
        /// The graph's image input.
        actual: String,
    },
    /// A port asks for, or gives, something that this version cannot prepare or read.
    #[error("the port `{port}` has {what}, which is not supported; supported is {supported}")]
    Unsupported {
        /// The port.
        port: String,
        /// What it asks for or gives.
        what: String,
        /// What can be given or read.
        supported: &'static str,
    },
}

/// A graph that took no part in a pair, and why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rejection {
    /// The graph.
    pub path: PathBuf,
    /// Its inputs; empty where the graph could not be read.
    pub inputs: Vec<Port>,
    /// Its outputs; empty where the graph could not be read.
    pub outputs: Vec<Port>,
    /// The first rule that it broke.
    pub rule: Rule,
}

/// The rules of pairing. A graph's entry names the first that it broke; they are checked from the cheap and telling to the
/// particular, not in the order of this list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// The file could not be read as a graph.
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// Two ports on one side have the same name.
    #[error("two ports are called `{0}`")]
    DuplicatePort(String),
    /// The precision is not among those asked for.
    #[error("its precision, {0}, is not among those asked for")]
    NotAskedFor(PrecisionClass),
    /// It has neither one image input nor a port in common with an encoder.
    #[error(
        "neither an image encoder (one input of rank 4) nor fed by one (no port in common with an encoder)"
    )]
    NoRole,
    /// Encoder and decoder lie in two folders, one of which holds further graphs.
    #[error("it is in another folder than {0}, and they are not the only graphs there")]
    Folder(String),
    /// Encoder and decoder are kept in different precisions.
    #[error("its precision is not that of {0}")]
    Precision(String),
    /// One is quantised and the other is not.
    #[error("only one of it and {0} is quantised")]
    Quantization(String),
    /// A port of one name differs between encoder and decoder.
    #[error("a port differs from {encoder}: {mismatch}")]
    Port {
        /// The encoder's file name.
        encoder: String,
        /// What differs.
        mismatch: Mismatch,
    },
    /// No output can be told to be the masks.
    #[error("no single output of rank 4 or more, or named `masks` or `pred_masks`, is the masks")]
    NoMasks,
    /// The masks are probabilities: all of them are above 0, so the mask would be the whole image.
    #[error("its masks `{port}` end in {op}; logits are needed, which are negative outside of the object")]
    Probabilities {
        /// The masks' port.
        port: String,
        /// The operator that makes probabilities of them.
        op: String,
    },
    /// No output can be told to be the scores.
    #[error(
        "no single output of rank 1 to 3, or named `scores`, `iou_scores` or `iou_predictions`, is the scores"
    )]
    NoScores,
    /// Neither graph of the pair takes points.
    #[error("neither it nor {0} has a point prompt (coordinates [..,N,2] with labels [..,N])")]
    NoPrompt(String),
    /// Both graphs of the pair take points.
    #[error("both it and {0} have a point prompt")]
    TwoPrompts(String),
    /// The decoder takes the points, which this version cannot feed.
    #[error("it takes the points itself; composites of this kind are not supported yet")]
    PromptInDecoder,
    /// A decoder input that no encoder gives.
    #[error("nothing feeds its input `{0}`")]
    Unfed(String),
    /// The encoder has an input that is neither the image nor the points.
    #[error("{encoder} has the further input `{input}`, which nothing feeds")]
    EncoderInput {
        /// The encoder's file name.
        encoder: String,
        /// The input.
        input: String,
    },
    /// An input of the encoder has no way to it.
    #[error("the input `{input}` of {encoder} never reaches it")]
    Unreached {
        /// The encoder's file name.
        encoder: String,
        /// The encoder's image, coordinates or labels.
        input: String,
    },
    /// Points of this element type cannot be fed.
    #[error(
        "{encoder} takes points as {port}; coordinates must be float32 or float16, labels float32, float16, int32 or int64"
    )]
    PromptType {
        /// The encoder's file name.
        encoder: String,
        /// The port.
        port: Port,
    },
    /// The points' dims are not all fixed, or hold more than one object.
    #[error(
        "the points of {0} have no fixed number of slots for one object; such graphs are not supported yet"
    )]
    OpenSlots(String),
    /// A valid encoder without a decoder.
    #[error("an image encoder, but no decoder fits it")]
    Alone,
}

fn ambiguous(encoder: &Path, consumed: &str, other: &str, derived: bool) -> String {
    let how = if derived { ", one is the other with a constant added" } else { "" };
    format!(
        "the decoder input `{consumed}` could be fed from the output of that name of {}, or from its unused output \
         `{other}`, whose type and shape fit as well{how}: equal names do not settle it, and no contract rule does; \
         name the output (Wiring::wire)",
        encoder.display()
    )
}

fn no_pair(folder: &Path, graphs: &[Rejection], other_files: &[String]) -> String {
    if !graphs.is_empty() {
        let list: Vec<String> = graphs.iter().map(|g| g.describe(folder)).collect();
        return format!("{} holds no encoder/decoder pair: {}", folder.display(), list.join("; "));
    }
    let folder = folder.display();
    match other_files {
        [] => format!("{folder} holds no ONNX graph, it is empty"),
        files => format!("{folder} holds no ONNX graph, only {}", files.join(", ")),
    }
}

impl Rejection {
    /// The graph by its path below `folder`, its ports and the rule.
    fn describe(&self, folder: &Path) -> String {
        let path = self.path.strip_prefix(folder).unwrap_or(&self.path).display();
        match (self.inputs.as_slice(), self.outputs.as_slice()) {
            ([], []) => format!("{path}: {}", self.rule),
            (inputs, outputs) => format!("{path} ({} -> {}): {}", join(inputs), join(outputs), self.rule),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(Path::new("")))
    }
}

pub(crate) fn join<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
}

/// A port's element type and shape.
pub(crate) fn type_of(port: &Port) -> String {
    let mut text = port.element_type.to_string();
    // Writing to a string does not fail.
    let _ = write_shape(&mut text, &port.shape);
    text
}

/// Text of a file's, with what would break the line or steer a terminal as escapes.
pub(crate) fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(plain).collect()
}

/// What lies below an error, outermost first; the error itself where nothing does.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error.source().unwrap_or(error)), |e| e.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
