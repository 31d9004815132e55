//! Bilinear resampling, bit for bit as Pillow 12 does it: the reference evaluation prepares its pictures and logits with it.
//! SAM 2's own predictor resizes floats with torchvision's antialiased filter and logits without one, which is the same
//! upwards and differs a little downwards, where an image is smaller than the low-res mask too.
//!
//! A separable triangle filter that widens when shrinking (so that it averages), horizontally first, then vertically (the
//! other way round where a picture more than a hundred times as tall as wide is made lower); a pass whose size does not
//! change is left out. 8-bit samples are filtered with 22-bit fixed-point weights and rounded to 8 bits after each pass;
//! floats are accumulated in double and rounded to single after each pass.

use std::borrow::Cow;

use image::RgbImage;
use ndarray::Array2;

/// A single-channel float image, indexed `[y, x]`.
pub type FloatImage = Array2<f32>;

/// Bits of the fixed-point weights for 8-bit samples: 32 less 8 for the sample and 2 for the sum's headroom.
const WEIGHT_BITS: u32 = 22;

/// Which input samples make an output sample, with weights that add up to one.
struct Taps {
    /// First input sample of each output sample, and where its weights start.
    spans: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<f64>,
}

impl Taps {
    fn new(input: usize, output: usize) -> Self {
        let scale = input as f64 / output as f64;
        let support = scale.max(1.0);
        let mut taps = Self { spans: Vec::with_capacity(output), weights: Vec::new() };
        for i in 0..output {
            let center = (i as f64 + 0.5) * scale;
            // `as usize` truncates towards zero and turns a negative number into 0, as the rule asks.
            let low = (center - support + 0.5) as usize;
            let high = ((center + support + 0.5) as usize).min(input);
            let start = taps.weights.len();
            let mut sum = 0.0;
            for k in low..high {
                let distance = (k as f64 - center + 0.5) * (1.0 / support);
                let weight = (1.0 - distance.abs()).max(0.0);
                taps.weights.push(weight);
                sum += weight;
            }
            if sum != 0.0 {
                taps.weights[start..].iter_mut().for_each(|w| *w /= sum);
            }
            taps.spans.push((low, start..taps.weights.len()));
        }
        taps
    }

    /// Weights in fixed point, rounded half away from zero.
    fn fixed(&self) -> Vec<i32> {
        let one = f64::from(1_u32 << WEIGHT_BITS);
        self.weights.iter().map(|w| (w * one + if *w < 0.0 { -0.5 } else { 0.5 }) as i32).collect()
    }
}

/// Pillow's rule for the order of the passes; it shows in the roundings between them.
fn vertical_first(in_width: usize, in_height: usize, out_height: usize) -> bool {
    in_height > in_width.saturating_mul(100) && out_height < in_height
}

/// Resizes 8-bit RGB to `width` x `height` pixels, each side on its own. Either size being zero gives an empty image.
pub fn resize_rgb8(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    let (in_width, in_height) = (image.width() as usize, image.height() as usize);
    let (out_width, out_height) = (width as usize, height as usize);
    if [in_width, in_height, out_width, out_height].contains(&0) {
        return RgbImage::new(width, height);
    }
    let samples = image.as_raw();
    let resized = if vertical_first(in_width, in_height, out_height) {
        let lower = columns_rgb8(samples, in_width, in_height, out_height);
        rows_rgb8(&lower, in_width, out_width).into_owned()
    } else {
        let narrower = rows_rgb8(samples, in_width, out_width);
        columns_rgb8(&narrower, out_width, in_height, out_height).into_owned()
    };
    // The buffer has exactly the size that the constructor asks for.
    RgbImage::from_raw(width, height, resized).unwrap_or_default()
}

/// Resizes every row of an 8-bit RGB picture.
fn rows_rgb8(samples: &[u8], in_width: usize, out_width: usize) -> Cow<'_, [u8]> {
    if in_width == out_width {
        return Cow::Borrowed(samples);
    }
    let taps = Taps::new(in_width, out_width);
    let weights = taps.fixed();
    let rows = samples.chunks_exact(in_width * 3);
    let mut out = vec![0; out_width * 3 * rows.len()];
    for (row, out_row) in rows.zip(out.chunks_exact_mut(out_width * 3)) {
        for (pixel, (low, span)) in out_row.chunks_exact_mut(3).zip(&taps.spans) {
            let mut sum = [1_i32 << (WEIGHT_BITS - 1); 3];
            for (sample, weight) in row[low * 3..].chunks_exact(3).zip(&weights[span.clone()]) {
                for channel in 0..3 {
                    sum[channel] += i32::from(sample[channel]) * weight;
                }
            }
            for channel in 0..3 {
                pixel[channel] = to_u8(sum[channel]);
            }
        }
    }
    Cow::Owned(out)
}

