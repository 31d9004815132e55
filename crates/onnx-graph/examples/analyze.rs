//! `analyze MODEL.onnx... [--target T]... [--json]`: what runs where, by component and by operator.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{path::Path, process::ExitCode};

use onnx_graph::{Model, Target, Types, Weights, analyze};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// True where every model runs whole on every target.
fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let (mut files, mut targets, mut json) = (Vec::new(), Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--target" => targets.push(arguments.next().ok_or("--target needs a name")?.parse::<Target>()?),
            flag if flag.starts_with("--") => return Err(format!("unknown option {flag}").into()),
            _ => files.push(argument),
        }
    }
    if files.is_empty() {
        return Err("usage: analyze MODEL.onnx... [--target T]... [--json]".into());
    }
    if targets.is_empty() {
        targets = Target::ALL.to_vec();
    }
    let mut read = Vec::new();
    for file in &files {
        let model = Model::read(file)?;
        let folder = Path::new(file).parent().unwrap_or(Path::new("."));
        let types = Types::infer(&model, &Weights::in_folder(folder))?;
        read.push((file.as_str(), model, types));
    }
    let models: Vec<(&str, &Model, &Types)> =
        read.iter().map(|(name, model, types)| (*name, model, types)).collect();
    let analysis = analyze(&models, &targets)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&analysis)?);
    } else {
        print!("{analysis}");
    }
    Ok(analysis
        .components
        .iter()
        .all(|component| component.results.iter().all(|result| result.runtime_support)))
}
