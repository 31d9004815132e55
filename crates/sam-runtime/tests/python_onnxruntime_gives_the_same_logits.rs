//! What Python's ONNX Runtime and Pillow got from the fixture pair, written once by `fixtures/tiny-sam/golden.py`: our
//! resized pixels and upsampled masks are the same to the bit, our logits and scores within 1e-4.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::digest;
use composite::Value;
use ndarray::Array2;
use sam_runtime::{Click, PixelPoint, Segmenter, logits_to_mask, read_image, resize_rgb8};
use serde_json::Value as Json;

fn numbers(value: &Json) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

#[test]
fn both_engines_give_what_python_got() {
    let folder = common::fixtures().join("tiny-sam");
    let golden: Json = serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
    for (file, sha256) in golden["model_files"].as_object().unwrap() {
        let bytes = std::fs::read(common::tiny_sam().join(file)).unwrap();
        assert_eq!(
            digest(&bytes),
            sha256.as_str().unwrap(),
            "{file} is not the one the golden was made with"
        );
    }
    let photo = folder.join(golden["image"]["file"].as_str().unwrap());
    assert_eq!(digest(&std::fs::read(&photo).unwrap()), golden["image"]["sha256"].as_str().unwrap());
    let image = read_image(photo).unwrap();
    let size = |key: &str| golden["image"][key].as_u64().unwrap() as u32;
    assert_eq!(image.dimensions(), (size("width"), size("height")));

    for engine in common::engines() {
        let segmenter = Segmenter::builder().engine(engine).open(common::tiny_sam()).unwrap();
        let profile = segmenter.composite().preprocessing();
        let resized = resize_rgb8(&image, profile.width, profile.height);
        assert_eq!(digest(resized.as_raw()), golden["resized"]["sha256"].as_str().unwrap());

        let embeddings = segmenter.encode(&image).unwrap();
        for (port, tensor) in embeddings.tensors() {
            let Value::Port(_, port) = port else { panic!("{port}") };
            let want = &golden["embeddings"][port];
            let values: Vec<f32> = tensor.as_f32().unwrap().iter().copied().collect();
            for (at, want) in want["indices"].as_array().unwrap().iter().zip(numbers(&want["values"])) {
                let found = values[at.as_u64().unwrap() as usize];
                assert!((found - want).abs() <= 1e-4, "{engine:?} {port}: {found} for {want}");
            }
        }
        let prompts = golden["prompts"].as_array().unwrap();
        assert!(prompts.len() >= 3);
        for prompt in prompts {
            let points = prompt["pixels"].as_array().unwrap().iter().map(numbers);
            let clicks = points.zip(numbers(&prompt["labels"])).map(|(xy, label)| {
                let point = PixelPoint::new(xy[0], xy[1]);
                let label =
                    if label > 0.5 { sam_runtime::Label::Positive } else { sam_runtime::Label::Negative };
                Click { point, label }
            });
            let found = segmenter.segment(&embeddings, clicks.collect::<Vec<_>>()).unwrap();
            let name = prompt["name"].as_str().unwrap();
            let logits = numbers(&prompt["logits"]);
            assert_eq!(found.low_res_logits().len(), logits.len());
            let off =
                found.low_res_logits().iter().zip(&logits).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= 1e-4, "{engine:?}, {name}: logits are off by {off}");
            let score = prompt["score"].as_f64().unwrap() as f32;
            assert!((found.score - score).abs() <= 1e-4, "{engine:?}, {name}: {} for {score}", found.score);
            // Python's mask, made again from Python's logits, to the bit; then ours against it.
            let side = (logits.len() as f64).sqrt() as usize;
            let logits = Array2::from_shape_vec((side, side), logits).unwrap();
            let want = logits_to_mask(&logits, image.width() as usize, image.height() as usize);
            let bits: Vec<u8> = want.iter().map(|inside| u8::from(*inside)).collect();
            assert_eq!(digest(&bits), prompt["mask_sha256"].as_str().unwrap(), "{name}");
            let differing = found.mask.iter().zip(&want).filter(|(a, b)| a != b).count();
            assert!(differing * 1000 <= want.len(), "{engine:?}, {name}: {differing} pixels differ");
        }
    }
}
