//! Operators on constants, those alone whose result leaves no choice: every element is one of the inputs', or one that
//! IEEE 754 rounds in one way.

use std::cmp::Ordering;

use crate::{
    ElementType, Result, Weights,
    proto::{NodeProto, TensorProto},
};

use crate::attributes::{axis, int, ints, perm, tensor};

/// Elements that all inputs of a node may have together.
pub(super) const MAX_FOLDED: usize = 1 << 24;

/// A constant's dims and elements, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    dims: Vec<usize>,
    elements: Elements,
}

#[derive(Debug, Clone, PartialEq)]
enum Elements {
    Float32(Vec<f32>),
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Bool(Vec<bool>),
}

use Elements::{Bool, Float32, Int32, Int64};

/// The same for whatever elements there are.
macro_rules! each {
    ($elements:expr, $values:ident => $result:expr) => {
        match $elements {
            Float32($values) => Float32($result),
            Int64($values) => Int64($result),
            Int32($values) => Int32($result),
            Bool($values) => Bool($result),
        }
    };
}

impl Value {
    pub(super) fn int64s(dims: Vec<usize>, values: Vec<i64>) -> Self {
        Self { dims, elements: Int64(values) }
    }

    /// `None` for a type that is not computed with, or a tensor that is too large.
    pub(super) fn read(tensor: &TensorProto, weights: &Weights) -> Result<Option<Self>> {
        let dims: Option<Vec<usize>> = tensor.dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
        // Of nothing there is nothing to compute.
        let Some(dims) = dims.filter(|dims| count(dims).is_some_and(|n| n > 0 && n <= MAX_FOLDED)) else {
            return Ok(None);
        };
        // Only once the type is one that is computed with.
        let bytes = || weights.bytes(tensor);
        let elements = match ElementType::from_onnx(tensor.data_type.unwrap_or_default()) {
            ElementType::Float32 => {
                Float32(bytes()?.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect())
            }
            ElementType::Int64 => {
                Int64(bytes()?.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect())
            }
            ElementType::Int32 => {
                Int32(bytes()?.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b)).collect())
            }
            ElementType::Bool => Bool(bytes()?.iter().map(|&b| b != 0).collect()),
            _ => return Ok(None),
        };
        Ok(Some(Self { dims, elements }))
    }

    pub(super) fn len(&self) -> usize {
        match &self.elements {
            Float32(v) => v.len(),
            Int64(v) => v.len(),
            Int32(v) => v.len(),
            Bool(v) => v.len(),
        }
    }

    pub(super) fn element(&self) -> ElementType {
        match &self.elements {
            Float32(_) => ElementType::Float32,
            Int64(_) => ElementType::Int64,
            Int32(_) => ElementType::Int32,
            Bool(_) => ElementType::Bool,
        }
    }

    pub(super) fn dims_i64(&self) -> Vec<i64> {
        self.dims.iter().map(|&dim| dim as i64).collect()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match &self.elements {
            Float32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Int64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Int32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Bool(v) => v.iter().map(|&x| u8::from(x)).collect(),
        }
    }

    /// Integers that say how something is shaped.
    fn numbers(&self) -> Option<Vec<i64>> {
        match &self.elements {
            Int64(v) => Some(v.clone()),
            Int32(v) => Some(v.iter().map(|&x| i64::from(x)).collect()),
            _ => None,
        }
    }

    /// The elements at these places, in a tensor of these dims.
    fn gathered(&self, dims: Vec<usize>, places: &[usize]) -> Option<Self> {
        if count(&dims)? != places.len() {
            return None;
        }
        let elements =
            each!(&self.elements, v => places.iter().map(|&at| v.get(at).copied()).collect::<Option<_>>()?);
        Some(Self { dims, elements })
    }

    fn reshaped(&self, dims: Vec<usize>) -> Option<Self> {
        (count(&dims)? == self.len()).then(|| Self { dims, elements: self.elements.clone() })
    }
}

/// Elements of a tensor of these dims.
fn count(dims: &[usize]) -> Option<usize> {
    dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim))
}

