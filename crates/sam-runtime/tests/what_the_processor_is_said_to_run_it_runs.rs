//! Operators that the rules of onnx-graph call supported by the processor, and rten does not have, run in ONNX Runtime; each has a
//! small graph here. `onnx-graph/rules/generate/run_on_processor.py` holds all rules against the tests of the onnx package.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::too_many_lines)]

mod common;
mod operators;

use onnx_graph::{
    Attribute,
    ElementType::{Float32, Int32, Int64, Uint8},
    Target, Types, Verdict, Weights, analyze,
};
use operators::{Case, In, case, int, ints, run, values};
use sam_runtime::engine::EngineChoice;

fn text(value: &str) -> Attribute {
    Attribute::Text(value.to_owned())
}

fn cases() -> Vec<Case> {
    use In::{B, Exactly, F, I, I32, Positive, U8, Without, X};
    let mut all = Vec::new();
    for op in [
        "Celu",
        "Dropout",
        "GlobalLpPool",
        "Hardmax",
        "MeanVarianceNormalization",
        "RandomNormalLike",
        "RandomUniformLike",
        "Selu",
        "Shrink",
        "Softplus",
        "ThresholdedRelu",
        "Unique",
        "com.microsoft.FastGelu",
        "com.microsoft.Gelu",
        "com.microsoft.QuickGelu",
        "com.microsoft.Inverse",
    ] {
        all.push(case(op, vec![X]));
    }
    for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"] {
        all.push(case(op, vec![I(&[2], &[6, 3]), I(&[2], &[5, 9])]).gives(Int64));
    }
    for op in ["BlackmanWindow", "HammingWindow", "HannWindow"] {
        all.push(case(op, vec![I(&[], &[8])]));
    }
    for op in ["RandomNormal", "RandomUniform"] {
        all.push(case(op, vec![]).with(vec![("shape", ints(&[2, 3]))]));
    }
    for op in ["com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul"] {
        all.push(case(op, vec![X, F(&[4, 4])]).with(vec![("transB", int(1))]));
    }
    let hidden = || vec![("hidden_size", int(2))];
    let pool = || vec![("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let axis = |at| vec![("axis", int(at))];
    all.extend([
        case("AffineGrid", vec![F(&[1, 2, 3]), I(&[4], &[1, 1, 4, 4])]),
        case("ArgMax", vec![X]).with(axis(1)).gives(Int64),
        case("ArgMin", vec![X]).with(axis(1)).gives(Int64),
        case("BitShift", vec![U8(&[3]), U8(&[3])]).with(vec![("direction", text("RIGHT"))]).gives(Uint8),
        case("BitwiseNot", vec![I(&[2], &[6, 3])]).gives(Int64),
        case("Col2Im", vec![F(&[1, 4, 4]), I(&[2], &[4, 4]), I(&[2], &[2, 2])])
            .with(vec![("strides", ints(&[2, 2]))]),
        case("Compress", vec![X, B(&[2])]).with(axis(1)),
        case("CumSum", vec![X, I(&[], &[2])]),
        case("DFT", vec![F(&[1, 4, 1])]),
        case("DeformConv", vec![X, F(&[3, 2, 2, 2]), F(&[1, 8, 3, 3])]).opset(22),
        case("DequantizeLinear", vec![U8(&[2, 4]), Positive(&[]), U8(&[])]),
        case("Det", vec![F(&[2, 3, 3])]),
        case("EyeLike", vec![F(&[3, 3])]),
        Case {
            more: &[Float32],
            ..case("GRU", vec![F(&[2, 1, 3]), F(&[1, 6, 3]), F(&[1, 6, 2])]).with(hidden())
        },
        Case {
            more: &[Float32],
            ..case("LSTM", vec![F(&[2, 1, 3]), F(&[1, 8, 3]), F(&[1, 8, 2])]).with(hidden())
        },
        Case {
            more: &[Float32],
            ..case("RNN", vec![F(&[2, 1, 3]), F(&[1, 2, 3]), F(&[1, 2, 2])]).with(hidden())
        },
        case("LRN", vec![X]).with(vec![("size", int(3))]),
        case("LpPool", vec![X]).with(pool()),
        case("MaxRoiPool", vec![X, Positive(&[1, 5])]).with(vec![("pooled_shape", ints(&[2, 2]))]),
        case("MaxUnpool", vec![F(&[1, 1, 2, 2]), I(&[1, 1, 2, 2], &[0, 2, 8, 10])]).with(pool()),
        case(
            "MelWeightMatrix",
            vec![I(&[], &[8]), I(&[], &[16]), I(&[], &[8192]), Exactly(&[], &[0.0]), Exactly(&[], &[4096.0])],
        ),
        case("Multinomial", vec![F(&[2, 3])]).opset(20).gives(Int32),
        case("NonMaxSuppression", vec![Positive(&[1, 3, 4]), Positive(&[1, 1, 3]), I(&[], &[2])])
            .gives(Int64),
        case(
            "QLinearConv",
            vec![
                U8(&[1, 1, 4, 4]),
                Positive(&[]),
                U8(&[]),
                U8(&[1, 1, 2, 2]),
                Positive(&[]),
                U8(&[]),
                Positive(&[]),
                U8(&[]),
            ],
        )
        .gives(Uint8),
        case(
            "QLinearMatMul",
            vec![
                U8(&[2, 3]),
                Positive(&[]),
                U8(&[]),
                U8(&[3, 4]),
                Positive(&[]),
                U8(&[]),
                Positive(&[]),
                U8(&[]),
            ],
        )
        .gives(Uint8),
        case("QuantizeLinear", vec![X, Positive(&[]), U8(&[])]).gives(Uint8),
        case("ReduceL2", vec![X, I(&[1], &[1])]),
        case("RoiAlign", vec![X, Positive(&[1, 4]), I(&[1], &[0])]),
        case("STFT", vec![F(&[1, 16, 1]), I(&[], &[4]), Without, I(&[], &[8])]),
        case("Scatter", vec![X, I(&[1, 2, 1, 2], &[0, 1, 1, 0]), F(&[1, 2, 1, 2])]).with(axis(1)).opset(9),
        case("SpaceToDepth", vec![X]).with(vec![("blocksize", int(2))]),
        case("TensorScatter", vec![X, F(&[1, 2, 1, 4]), I(&[1], &[2])]).opset(24),
        Case { more: &[Int64], ..case("TopK", vec![X, I(&[1], &[2])]) },
        case("Upsample", vec![X, Exactly(&[4], &[1.0, 1.0, 2.0, 2.0])]).opset(9),
        case("SimplifiedLayerNormalization", vec![X, F(&[4])]),
        case("com.microsoft.BiasGelu", vec![X, F(&[4])]),
        case("com.microsoft.ExpandDims", vec![X, I32(&[], &[1])]),
        case("com.microsoft.FusedConv", vec![X, F(&[3, 2, 2, 2]), F(&[3])])
            .with(vec![("activation", text("Relu"))]),
        case("com.microsoft.FusedGemm", vec![F(&[2, 3]), F(&[3, 4]), F(&[4])])
            .with(vec![("activation", text("Relu"))]),
        case("com.microsoft.MultiHeadAttention", vec![F(&[1, 3, 8]), F(&[1, 3, 8]), F(&[1, 3, 8])])
            .with(vec![("num_heads", int(2))]),
        case("com.microsoft.SkipLayerNormalization", vec![F(&[1, 3, 4]), F(&[1, 3, 4]), F(&[4]), F(&[4])]),
        case("com.microsoft.SkipSimplifiedLayerNormalization", vec![F(&[1, 3, 4]), F(&[1, 3, 4]), F(&[4])]),
        case("com.microsoft.Attention", vec![F(&[1, 3, 8]), F(&[8, 24]), F(&[24])])
            .with(vec![("num_heads", int(2))]),
        case(
            "com.microsoft.MatMulIntegerToFloat",
            vec![U8(&[2, 3]), U8(&[3, 4]), Positive(&[]), Positive(&[])],
        ),
        case("com.microsoft.DynamicQuantizeMatMul", vec![F(&[2, 3]), U8(&[3, 4]), Positive(&[])]),
        case(
            "com.microsoft.QLinearAdd",
            vec![U8(&[4]), Positive(&[]), U8(&[]), U8(&[4]), Positive(&[]), U8(&[]), Positive(&[]), U8(&[])],
        )
        .gives(Uint8),
    ]);
    all
}

#[test]
fn supported_operators_run() {
    common::require_onnxruntime();
    let mut failures = Vec::new();
    for case in cases() {
        let model = case.model();
        let types = Types::infer(&model, &Weights::inline()).unwrap();
        let analysis = analyze(&[(case.op, &model, &types)], &[Target::Cpu]).unwrap();
        let operator = case.op.rsplit('.').next().unwrap();
        let row = analysis.operators.iter().find(|row| row.operator == operator).unwrap();
        if row.verdicts != [Verdict::Supported] {
            let reasons = &analysis.components[0].results[0].information;
            failures.push(format!("{} is {:?}: {reasons:?}", case.op, row.verdicts));
        }
        let outcome = std::panic::catch_unwind(|| values(&run(EngineChoice::Ort, &model)).len());
        if let Err(panic) = outcome {
            failures.push(format!(
                "{}: {}",
                case.op,
                panic.downcast_ref::<String>().cloned().unwrap_or_default()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
