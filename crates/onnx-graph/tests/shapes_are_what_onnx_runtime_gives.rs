//! Inferred types and shapes are those that ONNX Runtime gives when it runs the graph, or unknown; never others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout)] // figures of a run with --nocapture

use std::{collections::HashMap, path::Path};

use onnx_graph::{Dim, ElementType::Undefined, Model, Types, ValueType, Weights};
use serde_json::Value as Json;

/// A value whose shape depends on what its inputs hold, or on which branch runs.
const DATA_DEPENDENT: [&str; 7] = [
    "Compress",
    "Compress flat",
    "NonZero",
    "NonZero of a scalar",
    "NonMaxSuppression",
    "If of other shapes",
    "Loop",
];

/// Decodes base64, for models written down in JSON.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = (0..4).fold(0_u32, |bits, i| bits << 6 | u32::from(four.get(i).copied().unwrap_or(0)));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

fn sizes(json: &Json) -> Vec<u64> {
    json.as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect()
}

/// How many values and dims could not be told, and what was told wrong.
#[derive(Debug, Default)]
struct Told {
    values: usize,
    unknown_values: usize,
    dims: usize,
    unknown_dims: usize,
    wrong: Vec<String>,
}

impl Told {
    /// Checks one value; symbols are bound to sizes.
    fn check(&mut self, what: &str, found: Option<&ValueType>, real: &Json, bound: &HashMap<String, u64>) {
        self.values += 1;
        let (element, real) = (real[0].as_str().unwrap(), sizes(&real[1]));
        let found = found.unwrap_or_else(|| panic!("{what} is not there"));
        let mut unknown = found.element_type == Undefined;
        let mut right = unknown || found.element_type.to_string() == element;
        match &found.shape {
            None => unknown = true,
            Some(dims) => {
                right &= dims.len() == real.len();
                for (dim, real) in dims.iter().zip(&real) {
                    self.dims += 1;
                    match dim {
                        Dim::Static(size) => right &= size == real,
                        Dim::Symbolic(name) => right &= &bound[name] == real,
                        Dim::Unknown => {
                            self.unknown_dims += 1;
                            unknown = true;
                        }
                    }
                }
            }
        }
        self.unknown_values += usize::from(unknown);
        if !right {
            self.wrong.push(format!("{what}: {found:?} is {element}{real:?}"));
        }
    }
}

#[test]
fn small_graphs_of_every_operator() {
    let golden = include_str!("../../../fixtures/onnx-shapes/shapes.json");
    let cases: Vec<Json> = serde_json::from_str(golden).unwrap();
    let (mut fixed, mut symbolic) = (Told::default(), Told::default());
    let mut untold = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let infer = |model: &Json| {
            let model = Model::from_bytes(base64(model.as_str().unwrap())).unwrap();
            let types = Types::infer(&model, &Weights::inline()).unwrap();
            assert_eq!(types.contradictions(), [], "{name}");
            types
        };
        let values = case["values"].as_object().unwrap();
        let types = infer(&case["model"]);
        let before = fixed.unknown_values;
        for (value, real) in values {
            fixed.check(&format!("{name}: {value}"), types.get(value), real, &HashMap::new());
        }
        if fixed.unknown_values > before {
            untold.push(name);
        }
        if case["symbolic"].is_null() {
            continue;
        }
        let mut bound = HashMap::new();
        for (input, dims) in case["inputs"].as_object().unwrap() {
            bound.extend(sizes(dims).iter().enumerate().map(|(i, size)| (format!("{input}_{i}"), *size)));
        }
        let types = infer(&case["symbolic"]);
        for (value, real) in values {
            symbolic.check(&format!("{name}, symbolic: {value}"), types.get(value), real, &bound);
        }
    }
    println!("{} cases, fixed {fixed:#?}, symbolic {symbolic:#?}", cases.len());
    assert!(fixed.wrong.is_empty() && symbolic.wrong.is_empty());
    assert_eq!(untold, DATA_DEPENDENT);
}

/// Run with `ONNX_SHAPES=FOLDER cargo test -p onnx-graph --test shapes_are_what_onnx_runtime_gives -- --ignored --nocapture`:
/// every `X.onnx` in the folder that has an `X.shapes.json`, made by `fixtures/onnx-shapes/full_shapes.py`, beside it.
#[test]
#[ignore = "needs full-size models"]
fn full_size_graphs() {
    let folder = std::env::var("ONNX_SHAPES").expect("ONNX_SHAPES names the folder");
    let folder = Path::new(&folder);
    let mut models = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(list) = std::fs::read_to_string(path.with_extension("shapes.json")) else { continue };
        if path.extension().is_none_or(|e| e != "onnx") {
            continue;
        }
        models += 1;
        let list: Json = serde_json::from_str(&list).unwrap();
        let model = Model::read(&path).unwrap();
        let start = std::time::Instant::now();
        let types = Types::infer(&model, &Weights::in_folder(folder)).unwrap();
        let took = start.elapsed();
        let mut told = Told::default();
        for (value, real) in list.as_object().unwrap() {
            told.check(value, types.get(value), real, &HashMap::new());
        }
        println!("{}: {told:?}, {} contradictions, {took:?}", path.display(), types.contradictions().len());
        assert!(told.wrong.is_empty());
        assert_eq!(told.unknown_values, 0, "{}", path.display());
    }
    assert!(models > 0, "no model with a list in {}", folder.display());
}
