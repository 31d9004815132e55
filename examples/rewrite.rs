//! Makes a graph faster, smaller, or two of it, and holds what the engines make of the result against the original.
//!
//! ```text
//! cargo run --release --example rewrite -- decoder.onnx faster.onnx --set onnxruntime
//! cargo run --release --example rewrite -- decoder.onnx out.onnx --passes transposes,dead-code
//! cargo run --release --example rewrite -- encoder.onnx half.onnx --fp16 storage
//! cargo run --release --example rewrite -- encoder.onnx parts --split
//! cargo run --release --example rewrite -- decoder.onnx parts --split image_embeddings,high_res_features1
//! ```
use std::{
    error::Error,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};
use ndarray::{ArrayD, IxDyn};
use sam_kit::{
    onnx_graph::{
        ElementType, Fp16Options, Model, Pass, PassSet, Port, SaveOptions, Saved, Sidecar, Weights,
    },
    sam_runtime::{
        Tensor,
        engine::{self, Engine, EngineChoice, EngineOptions, Session},
        error_chain,
    },
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Rewrite an ONNX graph and compare it with the original.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The model to read
    model: PathBuf,
    /// The model to write; with --split, the folder for its parts
    out: PathBuf,
    /// These passes, in this order
    #[arg(long, value_delimiter = ',', conflicts_with = "set")]
    passes: Vec<Pass>,
    /// The passes that help one engine
    #[arg(long, value_enum)]
    set: Option<Set>,
    /// Half precision: stored only, or computed as well
    #[arg(long, value_enum)]
    fp16: Option<Fp16>,
    /// Into parts by what depends on what; with names, what depends on these inputs alone and the rest
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "INPUT", conflicts_with_all = ["passes", "set", "fp16"])]
    split: Option<Vec<String>>,
    /// Where the weights go
    #[arg(long, value_enum, default_value = "sidecar")]
    weights: Place,
    /// The engine that compares: auto, ort or rten
    #[arg(long, default_value = "auto")]
    engine: EngineChoice,
    /// How often each is run for the times
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Do not run anything
    #[arg(long)]
    no_compare: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Set {
    Onnxruntime,
    Rten,
}

#[derive(Clone, Copy, ValueEnum)]
enum Fp16 {
    Storage,
    Compute,
}

#[derive(Clone, Copy, ValueEnum)]
enum Place {
    Sidecar,
    Inline,
    Keep,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed output is no reason to fail in another way.
            let _ = writeln!(std::io::stderr(), "error: {}", error_chain(error.as_ref()));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let model = Model::read(&arguments.model)?;
    let weights = Weights::in_folder(arguments.model.parent().unwrap_or(Path::new("")));
    let mut out = String::new();
    let written = match &arguments.split {
        Some(early) => split(arguments, &model, &weights, early, &mut out)?,
        None => vec![rewrite(arguments, &model, &weights, &mut out)?],
    };
    print(&out)?;
    if arguments.no_compare {
        return Ok(());
    }
    let mut options = EngineOptions::default();
    options.choice = arguments.engine;
    let engine = engine::open(&options)?;
    print(&compare(engine.as_ref(), arguments, &model, &written)?)
}

fn rewrite(arguments: &Arguments, model: &Model, weights: &Weights, out: &mut String) -> Result<PathBuf> {
    let passes = match arguments.set {
        Some(Set::Onnxruntime) => PassSet::OnnxRuntime.passes(),
        Some(Set::Rten) => PassSet::Rten.passes(),
        None => &arguments.passes,
    };
    if passes.is_empty() && arguments.fp16.is_none() {
        return Err("nothing to do: give --passes, --set, --fp16 or --split".into());
    }
    let mut rewritten = model.rewrite(passes, weights)?;
    for report in &rewritten.reports {
        writeln!(out, "{report}")?;
    }
    let options = match arguments.fp16 {
        Some(Fp16::Storage) => Some(Fp16Options::storage()),
        Some(Fp16::Compute) => Some(Fp16Options::compute()),
        None => None,
    };
    if let Some(options) = options {
        let (half, report) = rewritten.model.to_fp16(weights, &options)?;
        writeln!(out, "{report}")?;
        rewritten.model = half;
    }
    if let Some(parent) = arguments.out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    save(arguments, &rewritten.model, weights, &arguments.out, out)?;
    Ok(arguments.out.clone())
}

/// Early parts first: each part's inputs are the whole's, or are given by a part before.
fn split(
    arguments: &Arguments,
    model: &Model,
    weights: &Weights,
    early: &[String],
    out: &mut String,
) -> Result<Vec<PathBuf>> {
    let groups = model.input_groups()?;
    let groups: Vec<&[String]> = match early {
        [] if groups.len() < 2 => {
            let all = groups.concat().join(", ");
            return Err(format!("every output depends on {all}: name the inputs to be computed early").into());
        }
        [] => groups.iter().map(Vec::as_slice).collect(),
        names => vec![names],
    };
    fs::create_dir_all(&arguments.out)?;
    let stem = arguments.model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut rest = Some(model.clone());
    let mut written = Vec::new();
    for group in groups {
        let Some(whole) = rest.take() else { break };
        let names: Vec<&str> = group.iter().map(String::as_str).collect();
        let parts = whole.split(&names, weights)?;
        for port in &parts.carried {
            writeln!(out, "carried    {port}")?;
        }
        if let Some(part) = &parts.early {
            let path = arguments.out.join(format!("{stem}.{}.onnx", written.len() + 1));
            writeln!(out, "{:10} {} nodes of {}", "early", part.node_count(), names.join(", "))?;
            save(arguments, part, weights, &path, out)?;
            written.push(path);
        }
        rest = parts.late;
    }
    if let Some(part) = rest {
        let path = arguments.out.join(format!("{stem}.{}.onnx", written.len() + 1));
        writeln!(out, "{:10} {} nodes", "late", part.node_count())?;
        save(arguments, &part, weights, &path, out)?;
        written.push(path);
    }
    Ok(written)
}

