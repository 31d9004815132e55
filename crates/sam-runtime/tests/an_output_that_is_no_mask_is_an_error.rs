//! Cases E1, M4: not a number never becomes a mask or a score, and a number of masks that was not asked for is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Decoder, Encoder, engines, open, red_rectangle};
use image::RgbImage;
use sam_runtime::{Click, Error};

#[test]
fn values_that_are_not_finite_are_refused_by_port() {
    for engine in engines() {
        for (decoder, want) in [(Decoder::NanMasks, "masks"), (Decoder::NanScores, "scores")] {
            let (segmenter, _folder) = open(Encoder::Faithful, decoder, 2, engine);
            let embeddings = segmenter.encode(&RgbImage::new(20, 20)).unwrap();
            let error = segmenter.segment(&embeddings, [Click::positive(1.0, 1.0)]).unwrap_err();
            assert!(matches!(&error, Error::NonFiniteOutput { port, .. } if port == want), "{error:?}");
        }
    }
}

#[test]
fn a_mask_without_pixels_is_refused() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::NoPixels, 2, engine);
        let embeddings = segmenter.encode(&RgbImage::new(20, 20)).unwrap();
        let error = segmenter.segment(&embeddings, Click::positive(1.0, 1.0)).unwrap_err();
        assert!(matches!(&error, Error::MaskShape { masks, .. } if masks.contains(&0)), "{error:?}");
    }
}

#[test]
fn several_masks_are_refused_with_their_shape() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::ThreeMasks, 2, engine);
        let embeddings = segmenter.encode(&RgbImage::new(20, 20)).unwrap();
        let error = segmenter.segment(&embeddings, [Click::positive(1.0, 1.0)]).unwrap_err();
        assert!(matches!(&error, Error::MaskShape { masks, .. } if masks == &[1, 3, 64, 64]), "{error:?}");
    }
}

/// However they were made (here: the picture's own red, from 0 to 1), values between 0 and 1 throughout are no logits.
#[test]
fn values_that_look_like_probabilities_are_refused() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Share, 2, engine);
        let embeddings = segmenter.encode(&red_rectangle(64, 64, [8, 8, 16, 16])).unwrap();
        let error = segmenter.segment(&embeddings, Click::positive(10.0, 10.0)).unwrap_err();
        assert!(
            matches!(&error, Error::Probabilities { port, least, most } if port == "masks" && *least >= 0.0 && *most <= 1.0),
            "{error:?}"
        );
    }
}
