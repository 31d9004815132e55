//! Cases G1, G3, G7: on portrait, landscape and 3:1 pictures, in pixels of the picture, x before y.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{Decoder, Encoder, RADIUS, centroid, engines, open};
use image::RgbImage;
use sam_runtime::Click;

#[test]
fn the_disc_around_a_click_has_its_centre_there() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
        // Portrait, landscape and 3:1, each with the click far off centre.
        for (width, height, x, y) in [
            (300, 500, 60.0, 420.0),
            (500, 300, 410.0, 70.0),
            (900, 300, 150.0, 230.0),
            (300, 900, 230.0, 150.0),
        ] {
            let embeddings = segmenter.encode(&RgbImage::new(width, height)).unwrap();
            let found = segmenter.segment(&embeddings, [Click::positive(x, y)]).unwrap();
            assert_eq!(
                found.mask.dim(),
                (height as usize, width as usize),
                "{engine:?}: rows are the height"
            );
            let (cx, cy) = centroid(found.mask.view());
            let off = (cx - f64::from(x)).hypot(cy - f64::from(y));
            assert!(
                off < 2.0,
                "{engine:?} {width}x{height}: centre ({cx:.2}, {cy:.2}) for a click at ({x}, {y})"
            );
            // The model's disc is round in its own square; in the picture it is stretched with it.
            let columns = found.mask.columns().into_iter().filter(|c| c.iter().any(|m| *m)).count() as f32;
            let rows = found.mask.rows().into_iter().filter(|r| r.iter().any(|m| *m)).count() as f32;
            let (want_columns, want_rows) = (2.0 * RADIUS * width as f32, 2.0 * RADIUS * height as f32);
            assert!((columns - want_columns).abs() <= want_columns * 0.05 + 2.0, "{columns} columns");
            assert!((rows - want_rows).abs() <= want_rows * 0.05 + 2.0, "{rows} rows");
        }
    }
}

#[test]
fn the_graph_is_fed_fractions_of_the_width_and_height() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Disc, 2, engine);
        let embeddings = segmenter.encode(&RgbImage::new(640, 480)).unwrap();
        // EV8: (160, 120) on 640 x 480 is (0.25, 0.25); the model's score is the x it was fed.
        let found = segmenter.segment(&embeddings, [Click::positive(160.0, 120.0)]).unwrap();
        assert_eq!(found.score, 0.25);
    }
}
