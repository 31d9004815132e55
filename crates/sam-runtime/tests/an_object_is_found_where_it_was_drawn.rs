//! Cases G1, G3, G4: what is red in the picture is the mask, at the picture's own size, without a shift.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Decoder, Encoder, engines, open, red_rectangle};
use sam_runtime::Click;

#[test]
fn a_rectangle_comes_back_within_a_model_pixel() {
    for engine in engines() {
        let (segmenter, _folder) = open(Encoder::Faithful, Decoder::Red, 2, engine);
        // G4's 1800 x 1200 among them: stretched, not padded.
        for (width, height, rectangle) in [
            (240, 400, [20, 300, 80, 60]),
            (400, 240, [300, 20, 60, 80]),
            (900, 300, [600, 40, 150, 90]),
            (1800, 1200, [1200, 150, 400, 300]),
        ] {
            let image = red_rectangle(width, height, rectangle);
            let embeddings = segmenter.encode(&image).unwrap();
            let found = segmenter.segment(&embeddings, [Click::positive(1.0, 1.0)]).unwrap();
            let [x, y, w, h] = rectangle.map(|v| v as usize);
            // Whatever is further than one model pixel from the rectangle's edge must be right.
            let (mx, my) = (width as usize / 64 + 1, height as usize / 64 + 1);
            for ((py, px), inside) in found.mask.indexed_iter() {
                let near_x = px + mx >= x && px < x + w + mx;
                let near_y = py + my >= y && py < y + h + my;
                let deep = px >= x + mx && px + mx < x + w && py >= y + my && py + my < y + h;
                if deep || !(near_x && near_y) {
                    assert_eq!(*inside, deep, "{engine:?} {width}x{height} at ({px}, {py})");
                }
            }
        }
    }
}
