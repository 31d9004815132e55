use std::fmt;

/// An ONNX tensor's element type (`TensorProto.DataType`), by the names of the ONNX specification in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // each variant is its ONNX name
pub enum ElementType {
    Undefined,
    Float32,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    String,
    Bool,
    Float16,
    Float64,
    Uint32,
    Uint64,
    Complex64,
    Complex128,
    Bfloat16,
    Float8E4M3Fn,
    Float8E4M3FnUz,
    Float8E5M2,
    Float8E5M2FnUz,
    Uint4,
    Int4,
    Float4E2M1,
    /// A number this version of the crate has no name for; kept as it is.
    Other(i32),
}

impl ElementType {
    /// The type behind a `TensorProto.data_type` number. Never fails: an unknown number becomes [`Self::Other`].
    pub fn from_onnx(number: i32) -> Self {
        match number {
            0 => Self::Undefined,
            1 => Self::Float32,
            2 => Self::Uint8,
            3 => Self::Int8,
            4 => Self::Uint16,
            5 => Self::Int16,
            6 => Self::Int32,
            7 => Self::Int64,
            8 => Self::String,
            9 => Self::Bool,
            10 => Self::Float16,
            11 => Self::Float64,
            12 => Self::Uint32,
            13 => Self::Uint64,
            14 => Self::Complex64,
            15 => Self::Complex128,
            16 => Self::Bfloat16,
            17 => Self::Float8E4M3Fn,
            18 => Self::Float8E4M3FnUz,
            19 => Self::Float8E5M2,
            20 => Self::Float8E5M2FnUz,
            21 => Self::Uint4,
            22 => Self::Int4,
            23 => Self::Float4E2M1,
            other => Self::Other(other),
        }
    }

    /// Bits of one element, or `None` where there is no fixed size (strings, undefined and unknown types).
    pub fn bits(self) -> Option<u64> {
        Some(match self {
            Self::Uint4 | Self::Int4 | Self::Float4E2M1 => 4,
            Self::Uint8
            | Self::Int8
            | Self::Bool
            | Self::Float8E4M3Fn
            | Self::Float8E4M3FnUz
            | Self::Float8E5M2
            | Self::Float8E5M2FnUz => 8,
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => 16,
            Self::Float32 | Self::Int32 | Self::Uint32 => 32,
            Self::Float64 | Self::Int64 | Self::Uint64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
            Self::Undefined | Self::String | Self::Other(_) => return None,
        })
    }

    /// True for the real floating types, of whatever width.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Self::Float32
                | Self::Float16
                | Self::Float64
                | Self::Bfloat16
                | Self::Float8E4M3Fn
                | Self::Float8E4M3FnUz
                | Self::Float8E5M2
                | Self::Float8E5M2FnUz
                | Self::Float4E2M1
        )
    }

    /// True for the signed and unsigned integers, of whatever width (bool is not one).
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Uint8
                | Self::Int8
                | Self::Uint16
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::Uint32
                | Self::Uint64
                | Self::Uint4
                | Self::Int4
        )
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Undefined => "undefined",
            Self::Float32 => "float32",
            Self::Uint8 => "uint8",
            Self::Int8 => "int8",
            Self::Uint16 => "uint16",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Float16 => "float16",
            Self::Float64 => "float64",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Bfloat16 => "bfloat16",
            Self::Float8E4M3Fn => "float8e4m3fn",
            Self::Float8E4M3FnUz => "float8e4m3fnuz",
            Self::Float8E5M2 => "float8e5m2",
            Self::Float8E5M2FnUz => "float8e5m2fnuz",
            Self::Uint4 => "uint4",
            Self::Int4 => "int4",
            Self::Float4E2M1 => "float4e2m1",
            Self::Other(number) => return write!(f, "type {number}"),
        };
        f.write_str(name)
    }
}

/// The precision a graph's weights are kept in: half where most initializers are half, single otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrecisionClass {
    /// Single precision; also graphs without float weights.
    Fp32,
    /// Half precision.
    Fp16,
}

impl fmt::Display for PrecisionClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
        })
    }
}
