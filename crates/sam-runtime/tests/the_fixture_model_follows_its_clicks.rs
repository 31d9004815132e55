//! Cases P2, G1, G3, G7 on the model that the repository comes with: real photographs, drawn masks, both engines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use image::{RgbImage, imageops};
use ndarray::Array2;
use sam_runtime::{Click, Segmenter, engine::EngineChoice, read_image};

fn photo(name: &str) -> RgbImage {
    read_image(common::fixtures().join("images").join(name)).unwrap()
}

fn drawn(name: &str) -> Array2<bool> {
    let image = photo(&format!("masks/{name}.png"));
    let (width, height) = image.dimensions();
    Array2::from_shape_fn((height as usize, width as usize), |(y, x)| {
        image.get_pixel(x as u32, y as u32).0[0] > 127
    })
}

fn iou(a: &Array2<bool>, b: &Array2<bool>) -> f64 {
    let both = a.iter().zip(b).filter(|(a, b)| **a && **b).count();
    let either = a.iter().zip(b).filter(|(a, b)| **a || **b).count();
    both as f64 / either as f64
}

/// The picture and its mask in a window: x, y, width and height in pixels.
fn window(photo: &RgbImage, mask: &Array2<bool>, [x, y, w, h]: [u32; 4]) -> (RgbImage, Array2<bool>) {
    let cut = imageops::crop_imm(photo, x, y, w, h).to_image();
    let at = |(r, c): (usize, usize)| mask[[r + y as usize, c + x as usize]];
    (cut, Array2::from_shape_fn((h as usize, w as usize), at))
}

fn model(engine: EngineChoice) -> Segmenter {
    Segmenter::builder().engine(engine).open(common::tiny_sam()).unwrap()
}

/// The negative click is made inside of the mask, as far from the positive one as the mask reaches.
#[test]
fn a_negative_click_inside_of_the_mask_takes_away() {
    for engine in common::engines() {
        let segmenter = model(engine);
        assert!(segmenter.honours_negative_clicks().unwrap());
        for (file, (x, y)) in
            [("camera.png", (109, 173)), ("retina.jpg", (199, 199)), ("astronaut.jpg", (170, 385))]
        {
            let embeddings = segmenter.encode(&photo(file)).unwrap();
            let positive = Click::positive(x as f32, y as f32);
            let before = segmenter.segment(&embeddings, positive).unwrap();
            let away = |(r, c): (usize, usize)| r.abs_diff(y).pow(2) + c.abs_diff(x).pow(2);
            let inside = before.mask.indexed_iter().filter(|(_, m)| **m).map(|(at, _)| at);
            let (r, c) = inside.max_by_key(|at| away(*at)).unwrap();
            let clicks = [positive, Click::negative(c as f32, r as f32)];
            let after = segmenter.segment(&embeddings, clicks).unwrap();
            let (was, is) = (before.logits()[[r, c]], after.logits()[[r, c]]);
            assert!(was > 0.0 && is < was && is < 0.0, "{engine:?} {file} at ({c}, {r}): {was} became {is}");
        }
    }
}

#[test]
fn the_order_of_clicks_does_not_matter() {
    for engine in common::engines() {
        let segmenter = model(engine);
        let embeddings = segmenter.encode(&photo("coffee.jpg")).unwrap();
        let clicks =
            [Click::positive(282.0, 132.0), Click::negative(80.0, 330.0), Click::positive(240.0, 220.0)];
        let turned = [clicks[2], clicks[0], clicks[1]];
        let a = segmenter.segment(&embeddings, clicks).unwrap();
        let b = segmenter.segment(&embeddings, turned).unwrap();
        let off =
            a.low_res_logits().iter().zip(b.low_res_logits()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-3, "{engine:?}: logits differ by {off}");
    }
}

#[test]
fn off_centre_objects_are_found_in_portrait_landscape_and_three_to_one() {
    for engine in common::engines() {
        let segmenter = model(engine);
        for (file, mask, at, place) in [
            ("astronaut.jpg", "astronaut.mission_patch", (170, 385), [100, 140, 200, 360]),
            ("astronaut.jpg", "astronaut.mission_patch", (170, 385), [100, 240, 400, 260]),
            ("astronaut.jpg", "astronaut.mission_patch", (170, 385), [0, 320, 510, 170]),
            ("coins.png", "coins.coin_with_face", (212, 193), [140, 0, 110, 300]),
        ] {
            let (image, wanted) = window(&photo(file), &drawn(mask), place);
            let embeddings = segmenter.encode(&image).unwrap();
            let click = Click::positive((at.0 - place[0]) as f32, (at.1 - place[1]) as f32);
            let found = segmenter.segment(&embeddings, [click]).unwrap();
            assert_eq!(found.mask.dim(), (place[3] as usize, place[2] as usize));
            let iou = iou(&found.mask, &wanted);
            assert!(iou >= 0.6, "{engine:?} {mask} in {place:?}: IoU {iou:.3}");
            let ((x, y), (wx, wy)) = (common::centroid(found.mask.view()), common::centroid(wanted.view()));
            assert!(
                (x - wx).hypot(y - wy) < 6.0,
                "{engine:?} {mask}: ({x:.1}, {y:.1}) for ({wx:.1}, {wy:.1})"
            );
        }
    }
}
