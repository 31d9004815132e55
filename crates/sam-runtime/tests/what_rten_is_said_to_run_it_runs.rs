//! Every standard operator that the rules of onnx-graph call supported by rten runs there and gives what ONNX Runtime gives, and what
//! they call supported by the processor runs in ONNX Runtime; each of them has a small graph here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::too_many_lines, clippy::float_cmp)]

mod common;

use std::{collections::BTreeSet, path::Path};

use ndarray::ArrayD;
use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Bool, Float32, Int32, Int64, Uint8},
    GraphBuilder, Model, Rules, Target, Types, Verdict, Weight, Weights, analyze,
};
use sam_runtime::{
    Tensor,
    engine::{self, EngineChoice, EngineOptions},
};

/// An input of the operator.
enum In {
    /// What is fed: float32 [1,2,4,4], between 0.1 and 0.9.
    X,
    /// Left out.
    Without,
    F(&'static [u64]),
    Positive(&'static [u64]),
    I(&'static [u64], &'static [i64]),
    B(&'static [u64]),
    U8(&'static [u64]),
}

struct Case {
    op: &'static str,
    opset: i64,
    inputs: Vec<In>,
    attributes: Vec<(&'static str, Attribute)>,
    gives: ElementType,
    /// Element types of further results.
    more: &'static [ElementType],
}

const X: [u64; 4] = [1, 2, 4, 4];

fn case(op: &'static str, inputs: Vec<In>) -> Case {
    Case { op, opset: 20, inputs, attributes: Vec::new(), gives: Float32, more: &[] }
}

impl Case {
    fn with(mut self, attributes: Vec<(&'static str, Attribute)>) -> Self {
        self.attributes = attributes;
        self
    }

    fn gives(mut self, element: ElementType) -> Self {
        self.gives = element;
        self
    }

    fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    /// The operator's first result, as a float or an integer that both engines hand out, is `y`.
    fn model(&self) -> Model {
        let mut graph = GraphBuilder::new(self.op).opset(self.opset).input("x", Float32, X.map(Dim::Static));
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

fn count(dims: &[u64]) -> u64 {
    dims.iter().product()
}

fn numbers(dims: &[u64], from: f32) -> Vec<f32> {
    (0..count(dims)).map(|at| from + (at * 37 % 17) as f32 / 16.0).collect()
}

fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

fn cases() -> Vec<Case> {
    use In::{B, F, I, Positive, U8, Without, X};
    let mut all = Vec::new();
    for op in [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softmax",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "LpNormalization",
        "Flatten",
        "Trilu",
    ] {
        all.push(case(op, vec![X]));
    }
    for op in ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "MatMul"] {
        all.push(case(op, vec![X, F(&[4, 4])]));
    }
    for op in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"] {
        all.push(case(op, vec![X, F(&[4, 4])]).gives(Bool));
    }
    for op in ["And", "Or", "Xor"] {
        all.push(case(op, vec![B(&[2, 4]), B(&[4])]).gives(Bool));
    }
    for op in [
        "ReduceL1",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ] {
        all.push(case(op, vec![X, I(&[1], &[1])]));
    }
    // rten takes no defaults for these (its rule asks for them).
    let conv = |stride| {
        vec![
            ("strides", ints(&[stride, stride])),
            ("dilations", ints(&[1, 1])),
            ("pads", ints(&[0, 1, 1, 0])),
        ]
    };
    let pool = || vec![("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let axis = |at| vec![("axis", int(at))];
    let body = |op: &str| {
        GraphBuilder::new(op).node(op, ["x"], ["inner"]).output("inner", Float32, self::X.map(Dim::Static))
    };
    let rounds = GraphBuilder::new("rounds")
        .input("at", Int64, [])
        .input("go", Bool, [])
        .input("state", Float32, self::X.map(Dim::Static))
        .node("Identity", ["go"], ["on"])
        .node("Add", ["state", "state"], ["next"])
        .output("on", Bool, [])
        .output("next", Float32, self::X.map(Dim::Static));
    all.extend([
        case("Not", vec![B(&[2, 4])]).gives(Bool),
        case("IsInf", vec![X]).gives(Bool),
        case("IsNaN", vec![X]).gives(Bool),
        case("NonZero", vec![X]).gives(Int64),
        case("Shape", vec![X]).gives(Int64),
        case("Size", vec![X]).gives(Int64),
        case("Where", vec![B(&[4, 4]), X, F(&[4, 4])]),
        case("Mod", vec![X, Positive(&[4, 4])]).with(vec![("fmod", int(1))]),
        case("PRelu", vec![X, F(&[2, 1, 1])]),
        case("AveragePool", vec![X]).with(pool()),
        case("MaxPool", vec![X]).with(pool()),
        case("BatchNormalization", vec![X, F(&[2]), F(&[2]), F(&[2]), Positive(&[2])]),
        case("Cast", vec![X]).with(vec![("to", int(6))]).gives(Int32),
        case("Clip", vec![X, Positive(&[]), Without]),
        case("Concat", vec![X, X]).with(axis(1)),
        case("ConstantOfShape", vec![I(&[2], &[2, 3])]),
        case("Conv", vec![X, F(&[3, 2, 2, 2]), F(&[3])]).with(conv(1)),
        case("ConvTranspose", vec![X, F(&[2, 3, 2, 2]), F(&[3])]).with(conv(2)),
        case("DepthToSpace", vec![F(&[1, 4, 2, 2])]).with(vec![("blocksize", int(2))]),
        Case { more: &[Float32, Uint8], ..case("DynamicQuantizeLinear", vec![X]).gives(Uint8) },
        case("Einsum", vec![X, F(&[1, 2, 4, 4])])
            .with(vec![("equation", Attribute::Text("nchw,nchw->nc".to_owned()))]),
        case("Expand", vec![F(&[1, 1, 4, 1]), I(&[4], &[1, 2, 4, 4])]),
        case("Gather", vec![X, I(&[2], &[1, 0])]).with(axis(1)),
        case("GatherElements", vec![X, I(&[1, 2, 1, 2], &[0, 1, 1, 0])]).with(axis(1)),
        case("GatherND", vec![X, I(&[1, 2], &[0, 1])]),
        case("Gemm", vec![F(&[2, 3]), F(&[3, 4]), F(&[4])]),
        case("GridSample", vec![X, F(&[1, 3, 3, 2])]),
        case("InstanceNormalization", vec![X, F(&[2]), F(&[2])]),
        case("LayerNormalization", vec![X, F(&[4]), F(&[4])]),
        case("RMSNormalization", vec![X, F(&[4])]).opset(23),
        case("Attention", vec![X, X, X]).opset(23),
        case("RotaryEmbedding", vec![X, F(&[1, 4, 2]), F(&[1, 4, 2])]).opset(23),
        case("MatMulInteger", vec![U8(&[2, 3]), U8(&[3, 4])]).gives(Int32),
        case("OneHot", vec![I(&[3], &[2, 0, 3]), I(&[], &[4]), F(&[2])]),
        case("Pad", vec![X, I(&[8], &[0, 0, 1, 1, 0, 0, 1, 1]), F(&[])]),
        case("Range", vec![I(&[], &[1]), I(&[], &[9]), I(&[], &[3])]).gives(Int64),
        case("Reshape", vec![X, I(&[2], &[2, 16])]),
        case("Resize", vec![X, Without, Positive(&[0]), I(&[4], &[1, 2, 8, 8])])
            .with(vec![("mode", Attribute::Text("linear".to_owned()))]),
        case("ReverseSequence", vec![F(&[4, 3]), I(&[3], &[1, 2, 4])]),
        case("ScatterElements", vec![X, I(&[1, 2, 1, 2], &[0, 1, 1, 0]), F(&[1, 2, 1, 2])]).with(axis(1)),
        case("ScatterND", vec![X, I(&[1, 2], &[0, 1]), F(&[1, 4, 4])]),
        case("Slice", vec![X, I(&[1], &[1]), I(&[1], &[4]), I(&[1], &[2]), I(&[1], &[2])]),
        Case { more: &[Float32], ..case("Split", vec![X, I(&[2], &[1, 1])]).with(axis(1)) },
        case("Squeeze", vec![X, I(&[1], &[0])]),
        case("Tile", vec![X, I(&[4], &[1, 2, 1, 1])]),
        case("Transpose", vec![X]).with(vec![("perm", ints(&[0, 2, 3, 1]))]),
        case("Unsqueeze", vec![X, I(&[1], &[0])]),
        case("Constant", vec![]).with(vec![("value", Attribute::Tensor(Weight::float32([2], &[1.5, -2.0])))]),
        case("If", vec![B(&[])]).with(vec![
            ("then_branch", Attribute::Graph(body("Neg"))),
            ("else_branch", Attribute::Graph(body("Abs"))),
        ]),
        case("Loop", vec![I(&[], &[3]), B(&[]), X]).with(vec![("body", Attribute::Graph(rounds))]),
    ]);
    all
}

fn run(choice: EngineChoice, model: &Model) -> Tensor {
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

fn values(tensor: &Tensor) -> Vec<f32> {
    match tensor {
        Tensor::F32(a) => a.iter().copied().collect(),
        Tensor::I32(a) => a.iter().map(|v| *v as f32).collect(),
        Tensor::I64(a) => a.iter().map(|v| *v as f32).collect(),
        Tensor::U8(a) => a.iter().map(|v| f32::from(*v)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn supported_operators_run_and_agree() {
    let [rten, ort] = common::engines();
    let cases = cases();
    let written: BTreeSet<&str> = cases.iter().map(|case| case.op).collect();
    let mut failures = Vec::new();
    for case in &cases {
        let model = case.model();
        let types = Types::infer(&model, &Weights::inline()).unwrap();
        let analysis = analyze(&[(case.op, &model, &types)], &[Target::Rten, Target::Cpu]).unwrap();
        let row = analysis.operators.iter().find(|row| row.operator == case.op).unwrap();
        for (verdict, result) in row.verdicts.iter().zip(&analysis.components[0].results) {
            // A function without a kernel is expanded by ONNX Runtime: partial.
            let fine = *verdict == Verdict::Supported
                || (*verdict == Verdict::Partial && result.target == "CPU/CPU");
            if !fine {
                failures.push(format!(
                    "{} is {verdict} for {}: {:?}",
                    case.op, result.target, result.information
                ));
            }
        }
        let outcome = std::panic::catch_unwind(|| {
            let (a, b) = (run(rten, &model), run(ort, &model));
            assert_eq!(a.shape(), b.shape());
            for (a, b) in values(&a).iter().zip(values(&b)) {
                let same = (a.is_nan() && b.is_nan()) || *a == b || (a - b).abs() <= 1e-4 * b.abs().max(1.0);
                assert!(same, "{a} and {b}");
            }
        });
        if let Err(panic) = outcome {
            let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(format!("{}: {said}", case.op));
        }
    }
    // A rule without a graph here is a claim that nobody checked.
    let rules = Rules::built_in(Target::Rten).unwrap();
    let partial = [
        "ArgMax",
        "ArgMin",
        "TopK",
        "CastLike",
        "ConvInteger",
        "QuantizeLinear",
        "DequantizeLinear",
        "Softplus",
        "LSTM",
        "GRU",
        "ReduceL2",
        "CumSum",
        "Hardmax",
    ];
    for (_, operator) in rules.operators().into_iter().filter(|(domain, _)| domain.is_empty()) {
        if !written.contains(operator) && !partial.contains(&operator) {
            failures.push(format!("{operator} has no graph here"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
