"""Operators of the other targets, from the pages that `make.py` names. Facts only: operators, types, restrictions."""

# onnx-tensorrt, docs/operators.md: types of each supported operator; F = FP32 FP16 BF16, I = INT32 INT64, B = BOOL.
TENSORRT = """
F: Acos Acosh Asin Asinh Atan Atanh BatchNormalization Ceil Celu Clip Conv ConvTranspose Cos Cosh Einsum Elu Erf Exp Floor Gemm
F: GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization HardSigmoid HardSwish InstanceNormalization IsInf
F: LeakyRelu Log LogSoftmax LRN LpNormalization MatMul MeanVarianceNormalization PRelu Reciprocal RMSNormalization Round
F: Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Upsample
F: Scan
FI: Abs Add ArgMax ArgMin DepthToSpace Div Equal Gelu Greater GreaterOrEqual IsNaN Less LessOrEqual Max Mean Min Mod Mul Neg Pad
FI: Pow Range Relu Scatter ScatterElements Shrink Sign SpaceToDepth Sub Sum
FIB: Concat Expand Flatten Gather GatherElements GatherND Identity Reshape ReverseSequence Shape Size Slice Split Tile Transpose
FIB: Trilu
H: BlackmanWindow HammingWindow HannWindow Mish NonMaxSuppression NonZero RoiAlign
B: And Not Or Xor
"""
TENSORRT_NOT = """
AffineGrid Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Col2Im CenterCropPad Compress ConcatFromSequence
ConvInteger DFT Det DynamicQuantizeLinear ImageDecoder MatMulInteger MaxRoiPool MaxUnpool MelWeightMatrix Multinomial
NegativeLogLikelihoodLoss Optional OptionalGetElement OptionalHasElement QLinearConv QLinearMatMul RegexFullMatch SequenceAt
SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SoftmaxCrossEntropyLoss
SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer Unique
"""

# QNN execution provider, table of supported operators.
QNN = """
Abs Add And ArgMax ArgMin Asin Atan AveragePool BatchNormalization Cast Ceil Clip Concat Conv ConvTranspose Cos CumSum
DepthToSpace DequantizeLinear Div Einsum Elu Equal Exp Expand Flatten Floor GatherElements GatherND Gelu Gemm
GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Identity
InstanceNormalization Inverse IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Max MaxPool Mean Min
Mod Mul Neg NonZero Not Or PRelu Pad Pow QuantizeLinear RandomNormalLike RandomUniformLike Reciprocal ReduceL2 ReduceMax
ReduceMean ReduceMin ReduceProd ReduceSum Relu RMSNormalization Reshape Resize RoiAlign Round STFT ScatterElements ScatterND
Sigmoid Sign Sin Slice Softmax Softplus SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose
Unsqueeze Upsample Where
"""
QNN_CONTRIB = "DequantizeLinear FusedMatMul Gelu MatMulNBits QuantizeLinear QuickGelu SimplifiedLayerNormalization"

