//! Cases G12, P10, P16, P18: empty, outside, not finite, too many: an error before anything runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Decoder, Encoder, open};
use image::RgbImage;
use sam_runtime::{Click, Error, Label, PixelPoint, engine::EngineChoice};

#[test]
fn points_outside_or_not_finite_are_refused_with_the_images_size() {
    let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, EngineChoice::Rten);
    let embeddings = segmenter.encode(&RgbImage::new(300, 200)).unwrap();
    for (x, y) in [
        (-1.0, 5.0),
        (5.0, -0.001),
        (300.0, 5.0),
        (5.0, 200.0),
        (250.0, 299.0),
        (f32::NAN, 5.0),
        (5.0, f32::INFINITY),
        (f32::NEG_INFINITY, f32::NAN),
        (f32::MAX, 0.0),
    ] {
        for click in [Click::positive(x, y), Click::negative(x, y)] {
            let error = segmenter.segment(&embeddings, [Click::positive(1.0, 1.0), click]).unwrap_err();
            assert!(
                matches!(error, Error::PointOutside { width: 300, height: 200, .. }),
                "({x}, {y}): {error:?}"
            );
            assert!(error.to_string().contains("300 x 200 pixels"), "{error}");
        }
    }
    for (x, y) in [(0.0, 0.0), (299.999, 199.999), (299.0, 0.0)] {
        assert!(segmenter.segment(&embeddings, [Click::positive(x, y)]).is_ok(), "({x}, {y}) is inside");
    }
}

/// G7: fractions have a constructor of their own, so that they are never taken for pixels by accident.
#[test]
fn fractions_become_pixels_of_their_image() {
    assert_eq!(PixelPoint::from_unit(0.25, 0.5, 640, 480), PixelPoint::new(160.0, 240.0));
    let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, EngineChoice::Rten);
    let embeddings = segmenter.encode(&RgbImage::new(640, 480)).unwrap();
    let click = |point| Click { point, label: Label::Positive };
    let found = segmenter.segment(&embeddings, click(PixelPoint::from_unit(0.25, 0.5, 640, 480))).unwrap();
    assert!((found.score - 0.25).abs() < 1e-6);
    // The right and bottom edges are outside, as in pixels.
    let edge = click(PixelPoint::from_unit(1.0, 0.5, 640, 480));
    assert!(matches!(segmenter.segment(&embeddings, edge), Err(Error::PointOutside { .. })));
}

#[test]
fn a_prompt_without_a_positive_click_is_refused() {
    let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, EngineChoice::Rten);
    let embeddings = segmenter.encode(&RgbImage::new(30, 20)).unwrap();
    assert!(matches!(segmenter.segment(&embeddings, Vec::new()), Err(Error::NoPositiveClick)));
    assert!(matches!(
        segmenter.segment(&embeddings, [Click::negative(1.0, 1.0)]),
        Err(Error::NoPositiveClick)
    ));
}

#[test]
fn more_clicks_than_slots_are_refused_with_the_number_of_slots() {
    let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 3, EngineChoice::Rten);
    assert_eq!(segmenter.slots(), 3);
    let embeddings = segmenter.encode(&RgbImage::new(30, 20)).unwrap();
    let click = Click::positive(1.0, 1.0);
    assert!(segmenter.segment(&embeddings, [click; 3]).is_ok());
    let error = segmenter.segment(&embeddings, [click; 4]).unwrap_err();
    assert!(matches!(error, Error::TooManyClicks { slots: 3, found: 4 }), "{error:?}");
}
