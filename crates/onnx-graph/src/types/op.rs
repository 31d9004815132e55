//! What a rule sees of one node: its operator, its attributes, and what is known of its inputs.

use std::collections::HashMap;

use crate::{
    Dim, ElementType, Shape, attributes,
    nodes::domain_of,
    proto::{AttributeProto, NodeProto},
};

use super::dims::MAX_RANK;

/// One element of a small tensor whose elements are followed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// An integer or, as 0 and 1, a bool.
    Int(i64),
    /// A float32.
    Float(f32),
    /// The size that a symbol stands for.
    Symbol(String),
    /// Not known.
    Unknown,
}

impl Item {
    pub(super) fn of(dim: &Dim) -> Self {
        match dim {
            Dim::Static(size) => i64::try_from(*size).map_or(Self::Unknown, Self::Int),
            Dim::Symbolic(name) => Self::Symbol(name.clone()),
            Dim::Unknown => Self::Unknown,
        }
    }

    pub(super) fn dim(&self) -> Dim {
        match self {
            Self::Int(size) => u64::try_from(*size).map_or(Dim::Unknown, Dim::Static),
            Self::Symbol(name) => Dim::Symbolic(name.clone()),
            Self::Float(_) | Self::Unknown => Dim::Unknown,
        }
    }

    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }
}

/// What is known of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) element: ElementType,
    pub(super) shape: Shape,
    /// The elements in row-major order, where the shape is static and small.
    pub(super) content: Option<Vec<Item>>,
}

pub(super) static UNKNOWN: Value = Value { element: ElementType::Undefined, shape: None, content: None };

impl Value {
    pub(super) fn new(element: ElementType, shape: Shape) -> Self {
        Self { element, shape: shape.filter(|dims| dims.len() <= MAX_RANK), content: None }
    }

    pub(super) fn of(element: ElementType, dims: Vec<Dim>) -> Self {
        Self::new(element, Some(dims))
    }

    pub(super) fn dims(&self) -> Option<&[Dim]> {
        self.shape.as_deref()
    }

    /// Dims as sizes, where all are static.
    pub(super) fn sizes(&self) -> Option<Vec<usize>> {
        self.dims()?.iter().map(|d| d.size().and_then(|s| usize::try_from(s).ok())).collect()
    }

    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        self.content.as_ref()?.iter().map(Item::int).collect()
    }

    /// About the bytes of memory that keeping it takes.
    pub(super) fn cost(&self) -> usize {
        let name = |dim: &Dim| if let Dim::Symbolic(name) = dim { name.len() } else { 0 };
        let shape: usize = self.dims().unwrap_or_default().iter().map(|d| 24 + name(d)).sum();
        let item = |item: &Item| 24 + if let Item::Symbol(name) = item { name.len() } else { 0 };
        100 + shape + self.content.iter().flatten().map(item).sum::<usize>()
    }
}

/// Attributes that a function's caller gives, by the names that the function's body refers to.
pub(super) type Bound<'m> = HashMap<&'m str, &'m AttributeProto>;

/// A list that was an attribute once and is an input now.
#[derive(Debug, PartialEq)]
pub(super) enum List {
    Absent,
    /// It is there, its values are not known.
    Unknown,
    Known(Vec<i64>),
}

/// One node together with what is known of its inputs.
#[derive(Debug)]
pub(super) struct Op<'o, 'm> {
    pub(super) node: &'m NodeProto,
    /// `None` for an optional input that is left out.
    pub(super) inputs: Vec<Option<&'o Value>>,
    /// Version of the operator set of the node's domain.
    pub(super) opset: i64,
    pub(super) bound: &'o Bound<'m>,
}

impl<'o, 'm> Op<'o, 'm> {
    /// Empty for the standard operators.
    pub(super) fn domain(&self) -> &'m str {
        domain_of(self.node)
    }

    pub(super) fn op_type(&self) -> &'m str {
        self.node.op_type.as_deref().unwrap_or_default()
    }

    pub(super) fn input(&self, i: usize) -> Option<&'o Value> {
        self.inputs.get(i).copied().flatten()
    }

    /// The inputs that are there.
    pub(super) fn given(&self) -> impl Iterator<Item = &'o Value> + '_ {
        self.inputs.iter().copied().flatten()
    }

    pub(super) fn dims(&self, i: usize) -> Option<&'o [Dim]> {
        self.input(i)?.dims()
    }

    pub(super) fn rank(&self, i: usize) -> Option<usize> {
        self.dims(i).map(<[Dim]>::len)
    }

    pub(super) fn element(&self, i: usize) -> ElementType {
        self.input(i).map_or(ElementType::Undefined, |v| v.element)
    }

    /// Type and shape of an input.
    pub(super) fn like(&self, i: usize) -> Value {
        self.input(i).map_or_else(|| UNKNOWN.clone(), |v| Value::new(v.element, v.shape.clone()))
    }

    pub(super) fn integers(&self, i: usize) -> Option<Vec<i64>> {
        self.input(i)?.integers()
    }

    pub(super) fn items(&self, i: usize) -> Option<&'o [Item]> {
        self.input(i)?.content.as_deref()
    }

    /// Number of outputs that the node names, left-out ones in front of others included.
    pub(super) fn outputs(&self) -> usize {
        self.node.output.len()
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'m AttributeProto> {
        let found = attributes::find(self.node, name)?;
        match found.ref_attr_name.as_deref() {
            Some(of_caller) if !of_caller.is_empty() => self.bound.get(of_caller).copied(),
            _ => Some(found),
        }
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.int(name).is_some_and(|i| i != 0)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'m [i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    pub(super) fn text(&self, name: &str) -> Option<&'m str> {
        std::str::from_utf8(self.attribute(name)?.s.as_ref()?).ok()
    }

    /// An element type given by its number.
    pub(super) fn element_attribute(&self, name: &str) -> Option<ElementType> {
        let number = self.int(name).and_then(|n| i32::try_from(n).ok())?;
        (number != 0).then(|| ElementType::from_onnx(number))
    }

    /// The position that an axis attribute means.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Option<usize> {
        attributes::axis(self.int(name).unwrap_or(default), rank)
    }

    /// Values that are the attribute `name` below the operator set `since`, and input `i` from there on.
    pub(super) fn list(&self, name: &str, i: usize, since: i64) -> List {
        if self.opset < since {
            return self.ints(name).map_or(List::Absent, |ints| List::Known(ints.to_vec()));
        }
        match self.input(i) {
            None => List::Absent,
            Some(value) => value.integers().map_or(List::Unknown, List::Known),
        }
    }
}

/// Dims and type that a tensor of the model declares.
pub(super) fn declared(tensor: &crate::proto::TensorProto) -> Value {
    Value::of(ElementType::from_onnx(tensor.data_type.unwrap_or_default()), declared_dims(&tensor.dims))
}

pub(super) fn declared_dims(dims: &[i64]) -> Vec<Dim> {
    dims.iter().map(|&dim| u64::try_from(dim).map_or(Dim::Unknown, Dim::Static)).collect()
}