# OpenVINO execution provider, columns CPU and GPU.
OPENVINO = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Cast Clip Concat Constant
ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout Einsum Elu Equal Erf
Exp Expand Flatten Floor Gather GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual Hardmax
HardSigmoid Identity If ImageScaler InstanceNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop LRN LSTM MatMul Max
MaxPool Mean MeanVarianceNormalization Min Mod Mul Neg NonMaxSuppression Not OneHot Or Pad Pow PRelu QuantizeLinear Range
Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign Round Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid
Sign Sin Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK
Transpose Unsqueeze Upsample Where Xor
"""
OPENVINO_CPU_ONLY = "BitShift EyeLike GridSample MatMulInteger NonZero QLinearMatMul Sinh"
OPENVINO_NOT = "GatherElements"

# MIGraphX: types by group (f = floats with FP8, n = all numbers, a = all with bool); `!` not supported.
MIGRAPHX = {
    "floats": """Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Conv Cos Cosh Elu Exp Floor Gelu
        GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN LeakyRelu
        Log LogSoftmax LRN LpNormalization Mean MeanVarianceNormalization Multinomial Reciprocal RoiAlign Round Selu Sigmoid Sin
        Sinh Softmax Softplus Softsign Sqrt Sum Tan Tanh ThresholdedRelu""",
    "numbers": """Abs Add ArgMax ArgMin Clip Div Erf Greater GreaterOrEqual Less LessOrEqual Max Min Pow Shrink Sign Sub""",
    "any": """Concat Constant DepthToSpace Equal EyeLike Flatten Gather GatherElements GatherND Scatter ScatterElements
        ScatterND Shape Size SpaceToDepth Transpose Upsample Where""",
    "bool": "And Not Or Xor",
}
MIGRAPHX_NOT = """
Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow CenterCropPad Col2Im Compress ConcatFromSequence
DFT DeformConv Det HammingWindow HannWindow MaxRoiPool MaxUnpool MelWeightMatrix Mish NegativeLogLikelihoodLoss Optional
OptionalGetElement OptionalHasElement STFT SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
SequenceLength SequenceMap SoftmaxCrossEntropyLoss SplitToSequence StringNormalizer TfIdfVectorizer
"""

# Ryzen AI 1.5, table of operators by quantisation: b BF16, w A16W8, a A8W8, x XINT8.
VITISAI = """
bx: Abs And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil CumSum Equal Erf Floor Greater Less Log
bx: Neg Or Pow Round Sign Tile
bwax: Add AveragePool BatchNormalization Concat Constant ConstantOfShape Conv DepthToSpace Div Expand Flatten Gemm
bwax: GlobalAveragePool Identity InstanceNormalization MatMul Max MaxPool Min Mul Pad Reciprocal ReduceMax Reshape Shape Slice
bwax: Sqrt Squeeze Sub Transpose Unsqueeze
wax: Clip DequantizeLinear Gelu GlobalMaxPool GroupNormalization LeakyRelu Relu Softmax Upsample
bwa: ConvTranspose Sigmoid Sin
wa: Cos QLinearConv QuantizeLinear
bax: ReduceMean ReduceMin ReduceSum Resize
ax: HardSwish
a: HardSigmoid QLinearMatMul
wx: Elu TopK
bw: Exp GatherElements Split
bwx: Tanh Where
b: Einsum Gather GridSample LSTM Mod Not ScatterND Size Xor
x: Celu GreaterOrEqual LayerNormalization LessOrEqual Mish Range STFT Shrink Softsign ThresholdedRelu
"""

# rten 0.27: what agreed with ONNX Runtime when both were run (see sam-runtime's rten_rules.rs).
RTEN = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh Attention AveragePool BatchNormalization Cast Ceil Clip Concat Constant
ConstantOfShape Conv ConvTranspose Cos Cosh DepthToSpace Div DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand Flatten
Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample HardSigmoid
HardSwish Identity If InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop
LpNormalization MatMul MatMulInteger Max MaxPool Mean Min Mod Mul Neg NonZero Not OneHot Or PRelu Pad Pow RMSNormalization
Range Reciprocal ReduceL1 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
Reshape Resize ReverseSequence RotaryEmbedding Round ScatterElements ScatterND Shape Sigmoid Sign Sin Sinh Size Slice Softmax
Softsign Split Sqrt Squeeze Sub Sum Tan Tanh Tile Transpose Trilu Unsqueeze Where Xor
"""
RTEN_CONTRIB = "FastGelu Gelu MultiHeadAttention SkipLayerNormalization"
RTEN_PARTIAL = {
    "ArgMax ArgMin": "of equal values another one may be chosen",
    "TopK": "of equal values others may be chosen",
    "CastLike": "casts to bool are cut to integers first",
    "ConvInteger": "padding counts as zero, not as the zero point",
    "QuantizeLinear DequantizeLinear": "the default axis is taken differently",
    "Softplus": "overflows beyond 88",
    "LSTM GRU": "lengths of sequences are not followed",
    "ReduceL2": "the sign may be wrong without axes",
    "CumSum": "64-bit integers are summed in 32 bits",
}
