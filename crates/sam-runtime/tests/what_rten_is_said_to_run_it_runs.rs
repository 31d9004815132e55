//! Every standard operator that the rules of onnx-graph call supported by rten runs there and gives what ONNX Runtime gives, and what
//! they call supported by the processor runs in ONNX Runtime; each of them has a small graph here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::too_many_lines, clippy::float_cmp)]

mod common;
mod operators;

use std::collections::BTreeSet;

use onnx_graph::{
    Attribute, Dim,
    ElementType::{Bool, Float32, Int32, Int64, Uint8},
    GraphBuilder, Rules, Target, Types, Verdict, Weight, Weights, analyze,
};
use operators::{Case, In, case, int, ints, run, values};

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
        GraphBuilder::new(op).node(op, ["x"], ["inner"]).output(
            "inner",
            Float32,
            operators::X.map(Dim::Static),
        )
    };
    let rounds = GraphBuilder::new("rounds")
        .input("at", Int64, [])
        .input("go", Bool, [])
        .input("state", Float32, operators::X.map(Dim::Static))
        .node("Identity", ["go"], ["on"])
        .node("Add", ["state", "state"], ["next"])
        .output("on", Bool, [])
        .output("next", Float32, operators::X.map(Dim::Static));
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
