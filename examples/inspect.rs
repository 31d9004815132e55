//! Says what is in an ONNX model: ports, operators, weights and the files they lie in, arithmetic, and which inputs each
//! output depends on. `check` says what is wrong with a model, `analyze` what runs where, by component, part of the network and
//! operator.
//!
//! ```text
//! cargo run --example inspect -- MODEL.onnx
//! cargo run --example inspect -- MODEL.onnx --json
//! cargo run --example inspect -- check MODEL.onnx
//! cargo run --example inspect -- analyze ENCODER.onnx DECODER.onnx --target QNN/NPU --target rten
//! ```
#[path = "inspect/analyze.rs"]
mod analyze;
#[path = "inspect/check.rs"]
mod check;

use std::{
    error::Error,
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use indicatif::HumanBytes;
use sam_kit::{
    onnx_graph::{Description, Dim, Model, Port, TensorCount, write_shape},
    release_assets::sha256_file,
    sam_runtime::error_chain,
};
use serde_json::{Value, json};

/// Inspect an ONNX model.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The model
    #[arg(value_name = "MODEL.onnx", required = true)]
    model: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// What is wrong with a model: exit code 0 where it breaks no rule of ONNX, 1 where it does, 2 where it cannot be read
    Check(check::Arguments),
    /// What runs where: exit code 0 where every model runs whole on every target, 1 where not, 2 on errors
    Analyze(analyze::Arguments),
}

/// Columns of a terminal that the table is made for.
const WIDTH: usize = 100;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match (&arguments.command, &arguments.model) {
        (Some(Command::Check(arguments)), _) => check::run(arguments),
        (Some(Command::Analyze(arguments)), _) => analyze::run(arguments),
        (None, Some(model)) => inspect(model, arguments.json).map(|text| (text, ExitCode::SUCCESS)),
        (None, None) => Err("no model is named".into()),
    };
    match done {
        Ok((text, code)) => {
            // A closed output is no reason to fail.
            let _ = std::io::stdout().write_all(plain(&text).as_bytes());
            code
        }
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "error: {}",
                plain(&error_chain(error.as_ref())).replace('\n', " ")
            );
            ExitCode::from(2)
        }
    }
}

/// Size and SHA-256 of a file.
struct Hashed {
    bytes: u64,
    sha256: String,
}

impl Hashed {
    fn of(path: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self { bytes: path.metadata()?.len(), sha256: sha256_file(path)? })
    }
}