/// The result of a node; `None` where it is not computed here, would have more than `limit` elements, or the node is not
/// as it should be.
pub(super) fn evaluate(
    node: &NodeProto,
    inputs: &[Option<Value>],
    opset: i64,
    limit: usize,
) -> Option<Value> {
    let input = |at: usize| inputs.get(at).and_then(Option::as_ref);
    let first = input(0)?;
    let numbers = |at: usize, name: &str| match (ints(node, name), input(at)) {
        (Some(values), _) => Some(values.to_vec()),
        (None, Some(value)) => value.numbers(),
        (None, None) => None,
    };
    match node.op_type.as_deref()? {
        "Identity" => Some(first.clone()),
        "Reshape" => reshape(first, &numbers(1, "shape")?, int(node, "allowzero") == Some(1)),
        "Squeeze" => squeeze(first, numbers(1, "axes")),
        "Unsqueeze" => unsqueeze(first, &numbers(1, "axes")?),
        "Transpose" => transpose(first, &perm(node, Some(first.dims.len()))?),
        "Concat" => concat(inputs, int(node, "axis")?, limit),
        "Slice" => {
            let rank = first.dims.len() as i64;
            let starts = numbers(1, "starts")?;
            let axes = numbers(3, "axes").unwrap_or_else(|| (0..rank.min(starts.len() as i64)).collect());
            let steps = input(4).map_or_else(|| Some(vec![1; starts.len()]), Value::numbers)?;
            slice(first, &starts, &numbers(2, "ends")?, &axes, &steps)
        }
        "Gather" => gather(first, input(1)?, int(node, "axis").unwrap_or(0), limit),
        "Expand" => {
            let shape: Vec<usize> =
                numbers(1, "shape")?.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
            let dims = broadcast(&first.dims, &shape)?;
            let total = count(&dims).filter(|&total| total <= limit)?;
            let places: Vec<usize> = (0..total).map(|at| place(at, &dims, &first.dims)).collect();
            first.gathered(dims, &places)
        }
        "ConstantOfShape" => {
            let dims: Vec<usize> =
                first.numbers()?.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
            let total = count(&dims).filter(|&total| total <= limit)?;
            let fill = match tensor(node, "value") {
                Some(tensor) => Value::read(tensor, &Weights::inline()).ok()??,
                None => Value { dims: vec![1], elements: Float32(vec![0.0]) },
            };
            fill.gathered(dims, &vec![0; total])
        }
        "Cast" => cast(first, ElementType::from_onnx(i32::try_from(int(node, "to")?).ok()?)),
        "Neg" => unary(first, |v| -v, i64::checked_neg),
        "Abs" => unary(first, f32::abs, i64::checked_abs),
        "Sqrt" => unary(first, f32::sqrt, |_| None),
        "Floor" => unary(first, f32::floor, |_| None),
        "Ceil" => unary(first, f32::ceil, |_| None),
        "Not" => match &first.elements {
            Bool(v) => {
                Some(Value { dims: first.dims.clone(), elements: Bool(v.iter().map(|v| !v).collect()) })
            }
            _ => None,
        },
        // Before operator set 7 shapes were matched in another way.
        "Add" if opset >= 7 => binary(first, input(1)?, limit, |a, b| a + b, i64::checked_add),
        "Sub" if opset >= 7 => binary(first, input(1)?, limit, |a, b| a - b, i64::checked_sub),
        "Mul" if opset >= 7 => binary(first, input(1)?, limit, |a, b| a * b, i64::checked_mul),
        // Integers are cut off towards zero, which is Rust's rule too.
        "Div" if opset >= 7 => binary(first, input(1)?, limit, |a, b| a / b, i64::checked_div),
        "Equal" if opset >= 7 => {
            compare(first, input(1)?, limit, |a, b| a.partial_cmp(&b) == Some(Ordering::Equal), |a, b| a == b)
        }
        "Less" if opset >= 7 => compare(first, input(1)?, limit, |a, b| a < b, |a, b| a < b),
        "Greater" if opset >= 7 => compare(first, input(1)?, limit, |a, b| a > b, |a, b| a > b),
        "Where" => choose(first, input(1)?, input(2)?, limit),
        _ => None,
    }
}

