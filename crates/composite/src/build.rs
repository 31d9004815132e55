//! From a composite and recipes to a folder of artefacts that say where they come from.

mod plan;
mod record;
mod staging;

use std::{
    fmt, fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use onnx_graph::{ElementType, Model, SaveOptions, Sidecar, Target, Types, Weights, analyze};

use self::{
    plan::{Plan, name_along},
    record::{BuildRecord, ComponentRecord},
    staging::{Staging, copy, refuse_a_strange_folder},
};
use crate::{ComponentName, Composite, Error, GraphFile, Recipe, Result};

/// How a composite is built. Made by [`BuildOptions::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct BuildOptions {
    recipes: Vec<Recipe>,
    analyze: bool,
    rebuild: bool,
}

impl BuildOptions {
    /// Builds the components of these recipes, one each.
    pub fn new(recipes: impl IntoIterator<Item = Recipe>) -> Self {
        Self { recipes: recipes.into_iter().collect(), analyze: false, rebuild: false }
    }

    /// Writes what runs where beside each graph (`analyze_result.json`).
    #[must_use]
    pub fn analyze(self, analyze: bool) -> Self {
        Self { analyze, ..self }
    }

    /// Builds anew what is there already.
    #[must_use]
    pub fn rebuild(self, rebuild: bool) -> Self {
        Self { rebuild, ..self }
    }
}

/// What a build is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildStep {
    /// The source files of a component are hashed.
    Hash(ComponentName),
    /// A graph and its sidecars are taken over as they are.
    Copy(ComponentName),
    /// A graph is brought to half precision.
    Convert(ComponentName),
    /// What runs where is found out.
    Analyze(ComponentName),
    /// The new build takes its place.
    Publish,
}

impl fmt::Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(component) => write!(f, "{component}: hashing what it is made of"),
            Self::Copy(component) => write!(f, "{component}: copying"),
            Self::Convert(component) => write!(f, "{component}: converting to half precision"),
            Self::Analyze(component) => write!(f, "{component}: analysing"),
            Self::Publish => f.write_str("publishing"),
        }
    }
}

/// A folder that holds a build.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Built {
    /// The folder.
    pub folder: PathBuf,
    /// Whether it was there already, made in the same way of the same files, and was found whole.
    pub reused: bool,
    /// Each component's graph.
    pub graphs: Vec<(ComponentName, PathBuf)>,
    /// The composite's file, where all components were built in one precision: [`Composite::read`] opens the build by it.
    pub composite: Option<PathBuf>,
}

/// Name of a component's graph in a build.
const GRAPH: &str = "model.onnx";
const RECIPE: &str = "build_config.json";
const ANALYSIS: &str = "analyze_result.json";
/// The publisher's documents that go along with each graph.
const ALONG: [&str; 3] = ["release_provenance.json", "metadata.json", "metadata.yaml"];

