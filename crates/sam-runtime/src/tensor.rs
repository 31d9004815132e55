use std::{borrow::Cow, fmt};

use half::f16;
use ndarray::ArrayD;
use onnx_graph::{Dim, ElementType, Port};

/// A dense tensor that goes into or comes out of an engine, in row-major order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Tensor {
    /// Single precision.
    F32(ArrayD<f32>),
    /// Half precision.
    F16(ArrayD<f16>),
    /// 32-bit integers.
    I32(ArrayD<i32>),
    /// 64-bit integers.
    I64(ArrayD<i64>),
    /// Unsigned bytes.
    U8(ArrayD<u8>),
}

impl Tensor {
    /// Dims, outermost first.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::F32(a) => a.shape(),
            Self::F16(a) => a.shape(),
            Self::I32(a) => a.shape(),
            Self::I64(a) => a.shape(),
            Self::U8(a) => a.shape(),
        }
    }

    /// The ONNX element type.
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::Float32,
            Self::F16(_) => ElementType::Float16,
            Self::I32(_) => ElementType::Int32,
            Self::I64(_) => ElementType::Int64,
            Self::U8(_) => ElementType::Uint8,
        }
    }

    /// The values, where they are single precision.
    pub fn as_f32(&self) -> Option<&ArrayD<f32>> {
        match self {
            Self::F32(array) => Some(array),
            _ => None,
        }
    }

    /// The values in single precision, where they are floats.
    pub fn floats(&self) -> Option<Cow<'_, ArrayD<f32>>> {
        match self {
            Self::F32(array) => Some(Cow::Borrowed(array)),
            Self::F16(array) => Some(Cow::Owned(array.mapv(f16::to_f32))),
            _ => None,
        }
    }

    /// Bytes of the values.
    pub fn byte_len(&self) -> usize {
        let elements: usize = self.shape().iter().product();
        let bits = self.element_type().bits().unwrap_or(0);
        elements * usize::try_from(bits / 8).unwrap_or(0)
    }

    /// True where type and every dim that the port fixes are the tensor's.
    pub(crate) fn fits(&self, port: &Port) -> bool {
        let type_fits = port.element_type == self.element_type();
        let dims_fit = port.shape.as_ref().is_none_or(|dims| {
            dims.len() == self.shape().len()
                && dims.iter().zip(self.shape()).all(|(dim, &found)| match dim {
                    Dim::Static(size) => *size == found as u64,
                    Dim::Symbolic(_) | Dim::Unknown => true,
                })
        });
        type_fits && dims_fit
    }

    pub(crate) fn is_finite(&self) -> bool {
        match self {
            Self::F32(array) => array.iter().all(|v| v.is_finite()),
            Self::F16(array) => array.iter().all(|v| v.is_finite()),
            _ => true,
        }
    }
}

impl fmt::Display for Tensor {
    /// Type and shape only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type(), self.shape())
    }
}
