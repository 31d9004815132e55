//! Whether a model is what ONNX says a model is.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    ExternalDataRule, Model, Types, ValueType, Weights,
    nodes::normal,
    proto::{FunctionProto, ModelProto},
    write_shape,
};

mod engines;
mod finding;
mod functions;
mod graphs;
mod nodes;
mod operators;
mod sparse;
mod tensors;

pub use engines::EngineLimits;
pub use finding::{Finding, FindingNode, Rule, Severity};

use finding::{At, Findings};
use graphs::Frame;
use operators::NEWEST_OPSET;

/// The newest version of the intermediate representation that this crate knows: that of ONNX 1.23.
const NEWEST_IR: i64 = 14;

/// The IR version that each standard operator set came with, from the table of versions in ONNX's documentation.
const IR_OF_OPSETS: [(i64, i64); 10] =
    [(28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8), (12, 7), (11, 6), (10, 5)];

impl Model {
    /// Looks for everything that is wrong with the model, and for some things that are worth knowing.
    ///
    /// `graph` is the model's path, or what it shall be called in the findings. Weights are read where `weights` finds
    /// them, piece by piece; with [`Weights::inline`], those in sidecars are not looked at, and a note says so.
    ///
    /// What is checked: versions and operator sets; names, order and cycles of values in the main graph, sub-graphs and
    /// functions; every node of the standard operators against the ONNX operator specification to operator set 28
    /// (number of values, attributes, element types); tensors against their dims and types; sidecars; sparse tensors;
    /// values that are not finite; what is unused or stored twice. A model that ONNX's own checker (1.23) refuses has at
    /// least one [`Severity::Error`], with the exceptions that the tests list. A recorded shape or type that is not what
    /// the graph gives is a note (case X16): engines warn of it and compute what the graph says.
    ///
    /// Of each rule and severity at most 100 findings are given, and one that counts the others. Memory: about the
    /// model's own lists once more, and the largest tensor whose values are not kept as raw bytes.
    pub fn check(&self, graph: &Path, weights: &Weights) -> Vec<Finding> {
        let mut checker = Checker::new(self.proto(), graph, weights);
        checker.versions();
        checker.metadata();
        checker.functions();
        checker.main_graph();
        checker.training();
        if let Ok(types) = Types::infer(self, weights) {
            checker.contradictions(&types);
        }
        checker.finish()
    }
}

