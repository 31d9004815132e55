use std::{
    collections::HashMap,
    io::{self, BufWriter, Read, Write},
    path::Path,
};

use tempfile::NamedTempFile;

use super::{
    Target,
    compare::{Found, compare, digest},
    publish::aside,
};
use crate::{
    ElementType, Error, Result, Weights,
    external_data::{self, EXTERNAL},
    proto::{ModelProto, StringStringEntryProto, TensorProto},
    tensors::{self, Role},
    weights::set_bytes,
};

/// A tensor of at least this many bytes starts on a page, so that it can be mapped alone: the specification recommends
/// multiples of 4096 for all, which would add a tenth to a sidecar of many small tensors.
const PAGED_FROM: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// The largest alignment taken: a huge page.
const MAX_ALIGNMENT: u64 = 2 << 20;

/// Elements of a vector that may be a shape, a list of axes or of sizes to split into.
const SHAPE_ELEMENTS: u64 = 4096;
/// Elements of a vector that may be scales or limits.
const SHORT_ELEMENTS: u64 = 64;

/// How one sidecar is written.
///
/// The file is named after the model, `model.onnx.data`, in its folder. Tensors follow in the order of the model:
/// initializers, sparse ones, attributes and sub-graphs node by node, then functions and training graphs. Each starts
/// at a multiple of the alignment, those of 1 MiB or more at a multiple of 4096 bytes at least; the bytes between are
/// zero. Tensors that share a range of a sidecar share it still; others are stored each for itself, equal ones too: two
/// names for one range are legal, and readers that write into a mapped weight are not worth the bytes.
///
/// Some tensors stay in the model at any threshold, because ONNX Runtime cannot do without (seen with 1.24 to 1.32):
/// vectors of up to 4096 64-bit integers and of up to 64 other elements, since shape inference reads shapes, axes, scales
/// and limits from the model alone; empty tensors, external ones of which end the process up to 1.30; and indices of
/// sparse tensors, unknown outside to 1.24. Of all other places, attributes and functions included, it reads sidecars.
///
/// A file that has the name already is kept as it is if it has the same bytes. If it has others, it may be the sidecar of
/// a model that is being replaced, or of a neighbour: it is never written over. The sidecar then carries a digest of its
/// bytes in its name (`model.onnx.0123456789abcdef.data`); with a [`name`](Self::name) that was asked for, saving fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    name: Option<String>,
    threshold: u64,
    alignment: u64,
}

impl Default for Sidecar {
    fn default() -> Self {
        Self { name: None, threshold: 1024, alignment: 64 }
    }
}

impl Sidecar {
    /// A sidecar named after the model, for tensors of 1024 bytes or more, each at a multiple of 64 bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sidecar's file name, without a folder.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Bytes from which on a tensor goes into the sidecar (default 1024).
    #[must_use]
    pub fn threshold(mut self, bytes: u64) -> Self {
        self.threshold = bytes;
        self
    }

    /// Bytes of which each tensor's offset is a multiple: a power of two up to 2 MiB (default 64, a cache line and the
    /// widest vector register).
    #[must_use]
    pub fn alignment(mut self, bytes: u64) -> Self {
        self.alignment = bytes;
        self
    }

    /// The file name that is wanted, checked with the other options.
    pub(super) fn name_beside(&self, model: &Path) -> Result<String> {
        let refuse = |reason: String| Err(Error::SidecarOption { reason });
        if !self.alignment.is_power_of_two() || self.alignment > MAX_ALIGNMENT {
            return refuse(format!(
                "an alignment of {} bytes is no power of two up to 2 MiB",
                self.alignment
            ));
        }
        let file = model.file_name().unwrap_or_default();
        let name = match (&self.name, file.to_str()) {
            (Some(name), _) => name.clone(),
            (None, Some(file)) => format!("{file}.data"),
            (None, None) => {
                return refuse("the model's name is not UTF-8, give one for the sidecar".to_owned());
            }
        };
        let plain = external_data::stays_below(&name) && !name.contains(['/', '\\']) && name != ".";
        if !plain || name.is_empty() {
            return refuse(format!("`{name}` is no plain file name"));
        }
        // Some file systems see no difference of case.
        if file.eq_ignore_ascii_case(&name) {
            return refuse(format!("`{name}` is the name of the model itself"));
        }
        Ok(name)
    }
}

/// A sidecar that is complete, but not under its name yet.
pub(super) struct Written {
    name: String,
    bytes: u64,
    /// `None` where the file that has the name holds these bytes already.
    file: Option<NamedTempFile>,
}

impl Written {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn into_file(self) -> Option<NamedTempFile> {
        self.file
    }
}

