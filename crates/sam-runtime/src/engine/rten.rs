use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fs::File,
    io::Read as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use ndarray::{ArrayD, IxDyn};
use onnx_graph::{ElementType, Model, Port, Weights};
use rten::{ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView, ValueView};

use super::{Engine, EngineInfo, EngineKind, EngineOptions, Session, rten_rules::objection};
use crate::{Error, Result, Tensor};

/// The version in this crate's lock on rten: the library itself does not tell.
const VERSION: &str = "0.27";

/// rten: every operator of these networks in pure Rust.
#[derive(Debug)]
pub(super) struct RtenEngine {
    info: EngineInfo,
    pool: Arc<ThreadPool>,
    /// Sidecars per folder: the parts of one encoder share the bytes of one sidecar.
    sidecars: RefCell<HashMap<PathBuf, Sidecars>>,
}

struct Sidecars {
    options: ModelOptions,
    /// What was read of each.
    read: HashMap<String, Read>,
}

/// Bytes from a sidecar's start, and the file they are of.
#[derive(Debug)]
struct Read {
    end: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl std::fmt::Debug for Sidecars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(&self.read).finish()
    }
}

impl RtenEngine {
    pub(super) fn open(options: &EngineOptions, note: Option<String>) -> Self {
        let threads = options.thread_count();
        let info = EngineInfo { note, ..EngineInfo::new(EngineKind::Rten, VERSION, threads) };
        let pool = Arc::new(ThreadPool::with_num_threads(threads.get()));
        Self { info, pool, sidecars: RefCell::default() }
    }
}

impl Engine for RtenEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn load(&self, model: &Model, folder: &Path, name: &str) -> Result<Box<dyn Session>> {
        let load = |reason: String| Error::Load { engine: EngineKind::Rten, graph: name.to_owned(), reason };
        super::check_locations(model, folder, load)?;
        // It knows no half precision; weights that are only stored in it are widened here.
        let widened = if model.element_types().contains(&ElementType::Float16) {
            Some(model.widened(&Weights::in_folder(folder))?)
        } else {
            None
        };
        let model = widened.as_ref().unwrap_or(model);
        let options = {
            let mut sidecars = self.sidecars.borrow_mut();
            let known = sidecars
                .entry(folder.to_owned())
                .or_insert_with(|| Sidecars { options: ModelOptions::with_all_ops(), read: HashMap::new() });
            // No more is read than the graph speaks of, however long the file is.
            let mut needed: BTreeMap<String, u64> = BTreeMap::new();
            for entry in onnx_graph::external_data::list(model, folder)? {
                let end = entry.offset.saturating_add(entry.length);
                let needed = needed.entry(entry.location).or_default();
                *needed = end.max(*needed);
            }
            for (location, end) in needed {
                let path = folder.join(&location);
                let io = |source| Error::Io { path: path.clone(), source };
                let file = File::open(&path).map_err(io)?;
                let (length, modified) = file.metadata().map(|m| (m.len(), m.modified().ok())).map_err(io)?;
                // Weights that were written anew since belong to another model.
                let same =
                    |read: &Read| read.end >= end && read.length == length && read.modified == modified;
                if !known.read.get(&location).is_some_and(same) {
                    let mut bytes = Vec::new();
                    file.take(end).read_to_end(&mut bytes).map_err(io)?;
                    known.options.external_data(&location, bytes);
                    known.read.insert(location, Read { end, length, modified });
                }
            }
            known.options.clone()
        };
        if let Some(objection) = objection(model, folder)? {
            let what =
                format!("it would compute {objection} in another way than ONNX says; use ONNX Runtime");
            return Err(load(what));
        }
        let bytes = model.to_bytes()?;
        let loaded = guarded(|| options.load(bytes).map_err(|e| e.to_string())).map_err(load)?;
        let ports = |ports: Vec<Port>| -> Result<Vec<(Port, NodeId)>> {
            let with_id = |port: Port| {
                let id = loaded.node_id(&port.name).map_err(|e| load(e.to_string()))?;
                Ok((port, id))
            };
            ports.into_iter().map(with_id).collect()
        };
        let (inputs, input_ids) = ports(model.inputs())?.into_iter().unzip();
        let (outputs, output_ids) = ports(model.outputs())?.into_iter().unzip();
        Ok(Box::new(RtenSession {
            model: loaded,
            name: name.to_owned(),
            inputs,
            input_ids,
            outputs,
            output_ids,
            pool: Arc::clone(&self.pool),
        }))
    }
}

