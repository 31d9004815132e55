//! `inspect analyze`.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use sam_kit::onnx_graph::{Model, Rules, Target, Types, Weights, analyze_with};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The models
    #[arg(value_name = "MODEL.onnx", required = true)]
    models: Vec<PathBuf>,
    /// A target, such as QNN/NPU or rten; all that there are rules for where none is given
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<Target>,
    /// A rule file of your own, as a further target
    #[arg(long = "rules", value_name = "FILE.json")]
    rules: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The tables, and 0 where every model runs whole on every target, else 1.
pub(crate) fn run(arguments: &Arguments) -> Result<(String, ExitCode), Box<dyn Error>> {
    let all = arguments.targets.is_empty() && arguments.rules.is_empty();
    let targets = if all { Target::ALL } else { &arguments.targets };
    let mut rules: Vec<Rules> =
        targets.iter().map(|target| Rules::built_in(*target)).collect::<Result<_, _>>()?;
    for file in &arguments.rules {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        rules.push(Rules::from_json(&text).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    let mut read = Vec::new();
    for path in &arguments.models {
        let model = Model::read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let types = Types::infer(&model, &Weights::in_folder(folder))?;
        read.push((path.display().to_string(), model, types));
    }
    let models: Vec<(&str, &Model, &Types)> =
        read.iter().map(|(name, model, types)| (name.as_str(), model, types)).collect();
    let analysis = analyze_with(&models, &rules);
    let whole = analysis.components.iter().flat_map(|c| &c.results).all(|result| result.runtime_support);
    let text =
        if arguments.json { serde_json::to_string_pretty(&analysis)? + "\n" } else { analysis.to_string() };
    Ok((text, ExitCode::from(u8::from(!whole))))
}