fn reshape(value: &Value, shape: &[i64], zero_is_zero: bool) -> Option<Value> {
    let mut dims = Vec::with_capacity(shape.len());
    let mut open = None;
    for (at, &size) in shape.iter().enumerate() {
        dims.push(match size {
            0 if !zero_is_zero => *value.dims.get(at)?,
            -1 if open.is_none() => {
                open = Some(at);
                1
            }
            size => usize::try_from(size).ok()?,
        });
    }
    if let Some(at) = open {
        dims[at] = value.len().checked_div(count(&dims)?)?;
    }
    value.reshaped(dims)
}

fn squeeze(value: &Value, axes: Option<Vec<i64>>) -> Option<Value> {
    let rank = value.dims.len();
    let gone: Vec<usize> = match axes {
        // Some engines take no axes for all of size 1, some for none.
        Some(axes) if axes.is_empty() => return None,
        Some(axes) => axes.into_iter().map(|a| axis(a, rank)).collect::<Option<_>>()?,
        None => (0..rank).filter(|&at| value.dims[at] == 1).collect(),
    };
    let kept = (0..rank).filter(|at| !gone.contains(at)).map(|at| value.dims[at]).collect();
    value.reshaped(kept)
}

fn unsqueeze(value: &Value, axes: &[i64]) -> Option<Value> {
    let rank = value.dims.len().checked_add(axes.len())?;
    let new: Vec<usize> = axes.iter().map(|&a| axis(a, rank)).collect::<Option<_>>()?;
    let mut old = value.dims.iter();
    let dims: Option<Vec<usize>> =
        (0..rank).map(|at| if new.contains(&at) { Some(1) } else { old.next().copied() }).collect();
    value.reshaped(dims?)
}

fn transpose(value: &Value, axes: &[usize]) -> Option<Value> {
    if axes.len() != value.dims.len() {
        return None;
    }
    let dims: Vec<usize> = axes.iter().map(|&axis| value.dims[axis]).collect();
    let strides = strides(&value.dims);
    let places: Vec<usize> = (0..value.len())
        .map(|at| indices(at, &dims).iter().zip(axes).map(|(index, &axis)| index * strides[axis]).sum())
        .collect();
    value.gathered(dims, &places)
}

fn concat(inputs: &[Option<Value>], along: i64, limit: usize) -> Option<Value> {
    let all: Vec<&Value> = inputs.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let first = all.first()?;
    let along = axis(along, first.dims.len())?;
    let alike = |other: &&&Value| {
        other.dims.len() == first.dims.len()
            && (0..first.dims.len()).all(|at| at == along || other.dims[at] == first.dims[at])
            && other.element() == first.element()
    };
    if !all.iter().all(|value| alike(&value)) {
        return None;
    }
    let mut dims = first.dims.clone();
    dims[along] = all.iter().try_fold(0usize, |sum, value| sum.checked_add(value.dims[along]))?;
    count(&dims).filter(|&total| total <= limit)?;
    let outer = count(&dims[..along])?;
    let mut elements = each!(&first.elements, _v => Vec::new());
    for row in 0..outer {
        for value in &all {
            let inner = count(&value.dims[along..])?;
            let range = row * inner..(row + 1) * inner;
            match (&mut elements, &value.elements) {
                (Float32(into), Float32(from)) => into.extend_from_slice(from.get(range)?),
                (Int64(into), Int64(from)) => into.extend_from_slice(from.get(range)?),
                (Int32(into), Int32(from)) => into.extend_from_slice(from.get(range)?),
                (Bool(into), Bool(from)) => into.extend_from_slice(from.get(range)?),
                _ => return None,
            }
        }
    }
    Some(Value { dims, elements })
}

fn slice(value: &Value, starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64]) -> Option<Value> {
    if [ends.len(), axes.len(), steps.len()].iter().any(|&length| length != starts.len()) {
        return None;
    }
    let mut picked: Vec<Vec<usize>> = value.dims.iter().map(|&dim| (0..dim).collect()).collect();
    for (((&start, &end), &along), &step) in starts.iter().zip(ends).zip(axes).zip(steps) {
        let along = axis(along, value.dims.len())?;
        let dim = i64::try_from(value.dims[along]).ok()?;
        // Only forwards: backwards the ends mean something else.
        let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
        let place = |at: i64| (if at < 0 { at.saturating_add(dim) } else { at }).clamp(0, dim) as usize;
        let (start, end) = (place(start), place(end));
        picked[along] = (start..end.max(start)).step_by(step).collect();
    }
    let dims: Vec<usize> = picked.iter().map(Vec::len).collect();
    let strides = strides(&value.dims);
    let places: Vec<usize> = (0..count(&dims)?)
        .map(|at| {
            let indices = indices(at, &dims);
            indices.iter().zip(&picked).zip(&strides).map(|((&i, picked), stride)| picked[i] * stride).sum()
        })
        .collect();
    value.gathered(dims, &places)
}

