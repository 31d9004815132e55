//! X3: whatever a model holds, checking and saving it ends in findings, errors or files, never in a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::LazyLock;

use common::nested;
use onnx_graph::{Model, SaveOptions, Sidecar, Weights};
use proptest::prelude::*;

/// Models of ONNX's own checker's cases, each with one fault already, and a large graph.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let lines = include_str!("../../../fixtures/onnx-check/verdicts.tsv").lines();
    let hex = lines.filter(|line| !line.starts_with('#')).map(|line| line.rsplit('\t').next().unwrap());
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    hex.map(bytes).collect()
});

/// Everything that this is about, on one model.
fn exercise(model: &Model) {
    let folder = tempfile::tempdir().unwrap();
    // Whatever sidecar is asked for by a plain name may be there.
    std::fs::write(folder.path().join("w.data"), [0x7f; 64]).unwrap();
    let weights = Weights::in_folder(folder.path());
    let path = folder.path().join("m.onnx");
    for finding in model.check(&path, &weights) {
        assert!(!finding.to_string().contains('\n'));
    }
    let ways =
        [SaveOptions::keep(), SaveOptions::inline(), SaveOptions::sidecar(Sidecar::new().threshold(0))];
    for options in ways {
        if model.save(&path, &weights, &options).is_ok() {
            let again = Model::read(&path).unwrap();
            again.check(&path, &weights);
        }
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        let left = names.iter().any(|name| name.to_string_lossy().starts_with(".onnx-graph-"));
        assert!(!left, "{options:?}: {names:?}");
    }
}

#[test]
fn every_seed() {
    for seed in SEEDS.iter() {
        exercise(&Model::from_bytes(seed.clone()).unwrap());
    }
}

#[test]
fn the_deepest_graph_that_is_read() {
    exercise(&Model::from_bytes(nested(24)).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn mutated_models(
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = seed.get(&SEEDS).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(model) = Model::from_bytes(bytes) {
            exercise(&model);
        }
    }

    #[test]
    fn models_in_two_halves(
        first in any::<prop::sample::Index>(),
        second in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        // Protobuf merges messages that follow each other: fields of one model in another.
        let (first, second) = (first.get(&SEEDS), second.get(&SEEDS));
        let cut = cut.index(second.len());
        for rest in [&second[..], &second[cut..]] {
            if let Ok(model) = Model::from_bytes([first, rest].concat()) {
                exercise(&model);
            }
        }
    }
}
