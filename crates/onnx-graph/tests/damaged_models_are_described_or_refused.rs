//! Inference and description of damaged models: an answer or an error, never a panic, whatever bytes are changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{path::Path, sync::OnceLock};

use onnx_graph::{Macs, Model, Types, Weights};
use proptest::prelude::*;

/// Small models of every operator, and larger ones with real structure.
fn models() -> &'static [Vec<u8>] {
    static MODELS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let golden = include_str!("../../../fixtures/onnx-shapes/shapes.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(golden).unwrap();
        let texts = cases.iter().flat_map(|case| [&case["model"], &case["symbolic"]]);
        let mut models: Vec<Vec<u8>> = texts.filter_map(|text| text.as_str()).map(common::base64).collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/structures");
        models.extend(common::fixture_graphs().iter().map(|path| std::fs::read(path).unwrap()));
        models.push(std::fs::read(folder.join("plain-encoder.onnx")).unwrap());
        models
    })
}

/// Values that protobuf and sizes stumble over.
const BYTES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xff, 0x08, 0xfe];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn changed_bytes(
        model in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&BYTES[..])), 1..6)
    ) {
        let mut bytes = model.get(models()).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(model) = Model::from_bytes(bytes) {
            let types = Types::infer(&model, &Weights::inline());
            let macs = Macs::count(&model, &Weights::inline());
            prop_assert_eq!(types.is_ok(), macs.is_ok());
            if let Ok(description) = model.describe(None) {
                prop_assert_eq!(description.nodes.total(), model.nodes().len());
            }
        }
    }
}
