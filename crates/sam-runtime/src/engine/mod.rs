//! What runs the graphs: one small trait, two engines behind it, room for others.
//!
//! [`open`] picks one by an [`EngineChoice`] and says in [`EngineInfo`] which it is and why. An engine that is
//! asked for by name and absent is an error, never a substitution.

use std::{fmt, num::NonZeroUsize, path::Path, path::PathBuf, str::FromStr};

use onnx_graph::{Model, Port};

use crate::{Error, Result, Tensor};

pub mod onnxruntime;

#[cfg(feature = "ort")]
mod heap;
#[cfg(feature = "ort")]
mod ort;
#[cfg(feature = "rten")]
mod rten;
#[cfg(feature = "rten")]
mod rten_rules;

/// A loaded graph: named tensors in, named tensors out.
///
/// Implementations may be called from several threads; whether calls run side by side or one after the other is theirs to
/// decide.
pub trait Session: fmt::Debug + Send + Sync {
    /// What has to be fed.
    fn inputs(&self) -> &[Port];
    /// What comes back.
    fn outputs(&self) -> &[Port];
    /// Runs the graph once. Inputs are matched by name only, and have been checked against [`inputs`](Self::inputs);
    /// every output is returned with its name.
    fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>>;
}

/// Something that loads graphs. It stays on the thread that opened it; the sessions it gives may go to any.
pub trait Engine: fmt::Debug {
    /// Which engine this is.
    fn info(&self) -> &EngineInfo;
    /// Loads a graph. `folder` is where its external tensors are found; `name` is what errors call the graph.
    fn load(&self, model: &Model, folder: &Path, name: &str) -> Result<Box<dyn Session>>;
}

/// The engines this crate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineKind {
    /// ONNX Runtime, from a shared library found at run time: the fast one.
    OnnxRuntime,
    /// rten, pure Rust and always there.
    Rten,
    /// An engine of the application's own, by its name.
    Custom(&'static str),
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnnxRuntime => "ONNX Runtime",
            Self::Rten => "rten",
            Self::Custom(name) => name,
        })
    }
}

/// Which engine to take. Parsed from `auto`, `ort` and `rten`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EngineChoice {
    /// ONNX Runtime where its library is found and can be used, else rten.
    #[default]
    Auto,
    /// ONNX Runtime or an error.
    Ort,
    /// rten or an error.
    Rten,
}

impl FromStr for EngineChoice {
    type Err = UnknownEngine;

    fn from_str(text: &str) -> Result<Self, UnknownEngine> {
        match text {
            "auto" => Ok(Self::Auto),
            "ort" => Ok(Self::Ort),
            "rten" => Ok(Self::Rten),
            _ => Err(UnknownEngine(text.to_owned())),
        }
    }
}

/// A word that names no engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine `{0}`: known are auto, ort and rten")]
pub struct UnknownEngine(String);

/// More threads than any machine's cores are a mistake, and thread pools answer it by failing late or not at all.
const MAX_THREADS: usize = 1024;

/// How an engine is opened; starts from `EngineOptions::default()`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Which engine.
    pub choice: EngineChoice,
    /// ONNX Runtime's library; found by [`onnxruntime::candidates`] where it is not given.
    pub library: Option<PathBuf>,
    /// Threads for one run of a graph. Left out: as many as this process may use (its affinity and control group are
    /// respected), which is not always as many as the machine has.
    pub threads: Option<NonZeroUsize>,
}

impl EngineOptions {
    pub(crate) fn thread_count(&self) -> NonZeroUsize {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}

/// Which engine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineInfo {
    /// The engine.
    pub kind: EngineKind,
    /// Its version, as exactly as it tells.
    pub version: String,
    /// The shared library it was loaded from, where it is one.
    pub library: Option<PathBuf>,
    /// Threads for one run of a graph.
    pub threads: NonZeroUsize,
    /// Why ONNX Runtime was not taken, where [`EngineChoice::Auto`] came down to rten.
    pub note: Option<String>,
}

impl EngineInfo {
    /// An engine that is no shared library.
    pub fn new(kind: EngineKind, version: impl Into<String>, threads: NonZeroUsize) -> Self {
        Self { kind, version: version.into(), library: None, threads, note: None }
    }
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.version)
    }
}

