#![doc = include_str!("../README.md")]

pub mod engine;
pub mod overlay;

mod embeddings;
mod error;
mod image_file;
mod preprocess;
mod prompt;
mod resample;
mod segmentation;
mod segmenter;
mod source;
mod tensor;

pub use embeddings::Embeddings;
pub use error::{Error, ImageError, LibraryProblem, Result, error_chain};
pub use image_file::{ImageLimits, UprightImage, decode_image, read_image, read_upright};
pub use preprocess::image_tensor;
pub use prompt::{Click, Label, PixelPoint, Prompt};
pub use resample::{FloatImage, logits_to_mask, resize_f32, resize_rgb8};
pub use segmentation::Segmentation;
pub use segmenter::{Segmenter, SegmenterBuilder};
pub use source::ModelOrigin;
pub use tensor::Tensor;

/// The crates below, as this one uses them.
pub use {composite, image, ndarray, onnx_graph, release_assets};