fn save(
    arguments: &Arguments,
    model: &Model,
    weights: &Weights,
    path: &Path,
    out: &mut String,
) -> Result<()> {
    let options = match arguments.weights {
        Place::Sidecar => SaveOptions::sidecar(Sidecar::new()),
        Place::Inline => SaveOptions::inline(),
        Place::Keep => SaveOptions::keep(),
    };
    let Saved { model, sidecars, .. } = model.save(path, weights, &options)?;
    for file in [model].iter().chain(&sidecars) {
        writeln!(out, "{:>10} {}", file.bytes, file.path.display())?;
    }
    Ok(())
}

/// Runs the original and what was written on the same random inputs, in turn.
fn compare(engine: &dyn Engine, arguments: &Arguments, model: &Model, written: &[PathBuf]) -> Result<String> {
    let load = |model: &Model, path: &Path| {
        engine.load(model, path.parent().unwrap_or(Path::new("")), &path.display().to_string())
    };
    let before = load(model, &arguments.model)?;
    let inputs: Vec<(String, Tensor)> = before.inputs().iter().map(random).collect::<Result<_>>()?;
    let mut after = Vec::new();
    for path in written {
        after.push(load(&Model::read(path)?, path)?);
    }
    let (mut times, mut results) = ([Vec::new(), Vec::new()], Vec::new());
    // The first run warms up.
    for run in 0..=arguments.runs {
        for (side, sessions) in [std::slice::from_ref(&before), after.as_slice()].into_iter().enumerate() {
            let start = Instant::now();
            let found = run_all(sessions, &inputs)?;
            if run == 0 {
                results.push(found);
            } else {
                times[side].push(start.elapsed());
            }
        }
    }
    let mut out = format!("\n{} on random inputs\n", engine.info());
    let [before, after] = results.as_slice() else { return Ok(out) };
    for (name, expected) in before {
        let found = after.iter().find(|(other, _)| other == name).map(|(_, tensor)| tensor);
        let line = match (expected.as_f32(), found.and_then(Tensor::as_f32)) {
            (Some(a), Some(b)) if a.shape() == b.shape() => difference(a, b),
            _ => format!(
                "{expected}, found {}",
                found.map_or_else(|| "nothing".to_owned(), ToString::to_string)
            ),
        };
        writeln!(out, "{name:24} {line}")?;
    }
    let [before, after] = times.map(median);
    if let (Some(before), Some(after)) = (before, after) {
        let ratio = after.as_secs_f64() / before.as_secs_f64();
        writeln!(
            out,
            "median of {} runs: {before:.1?} before, {after:.1?} after, ratio {ratio:.3}",
            arguments.runs
        )?;
    }
    Ok(out)
}

/// One session after the other, each with what those before gave.
fn run_all(sessions: &[Box<dyn Session>], inputs: &[(String, Tensor)]) -> Result<Vec<(String, Tensor)>> {
    let mut known = inputs.to_vec();
    for session in sessions {
        let feed: Vec<(&str, &Tensor)> = session
            .inputs()
            .iter()
            .filter_map(|port| known.iter().find(|(name, _)| *name == port.name))
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let found = session.run(&feed)?;
        known.extend(found);
    }
    Ok(known.split_off(inputs.len()))
}

fn difference(a: &ArrayD<f32>, b: &ArrayD<f32>) -> String {
    // What is no number in one of the two is as far away as can be.
    let apart = |(a, b): (&f32, &f32)| if a.to_bits() == b.to_bits() { 0.0 } else { (a - b).abs() };
    let largest = a
        .iter()
        .zip(b)
        .map(apart)
        .fold(0.0, |most: f32, d| if d.is_nan() { f32::INFINITY } else { most.max(d) });
    let (low, high) = a.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    if largest == 0.0 {
        "equal to the bit".to_owned()
    } else if high > low {
        format!("largest difference {largest:.1e}, {:.1e} of the range", largest / (high - low))
    } else {
        format!("largest difference {largest:.1e}")
    }
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

/// Numbers between 0 and 1 that depend on the port's name; unknown dims are 1.
fn random(port: &Port) -> Result<(String, Tensor)> {
    let dims =
        port.shape.as_ref().ok_or_else(|| format!("{port}: without a rank there is nothing to feed"))?;
    let dims: Vec<usize> =
        dims.iter().map(|dim| usize::try_from(dim.size().unwrap_or(1))).collect::<Result<_, _>>()?;
    let mut state =
        port.name.bytes().fold(1u64, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
    let mut next = move || {
        // Knuth's linear generator: the upper bits are random enough for a comparison.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let floats = ArrayD::from_shape_fn(IxDyn(&dims), |_| next());
    let tensor = match port.element_type {
        ElementType::Float32 => Tensor::F32(floats),
        ElementType::Int32 => Tensor::I32(floats.mapv(|v| i32::from(v > 0.5))),
        ElementType::Int64 => Tensor::I64(floats.mapv(|v| i64::from(v > 0.5))),
        ElementType::Uint8 => Tensor::U8(floats.mapv(|v| (v * 255.0) as u8)),
        _ => return Err(format!("{port}: inputs of this type are not fed here; use --no-compare").into()),
    };
    Ok((port.name.clone(), tensor))
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
