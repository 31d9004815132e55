use composite::{Preprocessing, ResizeRule};
use image::RgbImage;
use ndarray::{Array4, Axis};

use crate::{ImageError, resample::resize_rgb8};

/// Brings an 8-bit RGB picture into the form a profile asks for: resized as 8-bit samples, scaled to `[0, 1]`,
/// `(x - mean) / std` per channel, as `[1, 3, height, width]`.
///
/// The order of these operations is the reference's (8-bit resize, then float), and so are the resulting bits.
pub fn image_tensor(image: &RgbImage, profile: &Preprocessing) -> Result<Array4<f32>, ImageError> {
    let (width, height) = image.dimensions();
    if width == 0 || height == 0 {
        return Err(ImageError::Empty { width, height });
    }
    let resized = match profile.resize {
        ResizeRule::Stretch => resize_rgb8(image, profile.width, profile.height),
        rule => return Err(ImageError::ResizeRule { rule }),
    };
    let (width, height) = (profile.width as usize, profile.height as usize);
    let samples = resized.as_raw();
    let mut tensor = Array4::zeros((1, 3, height, width));
    for (channel, mut plane) in tensor.index_axis_mut(Axis(0), 0).outer_iter_mut().enumerate() {
        let (mean, std) = (profile.mean[channel], profile.std[channel]);
        for (value, pixel) in plane.iter_mut().zip(samples.chunks_exact(3)) {
            *value = (f32::from(pixel[channel]) / 255.0 - mean) / std;
        }
    }
    Ok(tensor)
}