/// Resizes every column of an 8-bit RGB picture of this width.
fn columns_rgb8(samples: &[u8], width: usize, in_height: usize, out_height: usize) -> Cow<'_, [u8]> {
    if in_height == out_height {
        return Cow::Borrowed(samples);
    }
    let taps = Taps::new(in_height, out_height);
    let weights = taps.fixed();
    let stride = width * 3;
    let mut out = vec![0; stride * out_height];
    let mut sums = vec![0_i32; stride];
    for (out_row, (low, span)) in out.chunks_exact_mut(stride).zip(&taps.spans) {
        sums.fill(1 << (WEIGHT_BITS - 1));
        for (row, weight) in samples[low * stride..].chunks_exact(stride).zip(&weights[span.clone()]) {
            for (sum, sample) in sums.iter_mut().zip(row) {
                *sum += i32::from(*sample) * weight;
            }
        }
        for (sample, sum) in out_row.iter_mut().zip(&sums) {
            *sample = to_u8(*sum);
        }
    }
    Cow::Owned(out)
}

fn to_u8(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}

/// Resizes a float image (for logits: before any threshold) to `width` x `height`, each side on its own. Either size being
/// zero gives an empty image.
pub fn resize_f32(image: &FloatImage, width: usize, height: usize) -> FloatImage {
    let (in_height, in_width) = image.dim();
    if [in_width, in_height, width, height].contains(&0) {
        return FloatImage::zeros((height, width));
    }
    if vertical_first(in_width, in_height, height) {
        rows_f32(columns_f32(image.clone(), height), width)
    } else {
        columns_f32(rows_f32(image.clone(), width), height)
    }
}

fn rows_f32(image: FloatImage, width: usize) -> FloatImage {
    let (height, in_width) = image.dim();
    if in_width == width {
        return image;
    }
    let taps = Taps::new(in_width, width);
    let mut out = FloatImage::zeros((height, width));
    for (row, mut out_row) in image.rows().into_iter().zip(out.rows_mut()) {
        for (value, (low, span)) in out_row.iter_mut().zip(&taps.spans) {
            let samples = row.iter().skip(*low).zip(&taps.weights[span.clone()]);
            *value = samples.map(|(s, w)| f64::from(*s) * w).sum::<f64>() as f32;
        }
    }
    out
}

fn columns_f32(image: FloatImage, height: usize) -> FloatImage {
    if image.nrows() == height {
        return image;
    }
    let mut out = FloatImage::zeros((height, image.ncols()));
    each_row_f32(&image, height, |y, row| {
        out.row_mut(y).iter_mut().zip(row).for_each(|(value, sum)| *value = *sum as f32);
    });
    out
}

/// Calls `take` with each row of the image resized to this height, top to bottom.
fn each_row_f32(image: &FloatImage, height: usize, mut take: impl FnMut(usize, &[f64])) {
    let taps = Taps::new(image.nrows(), height);
    let mut sums = vec![0.0_f64; image.ncols()];
    for (y, (low, span)) in taps.spans.iter().enumerate() {
        sums.fill(0.0);
        for (row, weight) in image.rows().into_iter().skip(*low).zip(&taps.weights[span.clone()]) {
            for (sum, sample) in sums.iter_mut().zip(row) {
                *sum += f64::from(*sample) * weight;
            }
        }
        take(y, &sums);
    }
}

/// The mask at `width` x `height` pixels: where the logits, resized as by [`resize_f32`], are strictly above 0. The resized
/// logits are never held as a whole.
pub fn logits_to_mask(logits: &FloatImage, width: usize, height: usize) -> Array2<bool> {
    let (in_height, in_width) = logits.dim();
    let in_one_go = in_height == height || [in_width, in_height, width].contains(&0);
    if in_one_go || vertical_first(in_width, in_height, height) {
        return resize_f32(logits, width, height).mapv(|logit| logit > 0.0);
    }
    let rows = rows_f32(logits.clone(), width);
    let mut mask = Array2::from_elem((height, width), false);
    each_row_f32(&rows, height, |y, row| {
        // Rounded to single as in the resized image: what vanishes there is outside here.
        mask.row_mut(y).iter_mut().zip(row).for_each(|(inside, sum)| *inside = *sum as f32 > 0.0);
    });
    mask
}
