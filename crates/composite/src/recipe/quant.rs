//! The `quant` section.

use std::fmt;

use serde_json::{Map, Value, json};

use super::fields::{Fields, nearest};

/// How a graph is brought to another precision. What this workspace does not build is kept as it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "the keys are the reference's")]
pub struct Quantization {
    /// In which way.
    pub mode: QuantMode,
    /// Samples of a calibration.
    pub samples: u64,
    /// How ranges are found in a calibration.
    pub calibration_method: String,
    /// Element type of quantised weights.
    pub weight_type: String,
    /// Element type of quantised activations.
    pub activation_type: String,
    /// A scale for each channel.
    pub per_channel: bool,
    /// No zero points.
    pub symmetric: bool,
    /// The same for weights alone.
    pub weight_symmetric: Option<bool>,
    /// The same for activations alone.
    pub activation_symmetric: Option<bool>,
    /// Whether a calibration is kept.
    pub save_calibration: bool,
    /// How samples are drawn where there is no dataset.
    pub distribution: String,
    /// Of the drawing.
    pub seed: Option<u64>,
    /// A calibration that was kept.
    pub calibration_load_path: Option<String>,
    /// Where a calibration is kept.
    pub calibration_save_path: Option<String>,
    /// Operators that are quantised; all that can be where it is left out.
    pub op_types_to_quantize: Option<Vec<String>>,
    /// Nodes that are not quantised.
    pub nodes_to_exclude: Option<Vec<String>>,
    /// Whether inputs and outputs stay in single precision.
    pub fp16_keep_io_types: bool,
    /// Operators that stay in single precision, in place of the converter's own list.
    pub fp16_op_block_list: Option<Vec<String>>,
    /// Settings of one mode alone, and what a calibration needs, in the order in which they were read.
    pub more: Map<String, Value>,
}

/// In which way a graph is brought to another precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuantMode {
    /// Half precision.
    Fp16,
    /// 8 bits, with ranges from a calibration (`qdq` in older recipes).
    Static,
    /// 8 bits, with ranges found while running.
    Dynamic,
    /// Weights alone, rounded to the nearest.
    Rtn,
}

const KEYS: [&str; 18] = [
    "mode",
    "samples",
    "calibration_method",
    "weight_type",
    "activation_type",
    "per_channel",
    "symmetric",
    "weight_symmetric",
    "activation_symmetric",
    "save_calibration",
    "distribution",
    "seed",
    "calibration_load_path",
    "calibration_save_path",
    "op_types_to_quantize",
    "nodes_to_exclude",
    "fp16_keep_io_types",
    "fp16_op_block_list",
];
/// What a calibration is made with.
const OPTIONAL: [&str; 4] = ["task", "model_id", "dataset_name", "model_type"];

impl fmt::Display for QuantMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl QuantMode {
    const ALL: [Self; 4] = [Self::Fp16, Self::Static, Self::Dynamic, Self::Rtn];

    fn name(self) -> &'static str {
        match self {
            Self::Fp16 => "fp16",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Rtn => "rtn",
        }
    }

    /// Whether a key is a setting of this mode alone.
    fn owns(self, key: &str) -> bool {
        match self {
            Self::Rtn => key.starts_with("rtn_"),
            Self::Dynamic => key == "reduce_range",
            Self::Fp16 | Self::Static => false,
        }
    }
}

impl Quantization {
    /// To half precision, with ports in single: the reference's defaults.
    pub fn fp16() -> Self {
        let text = str::to_owned;
        Self {
            mode: QuantMode::Fp16,
            samples: 10,
            calibration_method: text("minmax"),
            weight_type: text("uint8"),
            activation_type: text("uint8"),
            per_channel: false,
            symmetric: false,
            weight_symmetric: None,
            activation_symmetric: None,
            save_calibration: false,
            distribution: text("uniform"),
            seed: None,
            calibration_load_path: None,
            calibration_save_path: None,
            op_types_to_quantize: None,
            nodes_to_exclude: None,
            fp16_keep_io_types: true,
            fp16_op_block_list: None,
            more: Map::new(),
        }
    }

    pub(super) fn parse(mut found: Map<String, Value>) -> Result<Self, String> {
        let mode = match found.get("mode") {
            Some(Value::String(name)) if name == "qdq" => QuantMode::Static,
            Some(Value::String(name)) => {
                let named = QuantMode::ALL.into_iter().find(|mode| mode.name() == name);
                named.ok_or_else(|| {
                    let known = QuantMode::ALL.map(QuantMode::name);
                    format!("quant.mode is `{name}`{}", nearest(name, &known))
                })?
            }
            Some(other) => return Err(format!("quant.mode is {other}, not a text")),
            None => return Err("quant.mode is left out".to_owned()),
        };
        let own = |key: &String| mode.owns(key) || OPTIONAL.contains(&key.as_str());
        let keys: Vec<String> = found.keys().filter(|key| own(key)).cloned().collect();
        let more = keys.into_iter().filter_map(|key| found.shift_remove_entry(&key)).collect();
        let mut fields = Fields::of(found.into(), "quant", &KEYS)?;
        let default = Self::fp16();
        Ok(Self {
            mode,
            samples: fields.count("samples")?.unwrap_or(default.samples),
            calibration_method: fields.text("calibration_method")?.unwrap_or(default.calibration_method),
            weight_type: fields.text("weight_type")?.unwrap_or(default.weight_type),
            activation_type: fields.text("activation_type")?.unwrap_or(default.activation_type),
            per_channel: fields.flag("per_channel")?.unwrap_or(default.per_channel),
            symmetric: fields.flag("symmetric")?.unwrap_or(default.symmetric),
            weight_symmetric: fields.flag("weight_symmetric")?,
            activation_symmetric: fields.flag("activation_symmetric")?,
            save_calibration: fields.flag("save_calibration")?.unwrap_or(default.save_calibration),
            distribution: fields.text("distribution")?.unwrap_or(default.distribution),
            seed: fields.count("seed")?,
            calibration_load_path: fields.text("calibration_load_path")?,
            calibration_save_path: fields.text("calibration_save_path")?,
            op_types_to_quantize: fields.texts("op_types_to_quantize")?,
            nodes_to_exclude: fields.texts("nodes_to_exclude")?,
            fp16_keep_io_types: fields.flag("fp16_keep_io_types")?.unwrap_or(default.fp16_keep_io_types),
            fp16_op_block_list: fields.texts("fp16_op_block_list")?,
            more,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        let entries = [
            json!(self.mode.name()),
            json!(self.samples),
            json!(self.calibration_method),
            json!(self.weight_type),
            json!(self.activation_type),
            json!(self.per_channel),
            json!(self.symmetric),
            json!(self.weight_symmetric),
            json!(self.activation_symmetric),
            json!(self.save_calibration),
            json!(self.distribution),
            json!(self.seed),
            json!(self.calibration_load_path),
            json!(self.calibration_save_path),
            json!(self.op_types_to_quantize),
            json!(self.nodes_to_exclude),
            json!(self.fp16_keep_io_types),
            json!(self.fp16_op_block_list),
        ];
        let known = KEYS.iter().map(|&key| key.to_owned()).zip(entries);
        let more = self.more.iter().map(|(key, value)| (key.clone(), value.clone()));
        Value::Object(known.chain(more).collect())
    }
}
