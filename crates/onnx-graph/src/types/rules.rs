//! Which rule answers for which operator.

use super::{
    attention, elementwise as el, generate as ge, index_ops as ix, linear as li,
    op::{Op, Value},
    pooling as po, quantised as qu, reduce as re, resize, shape_ops as sh,
};

/// What is known of the outputs, in their order; empty for an operator that has no rule.
pub(super) fn apply(op: &Op<'_, '_>) -> Vec<Value> {
    match op.domain() {
        "" => standard(op),
        "com.microsoft" => microsoft(op),
        _ => None,
    }
    .unwrap_or_default()
}

/// The operators of ONNX itself. Sources of all rules: the operators' entries in the ONNX specification.
#[rustfmt::skip]
fn standard(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    match op.op_type() {
        "Abs" | "Acos" | "Acosh" | "Asin" | "Asinh" | "Atan" | "Atanh" | "BitwiseNot" | "Ceil" | "Celu" | "Clip"
        | "Cos" | "Cosh" | "CumProd" | "CumSum" | "Elu" | "Erf" | "Exp" | "Floor" | "Gelu" | "GroupNormalization"
        | "HardSigmoid" | "HardSwish" | "Hardmax" | "Identity" | "InstanceNormalization" | "LRN" | "LeakyRelu"
        | "Log" | "LogSoftmax" | "LpNormalization" | "MeanVarianceNormalization" | "Mish" | "Neg" | "Not"
        | "PRelu" | "RMSNormalization" | "Reciprocal" | "Relu" | "ReverseSequence" | "RotaryEmbedding" | "Round"
        | "ScatterElements" | "Scatter" | "ScatterND" | "Selu" | "Shrink" | "Sigmoid" | "Sign" | "Sin" | "Sinh"
        | "Softmax" | "Softplus" | "Softsign" | "Sqrt" | "Swish" | "Tan" | "Tanh" | "ThresholdedRelu" | "Trilu" =>
            Some(vec![op.like(0)]),
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Pow" | "And" | "Or" | "Xor" | "BitShift" | "BitwiseAnd"
        | "BitwiseOr" | "BitwiseXor" => el::binary(op),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => el::comparison(op),
        "Max" | "Mean" | "Min" | "Sum" => el::variadic(op),
        "Where" => el::choice(op),
        "IsInf" | "IsNaN" => el::test(op),
        "Cast" => el::cast(op),
        "CastLike" => el::cast_like(op),
        "Dropout" => el::dropout(op),

        "Conv" | "DeformConv" => li::conv(op),
        "ConvTranspose" => li::conv_transpose(op),
        "Einsum" => li::einsum(op),
        "Gemm" => li::gemm(op),
        "MatMul" => li::matmul(op),
        "Attention" => attention::standard(op),

        "Reshape" => sh::reshape(op),
        "Flatten" => sh::flatten(op),
        "Squeeze" => sh::squeeze(op),
        "Unsqueeze" => sh::unsqueeze(op),
        "Transpose" => sh::transpose(op),
        "Concat" => sh::concat(op),
        "Split" => ix::split(op),
        "Expand" => sh::expand(op),
        "Tile" => sh::tile(op),
        "Pad" => sh::pad(op),
        "Shape" => sh::shape(op),
        "Size" => sh::size(op),
        "DepthToSpace" => sh::depth_to_space(op),
        "SpaceToDepth" => sh::space_to_depth(op),

        "Slice" => ix::slice(op),
        "Gather" => ix::gather(op),
        "GatherElements" => ix::gather_elements(op),
        "GatherND" => ix::gather_nd(op),
        "OneHot" => ix::one_hot(op),
        "Compress" => ix::compress(op),
        "NonZero" => ix::non_zero(op),
        "NonMaxSuppression" => ix::non_max_suppression(op),
        "GridSample" => ix::grid_sample(op),
        "RoiAlign" => ix::roi_align(op),
        "TopK" => ix::top_k(op),
        "ArgMax" | "ArgMin" => ix::arg(op),

        "MaxPool" | "AveragePool" | "LpPool" => po::pool(op),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => po::global(op),

        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax" | "ReduceMean" | "ReduceMin"
        | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => re::reduce(op),
        "BatchNormalization" => re::batch_normalization(op),
        "LayerNormalization" => re::layer_normalization(op, 0),

        "Resize" => resize::resize(op),
        "Upsample" => resize::upsample(op),

        "Constant" => ge::constant(op),
        "ConstantOfShape" => ge::constant_of_shape(op),
        "Range" => ge::range(op),
        "EyeLike" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" => ge::like(op),
        "RandomNormal" | "RandomUniform" => ge::random(op),

        "QuantizeLinear" => qu::quantize(op),
        "DequantizeLinear" => qu::dequantize(op),
        "DynamicQuantizeLinear" => qu::dynamic_quantize(op),
        "QLinearConv" => qu::qlinear_conv(op),
        "QLinearMatMul" => qu::qlinear_matmul(op),
        "MatMulInteger" => qu::matmul_integer(op),
        "ConvInteger" => qu::conv_integer(op),
        _ => None,
    }
}

/// ONNX Runtime's own operators that its optimiser and the common exporters write (source: its list of contrib operators).
#[rustfmt::skip]
fn microsoft(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    match op.op_type() {
        "FastGelu" | "Gelu" | "QuickGelu" | "QLinearLeakyRelu" | "QLinearSigmoid" => Some(vec![op.like(0)]),
        "BiasGelu" => el::binary(op),
        "QLinearAdd" | "QLinearMul" => qu::qlinear_binary(op),
        "QLinearConcat" => qu::qlinear_concat(op),
        "QuantizeLinear" => qu::quantize(op),
        "DequantizeLinear" => qu::dequantize(op),
        "FusedConv" => li::conv(op),
        "FusedGemm" => li::gemm(op),
        "FusedMatMul" => li::fused_matmul(op),
        "Attention" => attention::packed(op),
        "MultiHeadAttention" => attention::multi_head(op),
        "LayerNormalization" => re::layer_normalization(op, 0),
        "SkipLayerNormalization" => re::skip_layer_normalization(op),
        _ => None,
    }
}
