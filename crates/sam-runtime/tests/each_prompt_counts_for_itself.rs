//! Peers finding 1, cases G14, R4: one encoding, many prompts: none leaves a trace in the next, and embeddings are the
//! image's and the model's that made them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Decoder, Encoder, centroid, engines, open};
use image::RgbImage;
use sam_runtime::{Click, Embeddings, Error, Segmenter};

#[test]
fn two_clicks_on_one_encoding_give_two_masks() {
    for engine in engines() {
        for encoder in [Encoder::Faithful, Encoder::Fused] {
            let (segmenter, _folder) = open(encoder, Decoder::Disc, 2, engine);
            let embeddings = segmenter.encode(&RgbImage::new(200, 100)).unwrap();
            let left = segmenter.segment(&embeddings, [Click::positive(40.0, 50.0)]).unwrap();
            let right = segmenter.segment(&embeddings, [Click::positive(160.0, 50.0)]).unwrap();
            let again = segmenter.segment(&embeddings, [Click::positive(40.0, 50.0)]).unwrap();
            assert_ne!(left.mask, right.mask, "{encoder:?}");
            assert_eq!(left, again, "{encoder:?}");
        }
    }
}

#[test]
fn the_size_travels_with_the_embeddings() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
        let wide = segmenter.encode(&RgbImage::new(400, 100)).unwrap();
        let tall = segmenter.encode(&RgbImage::new(100, 400)).unwrap();
        let in_wide = segmenter.segment(&wide, [Click::positive(300.0, 50.0)]).unwrap();
        let in_tall = segmenter.segment(&tall, [Click::positive(50.0, 300.0)]).unwrap();
        assert_eq!((in_wide.mask.dim(), in_tall.mask.dim()), ((100, 400), (400, 100)));
        let ((x, _), (_, y)) = (centroid(in_wide.mask.view()), centroid(in_tall.mask.view()));
        assert!((x - 300.0).abs() < 1.0 && (y - 300.0).abs() < 1.0);
    }
}

#[test]
fn embeddings_of_another_model_are_refused() {
    let [engine, _] = engines();
    let (one, _first) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
    let (other, _second) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
    let embeddings = one.encode(&RgbImage::new(20, 20)).unwrap();
    let error = other.segment(&embeddings, [Click::positive(1.0, 1.0)]).unwrap_err();
    assert!(matches!(error, Error::ForeignEmbeddings), "{error:?}");
}

#[test]
fn only_what_prompts_need_is_kept() {
    let [engine, _] = engines();
    let (separable, _first) = open(Encoder::Faithful, Decoder::Red, 2, engine);
    let kept = separable.encode(&RgbImage::new(20, 20)).unwrap();
    let named = |kept: &Embeddings| kept.tensors().map(|(value, _)| value.to_string()).collect::<Vec<_>>();
    assert_eq!(named(&kept), ["features of the image encoder"]);
    assert_eq!(kept.byte_len(), 3 * 64 * 64 * 4);
    // A prompt that cannot be separated from the image needs the image itself.
    let (fused, _second) = open(Encoder::Fused, Decoder::Red, 2, engine);
    let kept = fused.encode(&RgbImage::new(20, 20)).unwrap();
    assert_eq!(named(&kept), ["image", "features of the image encoder"]);
}

#[test]
fn a_segmenter_may_be_shared_between_threads() {
    // Case O2.
    fn shared<T: Send + Sync>() {}
    shared::<Segmenter>();
    shared::<Embeddings>();
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
        let embeddings = segmenter.encode(&RgbImage::new(200, 100)).unwrap();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let (segmenter, embeddings) = (&segmenter, embeddings.clone());
                scope.spawn(move || {
                    for j in 0..20_u8 {
                        let x = f32::from(20 + i * 15 + j);
                        let found = segmenter.segment(&embeddings, [Click::positive(x, 50.0)]).unwrap();
                        assert!((centroid(found.mask.view()).0 - f64::from(x)).abs() < 1.0);
                    }
                });
            }
        });
    }
}
