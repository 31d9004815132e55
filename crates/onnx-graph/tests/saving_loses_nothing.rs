//! X1, X11: a model that is saved inline, with a sidecar, or as it was, has the same values and gives the same results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{collections::BTreeMap, fs, path::Path};

use common::{bytes, field::*, fixture_graphs, number, within, write};
use onnx_graph::{
    ElementType::{Float32, Int64, Uint8},
    GraphBuilder, Model, SaveOptions, Sidecar, Weight, Weights, external_data,
};
use rten::{ModelOptions, Value, ValueOrView};
use rten_tensor::{AsView, Tensor};

/// What the model in `path` gives for fixed inputs, bit by bit.
fn results(path: &Path) -> Vec<Vec<u32>> {
    let model = Model::read(path).unwrap();
    let folder = path.parent().unwrap();
    let mut options = ModelOptions::with_all_ops();
    for location in locations(&model) {
        options.external_data(&location, fs::read(folder.join(&location)).unwrap());
    }
    let loaded = options.load(fs::read(path).unwrap()).unwrap();
    let inputs = model.inputs().into_iter().enumerate().map(|(i, port)| {
        let shape: Vec<usize> = port.static_shape().unwrap().iter().map(|&d| d as usize).collect();
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|v| ((v * 31 + i * 17) % 101) as f32 / 101.0).collect();
        let value = Value::from(Tensor::<f32>::from_data(&shape, values));
        (loaded.node_id(&port.name).unwrap(), ValueOrView::from(value))
    });
    let outputs: Vec<_> = model.outputs().iter().map(|o| loaded.node_id(&o.name).unwrap()).collect();
    let found = loaded.run(inputs.collect(), &outputs, None).unwrap();
    let bits = |value: Value| Tensor::<f32>::try_from(value).unwrap().iter().map(|v| v.to_bits()).collect();
    found.into_iter().map(bits).collect()
}

fn locations(model: &Model) -> std::collections::BTreeSet<String> {
    external_data::list(model, "model.onnx".as_ref()).unwrap().into_iter().map(|e| e.location).collect()
}

/// Offset and length of every external tensor by name.
fn ranges(model: &Model) -> BTreeMap<String, (u64, u64)> {
    let list = external_data::list(model, "model.onnx".as_ref()).unwrap();
    list.into_iter().map(|e| (e.tensor, (e.offset, e.length))).collect()
}

fn copied(path: &Path, folder: &Path) -> std::path::PathBuf {
    for sidecar in locations(&Model::read(path).unwrap()) {
        fs::copy(path.parent().unwrap().join(&sidecar), folder.join(&sidecar)).unwrap();
    }
    let to = folder.join(path.file_name().unwrap());
    fs::copy(path, &to).unwrap();
    to
}

#[test]
fn results_are_bit_equal_in_all_three_ways() {
    for path in fixture_graphs() {
        let folder = tempfile::tempdir().unwrap();
        let here = copied(&path, folder.path());
        let model = Model::read(&here).unwrap();
        let weights = Weights::in_folder(folder.path());
        let before = results(&path);
        let kept = folder.path().join("kept.onnx");
        model.save(&kept, &weights, &SaveOptions::keep()).unwrap();
        assert_eq!(Model::read(&kept).unwrap(), model);
        let ways = [
            ("inline.onnx", SaveOptions::inline()),
            ("sidecar.onnx", SaveOptions::sidecar(Sidecar::new())),
            ("all.onnx", SaveOptions::sidecar(Sidecar::new().threshold(0).alignment(4096))),
        ];
        for (name, options) in ways {
            let other = tempfile::tempdir().unwrap();
            let saved = model.save(other.path().join(name), &weights, &options).unwrap();
            assert_eq!(saved.sidecars.len(), usize::from(name != "inline.onnx"), "{name}");
            assert!(results(&saved.model.path) == before, "{name}");
            // Back to one form, everything is as it was: not a bit of the weights, nor of the graph, is lost.
            let again = Model::read(&saved.model.path).unwrap();
            let inline = |model: &Model, weights: &Weights| {
                let saved = model.save(other.path().join("inline"), weights, &SaveOptions::inline()).unwrap();
                Model::read(saved.model.path).unwrap()
            };
            let same = inline(&again, &Weights::in_folder(other.path())) == inline(&model, &weights);
            assert!(same, "{name}");
        }
        assert!(results(&kept) == before);
    }
}

