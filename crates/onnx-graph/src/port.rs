use std::fmt;

use serde::{Serialize, Serializer};

use crate::{
    ElementType,
    model::port_name,
    proto::{ValueInfoProto, tensor_shape_proto::dimension, type_proto},
};

/// One dimension of a port's shape. A size of zero is an ordinary static size, not a missing one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A size fixed in the graph.
    Static(u64),
    /// A named size: equal names in one graph mean equal sizes.
    Symbolic(String),
    /// Neither a size nor a name is given; nothing can be said of it.
    Unknown,
}

impl Dim {
    /// The size, where the graph fixes it.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Static(size) => Some(*size),
            _ => None,
        }
    }
}

impl From<u64> for Dim {
    fn from(size: u64) -> Self {
        Self::Static(size)
    }
}

impl From<&str> for Dim {
    /// A symbol; `?` is [`Dim::Unknown`], as in the printed form and in files of exporters that write it so.
    fn from(name: &str) -> Self {
        if name == "?" { Self::Unknown } else { Self::Symbolic(name.to_owned()) }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(size) => write!(f, "{size}"),
            Self::Symbolic(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
        }
    }
}

impl Serialize for Dim {
    /// A number for a fixed size (zero is one), text for a symbol, null where nothing is known.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Static(size) => serializer.serialize_u64(*size),
            Self::Symbolic(name) => serializer.serialize_str(name),
            Self::Unknown => serializer.serialize_unit(),
        }
    }
}

/// A port's dims, outermost first; `None` where the graph gives no shape at all (rank unknown).
pub type Shape = Option<Vec<Dim>>;

/// An input or output of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The name by which values are fed and fetched.
    pub name: String,
    /// Element type; [`ElementType::Undefined`] where the graph gives none or the port is no dense tensor.
    pub element_type: ElementType,
    /// Dims in the graph's order (for images: batch, channel, height, width).
    pub shape: Shape,
}

impl Port {
    /// A port with a shape of known rank.
    pub fn new(name: &str, element_type: ElementType, dims: impl IntoIterator<Item = Dim>) -> Self {
        Self { name: name.to_owned(), element_type, shape: Some(dims.into_iter().collect()) }
    }

    /// Number of dims, where the graph gives a shape.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// All dims as sizes, where every one is static.
    pub fn static_shape(&self) -> Option<Vec<u64>> {
        self.shape.as_ref()?.iter().map(Dim::size).collect()
    }

    pub(crate) fn from_proto(info: &ValueInfoProto) -> Self {
        let tensor = match info.r#type.as_option().and_then(|t| t.value.as_ref()) {
            Some(type_proto::Value::TensorType(tensor)) => Some(tensor),
            _ => None,
        };
        Self {
            name: port_name(info).to_owned(),
            element_type: tensor
                .map_or(ElementType::Undefined, |t| ElementType::from_onnx(t.elem_type.unwrap_or_default())),
            shape: tensor.and_then(|t| t.shape.as_option()).map(|shape| {
                shape
                    .dim
                    .iter()
                    .map(|dim| match &dim.value {
                        // A negative size is how some exporters write "unknown".
                        Some(dimension::Value::DimValue(size)) => {
                            u64::try_from(*size).map_or(Dim::Unknown, Dim::Static)
                        }
                        Some(dimension::Value::DimParam(name)) if !name.is_empty() => {
                            Dim::from(name.as_str())
                        }
                        _ => Dim::Unknown,
                    })
                    .collect()
            }),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.element_type)?;
        write_shape(f, &self.shape)
    }
}

/// Writes a shape as `[1,3,height,?]`, or `[...]` where the rank is unknown.
pub fn write_shape(f: &mut impl fmt::Write, shape: &Shape) -> fmt::Result {
    let Some(dims) = shape else { return f.write_str("[...]") };
    f.write_str("[")?;
    for (i, dim) in dims.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        write!(f, "{dim}")?;
    }
    f.write_str("]")
}
