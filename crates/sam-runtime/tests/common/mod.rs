//! Models whose right answer can be written down, both engines, and the fixtures.
#![allow(dead_code, unreachable_pub, clippy::missing_panics_doc)] // each test file uses a part

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use ndarray::ArrayView2;
use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Float32},
    GraphBuilder, Weight,
};
use sam_runtime::{
    Segmenter,
    engine::{EngineChoice, onnxruntime},
    error_chain,
};
use sha2::{Digest, Sha256};

/// Side of the written models' square input and of their masks.
pub const SIDE: u64 = 64;
/// Radius of the disc that [`Decoder::Disc`] answers with, as a fraction of the image's width and height.
pub const RADIUS: f32 = 0.1;

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub fn tiny_sam() -> PathBuf {
    fixtures().join("tiny-sam/tiny-sam-onnx-float")
}

/// Both engines; ONNX Runtime is fetched once per machine, and its absence is a failure.
pub fn engines() -> [EngineChoice; 2] {
    require_onnxruntime();
    [EngineChoice::Rten, EngineChoice::Ort]
}

pub fn require_onnxruntime() {
    if std::env::var_os(onnxruntime::PATH_VARIABLE).is_none()
        && let Err(error) = onnxruntime::fetch(&mut |_| {})
    {
        panic!("this test needs ONNX Runtime (cargo run --example fetch_runtime): {}", error_chain(&error));
    }
}

/// What the written encoder does with labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Encoder {
    /// Labels reach the decoder.
    Faithful,
    /// Every label but -1 is the same, as in the published graphs.
    NegativesInert,
    /// A negative click is the same as none.
    NegativesAbsent,
    /// The prompt's port depends on the image as well.
    Fused,
}

/// What the written decoder answers with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decoder {
    /// A disc of [`RADIUS`] around the first click; the score is the click's x as a fraction of the width.
    Disc,
    /// All that is red in the image; the score is the first click's label.
    Red,
    /// The image's red as it is, between 0 and 1, in place of logits.
    Share,
    /// Not a number, on masks or scores.
    NanMasks,
    NanScores,
    /// Three masks instead of one.
    ThreeMasks,
    /// Every logit is exactly 0.
    Zero,
    /// A mask of no columns.
    NoPixels,
}

/// Writes an encoder/decoder pair with its metadata in the publisher's form.
pub fn write_model(folder: &Path, encoder: Encoder, decoder: Decoder, slots: u64) {
    write_model_with_labels(folder, encoder, decoder, slots, Float32);
}

/// The same with labels of another type.
pub fn write_model_with_labels(
    folder: &Path,
    encoder: Encoder,
    decoder: Decoder,
    slots: u64,
    label_type: ElementType,
) {
    encoder_graph(encoder, slots, label_type, folder);
    decoder_graph(decoder, slots, folder);
    let typed = |shape: &[u64], element_type: ElementType, more: &str| {
        format!(r#"{{"shape": {shape:?}, "dtype": "{element_type}"{more}}}"#)
    };
    let port = |shape: &[u64], more: &str| typed(shape, Float32, more);
    let image = port(
        &[1, 3, SIDE, SIDE],
        r#", "io_type": "image", "value_range": [0.0, 1.0], "image_metadata": {"color_format": "rgb"}"#,
    );
    let (points, labels) = (port(&[1, slots, 2], ""), typed(&[1, slots], label_type, ""));
    let (features, sparse) = (port(&[1, 3, SIDE, SIDE], ""), port(&[1, slots, 3], ""));
    let metadata = format!(
        r#"{{"model_files": {{
            "encoder.onnx": {{"inputs": {{"image": {image}, "unnorm_coords": {points}, "labels": {labels}}}}},
            "decoder.onnx": {{"inputs": {{"features": {features}, "sparse": {sparse}}}}}
        }}}}"#
    );
    std::fs::write(folder.join("metadata.json"), metadata).unwrap();
}

fn dims<const N: usize>(sizes: [u64; N]) -> [Dim; N] {
    sizes.map(Dim::Static)
}

