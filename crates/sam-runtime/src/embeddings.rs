use std::{collections::BTreeMap, sync::Arc};

use composite::Value;

use crate::Tensor;

/// What a model keeps of one image: every value that its per-prompt part takes and that no click can change.
///
/// Cheap to clone and to send to other threads. Carries the image's size, so that no click and no mask can be scaled by
/// another image's, and belongs to the [`Segmenter`](crate::Segmenter) that made it.
#[derive(Debug, Clone)]
pub struct Embeddings {
    pub(crate) values: Arc<BTreeMap<Value, Tensor>>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) made_by: u64,
}

impl Embeddings {
    /// Width of the image in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height of the image in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The kept tensors by the port they came from, sorted. The prepared image itself ([`Value::Image`]) is among them
    /// only in models whose prompt cannot be separated from it.
    pub fn tensors(&self) -> impl Iterator<Item = (&Value, &Tensor)> {
        self.values.iter()
    }

    /// Bytes of the kept tensors.
    pub fn byte_len(&self) -> usize {
        self.values.values().map(Tensor::byte_len).sum()
    }
}
