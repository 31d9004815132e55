use std::fmt;

use serde::{Serialize, Serializer};

/// Declares the element types once: variant, number in `TensorProto.DataType`, name, bits of one element.
macro_rules! element_types {
    ($($variant:ident = $number:literal, $name:literal, $bits:expr;)+) => {
        /// An ONNX tensor's element type (`TensorProto.DataType`), by the names of the ONNX specification in lower case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs)] // each variant is its ONNX name
        pub enum ElementType {
            $($variant,)+
            /// A number that this version of the crate has no name for; kept as it is.
            Other(i32),
        }

        impl ElementType {
            /// The type behind a `TensorProto.data_type` number. Never fails: an unknown one becomes [`Self::Other`].
            pub fn from_onnx(number: i32) -> Self {
                match number {
                    $($number => Self::$variant,)+
                    other => Self::Other(other),
                }
            }

            /// The number in `TensorProto.data_type`.
            pub fn to_onnx(self) -> i32 {
                match self {
                    $(Self::$variant => $number,)+
                    Self::Other(number) => number,
                }
            }

            /// Bits of one element; `None` where there is no fixed size (strings, undefined and unknown types).
            pub fn bits(self) -> Option<u64> {
                match self {
                    $(Self::$variant => $bits,)+
                    Self::Other(_) => None,
                }
            }
        }

        impl fmt::Display for ElementType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($name),)+
                    Self::Other(number) => write!(f, "type {number}"),
                }
            }
        }
    };
}

element_types! {
    Undefined = 0, "undefined", None;
    Float32 = 1, "float32", Some(32);
    Uint8 = 2, "uint8", Some(8);
    Int8 = 3, "int8", Some(8);
    Uint16 = 4, "uint16", Some(16);
    Int16 = 5, "int16", Some(16);
    Int32 = 6, "int32", Some(32);
    Int64 = 7, "int64", Some(64);
    String = 8, "string", None;
    Bool = 9, "bool", Some(8);
    Float16 = 10, "float16", Some(16);
    Float64 = 11, "float64", Some(64);
    Uint32 = 12, "uint32", Some(32);
    Uint64 = 13, "uint64", Some(64);
    Complex64 = 14, "complex64", Some(64);
    Complex128 = 15, "complex128", Some(128);
    Bfloat16 = 16, "bfloat16", Some(16);
    Float8E4M3Fn = 17, "float8e4m3fn", Some(8);
    Float8E4M3FnUz = 18, "float8e4m3fnuz", Some(8);
    Float8E5M2 = 19, "float8e5m2", Some(8);
    Float8E5M2FnUz = 20, "float8e5m2fnuz", Some(8);
    Uint4 = 21, "uint4", Some(4);
    Int4 = 22, "int4", Some(4);
    Float4E2M1 = 23, "float4e2m1", Some(4);
    Float8E8M0 = 24, "float8e8m0", Some(8);
    Uint2 = 25, "uint2", Some(2);
    Int2 = 26, "int2", Some(2);
    Float6E2M3 = 27, "float6e2m3", Some(6);
    Float6E3M2 = 28, "float6e3m2", Some(6);
}

impl ElementType {
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
                | Self::Float8E8M0
                | Self::Float6E2M3
                | Self::Float6E3M2
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
                | Self::Uint2
                | Self::Int2
        )
    }
}

/// The precision a graph's weights are kept in (see [`Model::precision`](crate::Model::precision)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PrecisionClass {
    /// Single precision; also graphs without float weights.
    Fp32,
    /// Half precision.
    Fp16,
    /// Half precision with the range of single.
    Bf16,
    /// Double precision.
    Fp64,
}

impl Serialize for ElementType {
    /// The name as it is displayed.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for PrecisionClass {
    /// The name as it is displayed.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for PrecisionClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp64 => "fp64",
        })
    }
}
