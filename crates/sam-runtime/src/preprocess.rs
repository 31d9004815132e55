use composite::{ChannelOrder, Preprocessing, ResizeRule};
use half::f16;
use image::RgbImage;
use ndarray::{Array4, ArrayD, Axis};
use onnx_graph::ElementType;

use crate::{ImageError, Tensor, resample::resize_rgb8};

/// Brings an 8-bit RGB picture into the form a profile asks for: resized as 8-bit samples, 0 to 255 scaled to the profile's range,
/// `(x - mean) / std` per colour, as `[1, 3, height, width]` of the profile's element type. As uint8 the resized samples are
/// the tensor.
///
/// The order of these operations is the reference's (8-bit resize, then float), and so are the resulting bits.
pub fn image_tensor(image: &RgbImage, profile: &Preprocessing) -> Result<Tensor, ImageError> {
    let (width, height) = image.dimensions();
    if width == 0 || height == 0 {
        return Err(ImageError::Empty { width, height });
    }
    let resized = match profile.resize {
        ResizeRule::Stretch => resize_rgb8(image, profile.width, profile.height),
        rule => return Err(ImageError::ResizeRule { rule }),
    };
    let order = match profile.channels {
        ChannelOrder::Rgb => [0, 1, 2],
        ChannelOrder::Bgr => [2, 1, 0],
        channels => return Err(ImageError::ChannelOrder { channels }),
    };
    let [low, high] = profile.range;
    let scale = high - low;
    let float = |colour: usize, sample: u8| {
        // Of [0, 1] the quotient's bits are kept.
        let value = f32::from(sample) / 255.0 * scale + low;
        (value - profile.mean[colour]) / profile.std[colour]
    };
    Ok(match profile.element_type {
        ElementType::Float32 => Tensor::F32(planes(&resized, order, float)),
        ElementType::Float16 => {
            Tensor::F16(planes(&resized, order, |colour, sample| f16::from_f32(float(colour, sample))))
        }
        ElementType::Uint8 => Tensor::U8(planes(&resized, order, |_, sample| sample)),
        element_type => return Err(ImageError::ElementType { element_type }),
    })
}

/// One plane for each colour, in this order, of values that the colour (0 is red) and its sample give.
fn planes<T: Clone + Default>(
    image: &RgbImage,
    order: [usize; 3],
    value: impl Fn(usize, u8) -> T,
) -> ArrayD<T> {
    let (width, height) = image.dimensions();
    let mut tensor = Array4::from_elem((1, 3, height as usize, width as usize), T::default());
    let mut planes = tensor.index_axis_mut(Axis(0), 0);
    for (colour, mut plane) in order.into_iter().zip(planes.outer_iter_mut()) {
        for (to, pixel) in plane.iter_mut().zip(image.as_raw().chunks_exact(3)) {
            *to = value(colour, pixel[colour]);
        }
    }
    tensor.into_dyn()
}
