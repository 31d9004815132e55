//! Any bytes as an ONNX model: whatever is rewritten of it is a model again, with the same ports.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onnx_graph::{Fp16Options, Model, Pass, PassSet, Severity, Weights};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let weights = Weights::inline();
    let names = |model: &Model| {
        let ports = model.inputs().into_iter().chain(model.outputs());
        ports.map(|port| port.name).collect::<Vec<_>>()
    };
    let errors = |model: &Model| {
        let found = model.check(Path::new("model.onnx"), &weights);
        found.into_iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    let sound = errors(&model) == 0;
    let check = |rewritten: &Model| {
        assert!(!sound || errors(rewritten) == 0);
        let written = rewritten.to_bytes().expect("a model that was rewritten");
        let again = Model::from_bytes(written).expect("what was written");
        assert_eq!(names(&again), names(&model));
    };
    for passes in [Pass::ALL, PassSet::OnnxRuntime.passes(), PassSet::Rten.passes()] {
        if let Ok(done) = model.rewrite(passes, &weights) {
            check(&done.model);
        }
    }
    for options in [Fp16Options::storage().min_elements(0), Fp16Options::compute()] {
        if let Ok((half, _)) = model.to_fp16(&weights, &options) {
            check(&half);
            if let Ok(wide) = half.widened(&weights) {
                check(&wide);
            }
        }
    }
    let inputs = model.inputs();
    if let Some(Ok(split)) = inputs.first().map(|first| model.split(&[&first.name], &weights)) {
        for part in [split.early, split.late].into_iter().flatten() {
            let written = part.to_bytes().expect("a part");
            Model::from_bytes(written).expect("what was written");
        }
    }
});
