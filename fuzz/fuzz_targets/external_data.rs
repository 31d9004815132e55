//! Any bytes as an ONNX model beside a small sidecar: an error, or sidecars that lie in the folder and are long enough.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use onnx_graph::{Dependences, Model, external_data};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let place = tempfile::tempdir().expect("a folder");
    let graph = place.path().join("graph.onnx");
    fs::write(&graph, bytes).expect("the graph");
    fs::write(place.path().join("weights.data"), [0; 64]).expect("the sidecar");
    if let Ok(sidecars) = external_data::verify(&graph, place.path()) {
        let root = place.path().canonicalize().expect("the folder");
        assert!(sidecars.iter().all(|path| path.starts_with(&root) && path.is_file()));
        for tensor in external_data::list(&model, &graph).expect("what was verified") {
            assert!(tensor.offset.checked_add(tensor.length).is_some_and(|end| end <= 64));
        }
    }
    let (inputs, outputs) = (model.inputs(), model.outputs());
    if let Ok(walk) = Dependences::new(&model) {
        let names: Vec<&str> = outputs.iter().map(|port| port.name.as_str()).collect();
        let _ = walk.inputs_of_each(&names);
    }
    // What is written again reads as the same.
    let written = model.to_bytes().expect("a model that was read");
    let again = Model::from_bytes(written).expect("what was written");
    assert_eq!((again.inputs(), again.outputs()), (inputs, outputs));
});