/// 2048 bytes as a matrix.
fn matrix(seed: u8) -> Weight {
    Weight::raw(Uint8, [2, 1024], (0..2048).map(|i: u32| seed.wrapping_mul(31) ^ i as u8).collect())
}

#[test]
fn small_tensors_stay_and_large_ones_are_aligned() {
    let model = GraphBuilder::new("test")
        .weight("small", Weight::raw(Uint8, [1, 1023], vec![1; 1023]))
        .weight("odd", Weight::raw(Uint8, [1, 1025], vec![2; 1025]))
        .weight("even", matrix(3))
        .weight("large", Weight::raw(Uint8, [1, 1 << 20], vec![4; 1 << 20]))
        .build();
    let folder = tempfile::tempdir().unwrap();
    let save = |name, options| {
        let path = folder.path().join(name);
        let saved = model.save(&path, &Weights::inline(), &SaveOptions::sidecar(options)).unwrap();
        (ranges(&Model::read(path).unwrap()), fs::read(&saved.sidecars[0].path).unwrap())
    };
    let named = |pairs: &[(&str, (u64, u64))]| -> BTreeMap<String, (u64, u64)> {
        pairs.iter().map(|(name, range)| ((*name).to_owned(), *range)).collect()
    };
    let (found, sidecar) = save("a.onnx", Sidecar::new());
    // 1025 to the next 64, then 3136 to the next page.
    let expected = [("odd", (0, 1025)), ("even", (1088, 2048)), ("large", (4096, 1 << 20))];
    assert_eq!(found, named(&expected));
    assert_eq!(sidecar.len(), 4096 + (1 << 20));
    assert!(sidecar[1025..1088].iter().chain(&sidecar[3136..4096]).all(|&b| b == 0));
    let (found, _) = save("b.onnx", Sidecar::new().threshold(1026).alignment(1));
    assert_eq!(found, named(&[("even", (0, 2048)), ("large", (4096, 1 << 20))]));
    let (found, sidecar) = save("c.onnx", Sidecar::new().threshold(0).alignment(8192));
    let expected = [("small", (0, 1023)), ("odd", (8192, 1025)), ("even", (16384, 2048))];
    assert_eq!(found, named(&[&expected[..], &[("large", (24576, 1 << 20))]].concat()));
    assert_eq!(sidecar.len(), 24576 + (1 << 20));
}