/// One model while it is checked.
struct Checker<'m> {
    model: &'m ModelProto,
    weights: &'m Weights,
    findings: Findings,
    /// Versions of the operator sets where the check is now: the model's, or a function's.
    opsets: HashMap<&'m str, i64>,
    /// Inputs and outputs of the model's functions by domain, name and overload.
    functions: HashMap<(&'m str, &'m str, &'m str), (usize, usize)>,
    in_function: bool,
    /// The graph that is being checked and those around it, the outermost first.
    frames: Vec<Frame<'m>>,
    /// Operators of other domains that were met.
    strange: HashSet<(&'m str, &'m str)>,
    /// The folder of the sidecars and the model's own file, links followed.
    real: Option<(PathBuf, Option<PathBuf>)>,
    graph: &'m Path,
    /// Tensors whose sidecars nobody gave.
    not_read: usize,
    /// Initializers by type, dims and digest.
    stored: HashMap<(i32, &'m [i64], [u64; 2]), &'m str>,
}

/// As ports are written.
fn written(value: &ValueType) -> String {
    let mut text = value.element_type.to_string();
    // Writing into a string cannot fail.
    let _ = write_shape(&mut text, &value.shape);
    text
}

impl<'m> Checker<'m> {
    fn contradictions(&mut self, types: &Types) {
        for found in types.contradictions() {
            self.findings.note(Rule::Recorded, At::default().value(&found.value), || {
                format!(
                    "{} is recorded, the graph gives {}",
                    written(&found.recorded),
                    written(&found.inferred)
                )
            });
        }
    }

    fn new(model: &'m ModelProto, graph: &'m Path, weights: &'m Weights) -> Self {
        let real = weights.folder().and_then(|folder| folder.canonicalize().ok());
        Self {
            model,
            weights,
            findings: Findings::new(finding::short(&graph.display().to_string())),
            opsets: HashMap::new(),
            functions: HashMap::new(),
            in_function: false,
            frames: Vec::new(),
            strange: HashSet::new(),
            real: real.map(|folder| (folder, graph.canonicalize().ok())),
            graph,
            not_read: 0,
            stored: HashMap::new(),
        }
    }

    fn versions(&mut self) {
        let at = At::default();
        let ir = self.model.ir_version.unwrap_or_default();
        let imports = &self.model.opset_import;
        let mut error = |rule, message: String| self.findings.error(rule, at, || message);
        if ir < 1 {
            error(Rule::IrVersion, "the IR version is missing".to_owned());
        } else if ir > NEWEST_IR {
            error(
                Rule::IrVersion,
                format!("IR version {ir} is newer than {NEWEST_IR}, the newest known here"),
            );
        } else if ir < 3 && !imports.is_empty() {
            error(
                Rule::IrVersion,
                format!("IR version {ir} knows no operator sets, and the model imports some"),
            );
        }
        if imports.is_empty() && ir >= 3 {
            error(Rule::Opset, "no operator set is imported".to_owned());
        } else if imports.is_empty() {
            self.opsets.insert("", 1);
        }
        for import in imports {
            let (domain, version) = (normal(import.domain.as_deref()), import.version.unwrap_or_default());
            if self.opsets.insert(domain, version).is_some_and(|other| other != version) {
                self.findings.warning(Rule::Opset, at, || {
                    format!("operator set `{}` is imported in two versions", finding::short(domain))
                });
            }
        }
        if (1..8).contains(&ir) && !self.model.functions.is_empty() {
            self.findings.warning(Rule::IrVersion, at, || {
                format!("IR version {ir} knows no functions, and the model has some")
            });
        }
        let Some(&opset) = self.opsets.get("") else { return };
        if opset < 1 {
            self.findings.error(Rule::Opset, at, || format!("there is no operator set {opset}"));
        } else if opset > NEWEST_OPSET {
            self.findings.warning(Rule::Opset, at, || {
                format!(
                    "operator set {opset} is newer than {NEWEST_OPSET}, by which its operators are checked"
                )
            });
        }
        let came_with = IR_OF_OPSETS.into_iter().find(|(first, _)| opset >= *first).map_or(3, |(_, ir)| ir);
        if (1..came_with).contains(&ir) {
            self.findings.note(Rule::IrVersion, at, || {
                format!("operator set {opset} came with IR version {came_with}, the model has {ir}")
            });
        }
    }

    fn metadata(&mut self) {
        let mut seen = HashSet::new();
        for property in &self.model.metadata_props {
            let key = property.key.as_deref().unwrap_or_default();
            if !seen.insert(key) {
                let at = At::default().value(key);
                self.findings
                    .error(Rule::DefinedTwice, at, || "two metadata properties have this key".to_owned());
            }
        }
    }

    fn training(&mut self) {
        for training in &self.model.training_info {
            for graph in [&training.initialization, &training.algorithm] {
                if let Some(graph) = graph.as_option() {
                    self.tensors_of(graph, "training");
                }
            }
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        let unread = self.not_read;
        if unread > 0 {
            self.findings.note(Rule::NotRead, At::default(), || {
                format!("the values of {unread} tensors lie in sidecars that were not looked at")
            });
        }
        self.findings.finish()
    }
}

/// A function's key among the model's functions.
fn key(function: &FunctionProto) -> (&str, &str, &str) {
    let name = function.name.as_deref().unwrap_or_default();
    (normal(function.domain.as_deref()), name, function.overload.as_deref().unwrap_or_default())
}
