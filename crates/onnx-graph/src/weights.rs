use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use crate::{ElementType, Error, Result, external_data, model::tensor_name, proto::TensorProto};

/// Reads the values of a model's tensors, wherever they lie. Nothing is kept: what is asked for is read, a sidecar's
/// bytes from the disk.
///
/// A location is followed as the model has it: check it first with [`external_data::verify`].
#[derive(Debug, Clone, Default)]
pub struct Weights {
    folder: Option<PathBuf>,
}

impl Weights {
    /// For a model that lies in `folder`: locations of external data are relative to it.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// For a model that holds all its values itself; asking for an external one is [`Error::NoFolder`].
    pub fn inline() -> Self {
        Self::default()
    }

    /// The folder that locations are relative to.
    pub(crate) fn folder(&self) -> Option<&Path> {
        // The folder of a path without one is the current one.
        self.folder
            .as_deref()
            .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    }

    /// The tensor's elements in row-major order, each in little-endian bytes, exactly as many as dims and type need.
    ///
    /// Fails with [`Error::Tensor`] where the model holds more or fewer, with [`Error::ExternalData`] and
    /// [`Error::Io`].
    pub(crate) fn bytes<'t>(&self, tensor: &'t TensorProto) -> Result<Cow<'t, [u8]>> {
        let expected = external_data::byte_length(tensor).map_err(|rule| Error::Tensor {
            tensor: tensor_name(tensor).to_owned(),
            reason: rule.to_string(),
        })?;
        let bytes = if tensor.data_location == Some(external_data::EXTERNAL) {
            let folder = self.folder.as_deref();
            let folder = folder.ok_or_else(|| Error::NoFolder { tensor: tensor_name(tensor).to_owned() })?;
            Cow::Owned(external_data::read(tensor, folder)?)
        } else {
            inline_bytes(tensor)
        };
        if bytes.len() as u64 == expected {
            return Ok(bytes);
        }
        let reason = format!("it has {} bytes where dims and type need {expected}", bytes.len());
        Err(Error::Tensor { tensor: tensor_name(tensor).to_owned(), reason })
    }

    /// Hands over the same bytes piece by piece, all but the last a multiple of 16 long: of a sidecar, no more than a piece is
    /// in memory.
    pub(crate) fn stream(&self, tensor: &TensorProto, next: &mut dyn FnMut(&[u8])) -> Result<()> {
        match &self.folder {
            Some(folder) if tensor.data_location == Some(external_data::EXTERNAL) => {
                external_data::stream(tensor, folder, next)
            }
            _ => {
                next(&self.bytes(tensor)?);
                Ok(())
            }
        }
    }

    /// The elements of a tensor of type float32, and no other.
    pub(crate) fn floats(&self, tensor: &TensorProto) -> Result<Vec<f32>> {
        self.elements(tensor, ElementType::Float32, f32::from_le_bytes)
    }

    /// The elements of a tensor of type int64, and no other.
    pub(crate) fn int64s(&self, tensor: &TensorProto) -> Result<Vec<i64>> {
        self.elements(tensor, ElementType::Int64, i64::from_le_bytes)
    }

    fn elements<T, const N: usize>(
        &self,
        tensor: &TensorProto,
        wanted: ElementType,
        from: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let found = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
        if found != wanted {
            let reason = format!("its elements are {found}, not {wanted}");
            return Err(Error::Tensor { tensor: tensor_name(tensor).to_owned(), reason });
        }
        let bytes = self.bytes(tensor)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|&chunk| from(chunk)).collect())
    }
}

/// Elements that the model holds itself, from whichever field they are in (the specification's table of fields).
fn inline_bytes(tensor: &TensorProto) -> Cow<'_, [u8]> {
    if let Some(raw) = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
        return Cow::Borrowed(raw);
    }
    // `int32_data` holds every type of at most 32 bits, one element (or one byte of packed ones) in each entry.
    let element = ElementType::from_onnx(tensor.data_type.unwrap_or_default());
    let width = match element.bits() {
        Some(32) => 4,
        Some(16) => 2,
        _ => 1,
    };
    Cow::Owned(match element {
        ElementType::Float32 | ElementType::Complex64 => le_bytes(&tensor.float_data, f32::to_le_bytes),
        ElementType::Float64 | ElementType::Complex128 => le_bytes(&tensor.double_data, f64::to_le_bytes),
        ElementType::Int64 => le_bytes(&tensor.int64_data, i64::to_le_bytes),
        ElementType::Uint64 => le_bytes(&tensor.uint64_data, u64::to_le_bytes),
        ElementType::Uint32 => le_bytes(&tensor.uint64_data, |v| (v as u32).to_le_bytes()),
        _ => tensor.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect(),
    })
}

fn le_bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| to(value)).collect()
}

/// A tensor with its elements in the model.
pub(crate) fn inline_tensor(name: &str, element: ElementType, dims: &[i64], bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(element.to_onnx()),
        dims: dims.to_vec(),
        raw_data: Some(bytes.into()),
        ..Default::default()
    }
}

/// Puts a tensor's elements into the model, from wherever they were.
pub(crate) fn set_bytes(tensor: &mut TensorProto, bytes: Vec<u8>) {
    tensor.int64_data.clear();
    tensor.float_data.clear();
    tensor.int32_data.clear();
    tensor.double_data.clear();
    tensor.uint64_data.clear();
    tensor.external_data.clear();
    tensor.data_location = None;
    tensor.raw_data = Some(bytes.into());
}
