//! The whole route over full-size imitations of published releases: each value that a composite computes is PyTorch's. The releases
//! are those whose names join the wrong ports (`fixtures/structures/README.md` says how they are made).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod common;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use composite::{Composite, Value};
use ndarray::ArrayD;
use onnx_graph::Model;
use sam_runtime::{
    Tensor,
    engine::{EngineChoice, EngineOptions, open},
};
use serde_json::{Value as Json, json};

/// Values that a name and an index give: splitmix64 over FNV-1a of the name, in `[-1, 1)`.
fn uniform(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let state = name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    (1..=count as u64).map(move |at| {
        let z = state.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

/// A folder with the graphs of `full`, and the metadata that the publisher would have put beside them.
fn release(full: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(full).unwrap();
    let mut files = serde_json::Map::new();
    let names = std::fs::read_dir(full).unwrap().map(|entry| entry.unwrap().path());
    for path in names.filter(|path| path.is_file()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let wanted = ["encoder", "decoder", "video_decoder", "memory_encoder"];
        let Some((stem, kind @ ("onnx" | "data"))) = name.rsplit_once('.') else { continue };
        if !wanted.contains(&stem) {
            continue;
        }
        std::fs::hard_link(&path, folder.path().join(&name)).unwrap();
        if kind == "onnx" {
            let model = Model::read(&path).unwrap();
            let tensors = |ports: Vec<onnx_graph::Port>| -> serde_json::Map<String, Json> {
                let tensor = |p: &onnx_graph::Port| json!({"shape": p.static_shape().unwrap(), "dtype": p.element_type.to_string()});
                ports.iter().map(|port| (port.name.clone(), tensor(port))).collect()
            };
            files.insert(
                name,
                json!({"inputs": tensors(model.inputs()), "outputs": tensors(model.outputs())}),
            );
        }
    }
    let image = &mut files["encoder.onnx"]["inputs"]["image"];
    image["io_type"] = "image".into();
    image["value_range"] = json!([0.0, 1.0]);
    std::fs::write(folder.path().join("metadata.json"), json!({"model_files": files}).to_string()).unwrap();
    folder
}

/// A tensor that the goldens hold, of these dims.
fn given(values: &Json, dims: &[usize]) -> Tensor {
    fn flat(value: &Json, into: &mut Vec<f32>) {
        match value {
            Json::Array(items) => items.iter().for_each(|item| flat(item, into)),
            number => into.push(number.as_f64().unwrap() as f32),
        }
    }
    let mut all = Vec::new();
    flat(values, &mut all);
    Tensor::F32(ArrayD::from_shape_vec(dims.to_vec(), all).unwrap())
}

/// The largest difference of a tensor from its golden, and the golden's largest value.
fn difference(tensor: &Tensor, golden: &Json) -> (f64, f64) {
    let Tensor::F32(tensor) = tensor else { panic!("{tensor:?}") };
    let shape: Vec<u64> = tensor.shape().iter().map(|&d| d as u64).collect();
    assert_eq!(json!(shape), golden["shape"]);
    let flat: Vec<f64> = tensor.iter().map(|v| f64::from(*v)).collect();
    let at = golden["at"].as_array().unwrap().iter().map(|i| flat[i.as_u64().unwrap() as usize]);
    let values = golden["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
    let sampled = at.zip(values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let ends = [
        (flat.iter().copied().fold(f64::INFINITY, f64::min), &golden["min"]),
        (flat.iter().copied().fold(f64::NEG_INFINITY, f64::max), &golden["max"]),
    ];
    let end = ends.iter().map(|(a, b)| (a - b.as_f64().unwrap()).abs()).fold(sampled, f64::max);
    let largest = ends.iter().map(|(_, b)| b.as_f64().unwrap().abs()).fold(0.0, f64::max);
    (end, largest)
}

/// `SAM_RUNTIME_FULL_SIZE` is a folder with `encoder.onnx`, `decoder.onnx` or `video_decoder.onnx`, and the goldens `pair.json`, as
/// many folders as wanted with a `:` between them.
#[test]
#[ignore = "needs full-size graphs"]
fn every_value_is_pytorchs() {
    let folders = std::env::var("SAM_RUNTIME_FULL_SIZE").unwrap();
    for (full, choice) in
        folders.split(':').flat_map(|full| common::engines().map(|choice| (PathBuf::from(full), choice)))
    {
        // Its best mask is chosen by ArgMax, which rten is not asked to compute.
        if choice == EngineChoice::Rten && full.join("video_decoder.onnx").exists() {
            continue;
        }
        let goldens: Json =
            serde_json::from_str(&std::fs::read_to_string(full.join("pair.json")).unwrap()).unwrap();
        let folder = release(&full);
        let composite = Composite::open(folder.path()).unwrap();
        eprintln!("{composite}");
        let mut options = EngineOptions::default();
        options.choice = choice;
        let engine = open(&options).unwrap();
        let plan = composite.plan().unwrap();
        let side = composite.preprocessing().width as usize;
        let pixels = uniform("image", 3 * side * side).map(|u| f64::midpoint(u, 1.0) as f32).collect();
        let image = ArrayD::from_shape_vec(vec![1, 3, side, side], pixels).unwrap();
        let slots = composite.prompt().slots;
        let mut values = BTreeMap::from([
            (Value::Image, Tensor::F32(image)),
            (Value::Coordinates, given(&goldens["coords"], &[1, slots, 2])),
            (Value::Labels, given(&goldens["labels"], &[1, slots])),
        ]);
        let mut compared = 0;
        for step in plan.per_image.iter().chain(&plan.per_prompt) {
            let session = engine.load(&step.model, &step.folder, "step").unwrap();
            let fed: Vec<(&str, &Tensor)> =
                step.feeds.iter().map(|feed| (feed.port.as_str(), &values[&feed.value])).collect();
            let outputs = session.run(&fed).unwrap();
            for (name, tensor) in outputs {
                let (off, largest) = difference(&tensor, &goldens["tensors"][&name]);
                eprintln!("{:12} {name:20} off by {off:.1e} of {largest:.3}", engine.info().kind);
                assert!(off <= 1e-4, "{name} is off by {off}");
                compared += 1;
                values.insert(Value::Port(step.component, name), tensor);
            }
        }
        // Four embeddings, masks and scores.
        assert_eq!(compared, 6);
    }
}
