//! What an image costs once and what each click costs, on the fixture model, for both engines in one run.
//! See `benches/README.md` for how to read it and for measured figures.
#![allow(missing_docs, clippy::expect_used)]

use std::{hint::black_box, num::NonZeroUsize, path::Path};

use criterion::{Criterion, criterion_group, criterion_main};
use image::{Rgb, RgbImage};
use ndarray::Array2;
use sam_kit::sam_runtime::{
    Click, Segmenter,
    composite::Preprocessing,
    engine::{EngineChoice, onnxruntime},
    image_tensor, logits_to_mask,
};

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"))
}

/// A photograph's worth of pixels without a file: smooth with some texture.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let texture = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 27;
        Rgb([(x * 255 / width) as u8, (y * 255 / height) as u8, (96 + texture) as u8])
    })
}

fn segmenters() -> Vec<(&'static str, Segmenter)> {
    onnxruntime::fetch(&mut |_| {}).expect("ONNX Runtime (cargo run --example fetch_runtime)");
    let two = NonZeroUsize::new(2).expect("2 is not 0");
    [("rten", EngineChoice::Rten), ("ort", EngineChoice::Ort)]
        .map(|(name, engine)| {
            let builder = Segmenter::builder().engine(engine).threads(two);
            (
                name,
                builder
                    .open(fixtures().join("tiny-sam/tiny-sam-onnx-float"))
                    .expect("the fixture model opens"),
            )
        })
        .into()
}

fn engines(c: &mut Criterion) {
    let image = picture(640, 427);
    let segmenters = segmenters();
    let mut group = c.benchmark_group("encode");
    for (name, segmenter) in &segmenters {
        group.bench_function(*name, |b| b.iter(|| segmenter.encode(black_box(&image)).expect("encodes")));
    }
    group.finish();
    let mut group = c.benchmark_group("prompt_and_decode");
    let clicks = [Click::positive(300.0, 200.0), Click::negative(20.0, 30.0)];
    for (name, segmenter) in &segmenters {
        let embeddings = segmenter.encode(&image).expect("encodes");
        group.bench_function(*name, |b| {
            b.iter(|| segmenter.segment(black_box(&embeddings), black_box(&clicks)).expect("segments"));
        });
    }
    group.finish();
}

fn image_processing(c: &mut Criterion) {
    let profile = Preprocessing::stretch(256, 256);
    let mut group = c.benchmark_group("image_to_tensor");
    for (name, image) in [("640x427", picture(640, 427)), ("4000x3000", picture(4000, 3000))] {
        group.bench_function(name, |b| {
            b.iter(|| image_tensor(black_box(&image), &profile).expect("prepares"));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("logits_to_mask");
    let logits = Array2::from_shape_fn((64, 64), |(y, x)| (y as f32 - 30.0) * 0.3 + (x as f32 - 20.0) * 0.1);
    for (name, width, height) in [("640x427", 640, 427), ("4000x3000", 4000, 3000)] {
        group.bench_function(name, |b| {
            b.iter(|| logits_to_mask(black_box(&logits), width, height));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = engines, image_processing
}
criterion_main!(benches);