fn encoder_graph(kind: Encoder, slots: u64, label_type: ElementType, folder: &Path) {
    let to_float = [("to", Attribute::Int(i64::from(Float32.to_onnx())))];
    let mut graph = GraphBuilder::new("encoder")
        .input("image", Float32, dims([1, 3, SIDE, SIDE]))
        .input("unnorm_coords", Float32, dims([1, slots, 2]))
        .input("labels", label_type, dims([1, slots]))
        .node_with("Cast", ["labels"], ["float_labels"], to_float)
        .weight("last", Weight::int64([1], &[2]))
        .weight("none", Weight::float32([1], &[-1.0]))
        .weight("zero", Weight::float32([], &[0.0]))
        .node("Identity", ["image"], ["features"]);
    let label = if kind == Encoder::NegativesAbsent {
        graph = graph
            .weight("one", Weight::float32([1], &[1.0]))
            .node("Equal", ["float_labels", "one"], ["positive"])
            .node("Where", ["positive", "one", "none"], ["kind"]);
        "kind"
    } else if kind == Encoder::NegativesInert {
        graph = graph
            .node("Equal", ["float_labels", "none"], ["absent"])
            .weight("one", Weight::float32([1], &[1.0]))
            .node("Where", ["absent", "none", "one"], ["kind"]);
        "kind"
    } else {
        "float_labels"
    };
    if kind == Encoder::NegativesAbsent {
        // The place of a click that is none is nowhere, as that of padding.
        graph = graph.node("Unsqueeze", ["positive", "last"], ["shown"]).node(
            "Where",
            ["shown", "unnorm_coords", "zero"],
            ["placed"],
        );
    }
    graph = graph.node("Unsqueeze", [label, "last"], ["column"]).node_with(
        "Concat",
        [if kind == Encoder::NegativesAbsent { "placed" } else { "unnorm_coords" }, "column"],
        [if kind == Encoder::Fused { "pure" } else { "sparse" }],
        [("axis", Attribute::Int(2))],
    );
    if kind == Encoder::Fused {
        graph = graph
            .node_with("ReduceMax", ["image"], ["brightest"], [("keepdims", Attribute::Int(0))])
            .node("Mul", ["brightest", "zero"], ["nothing"])
            .node("Add", ["pure", "nothing"], ["sparse"]);
    }
    let model = graph
        .output("sparse", Float32, dims([1, slots, 3]))
        .output("features", Float32, dims([1, 3, SIDE, SIDE]))
        .build();
    std::fs::write(folder.join("encoder.onnx"), model.to_bytes().unwrap()).unwrap();
}

