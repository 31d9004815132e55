//! Elements of small tensors, followed through the operators that exporters compute shapes with.

use crate::{Dim, ElementType, Weights, proto::TensorProto};

use super::{
    dims::MAX_RANK,
    generate,
    index_ops::{self, Cut},
    items,
    op::{Item, Op, Value, declared},
    shape_ops,
};

/// Tensors of more elements are not followed.
pub(super) const MAX_ITEMS: usize = 4096;
/// Floats matter as scales of a resizing and as bounds of a range, which are a few.
const MAX_FLOATS: usize = 16;

/// Number of elements, where the shape is static and they are few enough to be followed.
pub(super) fn count(value: &Value) -> Option<usize> {
    let sizes = value.sizes()?;
    let count = sizes.iter().try_fold(1_usize, |n, &size| n.checked_mul(size))?;
    (count <= MAX_ITEMS).then_some(count)
}

/// The elements of a tensor of the model; `None` where they are many, of another type, or cannot be read.
pub(super) fn read(tensor: &TensorProto, weights: &Weights) -> Option<Vec<Item>> {
    let value = declared(tensor);
    let count = count(&value)?;
    let float = value.element == ElementType::Float32;
    let width = value.element.bits()? / 8;
    if !float && !holds_integers(value.element) || float && count > MAX_FLOATS {
        return None;
    }
    let bytes = weights.bytes(tensor).ok()?;
    let item = |bytes: &[u8]| item(bytes, value.element);
    Some(bytes.chunks_exact(usize::try_from(width).ok()?).map(item).collect())
}