impl Composite {
    /// Builds components into `folder`, one sub-folder each, with `build.json` for the whole: every file that went in and came
    /// out with size and SHA-256, the recipes and the version of this crate. A graph that its recipe leaves as it is, is
    /// taken over byte for byte with its sidecars. The same build of the same files gives the same bytes, whenever and
    /// wherever it is made.
    ///
    /// The folder appears, or changes, as a whole: an earlier build stays as it was until the new one is complete, and a process
    /// that is killed leaves nothing but a hidden folder `.build-...` beside it. A build that
    /// is there already, of the same files by the same recipes, is checked and reused, unless it is to be built anew; one
    /// that is otherwise, or damaged, is an error without [`BuildOptions::rebuild`]. A folder with anything but a build in
    /// it is never touched. `progress` is told of each step and may end the build.
    ///
    /// Fails with [`Error::Recipe`] where a recipe asks for what is not built here: an export from a checkpoint, settings of
    /// optimisers or compilers, quantisation to 8 bits or less.
    pub fn build(
        &self,
        folder: impl AsRef<Path>,
        options: &BuildOptions,
        progress: &mut dyn FnMut(&BuildStep) -> ControlFlow<()>,
    ) -> Result<Built> {
        let folder = folder.as_ref();
        let mut tell = |step: BuildStep| match progress(&step) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        };
        let plans = Plan::of(self, options)?;
        let mut wanted = BuildRecord::new(options.analyze);
        for plan in &plans {
            tell(BuildStep::Hash(plan.component))?;
            let inputs = plan.inputs(self)?;
            wanted.components.insert(plan.component.to_string(), ComponentRecord::new(&plan.recipe, inputs));
        }
        let there = BuildRecord::read(folder)?;
        if let Some(found) = &there {
            if !options.rebuild {
                found.check(folder, &wanted)?;
                return Ok(built(folder, &plans, true));
            }
        } else {
            refuse_a_strange_folder(folder)?;
        }
        // A link stays, and leads to the new build as it did to the old one.
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let staging = Staging::beside(&real)?;
        for plan in &plans {
            let place = staging.path().join(plan.component.name());
            fs::create_dir(&place).map_err(|source| Error::Io { path: place.clone(), source })?;
            self.component(plan, &place, options, &mut tell)?;
        }
        if is_composite(&plans) {
            self.moved(staging.path())?.write(staging.path().join(Self::FILE_NAME))?;
        }
        wanted.outputs = record::files_below(staging.path())?;
        wanted.write(staging.path())?;
        tell(BuildStep::Publish)?;
        staging.publish(&real)?;
        Ok(built(folder, &plans, false))
    }

    /// One component, into a folder of its own.
    fn component(
        &self,
        plan: &Plan,
        place: &Path,
        options: &BuildOptions,
        tell: &mut dyn FnMut(BuildStep) -> Result<()>,
    ) -> Result<()> {
        let target = place.join(GRAPH);
        let source = plan.component.graph(self);
        let graph = |source| Error::Graph { path: target.clone(), source };
        match &plan.fp16 {
            None => {
                tell(BuildStep::Copy(plan.component))?;
                copy(&source.path, &target)?;
                for location in &plan.sidecars {
                    let to = place.join(location);
                    if let Some(parent) = to.parent() {
                        fs::create_dir_all(parent)
                            .map_err(|e| Error::Io { path: parent.to_owned(), source: e })?;
                    }
                    copy(&source.folder().join(location), &to)?;
                }
            }
            Some(fp16) => {
                tell(BuildStep::Convert(plan.component))?;
                let (model, _) =
                    source.model()?.to_fp16(&Weights::in_folder(source.folder()), fp16).map_err(graph)?;
                let sidecar = SaveOptions::sidecar(Sidecar::new());
                model.save(&target, &Weights::inline(), &sidecar).map_err(graph)?;
            }
        }
        let recipe = place.join(RECIPE);
        fs::write(&recipe, plan.recipe.to_json()).map_err(|source| Error::Io { path: recipe, source })?;
        for document in &plan.along {
            copy(document, &place.join(name_along(document)))?;
        }
        if options.analyze {
            tell(BuildStep::Analyze(plan.component))?;
            let model = Model::read(&target).map_err(graph)?;
            let types = Types::infer(&model, &Weights::in_folder(place)).map_err(graph)?;
            let analysis = analyze(&[(plan.component.name(), &model, &types)], Target::ALL).map_err(graph)?;
            let path = place.join(ANALYSIS);
            let text = serde_json::to_string_pretty(&analysis).unwrap_or_default() + "\n";
            fs::write(&path, text).map_err(|source| Error::Io { path, source })?;
        }
        Ok(())
    }

    /// The same composite of the graphs that were built.
    fn moved(&self, folder: &Path) -> Result<Self> {
        let mut moved = self.clone();
        let read =
            |component: ComponentName| GraphFile::read(&folder.join(component.name()).join(GRAPH), folder);
        folder.clone_into(&mut moved.folder);
        moved.pair.encoder = read(ComponentName::ImageEncoder)?;
        moved.pair.decoder = read(ComponentName::PromptDecoder)?;
        (moved.unused, moved.skipped) = (Vec::new(), Vec::new());
        // An image port that became one of halves is fed halves.
        if moved.pair.encoder.input(&moved.pair.image).is_some_and(|p| p.element_type == ElementType::Float16)
        {
            moved.preprocessing = moved.preprocessing.element_type(ElementType::Float16);
        }
        Ok(moved)
    }
}

/// Whether all components are built, in one precision: graphs of two are not joined by the rules of pairing.
fn is_composite(plans: &[Plan]) -> bool {
    plans.len() == ComponentName::ALL.len()
        && plans.windows(2).all(|two| two[0].fp16.is_some() == two[1].fp16.is_some())
}

fn built(folder: &Path, plans: &[Plan], reused: bool) -> Built {
    let graph = |plan: &Plan| (plan.component, folder.join(plan.component.name()).join(GRAPH));
    let whole = is_composite(plans);
    Built {
        folder: folder.to_owned(),
        reused,
        graphs: plans.iter().map(graph).collect(),
        composite: whole.then(|| folder.join(Composite::FILE_NAME)),
    }
}
