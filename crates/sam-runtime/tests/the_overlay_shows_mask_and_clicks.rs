//! The picture that people look at: tinted inside, darker outside, an outline on the edge, a marker on each click.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use image::{Rgb, RgbImage};
use ndarray::Array2;
use sam_runtime::{
    Click,
    overlay::{mask_image, overlay},
};

const GREY: [u8; 3] = [128; 3];

/// A grey photograph with a square mask from 40 to 79 in both directions.
fn drawn(clicks: &[Click]) -> RgbImage {
    let photo = RgbImage::from_pixel(120, 100, Rgb(GREY));
    overlay(&photo, square().view(), clicks)
}

fn square() -> Array2<bool> {
    Array2::from_shape_fn((100, 120), |(y, x)| (40..80).contains(&y) && (40..80).contains(&x))
}

#[test]
fn inside_is_tinted_outside_is_dimmed_and_the_edge_is_light() {
    let picture = drawn(&[]);
    let [red, green, blue] = picture.get_pixel(60, 60).0;
    assert!(red > 160 && red > blue && blue > green, "the inside is {red} {green} {blue}");
    let [red, green, blue] = picture.get_pixel(10, 10).0;
    assert!(red == green && green == blue && red < 128, "the outside is {red} {green} {blue}");
    for (x, y) in [(40, 60), (79, 60), (60, 40), (60, 79)] {
        let edge = picture.get_pixel(x, y).0;
        assert!(edge.iter().all(|sample| *sample > 200), "the edge at {x} {y} is {edge:?}");
    }
    // Two pixels from the edge, on both sides, there is no outline any more.
    assert_eq!(picture.get_pixel(45, 60), picture.get_pixel(60, 60));
    assert_eq!(picture.get_pixel(34, 60), picture.get_pixel(10, 10));
}

#[test]
fn clicks_are_green_and_red_where_they_were_made() {
    let (positive, negative) = (Click::positive(60.0, 60.0), Click::negative(100.0, 20.0));
    let (plain, picture) = (drawn(&[]), drawn(&[positive, negative]));
    // Beside the sign in the marker's middle: its own colour.
    let [red, green, blue] = picture.get_pixel(62, 62).0;
    assert!(green > red && green > blue, "a positive click is {red} {green} {blue}");
    let [red, green, blue] = picture.get_pixel(100, 22).0;
    assert!(red > green && red > blue, "a negative click is {red} {green} {blue}");
    // A marker is round its pixel: the pixels that it changed have the click in their middle.
    for click in [positive, negative] {
        let near = |x: u32, y: u32| {
            (x as f32 - click.point.x).abs() < 16.0 && (y as f32 - click.point.y).abs() < 16.0
        };
        let changed: Vec<(u32, u32)> = picture
            .enumerate_pixels()
            .filter(|(x, y, pixel)| near(*x, *y) && *pixel != plain.get_pixel(*x, *y))
            .map(|(x, y, _)| (x, y))
            .collect();
        assert!(changed.len() > 50, "{} pixels", changed.len());
        let mean = |sum: u32| sum as f32 / changed.len() as f32;
        assert!((mean(changed.iter().map(|c| c.0).sum()) - click.point.x).abs() < 0.01);
        assert!((mean(changed.iter().map(|c| c.1).sum()) - click.point.y).abs() < 0.01);
    }
}

#[test]
fn clicks_and_masks_that_reach_outside_draw_what_is_inside() {
    let photo = RgbImage::from_pixel(20, 10, Rgb(GREY));
    let everything = Array2::from_elem((50, 50), true);
    let clicks = [Click::positive(-3.0, 5.0), Click::negative(f32::NAN, 1e30), Click::positive(19.0, 9.0)];
    let picture = overlay(&photo, everything.view(), &clicks);
    assert_eq!(picture.dimensions(), (20, 10));
    assert_ne!(picture.get_pixel(19, 9).0, GREY);
}

#[test]
fn the_mask_picture_is_white_inside_and_black_outside() {
    let picture = mask_image(square().view());
    assert_eq!(picture.dimensions(), (120, 100));
    for (x, y, pixel) in picture.enumerate_pixels() {
        assert_eq!(pixel.0[0], if square()[[y as usize, x as usize]] { 255 } else { 0 });
    }
}