#[test]
fn what_onnx_runtime_needs_inside_stays_inside() {
    let model = GraphBuilder::new("test")
        .weight("shape", Weight::int64([4096], &vec![1; 4096]))
        .weight("long", Weight::int64([4097], &vec![1; 4097]))
        .weight("rows", Weight::int64([2, 4], &[1; 8]))
        .weight("scales", Weight::float32([64], &[1.0; 64]))
        .weight("bias", Weight::float32([65], &[1.0; 65]))
        .weight("scalar", Weight::float32([], &[1.0]))
        .weight("empty", Weight::float32([0, 3], &[]))
        .build();
    // A sparse tensor: its indices stay.
    let tensor = |name: &str, element: u64, width: usize| {
        let dims = [number(TENSOR_DIM, 2), number(TENSOR_DIM, 3)].concat();
        let data = bytes(9, vec![0; 6 * width]);
        [dims, number(TENSOR_TYPE, element), bytes(TENSOR_NAME, name), data].concat()
    };
    let sparse = [bytes(SPARSE_VALUES, tensor("v", 1, 4)), bytes(SPARSE_INDICES, tensor("i", 7, 8))].concat();
    let added = bytes(MODEL_GRAPH, bytes(GRAPH_SPARSE, sparse));
    let model = Model::from_bytes([model.to_bytes().unwrap(), added].concat()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = SaveOptions::sidecar(Sidecar::new().threshold(0));
    let saved = model.save(folder.path().join("m.onnx"), &Weights::inline(), &options).unwrap();
    let outside: Vec<String> = ranges(&Model::read(saved.model.path).unwrap()).into_keys().collect();
    assert_eq!(outside, ["bias", "long", "rows", "v"]);
}

/// Every place that can hold a tensor, as a path of fields to it.
fn places() -> Vec<(&'static str, Vec<u64>)> {
    let attribute = [MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE];
    let in_attribute = |fields: &[u64]| [&attribute[..], fields].concat();
    vec![
        ("initializer", vec![MODEL_GRAPH, GRAPH_INITIALIZER]),
        ("sparse values", vec![MODEL_GRAPH, GRAPH_SPARSE, SPARSE_VALUES]),
        ("attribute", in_attribute(&[ATTRIBUTE_TENSOR])),
        ("TENSORS", in_attribute(&[ATTRIBUTE_TENSORS])),
        ("SPARSE_TENSOR", in_attribute(&[ATTRIBUTE_SPARSE, SPARSE_VALUES])),
        ("SPARSE_TENSORS", in_attribute(&[ATTRIBUTE_SPARSES, SPARSE_VALUES])),
        ("GRAPH", in_attribute(&[ATTRIBUTE_GRAPH, GRAPH_INITIALIZER])),
        ("GRAPHS", in_attribute(&[ATTRIBUTE_GRAPHS, GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR])),
        ("function node", vec![MODEL_FUNCTION, FUNCTION_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR]),
        ("function default", vec![MODEL_FUNCTION, FUNCTION_DEFAULT, ATTRIBUTE_TENSOR]),
        ("training start", vec![MODEL_TRAINING, TRAINING_INITIALIZATION, GRAPH_INITIALIZER]),
        ("training step", vec![MODEL_TRAINING, TRAINING_ALGORITHM, GRAPH_INITIALIZER]),
    ]
}

#[test]
fn tensors_in_every_place_move_out_and_in() {
    for (place, fields) in places() {
        let data: Vec<u8> = (0..2048_u32).map(|i| (i % 251) as u8).collect();
        let dims = [number(TENSOR_DIM, 2), number(TENSOR_DIM, 1024), number(TENSOR_TYPE, 2)];
        let tensor = [dims.concat(), bytes(TENSOR_NAME, "w"), bytes(9, &data)].concat();
        let file = [bytes(MODEL_GRAPH, []), within(&fields, tensor)].concat();
        let model = Model::from_bytes(file).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let options = SaveOptions::sidecar(Sidecar::new());
        let saved = model.save(folder.path().join("m.onnx"), &Weights::inline(), &options).unwrap();
        assert!(fs::read(&saved.sidecars[0].path).unwrap() == data, "{place}");
        let out = Model::read(&saved.model.path).unwrap();
        assert_eq!(ranges(&out), [("w".to_owned(), (0, 2048))].into(), "{place}");
        assert!(saved.model.bytes < 200, "{place}");
        let back = folder.path().join("back.onnx");
        out.save(&back, &Weights::in_folder(folder.path()), &SaveOptions::inline()).unwrap();
        assert_eq!(Model::read(back).unwrap(), model, "{place}");
    }
}

#[test]
fn the_same_model_gives_the_same_bytes_in_any_folder() {
    let model = GraphBuilder::new("test").weight("a", matrix(1)).weight("b", matrix(2)).build();
    let save = || {
        let folder = tempfile::tempdir().unwrap();
        let options = SaveOptions::sidecar(Sidecar::new());
        let saved = model.save(folder.path().join("m.onnx"), &Weights::inline(), &options).unwrap();
        [saved.model.path, saved.sidecars[0].path.clone()].map(|path| fs::read(path).unwrap())
    };
    assert!(save() == save());
}

#[test]
fn a_shared_range_is_shared_still_and_equal_tensors_are_not() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "w.data", [7; 4096]);
    let at = |offset| {
        Weight::external(Float32, [16, 16], &[("location", "w.data"), ("offset", offset), ("length", "1024")])
    };
    let model = GraphBuilder::new("test")
        .weight("a", at("0"))
        .weight("same range", at("0"))
        .weight("same bytes", at("1024"))
        .build();
    let weights = Weights::in_folder(folder.path());
    let options = SaveOptions::sidecar(Sidecar::new());
    let saved = model.save(folder.path().join("m.onnx"), &weights, &options).unwrap();
    let found = ranges(&Model::read(saved.model.path).unwrap());
    let found = ["a", "same range", "same bytes"].map(|name| found[name].0);
    assert_eq!(found, [0, 0, 1024]);
    assert_eq!(saved.sidecars[0].bytes, 2048);
}

