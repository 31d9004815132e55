use buffa::MessageField;

use crate::{
    Dim, ElementType, Model, Shape,
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
        TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto, type_proto,
    },
};

/// Version of the intermediate representation that built models declare: 8, what operator set 17 came with.
const IR_VERSION: i64 = 8;
/// Version of the standard operators that built models import unless told otherwise.
const OPSET: i64 = 17;

/// Writes a graph node by node.
///
/// ```
/// use onnx_graph::{ElementType::Float32, GraphBuilder};
///
/// let model = GraphBuilder::new("twice")
///     .input("x", Float32, [1.into(), "width".into()])
///     .node("Add", ["x", "x"], ["y"])
///     .output("y", Float32, [1.into(), "width".into()])
///     .build();
/// assert_eq!(model.inputs()[0].to_string(), "x float32[1,width]");
/// ```
///
/// Nothing is checked while building, so that broken graphs can be written on purpose.
#[derive(Debug, Clone, Default)]
pub struct GraphBuilder {
    graph: GraphProto,
    opset: Option<i64>,
    imports: Vec<OperatorSetIdProto>,
}

/// An attribute's value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attribute {
    /// One integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// One float.
    Float(f32),
    /// A list of floats.
    Floats(Vec<f32>),
    /// Text.
    Text(String),
    /// A sub-graph, as of `If` and `Loop`.
    Graph(GraphBuilder),
    /// A tensor, as of `Constant`.
    Tensor(Weight),
}

/// A tensor's values, or where they lie.
#[derive(Debug, Clone)]
pub struct Weight {
    proto: TensorProto,
}