fn gather(value: &Value, index: &Value, along: i64, limit: usize) -> Option<Value> {
    let along = axis(along, value.dims.len())?;
    let size = value.dims[along];
    let picked: Vec<usize> = index.numbers()?.into_iter().map(|at| axis(at, size)).collect::<Option<_>>()?;
    let dims: Vec<usize> =
        value.dims[..along].iter().chain(&index.dims).chain(&value.dims[along + 1..]).copied().collect();
    let inner = count(&value.dims[along + 1..])?;
    let outer = count(&value.dims[..along])?;
    count(&dims).filter(|&total| total <= limit)?;
    let mut places = Vec::new();
    for row in 0..outer {
        for &at in &picked {
            let start = (row * size + at) * inner;
            places.extend(start..start + inner);
        }
    }
    value.gathered(dims, &places)
}

/// Only what loses nothing, or what every processor rounds alike.
fn cast(value: &Value, to: ElementType) -> Option<Value> {
    let elements = match (&value.elements, to) {
        (same, to) if value.element() == to => same.clone(),
        (Int64(v), ElementType::Int32) => {
            Int32(v.iter().map(|&x| i32::try_from(x).ok()).collect::<Option<_>>()?)
        }
        (Int32(v), ElementType::Int64) => Int64(v.iter().map(|&x| i64::from(x)).collect()),
        (Int64(v), ElementType::Float32) => Float32(v.iter().map(|&x| x as f32).collect()),
        (Int32(v), ElementType::Float32) => Float32(v.iter().map(|&x| x as f32).collect()),
        (Bool(v), ElementType::Float32) => Float32(v.iter().map(|&x| f32::from(u8::from(x))).collect()),
        (Bool(v), ElementType::Int64) => Int64(v.iter().map(|&x| i64::from(x)).collect()),
        (Bool(v), ElementType::Int32) => Int32(v.iter().map(|&x| i32::from(x)).collect()),
        (Int64(v), ElementType::Bool) => Bool(v.iter().map(|&x| x != 0).collect()),
        (Int32(v), ElementType::Bool) => Bool(v.iter().map(|&x| x != 0).collect()),
        (Float32(v), ElementType::Int64) => Int64(v.iter().map(|&x| whole(x)).collect::<Option<_>>()?),
        _ => return None,
    };
    Some(Value { dims: value.dims.clone(), elements })
}

/// Beyond these bounds, and for NaN, what comes out is anybody's choice.
fn whole(value: f32) -> Option<i64> {
    (value.abs() < 9.0e18).then_some(value as i64)
}

fn unary(value: &Value, float: impl Fn(f32) -> f32, integer: impl Fn(i64) -> Option<i64>) -> Option<Value> {
    let elements = match &value.elements {
        Float32(v) => Float32(v.iter().map(|&x| float(x)).collect()),
        Int64(v) => Int64(v.iter().map(|&x| integer(x)).collect::<Option<_>>()?),
        Int32(v) => Int32(
            v.iter()
                .map(|&x| integer(i64::from(x)).and_then(|x| i32::try_from(x).ok()))
                .collect::<Option<_>>()?,
        ),
        Bool(_) => return None,
    };
    Some(Value { dims: value.dims.clone(), elements })
}

/// For each element of a result its places in the one operand and in the other.
type Pairs = Vec<(usize, usize)>;

fn paired(a: &Value, b: &Value, limit: usize) -> Option<(Vec<usize>, Pairs)> {
    let dims = broadcast(&a.dims, &b.dims)?;
    let total = count(&dims).filter(|&total| total <= limit)?;
    let places = (0..total).map(|at| (place(at, &dims, &a.dims), place(at, &dims, &b.dims))).collect();
    Some((dims, places))
}

