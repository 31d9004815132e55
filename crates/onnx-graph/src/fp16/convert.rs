//! Numbers and tensors in half precision and back.

use crate::{ElementType, Result, Weights, proto::TensorProto, weights::inline_tensor};

/// The largest finite half.
const LARGEST: f32 = 65504.0;

/// What ONNX Runtime's converter takes for the smallest half above zero, 2^-24 to three digits.
const SMALLEST: f32 = 5.96e-8;

/// How many numbers had no half near them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Finite numbers beyond the largest half, brought to it.
    pub(super) clamped: u64,
    /// Numbers between zero and the smallest half, brought to it.
    pub(super) raised: u64,
}

/// The nearest half, ties to even; infinite from 65520 on. A NaN stays one, quiet.
pub(super) fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let rounded = match magnitude {
        0x7f80_0001.. => 0x7e00 | (magnitude >> 13 & 0x3ff),
        0x477f_f000.. => 0x7c00,
        // Normal halves, from 2^-14: the exponent's bias goes from 127 to 15, and 13 bits of the fraction are rounded off.
        0x3880_0000.. => {
            let rebiased = magnitude - (112 << 23);
            (rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13
        }
        // Below, halves are whole multiples of 2^-24.
        _ => (f32::from_bits(magnitude) * 16_777_216.0).round_ties_even() as u32,
    };
    (bits >> 16 & 0x8000 | rounded) as u16
}

/// The number that a half stands for, exactly.
pub(super) fn single(half: u16) -> f32 {
    let (exponent, fraction) = (u32::from(half >> 10 & 0x1f), u32::from(half & 0x3ff));
    let magnitude = match exponent {
        0 => fraction as f32 / 16_777_216.0,
        0x1f => f32::from_bits(0x7f80_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if half & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// [`half`] with nothing lost to zero or infinity (reference 3.11): what lies between zero and the smallest half, or
/// beyond the largest, becomes that one. Zeros, infinities and NaN stay.
pub(super) fn bounded_half(value: f32, tally: &mut Tally) -> u16 {
    let magnitude = value.abs();
    let bounded = if magnitude.is_finite() && magnitude > LARGEST {
        tally.clamped += 1;
        LARGEST
    } else if magnitude > 0.0 && magnitude < SMALLEST {
        tally.raised += 1;
        SMALLEST
    } else {
        magnitude
    };
    half(bounded.copysign(value))
}

/// A float32 tensor's copy in halves, with its elements in the model.
pub(super) fn narrowed(tensor: &TensorProto, weights: &Weights, tally: &mut Tally) -> Result<TensorProto> {
    let bytes = weights.bytes(tensor)?;
    let halves = floats(&bytes).flat_map(|value| bounded_half(value, tally).to_le_bytes()).collect();
    Ok(with(tensor, ElementType::Float16, halves))
}

/// A float16 tensor's copy in float32, with its elements in the model.
pub(super) fn widened(tensor: &TensorProto, weights: &Weights) -> Result<TensorProto> {
    let bytes = weights.bytes(tensor)?;
    let halves = bytes.as_chunks::<2>().0.iter().map(|&half| u16::from_le_bytes(half));
    Ok(with(tensor, ElementType::Float32, halves.flat_map(|half| single(half).to_le_bytes()).collect()))
}

/// A float32 tensor's copy in plainly rounded halves; `None` where halves are too coarse for it: where the largest error
/// is above 2^-11 of the largest finite magnitude, the bound that rounding keeps among normal halves.
pub(super) fn rounded(tensor: &TensorProto, weights: &Weights) -> Result<Option<TensorProto>> {
    let bytes = weights.bytes(tensor)?;
    let (mut largest, mut error) = (0.0_f32, 0.0_f32);
    let mut halves = Vec::with_capacity(bytes.len() / 2);
    for value in floats(&bytes) {
        let rounded = half(value);
        if value.is_finite() {
            largest = largest.max(value.abs());
            // Infinite for a number beyond the halves.
            error = error.max((single(rounded) - value).abs());
        }
        halves.extend(rounded.to_le_bytes());
    }
    // Exact: a division by a power of two, but for magnitudes far below any half.
    let fine = error <= largest / 2048.0;
    Ok(fine.then(|| with(tensor, ElementType::Float16, halves)))
}

/// A scalar, or a list, in halves.
pub(super) fn half_tensor(dims: &[i64], values: &[f32], tally: &mut Tally) -> TensorProto {
    let halves = values.iter().flat_map(|&value| bounded_half(value, tally).to_le_bytes()).collect();
    TensorProto { name: None, ..inline_tensor("", ElementType::Float16, dims, halves) }
}

pub(super) fn element_type(tensor: &TensorProto) -> ElementType {
    ElementType::from_onnx(tensor.data_type.unwrap_or_default())
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value))
}

/// Everything of a tensor but its elements and their type.
fn with(tensor: &TensorProto, element: ElementType, bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: tensor.name.clone(),
        doc_string: tensor.doc_string.clone(),
        metadata_props: tensor.metadata_props.clone(),
        __buffa_unknown_fields: tensor.__buffa_unknown_fields.clone(),
        ..inline_tensor("", element, &tensor.dims, bytes)
    }
}