/// Moves the larger tensors of `proto` into a file aside, and all other external ones into `proto`. Nothing is written if
/// no tensor is large enough.
pub(super) fn write(
    proto: &mut ModelProto,
    weights: &Weights,
    options: &Sidecar,
    name: &str,
    target: &Target<'_>,
) -> Result<Option<Written>> {
    let path = target.folder.join(name);
    let fail = |source| Error::Write { path: path.clone(), source };
    let mut file: Option<Aligned> = None;
    // Ranges of the old sidecars that are in the new one already: tensors may share them.
    let mut moved: HashMap<(String, u64, u64), u64> = HashMap::new();
    tensors::for_each_mut(proto, &mut |tensor, role| {
        let external = tensor.data_location == Some(EXTERNAL);
        let length = external_data::byte_length(tensor).ok();
        let Some(length) = length.filter(|&l| l >= options.threshold && may_be_outside(tensor, role, l))
        else {
            if external {
                let bytes = weights.bytes(tensor)?.into_owned();
                set_bytes(tensor, bytes);
            }
            return Ok(());
        };
        let range = if external {
            let entry = external_data::read_entry(tensor, target.path)?;
            Some((entry.location, entry.offset, entry.length))
        } else {
            None
        };
        let known = range.as_ref().and_then(|range| moved.get(range)).copied();
        let offset = if let Some(offset) = known {
            offset
        } else {
            let bytes = weights.bytes(tensor)?;
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(Aligned::new(target.folder, options.alignment).map_err(fail)?),
            };
            file.put(&bytes).map_err(fail)?
        };
        if let Some(range) = range {
            moved.insert(range, offset);
        }
        point(tensor, offset, length);
        Ok(())
    })?;
    let Some(file) = file else { return Ok(None) };
    let bytes = file.position;
    let mut file = file.finish().map_err(fail)?;
    let (name, there) = choose_name(options, name, &mut file, target)?;
    Ok(Some(Written { name, bytes, file: (!there).then_some(file) }))
}

/// See [`Sidecar`] for the reasons.
fn may_be_outside(tensor: &TensorProto, role: Role, length: u64) -> bool {
    let element = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
    let elements = element.bits().map_or(0, |bits| length.saturating_mul(8) / bits);
    let few = if element == ElementType::Int64 { SHAPE_ELEMENTS } else { SHORT_ELEMENTS };
    let short_vector = tensor.dims.len() <= 1 && elements <= few;
    role == Role::Values && length > 0 && !short_vector
}

/// Makes a tensor external; its location comes later. Offset and length are always written: some readers need them.
fn point(tensor: &mut TensorProto, offset: u64, length: u64) {
    set_bytes(tensor, Vec::new());
    tensor.raw_data = None;
    tensor.data_location = Some(EXTERNAL);
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
        ..Default::default()
    };
    tensor.external_data = vec![
        entry("location", String::new()),
        entry("offset", offset.to_string()),
        entry("length", length.to_string()),
    ];
}

/// A file of which tensors start at multiples of the alignment.
struct Aligned {
    file: BufWriter<NamedTempFile>,
    position: u64,
    alignment: u64,
}

impl Aligned {
    fn new(folder: &Path, alignment: u64) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(aside(folder)?), position: 0, alignment })
    }

    /// Where the bytes start.
    fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let length = bytes.len() as u64;
        let alignment = if length >= PAGED_FROM { self.alignment.max(PAGE) } else { self.alignment };
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let start = self.position.checked_next_multiple_of(alignment).ok_or_else(too_large)?;
        io::copy(&mut io::repeat(0).take(start - self.position), &mut self.file)?;
        self.file.write_all(bytes)?;
        self.position = start.checked_add(length).ok_or_else(too_large)?;
        Ok(start)
    }

    fn finish(self) -> io::Result<NamedTempFile> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

/// The sidecar's name, and whether a file with the same bytes has it already.
fn choose_name(
    options: &Sidecar,
    wanted: &str,
    file: &mut NamedTempFile,
    target: &Target<'_>,
) -> Result<(String, bool)> {
    let path = target.folder.join(wanted);
    let io = |source| Error::Io { path: path.clone(), source };
    match compare(&path, file.as_file_mut()).map_err(io)? {
        Found::Nothing => return Ok((wanted.to_owned(), false)),
        Found::TheSame => return Ok((wanted.to_owned(), true)),
        Found::Another if options.name.is_some() => return Err(Error::SidecarTaken { path }),
        Found::Another => {}
    }
    let stem = wanted.strip_suffix(".data").unwrap_or(wanted);
    let name = format!("{stem}.{:016x}.data", digest(file.as_file_mut()).map_err(io)?);
    let path = target.folder.join(&name);
    match compare(&path, file.as_file_mut()).map_err(io)? {
        Found::Nothing => Ok((name, false)),
        Found::TheSame => Ok((name, true)),
        Found::Another => Err(Error::SidecarTaken { path }),
    }
}