/// Opens an engine.
///
/// [`EngineChoice::Auto`] takes ONNX Runtime where one of its [candidates](onnxruntime::candidates) can be used, else
/// rten with a [note](EngineInfo::note) that says why. A library that was named, by
/// [`EngineOptions::library`] or by `ORT_DYLIB_PATH`, must be usable: it is never passed over. With rten asked for by
/// name, the variable has no say, and a library given as an option is an error.
pub fn open(options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let threads = options.thread_count().get();
    if threads > MAX_THREADS {
        return Err(Error::Threads { threads, max: MAX_THREADS });
    }
    match options.choice {
        // A library that was named has to be used, also in builds that cannot.
        EngineChoice::Auto if onnxruntime::named(options.library.as_deref()).is_some() => open_ort(options),
        EngineChoice::Ort => open_ort(options),
        EngineChoice::Rten if options.library.is_some() => {
            Err(unavailable(EngineKind::OnnxRuntime, "its library was named, but rten asked for".to_owned()))
        }
        EngineChoice::Rten => open_rten(options, None),
        EngineChoice::Auto => match open_ort(options) {
            Ok(engine) => Ok(engine),
            Err(Error::EngineUnavailable { reason, .. }) => open_rten(options, Some(reason)),
            Err(error) => Err(error),
        },
    }
}

#[cfg(feature = "ort")]
fn open_ort(options: &EngineOptions) -> Result<Box<dyn Engine>> {
    Ok(Box::new(ort::OrtEngine::open(options)?))
}

#[cfg(not(feature = "ort"))]
fn open_ort(_: &EngineOptions) -> Result<Box<dyn Engine>> {
    Err(not_compiled(EngineKind::OnnxRuntime, "ort"))
}

#[cfg(feature = "rten")]
#[allow(clippy::unnecessary_wraps)] // it fails in builds without rten
fn open_rten(options: &EngineOptions, note: Option<String>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(rten::RtenEngine::open(options, note)))
}

#[cfg(not(feature = "rten"))]
fn open_rten(_: &EngineOptions, note: Option<String>) -> Result<Box<dyn Engine>> {
    match note {
        // `Auto` without rten: what kept ONNX Runtime away is the answer.
        Some(reason) => Err(unavailable(EngineKind::OnnxRuntime, reason)),
        None => Err(not_compiled(EngineKind::Rten, "rten")),
    }
}

#[cfg(not(all(feature = "ort", feature = "rten")))]
fn not_compiled(engine: EngineKind, feature: &str) -> Error {
    unavailable(engine, format!("sam-runtime was built without its feature `{feature}`"))
}

fn unavailable(engine: EngineKind, reason: String) -> Error {
    Error::EngineUnavailable { engine, reason, tried: Vec::new() }
}

/// Refuses sidecars that an engine would look for elsewhere than where they were checked: a backslash parts folders here, on
/// every system, and is a letter of the name to engines on most.
#[cfg(any(feature = "ort", feature = "rten"))]
fn check_locations(model: &Model, folder: &Path, fail: impl Fn(String) -> Error) -> Result<()> {
    let tensors = onnx_graph::external_data::list(model, folder)?;
    match tensors.iter().find(|tensor| tensor.written.contains('\\')) {
        Some(tensor) => Err(fail(format!(
            "the location `{}` of `{}` has a backslash, which engines read in other ways; save the model with `/`",
            tensor.written, tensor.tensor
        ))),
        None => Ok(()),
    }
}

/// Runs a session with its inputs and outputs held against the ports.
pub(crate) fn run_checked(
    session: &dyn Session,
    name: &str,
    inputs: &[(&str, &Tensor)],
) -> Result<Vec<(String, Tensor)>> {
    let fail = |port: &Port, found: &Tensor| Error::PortMismatch {
        graph: name.to_owned(),
        port: port.clone(),
        found: found.to_string(),
    };
    let missing = |port: &Port| Error::PortMissing { graph: name.to_owned(), port: port.name.clone() };
    for port in session.inputs() {
        let (_, tensor) = inputs.iter().find(|(n, _)| *n == port.name).ok_or_else(|| missing(port))?;
        if !tensor.fits(port) {
            return Err(fail(port, tensor));
        }
    }
    let outputs = session.run(inputs)?;
    for port in session.outputs() {
        let (_, tensor) = outputs.iter().find(|(n, _)| *n == port.name).ok_or_else(|| missing(port))?;
        if !tensor.fits(port) {
            return Err(fail(port, tensor));
        }
        if !tensor.is_finite() {
            return Err(Error::NonFiniteOutput { graph: name.to_owned(), port: port.name.clone() });
        }
    }
    Ok(outputs)
}
