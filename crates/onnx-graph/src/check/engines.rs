//! What engines accept, by version: said before they fail.

use std::path::Path;

use super::finding::{At, Finding, Findings, Rule, short};
use crate::{Model, nodes::normal};

/// The versions of IR and standard operators that an engine runs.
///
/// Measured: models of one node with each IR version and each operator set were run with every release from ONNX Runtime
/// 1.24 to 1.32 (`fixtures/onnx-check/engines.py`); for rten, read in the source of 0.27, which looks at neither number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineLimits {
    /// The engine's name: `onnxruntime` or `rten`.
    pub engine: &'static str,
    /// Major and minor version, as `1.32`.
    pub version: &'static str,
    /// The newest IR version that it loads; `None` where it does not look.
    pub newest_ir: Option<i64>,
    /// The newest version of the standard operators that it loads; `None` where it does not look.
    pub newest_opset: Option<i64>,
    /// The oldest version of the standard operators that it promises to run.
    pub oldest_opset: i64,
}

/// ONNX Runtime promises to run operator sets from 7 on (its documentation on compatibility).
const fn onnxruntime(version: &'static str, ir: i64, opset: i64) -> EngineLimits {
    EngineLimits {
        engine: "onnxruntime",
        version,
        newest_ir: Some(ir),
        newest_opset: Some(opset),
        oldest_opset: 7,
    }
}

/// Oldest first.
const KNOWN: [EngineLimits; 10] = [
    onnxruntime("1.24", 13, 25),
    onnxruntime("1.25", 13, 26),
    onnxruntime("1.26", 13, 26),
    onnxruntime("1.27", 13, 26),
    onnxruntime("1.28", 13, 26),
    onnxruntime("1.29", 13, 26),
    onnxruntime("1.30", 13, 26),
    onnxruntime("1.31", 13, 26),
    onnxruntime("1.32", 14, 28),
    // It promises nothing of versions, and refuses the old forms of single operators when it reads them.
    EngineLimits { engine: "rten", version: "0.27", newest_ir: None, newest_opset: None, oldest_opset: 1 },
];

impl EngineLimits {
    /// All engines and versions that are known, an engine's oldest first.
    pub fn known() -> &'static [Self] {
        &KNOWN
    }

    /// An engine by name and version; of a version, major and minor count (`1.32.0` is `1.32`).
    pub fn find(engine: &str, version: &str) -> Option<&'static Self> {
        let mut parts = version.split('.');
        let minor = [parts.next()?, parts.next()?].join(".");
        KNOWN.iter().find(|known| known.engine == engine && known.version == minor)
    }

    fn takes(&self, ir: i64, opset: Option<i64>) -> bool {
        self.newest_ir.is_none_or(|newest| ir <= newest)
            && opset.zip(self.newest_opset).is_none_or(|(opset, newest)| opset <= newest)
    }
}

impl Model {
    /// Says whether an engine can load the model, by its IR version and operator sets, and what is needed if not.
    ///
    /// `graph` is what the model is called in the findings. Nothing is said of single operators.
    pub fn check_engine(&self, graph: &Path, engine: &EngineLimits) -> Vec<Finding> {
        let mut findings = Findings::new(short(&graph.display().to_string()));
        let at = At::default();
        let ir = self.ir_version();
        let imports = &self.proto().opset_import;
        let standard = imports.iter().rev().find(|i| normal(i.domain.as_deref()).is_empty());
        let opset = standard.map(|import| import.version.unwrap_or_default());
        let name = format!("{} {}", engine.engine, engine.version);
        let newer = || {
            let later = KNOWN.iter().find(|known| known.engine == engine.engine && known.takes(ir, opset));
            later.map_or("a newer version than any known here".to_owned(), |later| {
                format!("{} {} or newer", later.engine, later.version)
            })
        };
        if let Some(newest) = engine.newest_ir.filter(|newest| ir > *newest) {
            findings.error(Rule::Engine, at, || {
                format!("{name} loads IR versions up to {newest}, the model has {ir}: it needs {}", newer())
            });
        }
        if let Some((opset, newest)) = opset.zip(engine.newest_opset).filter(|(opset, newest)| opset > newest)
        {
            findings.error(Rule::Engine, at, || {
                format!(
                    "{name} loads operator sets up to {newest}, the model has {opset}: it needs {}",
                    newer()
                )
            });
        }
        if let Some(opset) = opset.filter(|opset| *opset < engine.oldest_opset) {
            let oldest = engine.oldest_opset;
            findings.warning(Rule::Engine, at, || {
                format!("{name} promises to run operator sets from {oldest} on, the model has {opset}")
            });
        }
        findings.finish()
    }
}
