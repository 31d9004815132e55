//! Builds a model's components by their recipes, into a folder that says where they come from. `show` says which graphs of a model
//! belong together, what each port is for, and what runs per image and per prompt, and writes it down; `config` prints the
//! recipes of its components as one JSON document.
//!
//! ```text
//! cargo run --example build_composite -- FOLDER|ARCHIVE|composite.json -o OUT --precision fp16
//! cargo run --example build_composite -- FOLDER -o OUT -c RECIPE.json
//! cargo run --example build_composite -- show FOLDER|ARCHIVE|composite.json
//! cargo run --example build_composite -- config FOLDER --precision fp16
//! cargo run --example build_composite -- show FOLDER --wire image_embeddings=pix_feat -o FOLDER/composite.json
//! ```

use std::{
    error::Error,
    fmt::Write as _,
    io::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::HumanBytes;
use sam_kit::{
    composite::{
        BuildOptions, ComponentName, Composite, CompositeBuilder, Plan, Recipe, RecipePrecision, Step, Wiring,
    },
    onnx_graph::PrecisionClass,
    sam_runtime::{ModelOrigin, error_chain},
};

/// Build composites of ONNX graphs.
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
    #[command(flatten)]
    build: Build,
}

#[derive(Args)]
struct Build {
    /// A folder of graphs, a release archive, a folder that holds one, or a composite's JSON file
    #[arg(required = true)]
    model: Option<PathBuf>,
    /// The folder to build into
    #[arg(short, long, value_name = "OUT", required = true)]
    output: Option<PathBuf>,
    /// A recipe; one for each component that is built
    #[arg(short = 'c', long = "config", value_name = "RECIPE.json", conflicts_with_all = ["precision", "component"])]
    recipes: Vec<PathBuf>,
    /// What the components are built in
    #[arg(long, value_enum, default_value_t = Target::Auto)]
    precision: Target,
    /// Build this component alone
    #[arg(long, value_name = "NAME", value_parser = component)]
    component: Option<ComponentName>,
    /// Say beside each graph what runs where
    #[arg(long)]
    analyze: bool,
    /// Build anew what is there already
    #[arg(long)]
    rebuild: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Roles, ports, wiring and plan
    Show(Show),
    /// A recipe for each component, as one JSON document
    Config(Config),
}

#[derive(Args)]
struct Config {
    /// A folder of graphs, a release archive, a folder that holds one, or a composite's JSON file
    model: PathBuf,
    /// What the components are built in
    #[arg(long, value_enum, default_value_t = Target::Auto)]
    precision: Target,
    /// The recipe of this component alone, in the form that a recipe's file has
    #[arg(long, value_name = "NAME", value_parser = component)]
    component: Option<ComponentName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// As published: single precision
    Auto,
    /// Half precision, with ports in single
    Fp16,
    /// Single precision
    Fp32,
}

fn component(text: &str) -> Result<ComponentName, String> {
    let known = || ComponentName::ALL.map(ComponentName::name).join(", ");
    ComponentName::named(text).ok_or_else(|| format!("there are {}", known()))
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
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Some(Command::Show(arguments)) => show(arguments),
        Some(Command::Config(arguments)) => config(arguments),
        None => build(&arguments.build),
    };
    match done {
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

/// The folder with what was built, and every graph with its size.
fn build(arguments: &Build) -> Result<String, Box<dyn Error>> {
    let (Some(model), Some(output)) = (&arguments.model, &arguments.output) else {
        return Err("a model and a folder to build into are needed".into());
    };
    let composite = open(&ModelOrigin::resolve(model, None)?, Composite::builder())?;
    let recipes = if arguments.recipes.is_empty() {
        let wanted = |component: &ComponentName| arguments.component.is_none_or(|one| one == *component);
        let components = ComponentName::ALL.into_iter().filter(wanted);
        components.map(|component| Recipe::new(component, arguments.precision.of_recipes())).collect()
    } else {
        arguments.recipes.iter().map(Recipe::read).collect::<Result<Vec<_>, _>>()?
    };
    let options = BuildOptions::new(recipes).analyze(arguments.analyze).rebuild(arguments.rebuild);
    let built = composite.build(output, &options, &mut |step| {
        let _ = writeln!(std::io::stderr(), "{step}");
        ControlFlow::Continue(())
    })?;
    let mut text = String::new();
    for (component, graph) in &built.graphs {
        let folder = graph.parent().unwrap_or(Path::new(""));
        let _ = writeln!(text, "{:15} {}, {}", component.name(), graph.display(), HumanBytes(size(folder)?));
    }
    if let Some(file) = &built.composite {
        let _ = writeln!(text, "{:15} {}", "composite", file.display());
    }
    let how = if built.reused { "found whole, nothing to do" } else { "built" };
    let _ = writeln!(text, "{how:15} {}", built.folder.join("build.json").display());
    Ok(text)
}

/// Bytes of the files in a folder.
fn size(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

impl Target {
    fn of_recipes(self) -> RecipePrecision {
        match self {
            Self::Auto => RecipePrecision::Auto,
            Self::Fp16 => RecipePrecision::Fp16,
            Self::Fp32 => RecipePrecision::Fp32,
        }
    }
}

/// What is read from a composite's file, or found in a folder or archive by what `builder` says.
fn open(origin: &ModelOrigin, builder: CompositeBuilder) -> Result<Composite, Box<dyn Error>> {
    Ok(match origin {
        ModelOrigin::Composite { file, .. } => Composite::read(file)?,
        other => builder.open(other.root())?,
    })
}

fn config(arguments: &Config) -> Result<String, Box<dyn Error>> {
    // What is no composite has no components.
    let composite = open(&ModelOrigin::resolve(&arguments.model, None)?, Composite::builder())?;
    let precision = arguments.precision.of_recipes();
    if let Some(component) = arguments.component {
        let recipe = Recipe::new(component, precision);
        recipe.graph(&composite)?;
        return Ok(recipe.to_json() + "\n");
    }
    let mut document = serde_json::Map::new();
    for component in ComponentName::ALL {
        document.insert(component.to_string(), Recipe::new(component, precision).to_value());
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn show(arguments: &Show) -> Result<String, Box<dyn Error>> {
    let origin = ModelOrigin::resolve(&arguments.model, None)?;
    if matches!(origin, ModelOrigin::Composite { .. }) && !arguments.wires.is_empty() {
        return Err("a composite's file says itself how its graphs are joined; --wire is for folders".into());
    }
    let wiring =
        arguments.wires.iter().fold(Wiring::new(), |wiring, (input, output)| wiring.wire(input, output));
    let precisions = match arguments.precision {
        Precision::Fp16 => vec![PrecisionClass::Fp16, PrecisionClass::Fp32],
        Precision::Fp32 => vec![PrecisionClass::Fp32],
    };
    let builder = Composite::builder().wiring(wiring).precisions(precisions);
    let composite = open(&origin, builder)?;
    let plan = composite.plan()?;
    let shown = format!("{composite}\n{}", runs(&plan));
    let Some(path) = &arguments.output else { return Ok(shown) };
    composite.write(path)?;
    Ok(format!("{shown}written         {}\n", path.display()))
}

/// What runs when.
fn runs(plan: &Plan) -> String {
    let names = |steps: &[Step]| {
        let step = |step: &Step| format!("{} ({} nodes)", step.component, step.model.nodes().len());
        steps.iter().map(step).collect::<Vec<_>>().join(", ")
    };
    format!("once per image  {}\nper prompt      {}\n", names(&plan.per_image), names(&plan.per_prompt))
}
