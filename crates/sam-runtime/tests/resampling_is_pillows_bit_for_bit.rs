//! Reference section 4.3, cases N5, N7: resized bytes and floats have the digests that Pillow 12.3.0 gives.
//! The golden file is made by `fixtures/images/resample/make_resample.py`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::digest;
use image::RgbImage;
use ndarray::Array2;
use sam_runtime::{resize_f32, resize_rgb8};
use serde_json::Value;

/// The generator that the golden file's script describes: number `i` of a case.
fn word(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn bytes_of(image: &Array2<f32>) -> Vec<u8> {
    image.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_golden_case_has_its_digest() {
    let path = common::fixtures().join("images/resample/golden.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 14);
    for case in cases {
        let number = |v: &Value| v.as_u64().unwrap();
        let size = |v: &Value| (number(&v[0]) as u32, number(&v[1]) as u32);
        let (seed, (from_w, from_h), (to_w, to_h)) =
            (number(&case["seed"]), size(&case["from"]), size(&case["to"]));
        let count = u64::from(from_w) * u64::from(from_h);
        let (input, output) = if case["kind"] == "rgb8" {
            let samples = (0..count * 3).map(|i| (word(seed, i) >> 56) as u8).collect();
            let image = RgbImage::from_raw(from_w, from_h, samples).unwrap();
            (digest(image.as_raw()), digest(resize_rgb8(&image, to_w, to_h).as_raw()))
        } else {
            let value = |i| ((word(seed, i) >> 40) as f64 * 40.0 / f64::from(1 << 24) - 20.0) as f32;
            let samples = (0..count).map(value).collect();
            let image = Array2::from_shape_vec((from_h as usize, from_w as usize), samples).unwrap();
            (digest(&bytes_of(&image)), digest(&bytes_of(&resize_f32(&image, to_w as usize, to_h as usize))))
        };
        assert_eq!(input, case["input_sha256"].as_str().unwrap(), "the input of {case}");
        assert_eq!(
            output,
            case["sha256"].as_str().unwrap(),
            "{} {}x{} -> {}x{}",
            case["kind"],
            from_w,
            from_h,
            to_w,
            to_h
        );
    }
}

#[test]
fn a_view_with_strides_is_resized_like_its_copy() {
    // Case I8: a transposed view must not be misread.
    let image = Array2::from_shape_fn((7, 5), |(y, x)| (y * 5 + x) as f32);
    let turned = image.clone().reversed_axes();
    let copied = turned.as_standard_layout().into_owned();
    assert_eq!(resize_f32(&turned, 13, 11), resize_f32(&copied, 13, 11));
}

#[test]
fn empty_sizes_give_empty_images() {
    assert_eq!(resize_rgb8(&RgbImage::new(4, 4), 0, 3).dimensions(), (0, 3));
    assert_eq!(resize_rgb8(&RgbImage::new(0, 0), 2, 2).dimensions(), (2, 2));
    assert_eq!(resize_f32(&Array2::zeros((0, 3)), 2, 2).dim(), (2, 2));
}