#[derive(Debug)]
struct RtenSession {
    model: rten::Model,
    name: String,
    inputs: Vec<Port>,
    input_ids: Vec<NodeId>,
    outputs: Vec<Port>,
    output_ids: Vec<NodeId>,
    pool: Arc<ThreadPool>,
}

impl Session for RtenSession {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        let fail = |reason: String| Error::Run { engine: EngineKind::Rten, graph: self.name.clone(), reason };
        let mut fed: Vec<(NodeId, ValueOrView<'_>)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let at = self.inputs.iter().position(|p| p.name == *name);
            let id = at.and_then(|i| self.input_ids.get(i)).copied();
            let id = id.ok_or_else(|| fail(format!("there is no input `{name}`")))?;
            fed.push((id, to_rten(tensor).map_err(&fail)?));
        }
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let run = || self.model.run(fed, &self.output_ids, Some(options)).map_err(|e| e.to_string());
        let values = guarded(run).map_err(&fail)?;
        let named = self.outputs.iter().zip(values);
        named.map(|(port, value)| Ok((port.name.clone(), from_rten(port, value).map_err(&fail)?))).collect()
    }
}

/// rten panics on a few graphs that are valid: an error of the engine's, not the program's end.
fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("it failed in itself: {}", text.unwrap_or_default()))
    })
}

/// rten has no 64-bit integers and takes 32-bit ones in their place; a value that does not fit is an error.
fn to_rten(tensor: &Tensor) -> Result<ValueOrView<'_>, String> {
    fn view<'a, T>(array: &'a ArrayD<T>) -> Result<ValueOrView<'a>, String>
    where
        T: Clone,
        ValueView<'a>: From<rten_tensor::TensorView<'a, T>>,
        Value: From<rten_tensor::Tensor<T>>,
    {
        if let Some(slice) = array.as_slice() {
            return ValueView::from_shape(array.shape(), slice).map(Into::into).map_err(|e| e.to_string());
        }
        let values = array.iter().cloned().collect();
        Value::from_shape(array.shape(), values).map(Into::into).map_err(|e| e.to_string())
    }
    match tensor {
        Tensor::F32(array) => view(array),
        Tensor::I32(array) => view(array),
        Tensor::U8(array) => view(array),
        Tensor::F16(_) => Err("it has no half precision".to_owned()),
        Tensor::I64(array) => {
            let narrow: Result<Vec<i32>, _> = array.iter().map(|&v| i32::try_from(v)).collect();
            let narrow = narrow.map_err(|_| "a 64-bit integer does not fit rten's 32 bits".to_owned())?;
            Value::from_shape(array.shape(), narrow).map(Into::into).map_err(|e| e.to_string())
        }
    }
}

fn from_rten(port: &Port, value: Value) -> Result<Tensor, String> {
    fn array<T: Clone>(tensor: rten_tensor::Tensor<T>) -> Result<ArrayD<T>, String> {
        use rten_tensor::Layout;
        let shape = IxDyn(tensor.shape());
        ArrayD::from_shape_vec(shape, tensor.into_data()).map_err(|e| e.to_string())
    }
    Ok(match value {
        Value::FloatTensor(tensor) => Tensor::F32(array(tensor)?),
        Value::Int32Tensor(tensor) if port.element_type == ElementType::Int64 => {
            Tensor::I64(array(tensor)?.mapv(i64::from))
        }
        Value::Int32Tensor(tensor) => Tensor::I32(array(tensor)?),
        Value::UInt8Tensor(tensor) => Tensor::U8(array(tensor)?),
        other => return Err(format!("output `{}` has the unsupported type {:?}", port.name, other.dtype())),
    })
}
