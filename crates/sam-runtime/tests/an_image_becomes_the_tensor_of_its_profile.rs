//! Cases N1, N2, N3, EV1, EV2: scaled once, normalised once, channels in order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

use composite::{ChannelOrder, Preprocessing};
use image::{Rgb, RgbImage};
use ndarray::{Array4, Ix4};
use onnx_graph::ElementType;
use sam_runtime::{ImageError, Tensor};

/// As floats, with four axes.
fn image_tensor(image: &RgbImage, profile: &Preprocessing) -> Result<Array4<f32>, ImageError> {
    let tensor = sam_runtime::image_tensor(image, profile)?;
    Ok(tensor.floats().unwrap().into_owned().into_dimensionality::<Ix4>().unwrap())
}

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

/// Reference 1.10: ranges other than [0, 1], blue first, halves and bytes are all in publishers' metadata.
#[test]
fn other_ranges_channels_and_types() {
    let mut image = RgbImage::from_pixel(2, 1, Rgb([255, 102, 0]));
    image.put_pixel(1, 0, Rgb([0, 51, 255]));
    let plain = Preprocessing::stretch(2, 1);
    let flat = |profile: Preprocessing| image_tensor(&image, &profile).unwrap().into_raw_vec_and_offset().0;
    assert_eq!(flat(plain), [1.0, 0.0, 0.4, 0.2, 0.0, 1.0]);
    assert_eq!(flat(plain.channels(ChannelOrder::Bgr)), [0.0, 1.0, 0.4, 0.2, 1.0, 0.0]);
    assert_eq!(flat(plain.range([0.0, 255.0])), [255.0, 0.0, 102.0, 51.0, 0.0, 255.0]);
    let centred = flat(plain.range([-1.0, 1.0]));
    for (found, wanted) in centred.iter().zip([1.0, -1.0, -0.2, -0.6, -1.0, 1.0]) {
        assert!((found - wanted).abs() < 1e-6, "{centred:?}");
    }
    // Mean and deviation belong to colours, not to places.
    let blue_only = plain.channels(ChannelOrder::Bgr).normalized([0.0, 0.0, 0.5], [1.0, 1.0, 0.25]);
    assert_eq!(flat(blue_only), [-2.0, 2.0, 0.4, 0.2, 1.0, 0.0]);
    let Tensor::F16(halves) =
        sam_runtime::image_tensor(&image, &plain.element_type(ElementType::Float16)).unwrap()
    else {
        panic!("no halves")
    };
    assert_eq!(halves.shape(), [1, 3, 1, 2]);
    assert_eq!(halves[[0, 1, 0, 0]].to_f32(), half::f16::from_f32(0.4).to_f32());
    let bytes = plain.range([0.0, 255.0]).element_type(ElementType::Uint8).channels(ChannelOrder::Bgr);
    let Tensor::U8(bytes) = sam_runtime::image_tensor(&image, &bytes).unwrap() else { panic!("no bytes") };
    assert_eq!(bytes.into_raw_vec_and_offset().0, [0, 255, 102, 51, 255, 0]);
}

#[test]
fn a_type_that_pictures_cannot_have() {
    let profile = Preprocessing::stretch(2, 2).element_type(ElementType::Int64);
    let error = sam_runtime::image_tensor(&RgbImage::new(2, 2), &profile).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an image input of type int64 is not supported; float32, float16 and uint8 are"
    );
}
