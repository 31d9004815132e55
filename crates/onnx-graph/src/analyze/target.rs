use std::{fmt, str::FromStr};

use crate::Error;

/// Declares the targets once: variant, provider, device, rule file, what it is.
macro_rules! targets {
    ($($variant:ident = $provider:literal, $device:literal, $file:literal, $what:literal;)+) => {
        /// What could run a model: an execution provider of ONNX Runtime on a kind of device, or another engine.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Target {
            $(#[doc = $what] $variant,)+
        }

        impl Target {
            /// All targets with built-in rules, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The execution provider, or the engine.
            pub fn provider(self) -> &'static str {
                match self {
                    $(Self::$variant => $provider,)+
                }
            }

            /// The kind of device: `NPU`, `GPU` or `CPU`.
            pub fn device(self) -> &'static str {
                match self {
                    $(Self::$variant => $device,)+
                }
            }

            /// The rules that the crate carries.
            pub(crate) fn rule_file(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../rules/", $file, ".json")),)+
                }
            }
        }
    };
}

targets! {
    NvTensorRtGpu = "NvTensorRT", "GPU", "nv_tensorrt_gpu", "`TensorRT` for RTX on NVIDIA GPUs.";
    QnnNpu = "QNN", "NPU", "qnn_npu", "Qualcomm's QNN on Hexagon NPUs (HTP backend).";
    QnnGpu = "QNN", "GPU", "qnn_gpu", "Qualcomm's QNN on Adreno GPUs.";
    OpenVinoNpu = "OpenVINO", "NPU", "openvino_npu", "`OpenVINO` on Intel NPUs.";
    OpenVinoGpu = "OpenVINO", "GPU", "openvino_gpu", "`OpenVINO` on Intel GPUs.";
    OpenVinoCpu = "OpenVINO", "CPU", "openvino_cpu", "`OpenVINO` on Intel processors.";
    CudaGpu = "CUDA", "GPU", "cuda_gpu", "CUDA kernels of ONNX Runtime on NVIDIA GPUs.";
    MiGraphXGpu = "MIGraphX", "GPU", "migraphx_gpu", "`MIGraphX` on AMD GPUs.";
    DmlGpu = "DML", "GPU", "dml_gpu", "`DirectML` on any GPU of Windows.";
    Cpu = "CPU", "CPU", "cpu", "ONNX Runtime's own processor kernels.";
    VitisAiNpu = "VitisAI", "NPU", "vitisai_npu", "Vitis AI on AMD NPUs.";
    CoreMl = "CoreML", "NPU", "coreml", "Core ML on Apple devices (Neural Engine, GPU or processor).";
    Xnnpack = "XNNPACK", "CPU", "xnnpack", "XNNPACK on processors.";
    Rten = "rten", "CPU", "rten", "The pure Rust engine rten.";
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoreMl | Self::Xnnpack | Self::Rten => f.write_str(self.provider()),
            _ => write!(f, "{}/{}", self.provider(), self.device()),
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    /// Reads `QNN/NPU`, `rten` and so on, in any case.
    fn from_str(text: &str) -> Result<Self, Error> {
        let named = |target: &&Self| {
            let full = format!("{}/{}", target.provider(), target.device());
            target.to_string().eq_ignore_ascii_case(text) || full.eq_ignore_ascii_case(text)
        };
        Self::ALL.iter().find(named).copied().ok_or_else(|| Error::UnknownTarget { name: text.to_owned() })
    }
}
