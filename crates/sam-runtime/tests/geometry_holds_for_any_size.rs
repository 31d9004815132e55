//! Properties of the geometry, for sizes and points nobody thought of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Decoder, Encoder, centroid, open};
use image::{Rgb, RgbImage};
use ndarray::Array2;
use proptest::prelude::*;
use sam_runtime::{Click, Error, engine::EngineChoice, resize_f32, resize_rgb8};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A constant picture stays constant, whatever the sizes.
    #[test]
    fn resizing_keeps_a_constant(
        from in (1_u32..90, 1_u32..90), to in (1_u32..90, 1_u32..90), level in any::<[u8; 3]>(), value in -40_f32..40.0,
    ) {
        let resized = resize_rgb8(&RgbImage::from_pixel(from.0, from.1, Rgb(level)), to.0, to.1);
        prop_assert_eq!(resized.dimensions(), to);
        prop_assert!(resized.pixels().all(|p| p.0 == level));
        let logits = Array2::from_elem((from.1 as usize, from.0 as usize), value);
        let resized = resize_f32(&logits, to.0 as usize, to.1 as usize);
        prop_assert_eq!(resized.dim(), (to.1 as usize, to.0 as usize));
        prop_assert!(resized.iter().all(|v| (v - value).abs() <= value.abs() * 1e-6));
    }

    /// Resizing never leaves the range of what went in, and mirrors with its input.
    #[test]
    fn resizing_stays_in_range_and_mirrors(
        (width, height) in (1_usize..40, 1_usize..40), to in (1_usize..60, 1_usize..60), seed in any::<u64>(),
    ) {
        let value = |i: usize| ((seed.wrapping_mul(i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32) / 1e6;
        let image = Array2::from_shape_fn((height, width), |(y, x)| value(y * width + x));
        let mirrored = Array2::from_shape_fn((height, width), |(y, x)| image[[y, width - 1 - x]]);
        let (low, high) = image.iter().fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        let (out, turned) = (resize_f32(&image, to.0, to.1), resize_f32(&mirrored, to.0, to.1));
        for ((y, x), v) in out.indexed_iter() {
            prop_assert!(*v >= low - 1e-3 && *v <= high + 1e-3);
            prop_assert!((v - turned[[y, to.0 - 1 - x]]).abs() < 1e-3);
        }
    }

    /// Any point inside any picture reaches the graph as the fraction it is, and the disc around it comes back there;
    /// any point outside is refused.
    #[test]
    fn a_point_is_a_fraction_of_its_picture(
        (width, height) in (1_u32..400, 1_u32..400), (fx, fy) in (-0.5_f32..1.5, -0.5_f32..1.5),
    ) {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, EngineChoice::Rten);
        let embeddings = segmenter.encode(&RgbImage::new(width, height)).unwrap();
        let (x, y) = (fx * width as f32, fy * height as f32);
        let inside = x >= 0.0 && y >= 0.0 && x < width as f32 && y < height as f32;
        match segmenter.segment(&embeddings, [Click::positive(x, y)]) {
            Ok(found) => {
                prop_assert!(inside);
                prop_assert!((found.score - x / width as f32).abs() < 1e-6);
                // Where the whole disc is inside, its centre is the click, within a pixel.
                let whole = (0.12..0.88).contains(&fx) && (0.12..0.88).contains(&fy);
                if whole && width > 40 && height > 40 {
                    let (cx, cy) = centroid(found.mask.view());
                    prop_assert!((cx - f64::from(x)).abs() < 1.0 && (cy - f64::from(y)).abs() < 1.0);
                }
            }
            Err(Error::PointOutside { .. }) => prop_assert!(!inside),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
