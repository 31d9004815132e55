use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use onnx_graph::{Model, Port};
use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{SessionInputValue, builder::GraphOptimizationLevel},
    value::{DynValue, TensorElementType, TensorRef},
};

use super::{
    Engine, EngineInfo, EngineKind, EngineOptions, Session,
    onnxruntime::{Candidate, Origin, candidates, is_pinned, library_name},
};
use crate::{Error, Result, Tensor, error::LibraryProblem};

/// The one ONNX Runtime of this process. It stays to the end: a second environment, or a second library, cannot be had.
static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

struct Loaded {
    path: PathBuf,
    /// The reason where the library was loaded and then failed to start: no other one can take its place.
    started: Result<(Environment, String), String>,
}

/// ONNX Runtime through a shared library found at run time.
#[derive(Debug)]
pub(super) struct OrtEngine {
    info: EngineInfo,
    environment: Environment,
}

impl OrtEngine {
    pub(super) fn open(options: &EngineOptions) -> Result<Self> {
        let (environment, path, version) = load(options.library.as_deref())?;
        let info = EngineInfo::new(EngineKind::OnnxRuntime, version, options.thread_count());
        Ok(Self { info: EngineInfo { library: Some(path), ..info }, environment })
    }
}

/// Finds and loads the library, or hands out the one that is loaded already.
fn load(asked: Option<&Path>) -> Result<(Environment, PathBuf, String)> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let candidates = candidates(asked);
    let mut tried = Vec::new();
    for candidate in &candidates {
        let named = candidate.origin == Origin::Named;
        if loaded.is_none() {
            match find_and_start(candidate) {
                Ok(found) => *loaded = Some(found),
                Err(problem) if named => {
                    return Err(Error::Library { path: candidate.path.clone(), problem });
                }
                Err(problem) => tried.push((candidate.path.clone(), problem)),
            }
        }
        let Some(found) = loaded.as_ref() else { continue };
        if named && !same_file(&candidate.path, &found.path) {
            return Err(Error::LibraryInUse { loaded: found.path.clone(), asked: candidate.path.clone() });
        }
        match &found.started {
            Ok((environment, version)) => {
                return Ok((environment.clone(), found.path.clone(), version.clone()));
            }
            Err(reason) if named => {
                let problem = LibraryProblem::Broken(reason.clone());
                return Err(Error::Library { path: found.path.clone(), problem });
            }
            Err(reason) => {
                tried.push((found.path.clone(), LibraryProblem::Broken(reason.clone())));
                break;
            }
        }
    }
    // Where there is nothing at all, the places need no names.
    let wrong = tried.iter().filter(|(_, problem)| !matches!(problem, LibraryProblem::Missing));
    let wrong: Vec<String> = wrong.map(|(path, problem)| format!("{}: {problem}", path.display())).collect();
    let reason = if wrong.is_empty() {
        format!("its library was not found; {HOW_TO_GET}")
    } else {
        format!("no usable library was found ({}); {HOW_TO_GET}", wrong.join("; "))
    };
    Err(Error::EngineUnavailable { engine: EngineKind::OnnxRuntime, reason, tried })
}

const HOW_TO_GET: &str = "`cargo run --example fetch_runtime` fetches it, or set ORT_DYLIB_PATH";

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// Loads a library. `Ok` once it is in the process, whether it then started or not.
fn find_and_start(candidate: &Candidate) -> Result<Loaded, LibraryProblem> {
    let path = match candidate.origin {
        Origin::System => candidate.path.clone(),
        // The binding would look for a relative path beside the executable first: it gets the file that is meant.
        _ => candidate.path.canonicalize().map_err(|_| LibraryProblem::Missing)?,
    };
    if candidate.origin != Origin::System && !path.is_file() {
        return Err(LibraryProblem::Missing);
    }
    // What we put there ourselves is checked before its code runs: a damaged library ends the process.
    if candidate.origin == Origin::Cache && !is_pinned(&path) {
        return Err(LibraryProblem::Damaged);
    }
    // A library that answers with null makes the binding panic: that is this library's fault, not the program's.
    let builder = catch_unwind(|| ort::init_from(&path))
        .map_err(|_| LibraryProblem::Broken("it gives no interface".to_owned()))?
        .map_err(|error| problem(&error, candidate.origin))?;
    let version = catch_unwind(|| version(&path)).unwrap_or_default();
    let start = AssertUnwindSafe(|| builder.with_name("sam-runtime").with_telemetry(false).build());
    let started = match catch_unwind(start) {
        Ok(built) => built.map(|environment| (environment, version)).map_err(|e| e.to_string()),
        Err(_) => Err("it gives no interface of the version it reports".to_owned()),
    };
    Ok(Loaded { path: candidate.path.clone(), started })
}

