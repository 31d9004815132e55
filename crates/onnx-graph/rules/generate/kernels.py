"""ONNX Runtime's CUDA and DirectML kernels, from docs/OperatorKernels.md: operator, then `version: types` parts.

A version alone is one kernel registered from there on ("13+" in the document); `9-12` is a closed range. Types are those of the
first input unless a slot is named.
"""

GROUPS = {
    "F2": "float32 float16",
    "F3": "float64 float32 float16",
    "F4": "bfloat16 float64 float32 float16",
    "I8": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "IU": "int32 int64 uint32 uint64",
    "A13": "bool bfloat16 float64 float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "A12": "bool float64 float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "N10": "float32 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "F8": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
    "Q8": "float8e4m3fn float8e5m2",
}

CUDA = """
Abs 13: F4 I8; 6-12: F3 I8
Add Sub Mul Div 14: F4 I8; 13-13: F4 IU; 7-12: F3 IU
And Or Xor 7: bool
Not 1: bool
ArgMax ArgMin 13: F3; 12-12: F3; 1-11: F3
Attention 24: bfloat16 F2; 23-23: bfloat16 F2
AveragePool 22: F4; 19-21: F3; 11-18: F3; 10-10: F3; 7-9: F3
BatchNormalization 15: F3; 14-14: F3; 9-13: F3; 7-8: F3
Cast 23: A13 float4e2m1 Q8; 21-22: A13 Q8; 19-20: A13 Q8; 13-18: A13; 9-12: A12; 6-8: A12
Ceil Floor Log Reciprocal 13: F3; 6-12: F3
Clip 13: F3 int64 int8 uint64 uint8; 12-12: F3 int64 int8 uint64 uint8; 11-11: float32; 6-10: float32
Compress 11: A13; 9-10: A13
Concat 13: A13; 11-12: A13; 4-10: A13
ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength 11
ConstantOfShape@output0 9: A13
Conv 22: F4; 11-21: F3; 1-10: F3
ConvTranspose 11: F3; 1-10: F3
Cos Sin 7: F3
CumSum 14: F3 IU; 11-13: float64 float32 IU
DepthToSpace 13: F3; 11-12: F3; 1-10: F3
DequantizeLinear 21: Q8 int4 int8 uint4 uint8; 19-20: Q8 int8 uint8; 13-18: int8 uint8; 10-12: int8 uint8
Dropout 13: F4; 12-12: F3; 10-11: F3; 7-9: F3
Einsum 12: F3
Elu Selu 6: F3
Equal 13: bool F3 IU; 11-12: bool F3 IU; 7-10: bool int32 int64
Erf 13: F4; 9-12: F3
Exp Sigmoid Sqrt Tanh 13: F4; 6-12: F3
Expand 13: A13; 8-12: A13
EyeLike 9: float64 float32 int32 int64 uint64
Flatten 13: A13; 11-12: A13; 9-10: A13; 1-8: A13
GRU LSTM RNN 14: F3; 7-13: F3
Gather 13: A13; 11-12: A13; 1-10: A13
GatherElements 13: A13; 11-12: A13
GatherND 13: F4 bool int64; 12-12: F3 bool int64; 11-11: F3 bool int64
Gelu 20: F4
Gemm 13: F4; 11-12: F3; 9-10: F3; 7-8: F3
GlobalAveragePool GlobalMaxPool 1: F3
Greater Less 13: F3 IU; 9-12: F3 IU; 7-8: F3
GreaterOrEqual LessOrEqual 16: F3 IU; 12-15: F3 IU
GridSample 22: float32; 20-21: float32; 16-19: float32
HardSigmoid 22: F4; 6-21: F3
HardSwish 22: F4; 14-21: F3
Identity 19: A13 F8; 14-18: A13; 13-13: A13; 1-12: A13
If Loop 19; 13-18; 11-12; 1-10
InstanceNormalization 6: F3
IsInf 20: F4 F8; 10-19: float64 float32
IsNaN 20: F4 F8; 13-19: F4; 9-12: F3
LRN 13: F3; 1-12: F3
LayerNormalization 17: F4; 1-16: F4
LeakyRelu 16: F3; 6-15: F3
LogSoftmax 13: F3; 11-12: F3; 1-10: F3
MatMul 13: F4; 9-12: F3; 1-8: F3
MatMulInteger 10: int8
Max Min 13: F4 IU; 12-12: F4 IU; 6-11: F4
MaxPool 12: F3 int8 uint8; 11-11: F3; 10-10: F3; 8-9: F3; 1-7: F3
Mod 13: F4 IU; 10-12: F3 IU
Neg 13: F4 int8 int16 int32 int64; 6-12: F3 int8 int16 int32 int64
NonZero 13: bool F2 int32 int64 uint8; 9-12: bool F2 int32 int64 uint8
OneHot@input2 11: F2 int64
PRelu 16: F3; 9-15: F3; 7-8: F3
Pad 18: bool F3; 13-17: bool F3; 11-12: F3; 2-10: F3
Pow 15: F4 int32 int64; 13-14: F4 int32 int64; 12-12: F3 int32 int64; 7-11: F3
QuantizeLinear 21: F2; 19-20: F2; 13-18: float32; 10-12: float32
RMSNormalization 23: F4
RandomNormal RandomNormalLike RandomUniform RandomUniformLike 1
Range 11: float64 float32 int16 int32 int64
ReduceL1 ReduceL2 ReduceMean ReduceProd 18: F3 int32; 1-17: F3 int32
ReduceLogSum ReduceLogSumExp ReduceSumSquare 18: F3; 1-17: F3
ReduceMax 18: F3 int32 int64; 1-17: F3 int32 int64
ReduceMin 18: F3 int32 int64 int8 uint8; 1-17: F3 int32 int64 int8 uint8
ReduceSum 13: F4 int32 int64; 1-12: F3 int32 int64
Relu 14: F4; 13-13: F4; 6-12: F3
Reshape 23: A13 F8; 21-22: A13 F8; 19-20: A13 F8; 14-18: A13; 13-13: A13; 5-12: A13; 1-4: A13
Resize 19: F3 int32 uint8; 18-18: F3 int32 uint8; 13-17: F3 int32 uint8; 11-12: F3 int32 uint8; 10-10: F3 int32 uint8
ReverseSequence 10: A13
RoiAlign 10: float64 float32
RotaryEmbedding 23: bfloat16 F2
Round 11: F3
Scan 19; 16-18; 11-15; 9-10; 8-8
Scatter 9-10: A13
ScatterElements ScatterND 18: A13; 16-17: A13; 13-15: A13; 11-12: A13
Shape 23: A13 F8; 21-22: A13 F8; 19-20: A13 F8; 15-18: A13; 13-14: A13; 1-12: A13
Shrink 9: F3 I8
Sign 13: F4 I8
Size 13: A13 string; 1-12: A13 string
Slice 13: A13; 11-12: A13; 10-10: A13; 1-9: A13
Softmax 13: F4; 11-12: F3; 1-10: F3
Softplus Softsign 1: F3
SpaceToDepth 13: F3; 1-12: F3
Split 18: A13; 13-17: A13; 11-12: A13; 2-10: A13
Squeeze Unsqueeze 23: A13; 21-22: A13; 13-20: A13; 11-12: A13; 1-10: A13
Sum 13: F4; 8-12: F4; 6-7: F4
TensorScatter 24: A13
ThresholdedRelu 10: F3
Tile 13: F4 int32 int64; 6-12: F3 int32 int64
TopK 11: F3 int32 int64; 10-10: F3 int32 int64; 1-9: F3 int32 int64
Transpose 23: A13; 21-22: A13; 13-20: A13; 1-12: A13
Trilu 14: A13
Upsample 9-9: F3 int32 uint8; 7-8: F3 int32 uint8
Where@input1 16: F4 int32 int64 uint8; 9-15: F3 int32 int64 uint8
"""

