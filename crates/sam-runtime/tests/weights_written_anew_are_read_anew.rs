//! An engine that stays open for long must not answer with the weights of a sidecar that was replaced meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{engines, tiny_sam};
use sam_runtime::{
    Click, Segmenter,
    engine::{self, EngineOptions},
    read_image,
};

#[test]
fn a_replaced_sidecar_of_the_same_length_counts() {
    let image = read_image(common::fixtures().join("images/coffee.jpg")).unwrap();
    for choice in engines() {
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(tiny_sam()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let mut options = EngineOptions::default();
        options.choice = choice;
        let engine = engine::open(&options).unwrap();
        let logits = || {
            let segmenter = Segmenter::builder().open_with(&*engine, folder.path()).unwrap();
            let embeddings = segmenter.encode(&image).unwrap();
            segmenter.segment(&embeddings, Click::positive(282.0, 132.0)).unwrap().low_res_logits().clone()
        };
        let before = logits();
        assert_eq!(logits(), before, "{choice:?}: the same weights");
        let sidecar = folder.path().join("TinySamDecoder.data");
        let mut bytes = std::fs::read(&sidecar).unwrap();
        for weight in bytes.chunks_exact_mut(4) {
            let halved = f32::from_le_bytes(weight.try_into().unwrap()) * 0.5;
            weight.copy_from_slice(&halved.to_le_bytes());
        }
        std::fs::write(&sidecar, bytes).unwrap();
        assert_ne!(logits(), before, "{choice:?}: the old weights answered");
    }
}
