use ndarray::Array2;

use crate::resample::{FloatImage, logits_to_mask, resize_f32};

/// A mask with its score.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Segmentation {
    /// The mask at the image's own size, `[height, width]`: true where the upsampled logit is above 0.
    pub mask: Array2<bool>,
    /// The model's own estimate of the mask's IoU with the object; usually between 0 and 1.
    pub score: f32,
    low_res_logits: FloatImage,
    /// Width and height of the image.
    size: (usize, usize),
}

impl Segmentation {
    /// Upsamples first and thresholds after, strictly `> 0`: the other order gives staircases.
    pub(crate) fn new(low_res_logits: FloatImage, score: f32, width: u32, height: u32) -> Self {
        let size = (width as usize, height as usize);
        let mask = logits_to_mask(&low_res_logits, size.0, size.1);
        Self { mask, score, low_res_logits, size }
    }

    /// The decoder's logits as it gave them, `[h, w]` at its own resolution over the whole image: positive inside.
    pub fn low_res_logits(&self) -> &FloatImage {
        &self.low_res_logits
    }

    /// The logits at the image's own size, `[height, width]`; `> 0` of them is the mask. Computed anew at each call, since
    /// they take four times the mask's memory.
    pub fn logits(&self) -> FloatImage {
        resize_f32(&self.low_res_logits, self.size.0, self.size.1)
    }
}