fn decoder_graph(kind: Decoder, slots: u64, folder: &Path) {
    let centers: Vec<f32> = (0..SIDE).map(|i| (i as f32 + 0.5) / SIDE as f32).collect();
    let slice = |graph: GraphBuilder, name: &str, from: i64| {
        // Element `from` of the first slot: 0 is x, 1 is y, 2 is the label.
        let (starts, ends, flat) = (format!("{name}_from"), format!("{name}_to"), format!("{name}_flat"));
        graph
            .weight(&starts, Weight::int64([2], &[0, from]))
            .weight(&ends, Weight::int64([2], &[1, from + 1]))
            .node("Slice", ["sparse", starts.as_str(), ends.as_str(), "axes"], [flat.as_str()])
            .node("Reshape", [flat.as_str(), "point_shape"], [name])
    };
    let mut graph = GraphBuilder::new("decoder")
        .input("features", Float32, dims([1, 3, SIDE, SIDE]))
        .input("sparse", Float32, dims([1, slots, 3]))
        .weight("axes", Weight::int64([2], &[1, 2]))
        .weight("point_shape", Weight::int64([4], &[1, 1, 1, 1]))
        .weight("score_shape", Weight::int64([2], &[1, 1]));
    graph = slice(slice(slice(graph, "x", 0), "y", 1), "label", 2);
    let (masks, score) = match kind {
        Decoder::Disc => {
            graph = graph
                .weight("columns", Weight::float32([1, 1, 1, SIDE], &centers))
                .weight("rows", Weight::float32([1, 1, SIDE, 1], &centers))
                .weight("radius2", Weight::float32([], &[RADIUS * RADIUS]))
                .node("Sub", ["columns", "x"], ["dx"])
                .node("Sub", ["rows", "y"], ["dy"])
                .node("Mul", ["dx", "dx"], ["dx2"])
                .node("Mul", ["dy", "dy"], ["dy2"])
                .node("Add", ["dx2", "dy2"], ["d2"])
                .node("Sub", ["radius2", "d2"], ["masks"]);
            (1, "x")
        }
        Decoder::NoPixels => {
            graph = graph
                .weight("first", Weight::int64([2], &[0, 0]))
                .weight("behind", Weight::int64([2], &[1, 0]))
                .weight("axis", Weight::int64([2], &[1, 3]))
                .node("Slice", ["features", "first", "behind", "axis"], ["masks"]);
            (1, "label")
        }
        Decoder::Red | Decoder::Share | Decoder::ThreeMasks => {
            let channels = if kind == Decoder::ThreeMasks { 3 } else { 1 };
            let half = if kind == Decoder::Share { 0.0 } else { 0.5 };
            graph = graph
                .weight("half", Weight::float32([], &[half]))
                .weight("first", Weight::int64([1], &[0]))
                .weight("behind", Weight::int64([1], &[channels]))
                .weight("channel", Weight::int64([1], &[1]))
                .node("Slice", ["features", "first", "behind", "channel"], ["red"])
                .node("Sub", ["red", "half"], ["masks"]);
            (channels as u64, "label")
        }
        Decoder::Zero => {
            graph = graph
                .weight("first", Weight::int64([1], &[0]))
                .weight("behind", Weight::int64([1], &[1]))
                .weight("channel", Weight::int64([1], &[1]))
                .node("Slice", ["features", "first", "behind", "channel"], ["red"])
                .node("Sub", ["red", "red"], ["masks"]);
            (1, "label")
        }
        Decoder::NanMasks | Decoder::NanScores => {
            graph = graph
                .weight("nan", Weight::float32([], &[f32::NAN]))
                .weight("first", Weight::int64([1], &[0]))
                .weight("behind", Weight::int64([1], &[1]))
                .weight("channel", Weight::int64([1], &[1]))
                .node("Slice", ["features", "first", "behind", "channel"], ["red"])
                .node("Add", ["label", "nan"], ["bad"]);
            if kind == Decoder::NanMasks {
                graph = graph.node("Add", ["red", "nan"], ["masks"]);
            } else {
                graph = graph.node("Identity", ["red"], ["masks"]);
            }
            (1, if kind == Decoder::NanMasks { "label" } else { "bad" })
        }
    };
    let model = graph
        .node("Reshape", [score, "score_shape"], ["scores"])
        .output(
            "masks",
            Float32,
            [
                1.into(),
                masks.into(),
                SIDE.into(),
                if kind == Decoder::NoPixels { "?".into() } else { SIDE.into() },
            ],
        )
        .output("scores", Float32, dims([1, 1]))
        .build();
    std::fs::write(folder.join("decoder.onnx"), model.to_bytes().unwrap()).unwrap();
}

/// A written model, opened, with the folder that holds it.
pub fn open(
    encoder: Encoder,
    decoder: Decoder,
    slots: u64,
    engine: EngineChoice,
) -> (Segmenter, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), encoder, decoder, slots);
    (Segmenter::builder().engine(engine).open(folder.path()).unwrap(), folder)
}

/// Mean position of a mask's pixels in pixels from the image's left and top edge: half a pixel more than clicks count.
pub fn centroid(mask: ArrayView2<'_, bool>) -> (f64, f64) {
    let inside: Vec<_> = mask.indexed_iter().filter(|(_, m)| **m).map(|(at, _)| at).collect();
    let mean = |sum: f64| sum / inside.len() as f64 + 0.5;
    (mean(inside.iter().map(|(_, x)| *x as f64).sum()), mean(inside.iter().map(|(y, _)| *y as f64).sum()))
}

/// A grey picture with one red rectangle: x, y, width and height in pixels.
pub fn red_rectangle(width: u32, height: u32, [x, y, w, h]: [u32; 4]) -> RgbImage {
    RgbImage::from_fn(width, height, |px, py| {
        let inside = (x..x + w).contains(&px) && (y..y + h).contains(&py);
        Rgb(if inside { [255, 0, 0] } else { [40, 90, 140] })
    })
}

/// SHA-256 in lower-case hex.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
