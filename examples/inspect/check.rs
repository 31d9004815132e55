//! `inspect check`.

use std::{
    error::Error,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use sam_kit::onnx_graph::{Finding, Model, Severity, Weights};
use serde_json::json;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The models
    #[arg(value_name = "MODEL.onnx", required = true)]
    models: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All findings, a line each, and 0 where none is an error, else 1.
pub(crate) fn run(arguments: &Arguments) -> Result<(String, ExitCode), Box<dyn Error>> {
    let mut findings = Vec::new();
    for path in &arguments.models {
        let model = Model::read(path)?;
        findings.extend(model.check(path, &Weights::in_folder(path.parent().unwrap_or(Path::new("")))));
    }
    // The worst first; of one kind in the order in which they were found.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    let text = if arguments.json {
        let list: Vec<_> = findings.iter().map(as_json).collect();
        serde_json::to_string_pretty(&list)? + "\n"
    } else {
        lines(&findings)
    };
    Ok((text, ExitCode::from(u8::from(broken))))
}

fn lines(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let _ = writeln!(out, "{finding}");
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note].map(count);
    let _ = writeln!(out, "{errors} errors, {warnings} warnings, {notes} notes");
    out
}

fn as_json(finding: &Finding) -> serde_json::Value {
    let node = finding.node.as_ref();
    json!({
        "severity": finding.severity.to_string(),
        "rule": finding.rule.to_string(),
        "graph": finding.graph,
        "scope": finding.scope,
        "node": node.map(|n| json!({"index": n.index, "name": n.name, "op_type": n.op_type})),
        "value": finding.value,
        "message": finding.message,
    })
}
