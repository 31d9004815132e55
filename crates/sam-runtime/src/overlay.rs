//! Pictures for people: a mask as an image, and a photograph with the mask and the clicks drawn over it.

use image::{GrayImage, Luma, Rgb, RgbImage};
use ndarray::{Array2, ArrayView2};

use crate::{Click, Label};

const TINT: [f32; 3] = [255.0, 0.0, 170.0];
const POSITIVE: [f32; 3] = [46.0, 204.0, 64.0];
const NEGATIVE: [f32; 3] = [235.0, 52.0, 52.0];
/// Half the width of the outline at most, in pixels.
const MAX_LINE: f32 = 6.0;
const WHITE: [f32; 3] = [255.0; 3];
const BLACK: [f32; 3] = [0.0; 3];

/// The mask as an 8-bit image of its own size: 255 inside, 0 outside.
pub fn mask_image(mask: ArrayView2<'_, bool>) -> GrayImage {
    let (height, width) = mask.dim();
    let mut image = GrayImage::new(width as u32, height as u32);
    for (pixel, inside) in image.pixels_mut().zip(mask.iter()) {
        *pixel = Luma([if *inside { 255 } else { 0 }]);
    }
    image
}

/// The photograph with the mask tinted and outlined and every click marked: green for positive, red for negative.
///
/// Lines and markers grow with the photograph, so that they look alike at every usual size. Pixels of the mask beyond the
/// photograph, or the other way round, are left as they are; clicks outside draw what reaches inside.
pub fn overlay(photo: &RgbImage, mask: ArrayView2<'_, bool>, clicks: &[Click]) -> RgbImage {
    let mut out = photo.clone();
    let short = out.width().min(out.height()) as f32;
    // Beyond that, wide lines would take longer to draw than the mask to find.
    let line = (short / 300.0).clamp(1.0, MAX_LINE);
    for ((y, x), inside) in mask.indexed_iter() {
        if let Some(pixel) = out.get_pixel_mut_checked(x as u32, y as u32) {
            // What is not meant steps back a little.
            if *inside { blend(pixel, TINT, 0.42) } else { blend(pixel, BLACK, 0.22) }
        }
    }
    for (width, color) in [(line + 1.0, BLACK), (line, WHITE)] {
        let cover = outline(mask, width);
        for ((y, x), cover) in cover.indexed_iter().filter(|(_, c)| **c > 0.0) {
            if let Some(pixel) = out.get_pixel_mut_checked(x as u32, y as u32) {
                blend(pixel, color, if color == WHITE { *cover } else { cover * 0.5 });
            }
        }
    }
    for click in clicks {
        let radius = (short / 55.0).max(4.0);
        let fill = match click.label {
            Label::Positive => POSITIVE,
            Label::Negative => NEGATIVE,
        };
        for (radius, color) in [(radius + line + 1.0, BLACK), (radius + line, WHITE), (radius, fill)] {
            disc(&mut out, click, radius, color);
        }
        sign(&mut out, click, radius);
    }
    out
}

fn blend(pixel: &mut Rgb<u8>, color: [f32; 3], share: f32) {
    for (sample, target) in pixel.0.iter_mut().zip(color) {
        let from = f32::from(*sample);
        *sample = (from + (target - from) * share.clamp(0.0, 1.0)).round() as u8;
    }
}

/// How far each pixel is covered by a line of this half-width along the mask's edge.
fn outline(mask: ArrayView2<'_, bool>, half_width: f32) -> Array2<f32> {
    let (height, width) = mask.dim();
    let mut cover = Array2::zeros((height, width));
    let reach = half_width.ceil() as isize;
    let differs = |y: usize, x: usize, other: Option<&bool>| other.is_some_and(|o| *o != mask[[y, x]]);
    for ((y, x), inside) in mask.indexed_iter() {
        let right = differs(y, x, mask.get([y, x + 1]));
        let below = differs(y, x, mask.get([y + 1, x]));
        let left = x > 0 && differs(y, x, mask.get([y, x - 1]));
        let above = y > 0 && differs(y, x, mask.get([y - 1, x]));
        // The line's middle runs over the mask's outermost pixels.
        if !*inside || !(right || below || left || above) {
            continue;
        }
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                let at = y.checked_add_signed(dy).zip(x.checked_add_signed(dx));
                if let Some(value) = at.and_then(|(y, x)| cover.get_mut([y, x])) {
                    let distance = ((dx * dx + dy * dy) as f32).sqrt();
                    let share: f32 = (half_width + 0.5 - distance).clamp(0.0, 1.0);
                    *value = f32::max(*value, share);
                }
            }
        }
    }
    cover
}

/// Pixels around a click with their distance from it, for everything within `reach` pixels that is on the image.
fn around(image: &RgbImage, click: &Click, reach: f32) -> impl Iterator<Item = (u32, u32, f32, f32)> + use<> {
    let (x, y) = (click.point.x, click.point.y);
    // A float that is out of range, or no number, saturates in the cast.
    let range = |at: f32, size: u32| {
        ((at - reach).ceil().max(0.0) as u32)..(((at + reach).floor() + 1.0).max(0.0) as u32).min(size)
    };
    let (rows, columns) = (range(y, image.height()), range(x, image.width()));
    rows.flat_map(move |py| columns.clone().map(move |px| (px, py, px as f32 - x, py as f32 - y)))
}

fn disc(image: &mut RgbImage, click: &Click, radius: f32, color: [f32; 3]) {
    for (x, y, dx, dy) in around(image, click, radius + 1.0) {
        let share = radius + 0.5 - dx.hypot(dy);
        if share > 0.0 {
            blend(image.get_pixel_mut(x, y), color, share);
        }
    }
}

/// A plus or a minus, so that the marker can be read without its colour.
fn sign(image: &mut RgbImage, click: &Click, radius: f32) {
    let (length, half) = (radius * 0.6, (radius * 0.14).max(0.7));
    let bar = |along: f32, across: f32| {
        (length + 0.5 - along.abs()).clamp(0.0, 1.0) * (half + 0.5 - across.abs()).clamp(0.0, 1.0)
    };
    for (x, y, dx, dy) in around(image, click, radius) {
        let share = match click.label {
            Label::Positive => bar(dx, dy).max(bar(dy, dx)),
            Label::Negative => bar(dx, dy),
        };
        if share > 0.0 {
            blend(image.get_pixel_mut(x, y), WHITE, share);
        }
    }
}
