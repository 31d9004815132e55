use std::path::PathBuf;

use onnx_graph::Port;

use crate::engine::EngineKind;

/// What can go wrong between a model on disk and a mask.
///
/// A message names what, where and what to do; the cause below it, if any, is in
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// There is nothing at the model's path.
    #[error("there is no model at {}", path.display())]
    NoModel {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The archive or its extraction is not what it should be.
    #[error("the release archive cannot be used")]
    Release(#[from] release_assets::Error),
    /// The graphs do not make a model.
    #[error("the graphs make no promptable model")]
    Composite(#[from] composite::Error),
    /// A graph could not be encoded for the engine.
    #[error("a graph cannot be prepared for the engine")]
    Graph(#[from] onnx_graph::Error),
    /// The decoder gives probabilities, it seems: everything would be inside of the mask.
    #[error(
        "all values of `{port}` lie between {least} and {most}: these are probabilities, and logits are needed"
    )]
    Probabilities {
        /// The masks' port.
        port: String,
        /// The smallest value.
        least: f32,
        /// The largest value.
        most: f32,
    },
    /// The engine asked for is not there.
    #[error("the engine {engine} is not available: {reason}")]
    EngineUnavailable {
        /// The engine.
        engine: EngineKind,
        /// Why, and what to do.
        reason: String,
        /// The libraries that were found, or looked for, and what is wrong with each.
        tried: Vec<(PathBuf, LibraryProblem)>,
    },
    /// A file that should be the ONNX Runtime library is missing, is no library, or is one that cannot be used.
    #[error("{} cannot be used as ONNX Runtime library: {problem}", path.display())]
    Library {
        /// The file, or the bare name that the system was asked for.
        path: PathBuf,
        /// What is wrong.
        problem: LibraryProblem,
    },
    /// Another ONNX Runtime library is in use; a process can hold only one.
    #[error("ONNX Runtime was already loaded from {}, {} cannot be loaded beside it", loaded.display(), asked.display())]
    LibraryInUse {
        /// The library in use.
        loaded: PathBuf,
        /// The library asked for.
        asked: PathBuf,
    },
    /// The engine did not take a graph.
    #[error("{engine} cannot load the {graph}: {reason}")]
    Load {
        /// The engine.
        engine: EngineKind,
        /// The part of the model.
        graph: String,
        /// The engine's words.
        reason: String,
    },
    /// The engine failed while running a graph.
    #[error("{engine} failed in the {graph}: {reason}")]
    Run {
        /// The engine.
        engine: EngineKind,
        /// The part of the model.
        graph: String,
        /// The engine's words.
        reason: String,
    },
    /// A graph is fed, or gives, something else than its port says.
    #[error("port `{}` of the {graph} takes or gives {port}, found {found}", port.name)]
    PortMismatch {
        /// The part of the model.
        graph: String,
        /// The port.
        port: Port,
        /// Element type and shape found.
        found: String,
    },
    /// A port that the model needs is missing from what was fed or given.
    #[error("port `{port}` of the {graph} is missing")]
    PortMissing {
        /// The part of the model.
        graph: String,
        /// The port.
        port: String,
    },
    /// A value came out as NaN or infinite.
    #[error("the {graph} gave a value that is not finite on port `{port}`")]
    NonFiniteOutput {
        /// The part of the model.
        graph: String,
        /// The port.
        port: String,
    },
    /// The model wants its points in a form that this version does not know.
    #[error("the points are wanted as {space:?}, which is not supported")]
    CoordinateSpace {
        /// The form.
        space: composite::CoordinateSpace,
    },
    /// The masks do not have the form of a single mask with its score.
    #[error(
        "the mask decoder gave masks of shape {masks:?} with scores of shape {scores:?}, a single mask is needed"
    )]
    MaskShape {
        /// Shape of the masks.
        masks: Vec<usize>,
        /// Shape of the scores.
        scores: Vec<usize>,
    },
    /// An image could not be read or used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A click lies outside of the image, or is no number.
    #[error(
        "the point ({x}, {y}) is outside of the image, which is {width} x {height} pixels: 0 <= x < {width} and 0 <= y < {height} is needed"
    )]
    PointOutside {
        /// Pixels from the left edge.
        x: f32,
        /// Pixels from the top edge.
        y: f32,
        /// Width of the image.
        width: u32,
        /// Height of the image.
        height: u32,
    },
    /// There is no click at all, or no positive one.
    #[error("a prompt needs at least one positive click")]
    NoPositiveClick,
    /// More clicks than the model can hold.
    #[error("the model holds {slots} points in one prompt, {found} were given")]
    TooManyClicks {
        /// Points the model holds.
        slots: usize,
        /// Points given.
        found: usize,
    },
    /// The model treats negative clicks as positive ones, found by running it.
    #[error(
        "this model cannot honour negative clicks: a point gives the same prompt whether its label is positive or negative"
    )]
    NegativeClicksInert,
    /// The embeddings were made by another model.
    #[error("these embeddings were made by another model, or another opening of this one")]
    ForeignEmbeddings,
    /// An absurd number of threads.
    #[error("{threads} threads are too many, at most {max} can be used")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// Threads allowed.
        max: usize,
    },
}

