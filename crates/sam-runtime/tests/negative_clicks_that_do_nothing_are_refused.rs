//! Cases P1, P2: a graph that embeds every label as positive is found out by running it, and its negatives refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{Decoder, Encoder, engines, open};
use image::RgbImage;
use sam_runtime::{Click, Error};

#[test]
fn an_inert_negative_click_is_refused_and_positive_ones_still_work() {
    for engine in engines() {
        for (encoder, slots) in [
            (Encoder::NegativesInert, 2),
            (Encoder::NegativesInert, 1),
            (Encoder::NegativesAbsent, 2),
            (Encoder::NegativesAbsent, 1),
        ] {
            let (segmenter, _folder) = open(encoder, Decoder::Disc, slots, engine);
            assert!(!segmenter.honours_negative_clicks().unwrap(), "{encoder:?} {slots}");
            if slots == 1 {
                continue;
            }
            let embeddings = segmenter.encode(&RgbImage::new(30, 20)).unwrap();
            let positive = Click::positive(9.0, 9.0);
            assert!(segmenter.segment(&embeddings, [positive]).is_ok());
            let error = segmenter.segment(&embeddings, [positive, Click::negative(1.0, 1.0)]).unwrap_err();
            assert!(matches!(error, Error::NegativeClicksInert), "{error:?}");
        }
    }
}

#[test]
fn labels_that_reach_the_decoder_are_honoured() {
    for engine in engines() {
        for encoder in [Encoder::Faithful, Encoder::Fused] {
            let (segmenter, _folder) = open(encoder, Decoder::Red, 2, engine);
            assert!(segmenter.honours_negative_clicks().unwrap(), "{encoder:?}");
            let embeddings = segmenter.encode(&RgbImage::new(30, 20)).unwrap();
            // The written model's score is the first slot's label.
            let clicks = [Click::positive(9.0, 9.0), Click::negative(1.0, 1.0)];
            assert_eq!(segmenter.segment(&embeddings, clicks).unwrap().score, 1.0);
            let turned = [clicks[1], clicks[0]];
            assert_eq!(segmenter.segment(&embeddings, turned).unwrap().score, 0.0);
        }
    }
}