/// Element by element; an integer that overflows ends in `None`.
fn binary(
    a: &Value,
    b: &Value,
    limit: usize,
    float: impl Fn(f32, f32) -> f32,
    integer: impl Fn(i64, i64) -> Option<i64>,
) -> Option<Value> {
    let (dims, places) = paired(a, b, limit)?;
    let elements = match (&a.elements, &b.elements) {
        (Float32(a), Float32(b)) => {
            Float32(places.iter().map(|&(i, j)| Some(float(*a.get(i)?, *b.get(j)?))).collect::<Option<_>>()?)
        }
        (Int64(a), Int64(b)) => {
            Int64(places.iter().map(|&(i, j)| integer(*a.get(i)?, *b.get(j)?)).collect::<Option<_>>()?)
        }
        (Int32(a), Int32(b)) => {
            let one = |i: usize, j: usize| integer(i64::from(*a.get(i)?), i64::from(*b.get(j)?));
            let narrow = |x: i64| i32::try_from(x).ok();
            Int32(places.iter().map(|&(i, j)| one(i, j).and_then(narrow)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Value { dims, elements })
}

fn compare(
    a: &Value,
    b: &Value,
    limit: usize,
    float: impl Fn(f32, f32) -> bool,
    integer: impl Fn(i64, i64) -> bool,
) -> Option<Value> {
    let (dims, places) = paired(a, b, limit)?;
    let elements: Option<Vec<bool>> = if let (Float32(a), Float32(b)) = (&a.elements, &b.elements) {
        places.iter().map(|&(i, j)| Some(float(*a.get(i)?, *b.get(j)?))).collect()
    } else {
        let (a, b) = (a.numbers()?, b.numbers()?);
        places.iter().map(|&(i, j)| Some(integer(*a.get(i)?, *b.get(j)?))).collect()
    };
    Some(Value { dims, elements: Bool(elements?) })
}

fn choose(condition: &Value, a: &Value, b: &Value, limit: usize) -> Option<Value> {
    let Bool(which) = &condition.elements else { return None };
    let dims = broadcast(&broadcast(&condition.dims, &a.dims)?, &b.dims)?;
    let total = count(&dims).filter(|&total| total <= limit)?;
    let from = |at: usize| which.get(place(at, &dims, &condition.dims)).copied();
    let (i, j) = (|at: usize| place(at, &dims, &a.dims), |at: usize| place(at, &dims, &b.dims));
    macro_rules! pick {
        ($a:ident, $b:ident) => {
            (0..total)
                .map(|at| if from(at)? { $a.get(i(at)).copied() } else { $b.get(j(at)).copied() })
                .collect::<Option<_>>()?
        };
    }
    let elements = match (&a.elements, &b.elements) {
        (Float32(a), Float32(b)) => Float32(pick!(a, b)),
        (Int64(a), Int64(b)) => Int64(pick!(a, b)),
        (Int32(a), Int32(b)) => Int32(pick!(a, b)),
        (Bool(a), Bool(b)) => Bool(pick!(a, b)),
        _ => return None,
    };
    Some(Value { dims, elements })
}

/// ONNX's rule: dims are matched from the last, and one of size 1 is repeated.
fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[usize], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|at| match (dim(a, at), dim(b, at)) {
            (x, y) if x == y => Some(x),
            (1, other) | (other, 1) => Some(other),
            _ => None,
        })
        .collect()
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(dims[at]);
    }
    strides
}

/// Indices of the element at a place.
fn indices(mut at: usize, dims: &[usize]) -> Vec<usize> {
    let mut indices = vec![0; dims.len()];
    for (index, &dim) in indices.iter_mut().zip(dims).rev() {
        *index = at % dim.max(1);
        at /= dim.max(1);
    }
    indices
}

/// Where the element at a place of the result lies in an input that is repeated.
fn place(at: usize, dims: &[usize], of: &[usize]) -> usize {
    let skipped = dims.len() - of.len();
    let indices = indices(at, dims);
    let own = indices.iter().skip(skipped).zip(of).zip(strides(of));
    own.map(|((&index, &dim), stride)| if dim == 1 { 0 } else { index * stride }).sum()
}
