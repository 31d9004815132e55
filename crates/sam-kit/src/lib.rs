#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use {composite, mask_metrics, onnx_graph, release_assets, sam_runtime};

/// What most programs need, for `use sam_kit::prelude::*`.
pub mod prelude {
    pub use mask_metrics::{BoundingBox, area, bounding_box, compare};
    pub use sam_runtime::{
        Click, Embeddings, PixelPoint, Segmentation, Segmenter,
        engine::{EngineChoice, EngineKind},
        read_image,
    };
}

/// The repository's README, whose code is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct RepositoryReadme;