fn inspect(path: &Path, as_json: bool) -> Result<String, Box<dyn Error>> {
    let description = Model::read(path)?.describe(Some(path))?;
    let file = Hashed::of(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut sidecars = Vec::new();
    for sidecar in &description.sidecars {
        let there = sidecar.file_bytes.is_some();
        sidecars.push(there.then(|| Hashed::of(&folder.join(&sidecar.location))).transpose()?);
    }
    if as_json {
        json_report(path, &file, &description, &sidecars)
    } else {
        Ok(table(path, &file, &description, &sidecars))
    }
}

/// The description's own fields, with `file` in front and `sha256` in each sidecar.
fn json_report(
    path: &Path,
    file: &Hashed,
    description: &Description,
    hashes: &[Option<Hashed>],
) -> Result<String, Box<dyn Error>> {
    let mut report = serde_json::Map::new();
    let file = json!({ "path": path.display().to_string(), "bytes": file.bytes, "sha256": file.sha256 });
    report.insert("file".to_owned(), file);
    if let Value::Object(fields) = serde_json::to_value(description)? {
        report.extend(fields);
    }
    let sidecars = report.get_mut("sidecars").and_then(Value::as_array_mut);
    for (sidecar, hashed) in sidecars.into_iter().flatten().zip(hashes) {
        sidecar["sha256"] = hashed.as_ref().map_or(Value::Null, |hashed| json!(hashed.sha256));
    }
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn table(path: &Path, file: &Hashed, d: &Description, hashes: &[Option<Hashed>]) -> String {
    let mut out = String::new();
    let opsets: Vec<String> =
        d.opsets.iter().map(|o| format!("{} {}", or(&o.domain, "onnx"), o.version)).collect();
    let quantized = if d.quantized { ", with 8-bit weights" } else { "" };
    let mut rows = vec![
        ("model", path.display().to_string()),
        ("size", HumanBytes(file.bytes).to_string()),
        ("SHA-256", file.sha256.clone()),
        (
            "written by",
            or(format!("{} {}", d.producer_name, d.producer_version).trim(), "not said").to_owned(),
        ),
        ("needs", format!("IR {}; operator sets: {}", d.ir_version, opsets.join(", "))),
        ("precision", format!("{}{quantized}", d.precision)),
        ("arithmetic", arithmetic(d)),
    ];
    rows.extend(
        d.functions
            .iter()
            .map(|f| ("function", format!("{}.{} of {} nodes", or(&f.domain, "onnx"), f.name, f.nodes))),
    );
    for (name, value) in rows {
        lines(&mut out, &format!("{name:12}"), &[value]);
    }
    ports(&mut out, d);
    operators(&mut out, d);
    for (title, counts) in [("weights", &d.initializers), ("constants", &d.constants)] {
        tensors(&mut out, title, counts);
    }
    for (i, (sidecar, hashed)) in d.sidecars.iter().zip(hashes).enumerate() {
        if i == 0 {
            head(&mut out, "sidecars");
        }
        let missing = || format!("MISSING, {} are needed", HumanBytes(sidecar.needed_bytes));
        let size = hashed.as_ref().map_or_else(missing, |hashed| HumanBytes(hashed.bytes).to_string());
        lines(&mut out, "  ", &[format!("{}  {size}, {} tensors", sidecar.location, sidecar.tensors)]);
        if let Some(hashed) = hashed {
            let _ = writeln!(out, "    SHA-256 {}", hashed.sha256);
            if hashed.bytes < sidecar.needed_bytes {
                let _ = writeln!(out, "    TOO SHORT, {} are needed", HumanBytes(sidecar.needed_bytes));
            }
        }
    }
    if !d.contradictions.is_empty() {
        head(&mut out, "recorded otherwise than the graph gives");
    }
    for c in &d.contradictions {
        let recorded = Port {
            name: "recorded".to_owned(),
            element_type: c.recorded.element_type,
            shape: c.recorded.shape.clone(),
        };
        let inferred = Port {
            name: "is".to_owned(),
            element_type: c.inferred.element_type,
            shape: c.inferred.shape.clone(),
        };
        lines(&mut out, "  ", &[c.value.clone(), recorded.to_string(), inferred.to_string()]);
    }
    out
}

fn arithmetic(d: &Description) -> String {
    let mut text = d.macs.map_or("more MAC than 64 bits count".to_owned(), |macs| metric(macs, "MAC"));
    if let Some(macs @ 1..) = d.macs_in_sub_graphs {
        let _ = write!(text, ", and {} in sub-graphs", metric(macs, "MAC"));
    }
    if !d.macs_unknown.is_empty() {
        let mut operators: Vec<&str> = d.macs_unknown.iter().map(|node| node.operator.as_str()).collect();
        operators.sort_unstable();
        operators.dedup();
        let _ = write!(text, ", not counting {} nodes: {}", d.macs_unknown.len(), operators.join(", "));
    }
    text
}

fn ports(out: &mut String, d: &Description) {
    let names = d.inputs.iter().chain(d.outputs.iter().map(|o| &o.port)).map(|p| p.name.chars().count());
    let names = names.max().unwrap_or(0).min(WIDTH / 3);
    let port = |port: &Port| {
        let mut shape = String::new();
        // Writing into a string cannot fail.
        let _ = write_shape(&mut shape, &port.shape);
        let empty = port.shape.iter().flatten().any(|dim| *dim == Dim::Static(0));
        let note = if empty { " (empty)" } else { "" };
        format!("  {:names$}  {:8} {shape}{note}", short(&port.name, names), port.element_type.to_string())
    };
    head(out, "inputs");
    for input in &d.inputs {
        lines(out, "", &[port(input)]);
    }
    head(out, "outputs");
    let described: Vec<String> = d.outputs.iter().map(|o| port(&o.port)).collect();
    let column = described.iter().map(|text| text.chars().count()).max().unwrap_or(0).min(WIDTH * 3 / 5);
    for (output, text) in d.outputs.iter().zip(&described) {
        let mut needs = output.depends_on.clone();
        if needs.is_empty() {
            needs.push("nothing".to_owned());
        }
        lines(out, &format!("{text:column$}  from "), &needs);
    }
}

/// The operators in columns, down and then across.
fn operators(out: &mut String, d: &Description) {
    let nodes = d.nodes;
    let mut title = format!("operators of {} nodes", nodes.total());
    if nodes.sub_graphs + nodes.functions > 0 {
        let _ = write!(title, " ({} in sub-graphs, {} in functions)", nodes.sub_graphs, nodes.functions);
    }
    head(out, &title);
    let named = d.operators.iter().map(|o| {
        let name =
            if o.domain.is_empty() { o.operator.clone() } else { format!("{}.{}", o.domain, o.operator) };
        (o.nodes.total(), short(&name, WIDTH - 12))
    });
    let named: Vec<(usize, String)> = named.collect();
    let width = named.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0) + 9;
    let columns = (WIDTH / width).max(1);
    let rows = named.len().div_ceil(columns);
    for row in 0..rows {
        let cells = named.iter().skip(row).step_by(rows.max(1));
        let cells: Vec<String> =
            cells.map(|(count, name)| format!("{count:>6}  {name:w$}", w = width - 9)).collect();
        let _ = writeln!(out, "{}", cells.join(" ").trim_end());
    }
}

fn tensors(out: &mut String, title: &str, counts: &[TensorCount]) {
    if counts.is_empty() {
        return;
    }
    head(out, title);
    for count in counts {
        let elements = metric(count.parameters, "");
        let (element, tensors) = (count.element_type.to_string(), count.tensors);
        let bytes = HumanBytes(count.bytes).to_string();
        let _ = writeln!(out, "  {element:12} {bytes:>11} {elements:>9} elements in {tensors} tensors");
    }
}

/// Parts behind a first word, on as many lines as they need; further lines are indented as far as the first part is.
fn lines(out: &mut String, first: &str, parts: &[String]) {
    let indent = first.chars().count();
    let room = WIDTH.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut start = first.to_owned();
    let mut flush = |line: &mut String| {
        let _ = writeln!(out, "{}", format!("{start}{line}").trim_end());
        start = " ".repeat(indent);
        line.clear();
    };
    for (i, part) in parts.iter().enumerate() {
        let comma = if i + 1 < parts.len() { ", " } else { "" };
        let mut part: Vec<char> = format!("{part}{comma}").chars().collect();
        // The space behind a comma may fall off the end of a line.
        let shown = |part: &[char]| part.len() - usize::from(part.ends_with(&[' ']));
        if !line.is_empty() && line.chars().count() + shown(&part) > room {
            flush(&mut line);
        }
        while shown(&part) > room {
            // At a space where there is one.
            let at =
                part[..room].iter().rposition(|c| *c == ' ').filter(|at| *at > 0).map_or(room, |at| at + 1);
            line.extend(part.drain(..at));
            flush(&mut line);
        }
        line.extend(part);
    }
    flush(&mut line);
}

fn head(out: &mut String, title: &str) {
    let _ = writeln!(out, "\n{title}");
}

fn or<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

/// The text, or its end behind an ellipsis: names of exporters differ at the end.
fn short(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let end: String = text.chars().skip(length - width.saturating_sub(1)).collect();
    format!("…{end}")
}

/// A number of at least three digits, with a prefix of the metric system: `1.75 GMAC`.
fn metric(number: u64, unit: &str) -> String {
    let prefixes = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut step) = (number as f64, 0);
    while value >= 999.5 && step + 1 < prefixes.len() {
        (value, step) = (value / 1000.0, step + 1);
    }
    let digits = match value {
        _ if step == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}{unit}", prefixes[step]).trim_end().to_owned()
}

/// Names in a file may hold commands for a terminal.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}