/// X2: a location written on Windows.
#[test]
fn a_location_with_backslashes_is_followed_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "sub/w.data", [7; 1024]);
    let entries = [("location", "sub\\w.data"), ("offset", "0"), ("length", "1024")];
    let model = GraphBuilder::new("test").weight("w", Weight::external(Float32, [16, 16], &entries)).build();
    let weights = Weights::in_folder(folder.path());
    let save = |name, options| model.save(folder.path().join(name), &weights, &options).unwrap();
    let kept = save("kept.onnx", SaveOptions::keep());
    assert_eq!(Model::read(kept.model.path).unwrap(), model);
    assert_eq!(kept.sidecars[0].path, folder.path().join("sub/w.data"));
    let written = save("new.onnx", SaveOptions::sidecar(Sidecar::new()));
    assert_eq!(fs::read(&written.sidecars[0].path).unwrap(), [7; 1024]);
    assert_eq!(locations(&Model::read(written.model.path).unwrap()), ["new.onnx.data".to_owned()].into());
}

#[test]
fn typed_fields_move_out_as_little_endian_bytes() {
    let values: Vec<i64> = (0..8192).map(|i| i - 4000).collect();
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let expected = GraphBuilder::new("test").weight("w", Weight::raw(Int64, [2, 4096], data.clone())).build();
    // int64_data instead of raw_data.
    let varint = |mut v: u64| {
        let mut out = Vec::new();
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
        out
    };
    let packed: Vec<u8> = values.iter().flat_map(|&v| varint(v as u64)).collect();
    let dims = [number(TENSOR_DIM, 2), number(TENSOR_DIM, 4096), number(TENSOR_TYPE, 7)].concat();
    let tensor = [dims, bytes(7, packed), bytes(TENSOR_NAME, "w")].concat();
    let model = Model::from_bytes(within(&[MODEL_GRAPH, GRAPH_INITIALIZER], tensor)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let save = |model: &Model, name| {
        let options = SaveOptions::sidecar(Sidecar::new());
        model.save(folder.path().join(name), &Weights::inline(), &options).unwrap()
    };
    let saved = save(&model, "typed.onnx");
    assert!(fs::read(&saved.sidecars[0].path).unwrap() == data);
    assert_eq!(saved.sidecars[0].bytes, save(&expected, "raw.onnx").sidecars[0].bytes);
}

/// Saves every model of the folder `ONNX_GRAPH_FULL` in three ways into `ONNX_GRAPH_OUT`, for
/// `fixtures/onnx-save/bit_equal.py`.
#[test]
#[ignore = "needs full-size models"]
fn full_size_models_in_three_ways() {
    let folder = |name: &str| std::path::PathBuf::from(std::env::var_os(name).unwrap());
    let (from, to) = (folder("ONNX_GRAPH_FULL"), folder("ONNX_GRAPH_OUT"));
    let weights = Weights::in_folder(&from);
    for entry in fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "onnx") {
            continue;
        }
        let model = Model::read(&path).unwrap();
        let ways = [
            ("inline", SaveOptions::inline()),
            ("sidecar", SaveOptions::sidecar(Sidecar::new())),
            ("all", SaveOptions::sidecar(Sidecar::new().threshold(0).alignment(1))),
        ];
        for (way, options) in ways {
            fs::create_dir_all(to.join(way)).unwrap();
            let target = to.join(way).join(path.file_name().unwrap());
            let saved = model.save(target, &weights, &options).unwrap();
            assert_eq!(saved.sidecars.is_empty(), way == "inline");
        }
    }
}
