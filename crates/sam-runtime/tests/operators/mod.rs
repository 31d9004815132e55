//! Small graphs of one operator each, and what an engine makes of them.
#![allow(dead_code, unreachable_pub, clippy::missing_panics_doc)] // each test file uses a part

use std::path::Path;

use ndarray::ArrayD;
use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Bool, Float32, Int32, Uint8},
    GraphBuilder, Model, Weight,
};
use sam_runtime::{
    Tensor,
    engine::{self, EngineChoice, EngineOptions},
};

/// An input of the operator.
pub enum In {
    /// What is fed: float32 [1,2,4,4], between 0.1 and 0.9.
    X,
    /// Left out.
    Without,
    F(&'static [u64]),
    Positive(&'static [u64]),
    Exactly(&'static [u64], &'static [f32]),
    I(&'static [u64], &'static [i64]),
    I32(&'static [u64], &'static [i32]),
    B(&'static [u64]),
    U8(&'static [u64]),
}

pub struct Case {
    pub op: &'static str,
    pub opset: i64,
    pub inputs: Vec<In>,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub gives: ElementType,
    /// Element types of further results.
    pub more: &'static [ElementType],
}

pub const X: [u64; 4] = [1, 2, 4, 4];

pub fn case(op: &'static str, inputs: Vec<In>) -> Case {
    Case { op, opset: 20, inputs, attributes: Vec::new(), gives: Float32, more: &[] }
}

impl Case {
    pub fn with(mut self, attributes: Vec<(&'static str, Attribute)>) -> Self {
        self.attributes = attributes;
        self
    }

    pub fn gives(mut self, element: ElementType) -> Self {
        self.gives = element;
        self
    }

    pub fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// The operator's first result, as a float or an integer that both engines hand out, is `y`.
    pub fn model(&self) -> Model {
        let mut graph = GraphBuilder::new(self.op).opset(self.opset).import("com.microsoft", 1).input(
            "x",
            Float32,
            X.map(Dim::Static),
        );
        let mut names = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let name = format!("i{at}");
            let weight = match input {
                In::X => {
                    names.push("x".to_owned());
                    continue;
                }
                In::Without => {
                    names.push(String::new());
                    continue;
                }
                In::F(dims) => Weight::float32(dims.to_vec(), &numbers(dims, -1.0)),
                In::Positive(dims) => Weight::float32(dims.to_vec(), &numbers(dims, 0.1)),
                In::I(dims, values) => Weight::int64(dims.to_vec(), values),
                In::Exactly(dims, values) => Weight::float32(dims.to_vec(), values),
                In::I32(dims, values) => {
                    Weight::raw(Int32, dims.to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
                }
                In::B(dims) => {
                    let bytes = (0..count(dims)).map(|at| u8::from(at % 3 == 0)).collect();
                    Weight::raw(Bool, dims.to_vec(), bytes)
                }
                In::U8(dims) => {
                    Weight::raw(Uint8, dims.to_vec(), (0..count(dims)).map(|at| at as u8 * 7).collect())
                }
            };
            graph = graph.weight(&name, weight);
            names.push(name);
        }
        let direct = self.gives == Float32;
        let mut given = vec![if direct { "y".to_owned() } else { "r".to_owned() }];
        given.extend((0..self.more.len()).map(|at| format!("r{at}")));
        let attributes = self.attributes.iter().map(|(name, value)| (*name, value.clone()));
        let names = names.iter().map(String::as_str);
        graph = graph.node_with(self.op, names, given.iter().map(String::as_str), attributes);
        // Recorded without dims: only the element types are asked for.
        for (name, element) in
            given.iter().zip([self.gives].iter().chain(self.more)).filter(|(name, _)| *name != "y")
        {
            graph = graph.value(name, *element, ["?".into()]);
        }
        if direct {
            return graph.output("y", Float32, []).build();
        }
        graph = graph.node_with("Cast", ["r"], ["y"], [("to", Attribute::Int(i64::from(Int32.to_onnx())))]);
        graph.output("y", Int32, []).build()
    }
}

pub fn count(dims: &[u64]) -> u64 {
    dims.iter().product()
}

pub fn numbers(dims: &[u64], from: f32) -> Vec<f32> {
    (0..count(dims)).map(|at| from + (at * 37 % 17) as f32 / 16.0).collect()
}

pub fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

pub fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

pub fn run(choice: EngineChoice, model: &Model) -> Tensor {
    let mut options = EngineOptions::default();
    options.choice = choice;
    let session = engine::open(&options)
        .unwrap()
        .load(model, Path::new("."), "graph")
        .unwrap_or_else(|e| panic!("{e}"));
    let values = numbers(&X, 0.0).iter().map(|v| 0.1 + v * 0.8).collect();
    let x = Tensor::F32(ArrayD::from_shape_vec(X.map(|d| d as usize).to_vec(), values).unwrap());
    let given = session.run(&[("x", &x)]).unwrap_or_else(|e| panic!("{e}"));
    given.into_iter().find(|(name, _)| name == "y").unwrap().1
}

pub fn values(tensor: &Tensor) -> Vec<f32> {
    match tensor {
        Tensor::F32(a) => a.iter().copied().collect(),
        Tensor::I32(a) => a.iter().map(|v| *v as f32).collect(),
        Tensor::I64(a) => a.iter().map(|v| *v as f32).collect(),
        Tensor::U8(a) => a.iter().map(|v| f32::from(*v)).collect(),
        other => panic!("{other:?}"),
    }
}
