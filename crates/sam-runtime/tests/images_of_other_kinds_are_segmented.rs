//! The image input may be oblong, of another range, blue first, of halves or bytes, as its metadata says; halves may flow through the
//! whole composite where the engine has them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Float16, Float32, Uint8},
    GraphBuilder, PrecisionClass, Weight,
};
use sam_runtime::{Click, Error, Segmenter, engine::EngineChoice};

const HEIGHT: u64 = 32;
const WIDTH: u64 = 48;

/// How a written model takes its image.
struct Kind {
    image: ElementType,
    range: [f32; 2],
    bgr: bool,
    /// Element type of everything but the image.
    rest: ElementType,
}

fn dims<const N: usize>(sizes: [u64; N]) -> [Dim; N] {
    sizes.map(Dim::Static)
}

fn scalar(element_type: ElementType, value: f32) -> Weight {
    match element_type {
        Float16 => Weight::raw(Float16, [], half::f16::from_f32(value).to_le_bytes().to_vec()),
        _ => Weight::float32([], &[value]),
    }
}

/// A model whose mask is where the picture is red: it undoes the range and takes the channel that red is in.
fn write(folder: &Path, kind: &Kind) {
    let rest = kind.rest;
    let [low, high] = kind.range;
    let cast = [("to", Attribute::Int(i64::from(rest.to_onnx())))];
    let size = [1, 3, HEIGHT, WIDTH];
    let encoder = GraphBuilder::new("encoder")
        .input("image", kind.image, dims(size))
        .input("unnorm_coords", rest, dims([1, 1, 2]))
        .input("labels", rest, dims([1, 1]))
        .weight("low", scalar(rest, low))
        .weight("span", scalar(rest, high - low))
        .weight("last", Weight::int64([1], &[2]))
        .node_with("Cast", ["image"], ["typed"], cast)
        .node("Sub", ["typed", "low"], ["above"])
        .node("Div", ["above", "span"], ["features"])
        .node("Unsqueeze", ["labels", "last"], ["column"])
        .node_with("Concat", ["unnorm_coords", "column"], ["sparse"], [("axis", Attribute::Int(2))])
        .output("features", rest, dims(size))
        .output("sparse", rest, dims([1, 1, 3]))
        .build();
    let red = if kind.bgr { 2 } else { 0 };
    let decoder = GraphBuilder::new("decoder")
        .input("features", rest, dims(size))
        .input("sparse", rest, dims([1, 1, 3]))
        .weight("from", Weight::int64([1], &[red]))
        .weight("to", Weight::int64([1], &[red + 1]))
        .weight("channel", Weight::int64([1], &[1]))
        .weight("half", scalar(rest, 0.5))
        .weight("score_from", Weight::int64([1], &[2]))
        .weight("score_to", Weight::int64([1], &[3]))
        .weight("score_axis", Weight::int64([1], &[2]))
        .weight("score_shape", Weight::int64([2], &[1, 1]))
        .node("Slice", ["features", "from", "to", "channel"], ["red"])
        .node("Sub", ["red", "half"], ["masks"])
        .node("Slice", ["sparse", "score_from", "score_to", "score_axis"], ["label"])
        .node("Reshape", ["label", "score_shape"], ["scores"])
        .output("masks", rest, dims([1, 1, HEIGHT, WIDTH]))
        .output("scores", rest, dims([1, 1]))
        .build();
    std::fs::write(folder.join("encoder.onnx"), encoder.to_bytes().unwrap()).unwrap();
    std::fs::write(folder.join("decoder.onnx"), decoder.to_bytes().unwrap()).unwrap();
    let color = if kind.bgr { "bgr" } else { "rgb" };
    let metadata = format!(
        "model_files:\n  encoder.onnx:\n    inputs:\n      image: {{shape: [1, 3, {HEIGHT}, {WIDTH}], dtype: {}, \
         io_type: image, value_range: [{low}, {high}], image_metadata: {{color_format: {color}}}}}\n      \
         unnorm_coords: {{shape: [1, 1, 2], dtype: {rest}}}\n      labels: {{shape: [1, 1], dtype: {rest}}}\n  \
         decoder.onnx:\n    inputs:\n      features: {{shape: [1, 3, {HEIGHT}, {WIDTH}], dtype: {rest}}}\n      \
         sparse: {{shape: [1, 1, 3], dtype: {rest}}}\n",
        kind.image
    );
    std::fs::write(folder.join("metadata.yaml"), metadata).unwrap();
}

/// The mask has to be the red rectangle, in the picture's own size.
fn check(kind: &Kind, engine: EngineChoice, precisions: &[PrecisionClass]) -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), kind);
    let builder = Segmenter::builder().engine(engine).precisions(precisions.iter().copied());
    let segmenter = builder.open(folder.path())?;
    let image = common::red_rectangle(96, 64, [20, 10, 40, 30]);
    let embeddings = segmenter.encode(&image)?;
    let found = segmenter.segment(&embeddings, Click::positive(30.0, 20.0))?;
    let mask = found.mask;
    assert_eq!(mask.dim(), (64, 96));
    let wrong = mask
        .indexed_iter()
        .filter(|((y, x), inside)| **inside != ((20..60).contains(x) && (10..40).contains(y)))
        .count();
    // The edges lie between pixels of the model's grid and of the picture's.
    assert!(wrong <= 2 * (40 + 30), "{wrong} pixels are wrong");
    Ok(())
}

#[test]
fn ranges_orders_and_types() {
    let plain = |image, range, bgr| Kind { image, range, bgr, rest: Float32 };
    for engine in common::engines() {
        for kind in [
            plain(Float32, [0.0, 1.0], false),
            plain(Float32, [0.0, 1.0], true),
            plain(Float32, [0.0, 255.0], false),
            plain(Float32, [-1.0, 1.0], true),
            plain(Uint8, [0.0, 255.0], false),
            plain(Uint8, [0.0, 255.0], true),
        ] {
            check(&kind, engine, &[PrecisionClass::Fp32]).unwrap_or_else(|e| panic!("{engine:?}: {e}"));
        }
    }
}

#[test]
fn halves_run_where_the_engine_has_them() {
    common::require_onnxruntime();
    let halves = Kind { image: Float16, range: [0.0, 1.0], bgr: false, rest: Float16 };
    let image_alone = Kind { image: Float16, range: [-1.0, 1.0], bgr: true, rest: Float32 };
    let both = [PrecisionClass::Fp16, PrecisionClass::Fp32];
    for kind in [&halves, &image_alone] {
        check(kind, EngineChoice::Ort, &both).unwrap();
        // rten says so when the graph is loaded, or when it is fed: never by a mask.
        check(kind, EngineChoice::Rten, &both).unwrap_err();
    }
    // Nobody gets half precision without asking for it.
    let error = check(&halves, EngineChoice::Ort, &[PrecisionClass::Fp32]).unwrap_err();
    assert!(sam_runtime::error_chain(&error).contains("precision"), "{error}");
}