CUDA_CONTRIB = """
Attention MultiHeadAttention SkipLayerNormalization SkipSimplifiedLayerNormalization RotaryEmbedding 1: bfloat16 F2
BiasDropout BiasGelu BitmaskBiasDropout BitmaskDropout FastGelu FusedMatMul Gelu QuickGelu TransposeMatMul 1: F4
BiasSoftmax Inverse Irfft Rfft 1: F3
BiasAdd BiasSplitGelu ComplexMul ComplexMulConj DecoderAttention DecoderMaskedMultiHeadAttention 1: F2
DecoderMaskedSelfAttention GatedRelativePositionBias GroupNorm LongformerAttention NhwcConv PackedAttention 1: F2
PackedMultiHeadAttention RelativePositionBias RemovePadding RestorePadding SkipGroupNorm 1: F2
ConvTransposeWithDynamicPads FusedConv GridSample 1: float32
GroupQueryAttention PagedAttention SparseAttention QMoE 1: bfloat16 float16
MatMulBnb4 MatMulNBits MoE 1: bfloat16 F2
DequantizeLinear 1: int8 uint8
QuantizeLinear 1: float16
QAttention 1: int8
GatherBlockQuantized 1: int4 uint4 uint8
Trilu 1: A13
BeamSearch GreedySearch Sampling WhisperBeamSearch EmbedLayerNormalization NGramRepeatBlock UnfoldTensor 1
"""

