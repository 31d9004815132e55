//! Any bytes as an ONNX model: everything that is asked of it gives an answer or an error, and what is written again is
//! what was read.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onnx_graph::{Dependences, EngineLimits, Model, Types, Weights};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let weights = Weights::inline();
    let written = model.to_bytes().expect("a model that was read");
    // By bytes: a NaN is not equal to itself.
    let again = Model::from_bytes(written.clone()).expect("what was written");
    assert_eq!(again.to_bytes().expect("the same"), written);
    for finding in model.check(Path::new("model.onnx"), &weights) {
        assert!(!finding.to_string().contains('\n'));
    }
    for limits in EngineLimits::known() {
        let _ = model.check_engine(Path::new("model.onnx"), limits);
    }
    if let Ok(types) = Types::infer(&model, &weights) {
        assert!(types.iter().is_sorted_by_key(|(name, _)| name));
    }
    let _ = model.input_groups();
    if let Ok(walk) = Dependences::new(&model) {
        for port in model.outputs() {
            if let Ok(behind) = walk.values_behind(&port.name) {
                for value in behind {
                    let _ = walk.values_from(value).expect("a value of the graph");
                }
            }
        }
    }
});
