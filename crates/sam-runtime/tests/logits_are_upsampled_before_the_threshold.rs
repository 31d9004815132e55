//! Case M1: the mask is where the upsampled logit is above 0, strictly; thresholding first would give staircases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{Decoder, Encoder, SIDE, engines, open};
use image::RgbImage;
use ndarray::Array2;
use sam_runtime::{Click, logits_to_mask, resize_f32};

/// Bilinear upsampling written down directly: half-pixel centres, edges repeated.
fn bilinear(low: &Array2<f32>, width: usize, height: usize, x: usize, y: usize) -> f64 {
    let at = |size: usize, out: usize, i: usize| {
        let position = ((i as f64 + 0.5) * size as f64 / out as f64 - 0.5).clamp(0.0, size as f64 - 1.0);
        let low = position.floor() as usize;
        (low, (low + 1).min(size - 1), position - low as f64)
    };
    let (rows, columns) = low.dim();
    let ((y0, y1, fy), (x0, x1, fx)) = (at(rows, height, y), at(columns, width, x));
    let value = |y: usize, x: usize| f64::from(low[[y, x]]);
    let (top, bottom) =
        (value(y0, x0) * (1.0 - fx) + value(y0, x1) * fx, value(y1, x0) * (1.0 - fx) + value(y1, x1) * fx);
    top * (1.0 - fy) + bottom * fy
}

#[test]
fn the_mask_follows_the_upsampled_logits() {
    let (width, height) = (397, 251);
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
        let embeddings = segmenter.encode(&RgbImage::new(width, height)).unwrap();
        let found = segmenter.segment(&embeddings, [Click::positive(130.0, 90.0)]).unwrap();
        let low = found.low_res_logits();
        assert_eq!(low.dim(), (SIDE as usize, SIDE as usize));
        let full = found.logits();
        let (mut smooth, mut staircase) = (0, 0);
        for ((y, x), inside) in found.mask.indexed_iter() {
            let want = bilinear(low, width as usize, height as usize, x, y);
            assert!((f64::from(full[[y, x]]) - want).abs() < 1e-6);
            assert_eq!(*inside, full[[y, x]] > 0.0);
            // What thresholding the low-res logits first would have said.
            let early = low[[y * SIDE as usize / height as usize, x * SIDE as usize / width as usize]] > 0.0;
            smooth += usize::from(*inside);
            staircase += usize::from(early != *inside);
        }
        assert!(smooth > 2000 && staircase > 100, "{smooth} pixels, {staircase} of them told apart");
    }
}

#[test]
fn a_logit_of_exactly_zero_is_outside() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Zero, 2, engine);
        for (width, height) in [(90, 60), (64, 64), (64, 100), (1, 300)] {
            let embeddings =
                segmenter.encode(&RgbImage::from_pixel(width, height, image::Rgb([90; 3]))).unwrap();
            let found = segmenter.segment(&embeddings, Click::positive(0.5, 0.5)).unwrap();
            assert!(found.low_res_logits().iter().all(|l| *l == 0.0));
            assert!(found.mask.iter().all(|m| !m), "{engine:?}");
        }
    }
}

#[test]
fn the_mask_is_that_of_the_resized_logits_for_every_order_of_passes() {
    let logits = Array2::from_shape_fn((64, 64), |(y, x)| ((y * 7 + x * 13) % 29) as f32 - 14.0);
    for (width, height) in [(64, 64), (300, 64), (64, 300), (397, 251), (20, 30), (1, 1), (0, 5), (5, 0)] {
        let want = resize_f32(&logits, width, height).mapv(|l| l > 0.0);
        assert_eq!(logits_to_mask(&logits, width, height), want, "{width}x{height}");
    }
    // More than a hundred times as tall as wide: the other order.
    let tall = Array2::from_shape_fn((900, 3), |(y, x)| ((y * 7 + x * 13) % 29) as f32 - 14.0);
    assert_eq!(logits_to_mask(&tall, 40, 90), resize_f32(&tall, 40, 90).mapv(|l| l > 0.0));
}

#[test]
fn logits_around_zero_fall_on_their_sides() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Red, 2, engine);
        // EV3: 128 / 255 - 0.5 is above 0, 127 / 255 - 0.5 below.
        for (level, inside) in [(255, true), (128, true), (127, false), (0, false)] {
            let image = RgbImage::from_pixel(90, 60, image::Rgb([level, 0, 0]));
            let embeddings = segmenter.encode(&image).unwrap();
            let found = segmenter.segment(&embeddings, [Click::positive(1.0, 1.0)]).unwrap();
            assert!(found.mask.iter().all(|m| *m == inside), "{engine:?} {level}");
        }
    }
}
