//! Tensors kept outside of the model file: where they are, and whether they are what the model says.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
};

use crate::{
    ElementType, Error, ExternalDataRule, Model, Result, model::tensor_name, proto::TensorProto, tensors,
};

/// `TensorProto.DataLocation.EXTERNAL`.
pub(crate) const EXTERNAL: i32 = 1;

/// One tensor whose bytes lie in a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalTensor {
    /// The tensor's name; empty for a nameless tensor in an attribute.
    pub tensor: String,
    /// The sidecar, with `/` between components, relative to the model's folder.
    pub location: String,
    /// The same as the model has it, perhaps with `\` between components.
    pub written: String,
    /// First byte in the sidecar.
    pub offset: u64,
    /// Bytes, by the tensor's dims and element type.
    pub length: u64,
}

/// Lists every external tensor of a model, checked as far as the model alone allows: a location that stays below the
/// model's folder, numbers that are numbers, a `length` that is what dims and element type need.
///
/// `graph` is the model's path, used in errors only. All places are visited: initializers, sparse values and indices,
/// attributes with or without a type, sub-graphs, functions with their attribute defaults, training graphs.
pub fn list(model: &Model, graph: &Path) -> Result<Vec<ExternalTensor>> {
    let mut found = Vec::new();
    tensors::for_each(model.proto(), &mut |tensor| {
        if tensor.data_location == Some(EXTERNAL) {
            found.push(read_entry(tensor, graph)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads the model at `graph`, finds every sidecar and checks it against the file system: it is a regular file, it
/// stays inside of `root` after links are followed, it is not the model itself, and it is long enough.
///
/// Where the graph itself is a link out of `root`, as in a hub's snapshot, its sidecars may lie in the folder that it
/// really is in (case X4).
///
/// Returns the sidecars' resolved paths, each once, in the order of their first use.
pub fn verify(graph: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    verify_model(&Model::read(graph)?, graph, root)
}

/// [`verify`] for a model that has been read already.
pub fn verify_model(model: &Model, graph: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let canonical =
        |path: &Path| fs::canonicalize(path).map_err(|source| Error::Io { path: path.to_owned(), source });
    let (real_root, real_graph) = (canonical(root)?, canonical(graph)?);
    let folder = graph.parent().unwrap_or(Path::new(""));
    let mut sidecars = Vec::new();
    let mut seen = HashSet::new();
    for entry in list(model, graph)? {
        let fail = |rule| error(graph, &entry.tensor, &entry.location, rule);
        let path =
            fs::canonicalize(folder.join(&entry.location)).map_err(|_| fail(ExternalDataRule::Missing))?;
        let beside_graph = real_graph.parent().is_some_and(|folder| path.starts_with(folder));
        if !path.starts_with(&real_root) && !beside_graph {
            return Err(fail(ExternalDataRule::Escapes));
        }
        if path == real_graph {
            return Err(fail(ExternalDataRule::IsTheModel));
        }
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        let bytes = file.ok_or_else(|| fail(ExternalDataRule::Missing))?.len();
        let end = entry.offset.checked_add(entry.length);
        if end.is_none_or(|end| end > bytes) {
            let end = end.unwrap_or(u64::MAX);
            return Err(fail(ExternalDataRule::TooShort { offset: entry.offset, end, file: bytes }));
        }
        if seen.insert(path.clone()) {
            sidecars.push(path);
        }
    }
    Ok(sidecars)
}

/// The bytes of one external tensor of a model in `folder`. No more is read than its dims need, nor than the file holds.
pub(crate) fn read(tensor: &TensorProto, folder: &Path) -> Result<Vec<u8>> {
    let entry = read_entry(tensor, folder)?;
    let path = folder.join(&entry.location);
    let io = |source| Error::Io { path: path.clone(), source };
    let mut file = File::open(&path).map_err(io)?;
    file.seek(SeekFrom::Start(entry.offset)).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(entry.length).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

fn error(graph: &Path, tensor: &str, location: &str, rule: ExternalDataRule) -> Error {
    let (tensor, location) = (tensor.to_owned(), location.to_owned());
    Error::ExternalData { graph: graph.to_owned(), tensor, location, rule }
}

fn read_entry(tensor: &TensorProto, graph: &Path) -> Result<ExternalTensor> {
    let (mut location, mut written, mut offset, mut length) = (String::new(), String::new(), None, None);
    let mut repeated = None;
    let mut seen = HashSet::new();
    // Unknown keys (`checksum`) are left alone.
    for entry in &tensor.external_data {
        let value = entry.value.as_deref().unwrap_or_default();
        let key = entry.key.as_deref().unwrap_or_default();
        if !seen.insert(key) {
            repeated = Some(key);
        }
        match key {
            "location" => (location, written) = (value.replace('\\', "/"), value.to_owned()),
            "offset" => offset = Some(value),
            "length" => length = Some(value),
            _ => {}
        }
    }
    let fail = |rule| error(graph, tensor_name(tensor), &location, rule);
    if let Some(key) = repeated {
        return Err(fail(ExternalDataRule::RepeatedKey { key: key.to_owned() }));
    }
    if tensors::holds_bytes(tensor) {
        return Err(fail(ExternalDataRule::InlineToo));
    }
    if location.is_empty() {
        return Err(fail(ExternalDataRule::NoLocation));
    }
    if !stays_below(&location) {
        return Err(fail(ExternalDataRule::Unsafe));
    }
    let number = |key: &'static str, text: &str| {
        text.parse::<u64>().map_err(|_| fail(ExternalDataRule::BadNumber { key, value: text.to_owned() }))
    };
    let offset = offset.map_or(Ok(0), |text| number("offset", text))?;
    let expected = byte_length(tensor).map_err(fail)?;
    if let Some(found) = length.map(|text| number("length", text)).transpose()?
        && found != expected
    {
        return Err(fail(ExternalDataRule::WrongLength { expected, found }));
    }
    let tensor = tensor_name(tensor).to_owned();
    Ok(ExternalTensor { tensor, location, written, offset, length: expected })
}

/// True for a relative path of plain components, without drives, streams or NUL, on every operating system alike.
fn stays_below(location: &str) -> bool {
    !location.contains([':', '\0'])
        && Path::new(location).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

/// Elements that a tensor's dims ask for.
pub(crate) fn elements(tensor: &TensorProto) -> Result<u64, ExternalDataRule> {
    times_dims(1, tensor)
}

/// Bytes that a tensor's dims and element type need; sub-byte elements are packed.
pub(crate) fn byte_length(tensor: &TensorProto) -> Result<u64, ExternalDataRule> {
    let element_type = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
    let bits = element_type
        .bits()
        .ok_or_else(|| ExternalDataRule::BadType { element_type: element_type.to_string() })?;
    Ok(times_dims(bits, tensor)?.div_ceil(8))
}

fn times_dims(one: u64, tensor: &TensorProto) -> Result<u64, ExternalDataRule> {
    let bad_dims = || ExternalDataRule::BadDims { dims: tensor.dims.clone() };
    tensor.dims.iter().try_fold(one, |total, &dim| {
        let size = u64::try_from(dim).map_err(|_| bad_dims())?;
        total.checked_mul(size).ok_or_else(bad_dims)
    })
}
