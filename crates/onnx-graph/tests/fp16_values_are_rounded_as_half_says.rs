//! Numbers become the halves that the `half` crate rounds them to, with the ends of the range kept from zero and infinity, and
//! halves become exactly the numbers they stand for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/decoded.rs"]
mod decoded;

use half::f16;
use onnx_graph::{
    Attribute,
    ElementType::{Float16, Float32},
    Fp16Options, Fp16Report, GraphBuilder, KeptReason, Model, Weight, Weights,
};
use proptest::prelude::*;

fn with_weight(values: &[f32]) -> Model {
    GraphBuilder::new("test")
        .input("x", Float32, [1.into()])
        .weight("w", Weight::float32([values.len() as u64], values))
        .node("Add", ["x", "w"], ["y"])
        .output("y", Float32, [1.into()])
        .build()
}

/// The halves that the compute form makes of the values.
fn computed(values: &[f32]) -> (Vec<u16>, Fp16Report) {
    let (model, report) = with_weight(values).to_fp16(&Weights::inline(), &Fp16Options::compute()).unwrap();
    (halves(&model, "w"), report)
}

/// The halves that the storage form makes of the values, or why it makes none.
fn stored(values: &[f32]) -> Result<Vec<u16>, KeptReason> {
    let options = Fp16Options::storage().min_elements(1);
    let (model, report) = with_weight(values).to_fp16(&Weights::inline(), &options).unwrap();
    match report.kept.first() {
        Some(kept) => Err(kept.reason),
        None => Ok(halves(&model, "w_fp16")),
    }
}

fn halves(model: &Model, name: &str) -> Vec<u16> {
    let model = decoded::decoded(model);
    let tensor = decoded::initializer(&model, name).unwrap();
    assert_eq!(tensor.data_type, Some(Float16.to_onnx()));
    decoded::raw(tensor).as_chunks::<2>().0.iter().map(|&h| u16::from_le_bytes(h)).collect()
}

/// The rule of reference 3.11, on top of the `half` crate's rounding.
fn expected(value: f32) -> u16 {
    let magnitude = value.abs();
    let bounded = match magnitude {
        m if m > 0.0 && m < 5.96e-8 => 5.96e-8,
        m if m > 65504.0 && m.is_finite() => 65504.0,
        m => m,
    };
    f16::from_f32(bounded.copysign(value)).to_bits()
}

#[test]
fn every_half_stays_what_it_is() {
    let all: Vec<f32> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).collect();
    let (halves, report) = computed(&all);
    assert_eq!((report.clamped, report.raised), (0, 0));
    for (bits, (&half, &value)) in (0..=u16::MAX).zip(halves.iter().zip(&all)) {
        // Quiet: a signalling NaN does not outlive arithmetic.
        let same = if value.is_nan() { f16::from_bits(half).is_nan() } else { half == bits };
        assert!(same, "{bits:#06x} became {half:#06x}");
    }
    assert_eq!(stored(&all), Ok(halves));
}

#[test]
fn every_half_is_widened_to_what_it_stands_for() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let model = GraphBuilder::new("test")
        .weight("h", Weight::raw(Float16, [1 << 16], bytes))
        .node_with("Cast", ["h"], ["w"], [("to", Attribute::Int(1))])
        .output("w", Float32, [(1 << 16).into()])
        .build();
    let widened = decoded::decoded(&model.widened(&Weights::inline()).unwrap());
    let singles = decoded::raw(decoded::initializer(&widened, "w").unwrap());
    for (bits, single) in (0..=u16::MAX).zip(singles.as_chunks::<4>().0) {
        let (single, half) = (f32::from_le_bytes(*single), f16::from_bits(bits));
        let same = if half.is_nan() { single.is_nan() } else { single.to_bits() == half.to_f32().to_bits() };
        assert!(same, "{bits:#06x} became {single}");
    }
}

#[test]
fn the_ends_of_the_range_are_kept_and_counted() {
    let around = |v: f32| [v.next_down(), v, v.next_up()];
    let edges = [
        5.96e-8,
        2.0_f32.powi(-25),
        2.0_f32.powi(-24),
        2.0_f32.powi(-14),
        65504.0,
        65519.996,
        65520.0,
        f32::MAX,
    ];
    let mut values: Vec<f32> = edges.into_iter().flat_map(around).collect();
    values.extend([
        0.0,
        f32::INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        1.0 + 2.0_f32.powi(-11),
    ]);
    values.extend(values.clone().iter().map(|v| -v));
    let (halves, report) = computed(&values);
    assert_eq!(halves, values.iter().map(|&v| expected(v)).collect::<Vec<_>>());
    let count = |wanted: fn(f32) -> bool| values.iter().filter(|v| wanted(v.abs())).count() as u64;
    assert_eq!(report.clamped, count(|v| v > 65504.0 && v.is_finite()));
    assert_eq!(report.raised, count(|v| v > 0.0 && v < 5.96e-8));
}

#[test]
fn storage_refuses_what_halves_are_too_coarse_for() {
    for (values, fits) in [
        (&[1.0, 65504.0][..], true),
        (&[1.0, 65519.0], true),
        (&[1.0, 65520.0], false),
        (&[1.0, 1e-9], true),
        (&[1e-6, 2e-6], false),
        (&[1e-9], false),
        (&[0.0, -0.0], true),
        (&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN], true),
        (&[f32::INFINITY, 1e30], false),
    ] {
        let found = stored(values);
        assert_eq!(found.is_ok(), fits, "{values:?}");
        if let Ok(halves) = found {
            assert_eq!(halves, values.iter().map(|&v| f16::from_f32(v).to_bits()).collect::<Vec<_>>());
        }
    }
}

proptest! {
    #[test]
    fn any_number(bits in prop::collection::vec(any::<u32>(), 1..300)) {
        let values: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
        let (halves, _) = computed(&values);
        for (&half, &value) in halves.iter().zip(&values) {
            prop_assert_eq!(half, expected(value), "{} ({:#010x})", value, value.to_bits());
        }
    }

    /// Most bit patterns are beyond the halves: here most are within.
    #[test]
    fn any_number_near_the_halves(
        numbers in prop::collection::vec((any::<bool>(), 100_u32..145, 0_u32..1 << 23), 1..300),
    ) {
        let number = |(negative, exponent, fraction)| {
            f32::from_bits(u32::from(negative) << 31 | exponent << 23 | fraction)
        };
        let values: Vec<f32> = numbers.into_iter().map(number).collect();
        let (halves, _) = computed(&values);
        for (&half, &value) in halves.iter().zip(&values) {
            prop_assert_eq!(half, expected(value), "{} ({:#010x})", value, value.to_bits());
        }
    }

    /// What is stored is within the bound that is promised for it.
    #[test]
    fn storage_is_as_fine_as_it_says(
        numbers in prop::collection::vec(-1.0_f32..1.0, 1..50),
        scale in -40_i32..20,
    ) {
        let values: Vec<f32> = numbers.iter().map(|n| n * 2.0_f32.powi(scale)).collect();
        let largest = values.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        let error = |v: f32| (f16::from_f32(v).to_f32() - v).abs();
        let fits = values.iter().all(|&v| error(v) <= largest / 2048.0);
        prop_assert_eq!(stored(&values).is_ok(), fits);
    }
}
