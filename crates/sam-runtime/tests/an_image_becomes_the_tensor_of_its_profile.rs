//! Cases N1, N2, N3, EV1, EV2: scaled once, normalised once, channels in order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

use composite::Preprocessing;
use image::{Rgb, RgbImage};
use sam_runtime::image_tensor;

fn profile(width: u32, height: u32, mean: [f32; 3], std: [f32; 3]) -> Preprocessing {
    Preprocessing::stretch(width, height).normalized(mean, std)
}

const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

#[test]
fn a_graph_that_normalises_inside_gets_plain_zero_to_one() {
    // N2: black is exactly 0 and white exactly 1; a second normalisation would move both.
    let plain = profile(4, 2, [0.0; 3], [1.0; 3]);
    for (level, want) in [(0, 0.0), (255, 1.0), (51, 51.0 / 255.0)] {
        let tensor = image_tensor(&RgbImage::from_pixel(3, 3, Rgb([level; 3])), &plain).unwrap();
        assert_eq!(tensor.dim(), (1, 3, 2, 4));
        assert!(tensor.iter().all(|v| *v == want), "{level} gives {want}");
    }
}

#[test]
fn the_mean_is_subtracted_before_the_division() {
    // N1: x - mean / std, the slip that went unnoticed elsewhere, gives -1.12 in place of 2.25 for the red of white.
    let tensor =
        image_tensor(&RgbImage::from_pixel(2, 2, Rgb([255; 3])), &profile(2, 2, IMAGENET.0, IMAGENET.1))
            .unwrap();
    for channel in 0..3 {
        let want = (1.0 - IMAGENET.0[channel]) / IMAGENET.1[channel];
        assert_eq!(tensor[[0, channel, 1, 1]], want);
    }
    assert!((tensor[[0, 0, 0, 0]] - 2.248_908_3).abs() < 1e-6);
}

#[test]
fn channels_and_axes_stay_in_order() {
    // I4, G3: red first; the tensor's rows are the image's rows.
    let mut image = RgbImage::new(3, 2);
    image.put_pixel(2, 0, Rgb([255, 102, 51]));
    let tensor = image_tensor(&image, &profile(3, 2, [0.0; 3], [1.0; 3])).unwrap();
    assert_eq!([tensor[[0, 0, 0, 2]], tensor[[0, 1, 0, 2]], tensor[[0, 2, 0, 2]]], [1.0, 0.4, 0.2]);
    assert_eq!(tensor.sum(), 1.0 + 0.4 + 0.2);
}

#[test]
fn the_resized_bytes_are_what_is_scaled() {
    // N7: 8-bit after the resize, so every value is a whole number of 255ths.
    let image = RgbImage::from_fn(37, 23, |x, y| Rgb([(x * 6) as u8, (y * 11) as u8, 200]));
    let tensor = image_tensor(&image, &profile(16, 16, [0.0; 3], [1.0; 3])).unwrap();
    assert!(tensor.iter().all(|v| (v * 255.0 - (v * 255.0).round()).abs() < 1e-4));
}

#[test]
fn an_image_without_pixels_is_an_error() {
    let error = image_tensor(&RgbImage::new(0, 5), &profile(4, 4, [0.0; 3], [1.0; 3])).unwrap_err();
    assert_eq!(error.to_string(), "the image has no pixels (0 x 5)");
}