fn holds_integers(element: ElementType) -> bool {
    use ElementType::{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(element, Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Bool)
}

fn item(bytes: &[u8], element: ElementType) -> Item {
    if let (ElementType::Float32, Ok(bytes)) = (element, bytes.try_into()) {
        return Item::Float(f32::from_le_bytes(bytes));
    }
    let value = bytes.iter().rev().fold(0_i128, |value, byte| value << 8 | i128::from(*byte));
    let one_more = 1_i128 << (8 * bytes.len());
    let signed =
        matches!(element, ElementType::Int8 | ElementType::Int16 | ElementType::Int32 | ElementType::Int64);
    let value = match element {
        ElementType::Bool => value.min(1),
        _ if signed && value >= one_more / 2 => value - one_more,
        _ => value,
    };
    // An unsigned one may lie beyond the signed range.
    i64::try_from(value).map_or(Item::Unknown, Item::Int)
}

/// Adds to the outputs' types the elements that follow from the inputs' elements.
pub(super) fn fill(op: &Op<'_, '_>, outputs: &mut [Value], weights: &Weights) {
    if op.op_type() == "Split" {
        return fill_parts(op, outputs);
    }
    let Some(output) = outputs.first_mut() else { return };
    let Some(count) = count(output) else { return };
    if !holds_integers(output.element) && output.element != ElementType::Float32 {
        return;
    }
    let found = elements(op, output, weights);
    output.content = found.filter(|items| items.len() == count && items.iter().any(|i| *i != Item::Unknown));
}

fn elements(op: &Op<'_, '_>, output: &Value, weights: &Weights) -> Option<Vec<Item>> {
    let copy = || op.items(0).map(<[Item]>::to_vec);
    match op.op_type() {
        "Constant" => constant(op, weights),
        "Shape" => Some(shape_ops::shape_range(op, op.dims(0)?)?.iter().map(Item::of).collect()),
        "Size" => Some(vec![Item::of(&super::dims::product(op.dims(0)?))]),
        "ConstantOfShape" => constant_of_shape(op, count(output)?, weights),
        "Range" => range(op),
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Dropout" => copy(),
        "Cast" => Some(op.items(0)?.iter().map(|item| items::cast(item, output.element)).collect()),
        "Neg" | "Abs" | "Not" | "Floor" | "Ceil" => {
            Some(op.items(0)?.iter().map(|item| items::unary(op.op_type(), item, output.element)).collect())
        }
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Min" | "Max" | "Equal" | "Greater" | "GreaterOrEqual"
        | "Less" | "LessOrEqual" | "And" | "Or"
            if op.inputs.len() == 2 =>
        {
            let [a, b] = [stretched(op.input(0)?, output)?, stretched(op.input(1)?, output)?];
            let remainder = op.flag("fmod");
            let of = |(a, b): (&Item, &Item)| items::binary(op.op_type(), a, b, output.element, remainder);
            Some(a.iter().zip(&b).map(of).collect())
        }
        "Where" => {
            let [condition, a, b] = [0, 1, 2].map(|i| op.input(i).and_then(|v| stretched(v, output)));
            let (condition, a, b) = (condition?, a?, b?);
            Some(condition.iter().zip(a.iter().zip(&b)).map(|(c, (a, b))| items::choose(c, a, b)).collect())
        }
        "Expand" => stretched(op.input(0)?, output),
        "Gather" => gather(op),
        "Slice" => slice(op, output),
        "Transpose" => transpose(op, output),
        "Concat" => concat(op),
        "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" => reduce(op, output),
        _ => None,
    }
}

fn constant(op: &Op<'_, '_>, weights: &Weights) -> Option<Vec<Item>> {
    let a = |name| op.attribute(name);
    if let Some(tensor) = a("value").and_then(|a| a.t.as_option()) {
        return read(tensor, weights);
    }
    if let Some(int) = a("value_int") {
        return Some(vec![Item::Int(int.i?)]);
    }
    if let Some(float) = a("value_float") {
        return Some(vec![Item::Float(float.f?)]);
    }
    if let Some(ints) = a("value_ints") {
        return Some(ints.ints.iter().map(|i| Item::Int(*i)).collect());
    }
    let floats = &a("value_floats")?.floats;
    (floats.len() <= MAX_FLOATS).then(|| floats.iter().map(|f| Item::Float(*f)).collect())
}

fn constant_of_shape(op: &Op<'_, '_>, count: usize, weights: &Weights) -> Option<Vec<Item>> {
    let item = match op.attribute("value").and_then(|a| a.t.as_option()) {
        Some(tensor) => read(tensor, weights)?.into_iter().next()?,
        None => Item::Float(0.0),
    };
    Some(vec![item; count])
}

fn range(op: &Op<'_, '_>) -> Option<Vec<Item>> {
    let length = generate::range_length(op).filter(|n| *n <= MAX_ITEMS as i128)?;
    let ([start], [step]) = (&op.integers(0)?[..], &op.integers(2)?[..]) else { return None };
    (0..i64::try_from(length).ok()?).map(|i| start.checked_add(step.checked_mul(i)?).map(Item::Int)).collect()
}

/// Elements of a tensor seen with other dims, by an offset and one stride for each.
fn view(items: &[Item], offset: i64, axes: &[(usize, i64)]) -> Option<Vec<Item>> {
    let count = axes.iter().try_fold(1_usize, |n, (size, _)| n.checked_mul(*size))?;
    if count > MAX_ITEMS || axes.len() > MAX_RANK {
        return None;
    }
    let element = |mut i: usize| {
        let mut at = offset;
        for &(size, stride) in axes.iter().rev() {
            at = at.checked_add(stride.checked_mul(i64::try_from(i % size).ok()?)?)?;
            i /= size;
        }
        items.get(usize::try_from(at).ok()?).cloned()
    };
    (0..count).map(element).collect()
}

/// Sizes and strides of a tensor in row-major order.
fn axes(value: &Value) -> Option<Vec<(usize, i64)>> {
    let mut axes: Vec<(usize, i64)> = value.sizes()?.into_iter().map(|size| (size, 0)).collect();
    let mut stride = 1_i64;
    for (size, of_axis) in axes.iter_mut().rev() {
        *of_axis = stride;
        stride = stride.checked_mul(i64::try_from(*size).ok()?)?;
    }
    Some(axes)
}

/// A value's elements with the dims that it is broadcast to.
fn stretched(value: &Value, to: &Value) -> Option<Vec<Item>> {
    let (own, sizes) = (axes(value)?, to.sizes()?);
    let missing = sizes.len().checked_sub(own.len())?;
    let axis = |(i, &size): (usize, &usize)| match i.checked_sub(missing).and_then(|i| own.get(i)) {
        Some((1, _)) | None => (size, 0),
        Some((_, stride)) => (size, *stride),
    };
    view(value.content.as_ref()?, 0, &sizes.iter().enumerate().map(axis).collect::<Vec<_>>())
}

/// Along the first axis.
fn gather(op: &Op<'_, '_>) -> Option<Vec<Item>> {
    let (data, sizes) = (op.items(0)?, op.input(0)?.sizes()?);
    if op.axis("axis", 0, sizes.len())? != 0 {
        return None;
    }
    let rows = sizes.first()?;
    let length = data.len().checked_div(*rows)?;
    let indices = op.integers(1)?;
    if indices.len().checked_mul(length)? > MAX_ITEMS {
        return None;
    }
    let mut found = Vec::new();
    for index in indices {
        let row = crate::attributes::axis(index, *rows)?;
        found.extend_from_slice(data.get(row * length..(row + 1) * length)?);
    }
    Some(found)
}

fn slice(op: &Op<'_, '_>, output: &Value) -> Option<Vec<Item>> {
    let mut axes = axes(op.input(0)?)?;
    let mut offset = 0_i64;
    for Cut { axis, start, end, step } in index_ops::cuts(op, axes.len())? {
        let (size, stride) = axes.get_mut(axis)?;
        let (first, taken, step) = index_ops::range(*size as u64, start.int()?, end.int()?, step.int()?)?;
        offset = offset.checked_add(first.checked_mul(*stride)?)?;
        (*size, *stride) = (usize::try_from(taken).ok()?, stride.checked_mul(step)?);
    }
    let sizes: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
    (Some(sizes) == output.sizes()).then(|| view(op.items(0)?, offset, &axes)).flatten()
}

fn transpose(op: &Op<'_, '_>, output: &Value) -> Option<Vec<Item>> {
    let axes = axes(op.input(0)?)?;
    let turned = shape_ops::permutation(op, axes.len())?;
    let axes: Option<Vec<_>> = turned.into_iter().map(|i| axes.get(i).copied()).collect();
    view(op.items(0)?, 0, &axes?).filter(|items| Some(items.len()) == count(output))
}

/// Along the first axis, where each part's elements lie together. An unknown part of one element leaves the others known.
fn concat(op: &Op<'_, '_>) -> Option<Vec<Item>> {
    if op.axis("axis", 1, op.rank(0)?)? != 0 {
        return None;
    }
    let mut all = Vec::new();
    for part in op.given() {
        match &part.content {
            Some(items) => all.extend_from_slice(items),
            None => all.extend(vec![Item::Unknown; count(part)?]),
        }
        if all.len() > MAX_ITEMS {
            return None;
        }
    }
    Some(all)
}

/// To one element; along single axes nothing is followed.
fn reduce(op: &Op<'_, '_>, output: &Value) -> Option<Vec<Item>> {
    let by = match op.op_type() {
        "ReduceProd" => "Mul",
        "ReduceSum" => "Add",
        "ReduceMax" => "Max",
        _ => "Min",
    };
    let (first, others) = op.items(0)?.split_first()?;
    if count(output)? != 1 {
        return None;
    }
    let all = others.iter().fold(first.clone(), |a, b| items::binary(by, &a, b, output.element, false));
    Some(vec![all])
}

/// A split of a list.
fn fill_parts(op: &Op<'_, '_>, outputs: &mut [Value]) {
    let (Some(items), Some(1)) = (op.items(0), op.rank(0)) else { return };
    let mut rest = items;
    for output in outputs {
        let Some([Dim::Static(size)]) = output.dims() else { return };
        let Some((part, others)) = usize::try_from(*size).ok().and_then(|n| rest.split_at_checked(n)) else {
            return;
        };
        output.content = Some(part.to_vec());
        rest = others;
    }
}