/// What is wrong with a file that should be the ONNX Runtime library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryProblem {
    /// There is no such file.
    #[error("there is no such file; `cargo run --example fetch_runtime` fetches the library")]
    Missing,
    /// It is in our cache folder and has other bytes than what was put there.
    #[error("its bytes are not those that were fetched; `cargo run --example fetch_runtime` fetches it anew")]
    Damaged,
    /// The system's loader does not take it.
    #[error("the system cannot load it ({0})")]
    NotALibrary(String),
    /// It is a library, but not ONNX Runtime.
    #[error("it is a library, but not ONNX Runtime (it has no OrtGetApiBase)")]
    NotOnnxRuntime,
    /// It is too old.
    #[error("its version is {found}, {required} or newer is needed")]
    Version {
        /// The version it reports.
        found: String,
        /// The oldest version that can be used.
        required: String,
    },
    /// It is ONNX Runtime, but fails to start.
    #[error("it does not start ({0})")]
    Broken(String),
}

/// What can go wrong with an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file could not be opened or read.
    #[error("cannot read the image {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The bytes are not an image of a format that is compiled in.
    #[error("{origin} is not an image that can be read")]
    Decode {
        /// The file, or a word for bytes in memory.
        origin: String,
        /// The decoder's reason.
        source: image::ImageError,
    },
    /// The path leads to something that is no file: a folder, a pipe, a device.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file ends before the picture does.
    #[error("{origin} is truncated: its end is missing")]
    Truncated {
        /// The file, or a word for bytes in memory.
        origin: String,
    },
    /// The image is larger than the limits allow.
    #[error(
        "{origin} is {width} x {height} pixels, more than the limit of {max_side} to a side and {max_pixels} in all"
    )]
    TooLarge {
        /// The file, or a word for bytes in memory.
        origin: String,
        /// Width as the file declares it.
        width: u32,
        /// Height as the file declares it.
        height: u32,
        /// Pixels to a side allowed.
        max_side: u32,
        /// Pixels allowed in all.
        max_pixels: u64,
    },
    /// The file is larger than the limits allow.
    #[error("{origin} has more than {max_bytes} bytes")]
    FileTooLarge {
        /// The file, or a word for bytes in memory.
        origin: String,
        /// Bytes allowed.
        max_bytes: u64,
    },
    /// The model asks for channels in an order that this version does not know.
    #[error("the channel order {channels} is not supported")]
    ChannelOrder {
        /// The order.
        channels: composite::ChannelOrder,
    },
    /// The model takes its image in a type that pictures cannot be given in.
    #[error("an image input of type {element_type} is not supported; float32, float16 and uint8 are")]
    ElementType {
        /// The type.
        element_type: onnx_graph::ElementType,
    },
    /// The model asks for a resize rule that this version does not know.
    #[error("the resize rule {rule:?} is not supported")]
    ResizeRule {
        /// The rule.
        rule: composite::ResizeRule,
    },
    /// The image has no pixels.
    #[error("the image has no pixels ({width} x {height})")]
    Empty {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// An error's message with those of all its causes, in one line.
///
/// Each message of these crates speaks of its own level only, so that this, or a reporter that does the same, tells the
/// whole story.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |e| e.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ").replace('\n', " ")
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