DML = """
Abs Neg 13: F2 int8 int16 int32 int64; 6: F2 int8 int16 int32 int64
Acos Asin Atan Cos Sin Tan 7: F2
Acosh Asinh Atanh Cosh Sinh 9: F2
Add Sub Mul Div 14: N10; 13: N10; 7: N10
And Or Xor 7: bool
Not 1: bool
ArgMax ArgMin 13: N10; 12: N10; 11: N10; 1: N10
AveragePool 19: F2; 11: F2; 10: F2; 7: F2
BatchNormalization 15: F2; 14: F2; 9: F2; 7: F2
BitShift 11: uint8 uint16 uint32 uint64
BitwiseAnd BitwiseNot BitwiseOr BitwiseXor 18: I8
Cast 21: A12; 19: A12; 13: A12; 9: A12; 6: A12
CastLike 21: A12; 19: A12; 15: A12
Ceil Exp Floor Log Reciprocal Sigmoid Sqrt Tanh 13: F2; 6: F2
Celu Einsum 12: F2
Clip 13: N10; 12: N10; 11: F2; 6: F2
Col2Im 18: A12
Concat 13: A12; 11: A12; 4: A12
ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength 11
ConstantOfShape@output0 21: A12; 9: A12
Conv ConvTranspose 11: F2; 1: F2
ConvInteger MatMulInteger 10: int8 uint8
CumSum 14: F2 IU; 11: F2 IU
DFT 20: F3; 17: F3
DepthToSpace 13: A12; 11: A12; 1: A12
DequantizeLinear 21: int4 int8 uint4 uint8; 19: int32 int8 uint8; 13: int32 int8 uint8; 10: int32 int8 uint8
Dropout 7: F2
DynamicQuantizeLinear 11: float32
Elu HardSigmoid InstanceNormalization Selu 6: F2
Equal 19: N10; 13: N10; 11: N10; 7: F2
Erf 13: F2; 9: F2
Expand 13: A12; 8: A12
EyeLike 9: A12
Flatten 21: A12; 13: A12; 11: A12; 9: A12; 1: A12
GRU LSTM RNN 14: F2; 7: F2
Gather 13: A12; 11: A12; 1: A12
GatherElements 13: A12; 11: A12
GatherND 13: A12; 12: A12; 11: A12
Gemm 13: F2; 11: F2; 9: F2; 7: F2
GlobalAveragePool GlobalMaxPool LpNormalization MaxRoiPool Softplus Softsign 1: F2
GlobalLpPool 2: F2
Greater Less 13: N10; 9: N10; 7: F2
GreaterOrEqual LessOrEqual 16: N10; 12: N10
GridSample 16: N10
Hardmax LogSoftmax Softmax 13: F2; 11: F2; 1: F2
Identity 21: A12; 19: A12; 16: A12; 14: A12; 13: A12; 1: A12
If 19; 16; 13; 11; 7
IsInf 20: float32; 10: float32
IsNaN 20: F2; 13: F2; 9: F2
LRN 13: F2; 1: F2
LayerNormalization 17: F2; 1: F2
LeakyRelu 16: F2; 6: F2
LpPool 18: F2; 11: F2; 2: F2
MatMul 13: F2; 9: F2; 1: F2
Max Min 13: N10; 12: N10; 8: F2; 6: F2
MaxPool 12: F2 int8 uint8; 11: F2 int8 uint8; 10: F2 int8 uint8; 8: F2 int8 uint8; 1: F2
MaxUnpool 11: F2; 9: F2
Mean Sum 13: F2; 8: F2; 6: F2
MeanVarianceNormalization 13: F2; 9: F2
Mod 13: F2 int8 int16 int32 uint8 uint16 uint32; 10: F2 int8 int16 int32 uint8 uint16 uint32
NonZero 13: bool F2 int8 int16 int32 uint8 uint16 uint32; 9: bool F2 int8 int16 int32 uint8 uint16 uint32
OneHot@input2 11: A12; 9: A12
PRelu 16: F2 int8 int16 int32; 9: F2 int8 int16 int32; 7: F2
Pad 21: A12; 19: A12; 18: A12; 13: A12; 11: A12; 2: A12
Pow 15: F2 int32; 13: F2 int32; 12: F2 int32; 7: F2
QLinearConv 10: int8 uint8
QLinearMatMul 21: int8 uint8; 10: int8 uint8
QuantizeLinear 21: F2; 19: F2 int32; 13: float32 int32; 10: float32 int32
Range 11: float32 int16 int32 int64
ReduceL1 ReduceProd ReduceSumSquare 18: F2 IU; 13: F2 IU; 11: F2 IU; 1: F2 IU
ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean 18: F2 IU; 13: F2; 11: F2; 1: F2
ReduceMax ReduceMin 20: A12; 18: F2 IU; 13: N10; 12: N10; 11: F2; 1: F2
ReduceSum 13: F2 IU; 11: F2 IU; 1: F2 IU
Relu 14: F2 int8 int16 int32; 13: F2; 6: F2
Reshape 21: A12; 19: A12; 14: A12; 13: A12; 5: A12
Resize 19: F2 int8 uint8; 18: F2 int8 uint8; 13: F2 int8 uint8; 11: F2 int8 uint8; 10: F2
ReverseSequence 10: A12
RoiAlign 16: F2; 10: F2
Round 11: F2
STFT 17: F2
Scatter 9: A12
ScatterElements ScatterND 16: A12; 13: A12; 11: A12
Shape Size 21: A12; 19: A12; 15: A12; 13: A12; 1: A12
Shrink 9: F2 int8 int16 int32 uint8 uint16 uint32
Sign 13: N10; 9: N10
Slice 13: A12; 11: A12; 10: A12; 1: A12
SpaceToDepth 13: A12; 1: A12
Split 18: A12; 13: A12; 11: A12; 2: A12
Squeeze Unsqueeze 21: A12; 13: A12; 11: A12; 1: A12
ThresholdedRelu 10: F2
Tile 13: A12; 6: A12
TopK 11: N10; 10: N10; 1: N10
Transpose 21: A12; 13: A12; 1: A12
Trilu 14: A12
Upsample 9: F2; 7: F2
Where@input1 16: A12; 9: A12
"""

DML_CONTRIB = """
Attention BiasAdd BiasGelu BiasSplitGelu ConvTransposeWithDynamicPads FastGelu FusedMatMul FusedMatMulActivation 1: F2
Gelu GroupNorm GroupQueryAttention MatMulNBits MultiHeadAttention NhwcConv QuickGelu RotaryEmbedding 1: F2
SkipLayerNormalization SkipSimplifiedLayerNormalization 1: F2
DequantizeLinear 1: int32 int8 uint8
DynamicQuantizeMatMul 1: float32
MatMulIntegerToFloat QAttention QLinearAdd QLinearAveragePool QLinearGlobalAveragePool QLinearSigmoid 1: int8 uint8
QLinearConcat EmbedLayerNormalization 1
QuantizeLinear 1: F2 int32
"""