fn problem(error: &ort::LoadDynamicError, origin: Origin) -> LibraryProblem {
    use ort::LoadDynamicError as E;
    match error {
        E::Dlopen { error, .. } => {
            // The system's own words are one level down.
            let reason =
                std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
            // A bare name that no folder of the system's has; each system says so in its own way.
            let nowhere =
                ["No such file", "no such file", "could not be found", "not found", "image not found"];
            let itself = cfg!(windows) || reason.contains(&library_name());
            if origin == Origin::System && itself && nowhere.iter().any(|words| reason.contains(words)) {
                return LibraryProblem::Missing;
            }
            LibraryProblem::NotALibrary(reason)
        }
        E::MissingApi { .. } => LibraryProblem::NotOnnxRuntime,
        E::BadVersion { version_str, .. } => LibraryProblem::Version {
            found: version_str.clone(),
            required: format!("1.{}", ort::MINOR_VERSION),
        },
        E::InvalidVersionString => LibraryProblem::Version {
            found: "unreadable".to_owned(),
            required: format!("1.{}", ort::MINOR_VERSION),
        },
    }
}

/// Version as the library tells it: the minor version, and the commit it was built from.
fn version(path: &Path) -> String {
    let minor =
        ort::util::probe(path).map_or_else(|| "of unknown version".to_owned(), |minor| format!("1.{minor}"));
    let commit = ort::info().split(", ").find_map(|part| part.strip_prefix("git-commit-id="));
    commit.map_or(minor.clone(), |commit| format!("{minor} (commit {commit})"))
}

impl Engine for OrtEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn load(&self, model: &Model, folder: &Path, name: &str) -> Result<Box<dyn Session>> {
        let fail =
            |reason: String| Error::Load { engine: EngineKind::OnnxRuntime, graph: name.to_owned(), reason };
        super::check_locations(model, folder, fail)?;
        let bytes = model.to_bytes()?;
        // The folder of a name alone is the current one.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = folder.canonicalize().map_err(|source| Error::Io { path: folder.to_owned(), source })?;
        let folder = folder.to_str().ok_or_else(|| fail(format!("{} is not UTF-8", folder.display())))?;
        let session = (|| {
            ort::session::Session::builder(&self.environment)?
                .with_optimization_level(GraphOptimizationLevel::All)?
                // What fails is returned; it need not be on the terminal too.
                .with_log_level(LogLevel::Fatal)?
                .with_intra_threads(self.info.threads.get())?
                .with_inter_threads(1)?
                // A composite holds several sessions: spinning ones burn each other's cores.
                .with_intra_op_spinning(false)?
                .with_inter_op_spinning(false)?
                // Its peak is a third lower without, at the same speed.
                .with_memory_pattern(false)?
                // A graph from memory still finds its sidecars, in the folder it was published in.
                .with_config_entry("session.model_external_initializers_file_folder_path", folder)?
                .commit_from_memory(&bytes)
        })()
        .map_err(|e| fail(e.to_string()))?;
        drop(bytes);
        super::heap::give_back();
        Ok(Box::new(OrtSession {
            session: Mutex::new(session),
            name: name.to_owned(),
            inputs: model.inputs(),
            outputs: model.outputs(),
        }))
    }
}

#[derive(Debug)]
struct OrtSession {
    /// The binding asks for exclusive use while running; calls from several threads queue here.
    session: Mutex<ort::session::Session>,
    name: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl Session for OrtSession {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        let fail =
            |reason: String| Error::Run { engine: EngineKind::OnnxRuntime, graph: self.name.clone(), reason };
        let mut fed: Vec<(&str, SessionInputValue<'_>)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let value: Result<SessionInputValue<'_>, ort::Error> = match tensor {
                Tensor::F32(a) => TensorRef::from_array_view(a).map(Into::into),
                Tensor::F16(a) => TensorRef::from_array_view(a).map(Into::into),
                Tensor::I32(a) => TensorRef::from_array_view(a).map(Into::into),
                Tensor::I64(a) => TensorRef::from_array_view(a).map(Into::into),
                Tensor::U8(a) => TensorRef::from_array_view(a).map(Into::into),
            };
            fed.push((*name, value.map_err(|e| fail(e.to_string()))?));
        }
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let values = session.run(fed).map_err(|e| fail(e.to_string()))?;
        let mut named = Vec::with_capacity(self.outputs.len());
        for port in &self.outputs {
            let value = values.get(&port.name).ok_or_else(|| fail(format!("no output `{}`", port.name)))?;
            named.push((port.name.clone(), from_ort(port, value).map_err(&fail)?));
        }
        Ok(named)
    }
}

fn from_ort(port: &Port, value: &DynValue) -> Result<Tensor, String> {
    let element_type = match value.dtype() {
        ort::value::ValueType::Tensor { ty, .. } => *ty,
        other => return Err(format!("output `{}` is no tensor but {other}", port.name)),
    };
    let text = |e: ort::Error| e.to_string();
    Ok(match element_type {
        TensorElementType::Float32 => {
            Tensor::F32(value.try_extract_array::<f32>().map_err(text)?.into_owned())
        }
        TensorElementType::Float16 => {
            Tensor::F16(value.try_extract_array::<half::f16>().map_err(text)?.into_owned())
        }
        TensorElementType::Int32 => Tensor::I32(value.try_extract_array::<i32>().map_err(text)?.into_owned()),
        TensorElementType::Int64 => Tensor::I64(value.try_extract_array::<i64>().map_err(text)?.into_owned()),
        TensorElementType::Uint8 => Tensor::U8(value.try_extract_array::<u8>().map_err(text)?.into_owned()),
        other => return Err(format!("output `{}` has the unsupported type {other}", port.name)),
    })
}
