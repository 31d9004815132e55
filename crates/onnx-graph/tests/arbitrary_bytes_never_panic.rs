//! Whatever the bytes, the answer is a value or an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::fixture_graphs;
use onnx_graph::{Dependences, Model, external_data};
use proptest::prelude::*;

/// Everything that can be asked of a model.
fn ask(bytes: Vec<u8>) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let (inputs, outputs) = (model.inputs(), model.outputs());
    let _ = (model.precision(), model.is_quantized(), model.opset_imports(), model.to_bytes());
    let _ = inputs.iter().chain(&outputs).map(ToString::to_string).collect::<Vec<_>>();
    let _ = external_data::list(&model, "model.onnx".as_ref());
    let inputs: Vec<&str> = inputs.iter().map(|p| p.name.as_str()).collect();
    for output in &outputs {
        let _ = Dependences::new(&model).and_then(|walk| walk.inputs_of(&output.name).map(drop));
        let _ = model.cut(&inputs, &[&output.name]);
        let _ = model.cut(&[], &[&output.name]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        ask(bytes);
    }

    /// Random content where a graph is expected gets past the outer message more often.
    #[test]
    fn random_within_a_graph(bytes in prop::collection::vec(any::<u8>(), 0..64), field in 1_u64..16) {
        let within_graph = common::within(&[common::field::MODEL_GRAPH, field], bytes);
        ask(within_graph);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn real_models_with_changed_bytes(
        which in 0_usize..2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..16),
        kept in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(&fixture_graphs()[which]).unwrap();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(kept) = kept {
            bytes.truncate(kept.index(bytes.len()));
        }
        ask(bytes);
    }
}
