//! Arithmetic on single elements as engines compute it; what would overflow or is not told is unknown.

use std::cmp::Ordering;

use crate::ElementType;

use super::op::Item;

/// An integer, where the type can hold it.
fn fitted(value: Option<i64>, element: ElementType) -> Item {
    let Some(value) = value else { return Item::Unknown };
    let fits = match element {
        ElementType::Int64 => true,
        ElementType::Uint64 => value >= 0,
        ElementType::Int32 => i32::try_from(value).is_ok(),
        ElementType::Uint32 => u32::try_from(value).is_ok(),
        ElementType::Int16 => i16::try_from(value).is_ok(),
        ElementType::Uint16 => u16::try_from(value).is_ok(),
        ElementType::Int8 => i8::try_from(value).is_ok(),
        ElementType::Uint8 => u8::try_from(value).is_ok(),
        ElementType::Bool => (0..=1).contains(&value),
        _ => false,
    };
    if fits { Item::Int(value) } else { Item::Unknown }
}

pub(super) fn cast(item: &Item, to: ElementType) -> Item {
    match (item, to) {
        (Item::Int(value), ElementType::Float32) => Item::Float(*value as f32),
        (Item::Int(value), ElementType::Bool) => Item::Int(i64::from(*value != 0)),
        (Item::Int(value), to) => fitted(Some(*value), to),
        (Item::Float(_), ElementType::Float32)
        | (Item::Symbol(_), ElementType::Int32 | ElementType::Int64) => item.clone(),
        (Item::Float(value), ElementType::Bool) => Item::Int(i64::from(*value != 0.0)),
        // Beyond this bound, and for NaN, engines differ.
        (Item::Float(value), to) if value.abs() < 9.0e18 => fitted(Some(value.trunc() as i64), to),
        _ => Item::Unknown,
    }
}

/// `element` is the result's type, and the operand's: what leaves it wraps around in engines, and is not known here.
pub(super) fn unary(op_type: &str, item: &Item, element: ElementType) -> Item {
    match (op_type, item) {
        ("Neg", Item::Int(value)) => fitted(value.checked_neg(), element),
        ("Neg", Item::Float(value)) => Item::Float(-value),
        ("Abs", Item::Int(value)) => fitted(value.checked_abs(), element),
        ("Abs", Item::Float(value)) => Item::Float(value.abs()),
        // A size is never negative.
        ("Abs", Item::Symbol(_)) => item.clone(),
        ("Not", Item::Int(value)) => Item::Int(i64::from(*value == 0)),
        ("Floor", Item::Float(value)) => Item::Float(value.floor()),
        ("Ceil", Item::Float(value)) => Item::Float(value.ceil()),
        _ => Item::Unknown,
    }
}

/// `remainder` is `Mod`'s attribute `fmod`: the result then has the dividend's sign.
pub(super) fn binary(op_type: &str, a: &Item, b: &Item, element: ElementType, remainder: bool) -> Item {
    match (a, b) {
        (Item::Int(a), Item::Int(b)) => integers(op_type, *a, *b, element, remainder),
        (Item::Float(a), Item::Float(b)) => floats(op_type, *a, *b),
        (Item::Symbol(_), Item::Int(n)) => symbol(op_type, a, *n),
        (Item::Int(n), Item::Symbol(_)) => match op_type {
            "Add" | "Mul" | "Equal" => symbol(op_type, b, *n),
            _ => Item::Unknown,
        },
        (Item::Symbol(x), Item::Symbol(y)) if x == y => match op_type {
            "Equal" | "GreaterOrEqual" | "LessOrEqual" => Item::Int(1),
            "Sub" | "Greater" | "Less" => Item::Int(0),
            "Min" | "Max" => a.clone(),
            _ => Item::Unknown,
        },
        _ => Item::Unknown,
    }
}

/// A size with a number: what holds for every size.
fn symbol(op_type: &str, size: &Item, n: i64) -> Item {
    match (op_type, n) {
        ("Add" | "Sub", 0) | ("Mul" | "Div", 1) => size.clone(),
        // Exporters ask whether a size is the -1 of a placeholder.
        ("Equal", n) if n < 0 => Item::Int(0),
        _ => Item::Unknown,
    }
}

fn integers(op_type: &str, a: i64, b: i64, element: ElementType, remainder: bool) -> Item {
    let truth = |yes| Item::Int(i64::from(yes));
    let value = match op_type {
        "Add" => a.checked_add(b),
        "Sub" => a.checked_sub(b),
        "Mul" => a.checked_mul(b),
        "Div" => a.checked_div(b),
        "Mod" if remainder => a.checked_rem(b),
        // The result has the divisor's sign.
        "Mod" => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        "Min" => Some(a.min(b)),
        "Max" => Some(a.max(b)),
        "And" => Some(a & b),
        "Or" => Some(a | b),
        _ => return compared(op_type, Some(a.cmp(&b))).map_or(Item::Unknown, truth),
    };
    fitted(value, element)
}

fn floats(op_type: &str, a: f32, b: f32) -> Item {
    match op_type {
        "Add" => Item::Float(a + b),
        "Sub" => Item::Float(a - b),
        "Mul" => Item::Float(a * b),
        "Div" => Item::Float(a / b),
        _ => match compared(op_type, a.partial_cmp(&b)) {
            Some(yes) => Item::Int(i64::from(yes)),
            None => Item::Unknown,
        },
    }
}

/// `None` for an operator that compares nothing. What cannot be ordered (NaN) is neither equal nor greater nor less.
fn compared(op_type: &str, order: Option<Ordering>) -> Option<bool> {
    Some(match op_type {
        "Equal" => order == Some(Ordering::Equal),
        "Greater" => order == Some(Ordering::Greater),
        "Less" => order == Some(Ordering::Less),
        "GreaterOrEqual" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        "LessOrEqual" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        _ => return None,
    })
}

/// One of two elements, or what holds of both.
pub(super) fn choose(condition: &Item, a: &Item, b: &Item) -> Item {
    match condition {
        Item::Int(0) => b.clone(),
        Item::Int(_) => a.clone(),
        _ if a == b => a.clone(),
        _ => Item::Unknown,
    }
}