impl Weight {
    /// Single precision values in row-major order.
    pub fn float32(dims: impl IntoIterator<Item = u64>, values: &[f32]) -> Self {
        Self::raw(ElementType::Float32, dims, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// 64-bit integers in row-major order.
    pub fn int64(dims: impl IntoIterator<Item = u64>, values: &[i64]) -> Self {
        Self::raw(ElementType::Int64, dims, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// Little-endian bytes in row-major order, of any type.
    pub fn raw(element_type: ElementType, dims: impl IntoIterator<Item = u64>, bytes: Vec<u8>) -> Self {
        Self { proto: TensorProto { raw_data: Some(bytes.into()), ..tensor(element_type, dims) } }
    }

    /// A tensor in a sidecar; `entries` are the keys and values of its external data (`location`, `offset`, `length`).
    pub fn external(
        element_type: ElementType,
        dims: impl IntoIterator<Item = u64>,
        entries: &[(&str, &str)],
    ) -> Self {
        let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: Some((*key).to_owned()),
            value: Some((*value).to_owned()),
            ..Default::default()
        };
        let external_data = entries.iter().map(entry).collect();
        let location = Some(crate::external_data::EXTERNAL);
        Self { proto: TensorProto { external_data, data_location: location, ..tensor(element_type, dims) } }
    }
}

fn tensor(element_type: ElementType, dims: impl IntoIterator<Item = u64>) -> TensorProto {
    // A size beyond i64 cannot be written down; the largest that can is as absurd.
    let dims = dims.into_iter().map(|d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    TensorProto { dims, data_type: Some(element_type.to_onnx()), ..Default::default() }
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: &str) -> Self {
        let graph = GraphProto { name: Some(name.to_owned()), ..Default::default() };
        Self { graph, opset: None, imports: Vec::new() }
    }

    /// Sets the version of the standard operators that is imported (17 where this is not called).
    #[must_use]
    pub fn opset(mut self, version: i64) -> Self {
        self.opset = Some(version);
        self
    }

    /// Imports the operators of a further domain, such as `com.microsoft`. Those of sub-graphs are imported by the outermost graph.
    #[must_use]
    pub fn import(mut self, domain: &str, version: i64) -> Self {
        self.imports.push(OperatorSetIdProto {
            domain: Some(domain.to_owned()),
            version: Some(version),
            ..Default::default()
        });
        self
    }

    /// Adds an input.
    #[must_use]
    pub fn input(
        mut self,
        name: &str,
        element_type: ElementType,
        dims: impl IntoIterator<Item = Dim>,
    ) -> Self {
        self.graph.input.push(value_info(name, element_type, Some(dims.into_iter().collect())));
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(
        mut self,
        name: &str,
        element_type: ElementType,
        dims: impl IntoIterator<Item = Dim>,
    ) -> Self {
        self.graph.output.push(value_info(name, element_type, Some(dims.into_iter().collect())));
        self
    }

    /// Adds an output without a type, as sub-graphs have them.
    #[must_use]
    pub fn untyped_output(mut self, name: &str) -> Self {
        self.graph.output.push(ValueInfoProto { name: Some(name.to_owned()), ..Default::default() });
        self
    }

    /// Records the type of an inner value.
    #[must_use]
    pub fn value(
        mut self,
        name: &str,
        element_type: ElementType,
        dims: impl IntoIterator<Item = Dim>,
    ) -> Self {
        self.graph.value_info.push(value_info(name, element_type, Some(dims.into_iter().collect())));
        self
    }

    /// Adds a weight.
    #[must_use]
    pub fn weight(mut self, name: &str, weight: Weight) -> Self {
        self.graph.initializer.push(TensorProto { name: Some(name.to_owned()), ..weight.proto });
        self
    }

    /// Adds a node without attributes. An operator of another domain is written with it: `com.microsoft.FastGelu`.
    #[must_use]
    pub fn node<'a>(
        self,
        op_type: &str,
        inputs: impl IntoIterator<Item = &'a str>,
        outputs: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        self.node_with(op_type, inputs, outputs, [])
    }

    /// Adds a node with attributes. An operator of another domain is written with it: `com.microsoft.FastGelu`.
    #[must_use]
    pub fn node_with<'a>(
        mut self,
        op_type: &str,
        inputs: impl IntoIterator<Item = &'a str>,
        outputs: impl IntoIterator<Item = &'a str>,
        attributes: impl IntoIterator<Item = (&'a str, Attribute)>,
    ) -> Self {
        let (domain, op_type) = op_type.rsplit_once('.').unwrap_or(("", op_type));
        self.graph.node.push(NodeProto {
            domain: (!domain.is_empty()).then(|| domain.to_owned()),
            input: inputs.into_iter().map(str::to_owned).collect(),
            output: outputs.into_iter().map(str::to_owned).collect(),
            op_type: Some(op_type.to_owned()),
            attribute: attributes.into_iter().map(|(name, value)| attribute(name, value)).collect(),
            ..Default::default()
        });
        self
    }

    /// The model with this graph.
    pub fn build(self) -> Model {
        let opset = OperatorSetIdProto { version: Some(self.opset.unwrap_or(OPSET)), ..Default::default() };
        Model::from_proto(ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: Some(env!("CARGO_PKG_NAME").to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            opset_import: std::iter::once(opset).chain(self.imports).collect(),
            graph: MessageField::some(self.graph),
            ..Default::default()
        })
    }
}

fn attribute(name: &str, value: Attribute) -> AttributeProto {
    let mut proto = AttributeProto { name: Some(name.to_owned()), ..Default::default() };
    // The numbers are `AttributeProto.AttributeType`'s.
    let kind = match value {
        Attribute::Float(f) => {
            proto.f = Some(f);
            1
        }
        Attribute::Int(i) => {
            proto.i = Some(i);
            2
        }
        Attribute::Text(text) => {
            proto.s = Some(text.into_bytes().into());
            3
        }
        Attribute::Tensor(weight) => {
            proto.t = MessageField::some(weight.proto);
            4
        }
        Attribute::Graph(graph) => {
            proto.g = MessageField::some(graph.graph);
            5
        }
        Attribute::Floats(floats) => {
            proto.floats = floats;
            6
        }
        Attribute::Ints(ints) => {
            proto.ints = ints;
            7
        }
    };
    proto.r#type = Some(kind);
    proto
}

/// The record of a value's type.
pub(crate) fn value_info(name: &str, element_type: ElementType, shape: Shape) -> ValueInfoProto {
    let dim = |dim: Dim| tensor_shape_proto::Dimension {
        value: match dim {
            Dim::Static(size) => {
                let size = i64::try_from(size).unwrap_or(i64::MAX);
                Some(tensor_shape_proto::dimension::Value::DimValue(size))
            }
            Dim::Symbolic(name) => Some(tensor_shape_proto::dimension::Value::DimParam(name)),
            Dim::Unknown => None,
        },
        ..Default::default()
    };
    let shape =
        shape.map(|dims| TensorShapeProto { dim: dims.into_iter().map(dim).collect(), ..Default::default() });
    let tensor = type_proto::Tensor {
        elem_type: Some(element_type.to_onnx()),
        shape: shape.map_or_else(MessageField::none, MessageField::some),
        ..Default::default()
    };
    let value = Some(type_proto::Value::TensorType(Box::new(tensor)));
    let r#type = MessageField::some(TypeProto { value, ..Default::default() });
    ValueInfoProto { name: Some(name.to_owned()), r#type, ..Default::default() }
}
