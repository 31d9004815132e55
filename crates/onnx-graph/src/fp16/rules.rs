//! Which operators, and which of their inputs, stay in single precision.

use crate::{nodes::Node, proto::NodeProto};

/// Operators that ONNX Runtime's converter leaves in single precision unless it is told otherwise (reference 3.11,
/// onnxruntime 1.32).
pub(super) const BLOCKED: &[&str] = &[
    "ArrayFeatureExtractor",
    "Binarizer",
    "CastMap",
    "CategoryMapper",
    "CumSum",
    "DictVectorizer",
    "FeatureVectorizer",
    "Imputer",
    "LabelEncoder",
    "LinearClassifier",
    "LinearRegressor",
    "Max",
    "Min",
    "NonMaxSuppression",
    "Normalizer",
    "OneHotEncoder",
    "RandomUniformLike",
    "Range",
    "RoiAlign",
    "SVMClassifier",
    "SVMRegressor",
    "Scaler",
    "TopK",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "Upsample",
    "ZipMap",
];

/// Operators whose result has the type that an attribute names: the attribute, and whether float32 is meant where it is
/// left out (otherwise the type of an input is).
const NAMES_ITS_TYPE: &[(&str, &str, bool)] = &[
    ("Bernoulli", "dtype", false),
    ("BlackmanWindow", "output_datatype", true),
    ("EyeLike", "dtype", false),
    ("HammingWindow", "output_datatype", true),
    ("HannWindow", "output_datatype", true),
    ("MelWeightMatrix", "output_datatype", true),
    ("RandomNormal", "dtype", true),
    ("RandomNormalLike", "dtype", false),
    ("RandomUniform", "dtype", true),
    ("RandomUniformLike", "dtype", false),
    ("SequenceEmpty", "dtype", true),
];

/// True for the operators that know float32 and no float16, by the type constraints of the ONNX operator specification up
/// to opset 28.
pub(super) fn knows_no_half(node: &NodeProto, opset: i64) -> bool {
    let read = Node::new(node);
    match (read.domain(), read.op_type()) {
        ("", "Celu") => opset < 28,
        ("", "CumSum") => opset < 14,
        ("", "DequantizeLinear" | "QuantizeLinear") => opset < 19,
        ("", "IsInf") => opset < 20,
        ("", "QLinearMatMul") => opset < 21,
        ("", "Range") => opset < 27,
        // BitCast knows both, and the bits of a float32 are not those of a half.
        (
            "",
            "BitCast" | "DynamicQuantizeLinear" | "NonMaxSuppression" | "QLinearConv" | "TfIdfVectorizer",
        )
        | ("ai.onnx.ml", _) => true,
        // Mean and inverse deviation, its second and third result, are float32 whatever the input.
        ("", "LayerNormalization") => read.outputs().skip(1).any(|output| !output.is_empty()),
        // A sparse constant keeps its type.
        ("", "Constant") => node.attribute.iter().any(|a| a.sparse_tensor.is_set()),
        _ => false,
    }
}

/// Inputs that are float32 in a node which otherwise computes in halves.
pub(super) fn float_inputs(op_type: &str, opset: i64) -> &'static [usize] {
    match op_type {
        "Resize" if opset <= 10 => &[1],
        "Resize" => &[2],
        "Upsample" => &[1],
        "GroupNorm" | "SkipGroupNorm" => &[1, 2],
        _ => &[],
    }
}

/// Where an operator's result has the type that an attribute names: that attribute, and whether float32 is meant where it
/// is left out.
pub(super) fn named_type(op_type: &str) -> Option<(&'static str, bool)> {
    let found = NAMES_ITS_TYPE.iter().find(|(op, ..)| *op == op_type)?;
    Some((found.1, found.2))
}
