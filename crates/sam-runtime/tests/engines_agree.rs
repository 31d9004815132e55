//! Both engines give the same logits on the fixture within 1e-4, and masks that differ in at most 0.1 % of the pixels.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod common;

use sam_runtime::{
    Click, Segmenter,
    engine::{EngineChoice, EngineKind},
    read_image,
};

#[test]
fn the_version_that_rten_reports_is_the_one_that_is_locked() {
    let rten = Segmenter::builder().engine(EngineChoice::Rten).open(common::tiny_sam()).unwrap();
    let lock = std::fs::read_to_string(common::fixtures().join("../Cargo.lock")).unwrap();
    let (_, entry) = lock.split_once("name = \"rten\"\nversion = \"").unwrap();
    assert!(entry.starts_with(&format!("{}.", rten.engine().version)), "{}", entry.lines().next().unwrap());
}

#[test]
fn both_engines_give_the_same_logits_and_masks() {
    let open = |engine| Segmenter::builder().engine(engine).open(common::tiny_sam()).unwrap();
    let [rten, ort] = common::engines().map(open);
    assert_eq!((rten.engine().kind, ort.engine().kind), (EngineKind::Rten, EngineKind::OnnxRuntime));
    let mut worst = 0.0_f32;
    for file in ["coffee.jpg", "rocket.jpg", "flower.jpg", "coins.png"] {
        let image = read_image(common::fixtures().join("images").join(file)).unwrap();
        let (width, height) = image.dimensions();
        let [in_rten, in_ort] = [&rten, &ort].map(|s| s.encode(&image).unwrap());
        for (port, tensor) in in_rten.tensors() {
            let (_, other) = in_ort.tensors().find(|(value, _)| *value == port).unwrap();
            let (a, b) = (tensor.as_f32().unwrap(), other.as_f32().unwrap());
            let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= 1e-4, "{file}: {port} is off by {off}");
        }
        let at = |fx: f32, fy: f32| (fx * width as f32, fy * height as f32);
        let [(ax, ay), (bx, by), (cx, cy)] = [at(0.5, 0.4), at(0.2, 0.7), at(0.8, 0.3)];
        let positive = Click::positive(ax, ay);
        let more = [positive, Click::negative(bx, by), Click::positive(cx, cy)];
        for clicks in [&more[..1], &more[..2], &more[..]] {
            let a = rten.segment(&in_rten, clicks).unwrap();
            let b = ort.segment(&in_ort, clicks).unwrap();
            let logits = a.low_res_logits().iter().zip(b.low_res_logits());
            let off = logits.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            worst = worst.max(off);
            assert!(off <= 1e-4, "{file}, {} clicks: logits are off by {off}", clicks.len());
            assert!((a.score - b.score).abs() <= 1e-4, "{} and {}", a.score, b.score);
            let differing = a.mask.iter().zip(&b.mask).filter(|(a, b)| a != b).count();
            let share = differing as f64 / a.mask.len() as f64;
            assert!(share <= 0.001, "{file}: {differing} pixels differ");
        }
    }
    // Seen with --nocapture.
    eprintln!("largest difference between the engines' logits: {worst:e}");
}
