//! Models run by rten, to see whether they still compute the same.
#![allow(dead_code)] // every test file uses its own part

use std::collections::HashMap;

use onnx_graph::Model;
use rten::{ModelOptions, Value, ValueOrView};
use rten_tensor::{AsView, Layout, Tensor};

/// Dims and elements.
pub(crate) type Array = (Vec<usize>, Vec<f32>);

/// What the model gives for fixed inputs, each output with its name. Unknown dims are taken as 2.
pub(crate) fn run(model: &Model) -> Vec<(String, Array)> {
    run_with(model, &HashMap::new())
}

/// The same with some inputs given.
pub(crate) fn run_with(model: &Model, given: &HashMap<String, Array>) -> Vec<(String, Array)> {
    let loaded = ModelOptions::with_all_ops().load(model.to_bytes().unwrap()).unwrap();
    let inputs = model.inputs().into_iter().map(|port| {
        let fixed = || {
            let dims = port.shape.clone().unwrap();
            let shape: Vec<usize> = dims.iter().map(|d| d.size().unwrap_or(2) as usize).collect();
            let count = shape.iter().product();
            (shape, values(&port.name, count))
        };
        let (shape, values) = given.get(&port.name).cloned().unwrap_or_else(fixed);
        let value = Value::from(Tensor::<f32>::from_data(&shape, values));
        (loaded.node_id(&port.name).unwrap(), ValueOrView::from(value))
    });
    let names: Vec<String> = model.outputs().into_iter().map(|port| port.name).collect();
    let outputs: Vec<_> = names.iter().map(|name| loaded.node_id(name).unwrap()).collect();
    let found = loaded.run(inputs.collect(), &outputs, None).unwrap();
    let floats = |value: Value| {
        let tensor = Tensor::<f32>::try_from(value).unwrap();
        (tensor.shape().to_vec(), tensor.iter().copied().collect())
    };
    names.into_iter().zip(found.into_iter().map(floats)).collect()
}

/// Numbers between -1 and 1 that depend on the name alone.
pub(crate) fn values(name: &str, count: usize) -> Vec<f32> {
    let seed = name.bytes().fold(7u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(u32::from(byte)));
    (0..count as u32)
        .map(|at| {
            let mixed = (at.wrapping_add(seed)).wrapping_mul(2_654_435_761) >> 8;
            mixed as f32 / (1u32 << 23) as f32 - 1.0
        })
        .collect()
}

/// The largest difference between two models' outputs, in parts of each output's range.
pub(crate) fn difference(before: &Model, after: &Model) -> f32 {
    let (before, after) = (run(before), run(after));
    let mut worst = 0.0f32;
    assert_eq!(before.len(), after.len());
    for ((name, a), (same, b)) in before.iter().zip(&after) {
        assert_eq!((name, &a.0), (same, &b.0));
        let (a, b) = (&a.1, &b.1);
        let range = a.iter().fold(0.0f32, |range, v| range.max(v.abs())).max(1e-6);
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()) {
            let apart = (a - b).abs() / range;
            // What is no number in one of the two is as far away as can be.
            worst = if apart.is_nan() { f32::INFINITY } else { worst.max(apart) };
        }
    }
    worst
}
