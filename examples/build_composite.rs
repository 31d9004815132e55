//! Says which graphs of a model belong together, what each port is for, and what runs per image and per prompt; writes it down.
//!
//! ```text
//! cargo run --example build_composite -- show FOLDER|ARCHIVE|composite.json
//! cargo run --example build_composite -- show FOLDER --wire image_embeddings=pix_feat -o FOLDER/composite.json
//! ```

use std::{
    error::Error,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sam_kit::{
    composite::{Composite, Plan, Step, Wiring},
    onnx_graph::PrecisionClass,
    release_assets::{Cache, Manifest},
    sam_runtime::error_chain,
};

/// Build composites of ONNX graphs.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Roles, ports, wiring and plan
    Show(Show),
}

#[derive(Args)]
struct Show {
    /// A folder of graphs, a release archive, a folder that holds one, or a composite's JSON file
    model: PathBuf,
    /// Which graphs may be used
    #[arg(long, value_enum, default_value_t = Precision::Fp32)]
    precision: Precision,
    /// Feed a decoder input from this encoder output, whatever rules and names say
    #[arg(long = "wire", value_name = "INPUT=OUTPUT", value_parser = wire)]
    wires: Vec<(String, String)>,
    /// Write the composite to this file, which has to be in a folder above its graphs
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Precision {
    /// Half precision where there is a pair of it, else single
    Fp16,
    /// Single precision
    Fp32,
}

fn wire(text: &str) -> Result<(String, String), String> {
    let (input, output) = text.split_once('=').ok_or("a wire is INPUT=OUTPUT")?;
    Ok((input.to_owned(), output.to_owned()))
}

fn main() -> ExitCode {
    let Command::Show(arguments) = Arguments::parse().command;
    match show(&arguments) {
        Ok(text) => {
            // A closed output is no reason to fail.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {}", error_chain(error.as_ref()).replace('\n', " "));
            ExitCode::from(2)
        }
    }
}

fn show(arguments: &Show) -> Result<String, Box<dyn Error>> {
    let composite = open(arguments)?;
    let plan = composite.plan()?;
    let shown = format!("{composite}\n{}", runs(&plan));
    let Some(path) = &arguments.output else { return Ok(shown) };
    composite.write(path)?;
    Ok(format!("{shown}written         {}\n", path.display()))
}

fn open(arguments: &Show) -> Result<Composite, Box<dyn Error>> {
    let model = &arguments.model;
    let is_json = model.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    if is_json && model.is_file() {
        if !arguments.wires.is_empty() {
            return Err(
                "a composite's file says itself how its graphs are joined; --wire is for folders".into()
            );
        }
        return Ok(Composite::read(model)?);
    }
    let wiring =
        arguments.wires.iter().fold(Wiring::new(), |wiring, (input, output)| wiring.wire(input, output));
    let precisions = match arguments.precision {
        Precision::Fp16 => vec![PrecisionClass::Fp16, PrecisionClass::Fp32],
        Precision::Fp32 => vec![PrecisionClass::Fp32],
    };
    Ok(Composite::builder().wiring(wiring).precisions(precisions).open(graphs(model)?)?)
}

/// The folder that the graphs are in: unpacked and verified where it is a release.
fn graphs(model: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let is_release = model.join(Manifest::FILE_NAME).is_file();
    if model.is_dir() && !is_release {
        return Ok(model.to_owned());
    }
    let cache = Cache::new(Cache::default_root()?);
    let release = if is_release {
        cache.open_release_folder(model, "fp32", "onnx")?
    } else {
        cache.open_archive(model)?
    };
    Ok(release.root)
}

/// What runs when.
fn runs(plan: &Plan) -> String {
    let names = |steps: &[Step]| {
        let step = |step: &Step| format!("{} ({} nodes)", step.component, step.model.nodes().len());
        steps.iter().map(step).collect::<Vec<_>>().join(", ")
    };
    format!("once per image  {}\nper prompt      {}\n", names(&plan.per_image), names(&plan.per_prompt))
}
