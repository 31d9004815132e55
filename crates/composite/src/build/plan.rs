//! What is built of what, and whether it can be.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use onnx_graph::{Fp16Options, PrecisionClass, external_data};

use super::{ALONG, BuildOptions, record::FileRecord};
use crate::{ComponentName, Composite, Error, Export, GraphFile, QuantMode, Recipe, Result};

/// One component's part of a build.
pub(super) struct Plan {
    pub(super) component: ComponentName,
    pub(super) recipe: Recipe,
    /// How it is brought to half precision; `None` takes it over as it is.
    pub(super) fp16: Option<Fp16Options>,
    /// The sidecars of its graph, as the graph names them.
    pub(super) sidecars: BTreeSet<String>,
    /// The publisher's documents that go along with it.
    pub(super) along: Vec<PathBuf>,
}

impl Plan {
    /// One for each recipe, in the order of the components.
    pub(super) fn of(composite: &Composite, options: &BuildOptions) -> Result<Vec<Self>> {
        let mut plans = Vec::new();
        for recipe in &options.recipes {
            let graph = recipe.graph(composite)?;
            // `graph` has refused a recipe without one.
            let Some(component) = recipe.loader.component else { continue };
            if let Some(what) = not_built(recipe) {
                return Err(refused(format!("{component}: {what}")));
            }
            if plans.iter().any(|plan: &Self| plan.component == component) {
                return Err(refused(format!("two recipes are for {component}")));
            }
            // Half precision already: converted again it would be the same.
            let fp16 = recipe.fp16().filter(|_| graph.precision != PrecisionClass::Fp16);
            plans.push(Self {
                component,
                recipe: recipe.clone(),
                fp16,
                sidecars: sidecars(graph)?,
                along: along(graph, composite),
            });
        }
        if plans.is_empty() {
            return Err(refused("there is no recipe".to_owned()));
        }
        plans.sort_by_key(|plan| plan.component);
        Ok(plans)
    }

    /// The files that the component is made of, as they are now.
    pub(super) fn inputs(&self, composite: &Composite) -> Result<Vec<FileRecord>> {
        let source = self.component.graph(composite);
        let mut files = vec![source.path.clone()];
        files.extend(self.sidecars.iter().map(|location| source.folder().join(location)));
        files.extend(self.along.iter().cloned());
        files.iter().map(|file| FileRecord::of(file, composite.folder())).collect()
    }
}

fn sidecars(graph: &GraphFile) -> Result<BTreeSet<String>> {
    let entries = external_data::list(&graph.model()?, &graph.path)
        .map_err(|error| Error::Graph { path: graph.path.clone(), source: error })?;
    Ok(entries.into_iter().map(|entry| entry.location).collect())
}

/// The publisher's documents: those beside the graph, else those of a folder above it, up to the composite's.
fn along(graph: &GraphFile, composite: &Composite) -> Vec<PathBuf> {
    let above = |name: &&str| {
        let folders = graph.folder().ancestors().take_while(|at| at.starts_with(composite.folder()));
        folders.map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    ALONG.iter().filter_map(above).collect()
}

fn refused(reason: String) -> Error {
    Error::Recipe { path: None, reason }
}

/// What a recipe asks for that is not built here.
fn not_built(recipe: &Recipe) -> Option<String> {
    match &recipe.export {
        Export::AlreadyOnnx => {}
        Export::Defaults | Export::Settings(_) => {
            return Some(
                "it exports from a checkpoint, which is not built here (export has to be null)".to_owned(),
            );
        }
    }
    if let Some(setting) = recipe.optim.keys().next() {
        return Some(format!("optim.{setting} is not built here"));
    }
    if recipe.compile.is_some() {
        return Some("it compiles for a device, which is not built here (compile has to be null)".to_owned());
    }
    match recipe.quant.as_ref().map(|quant| quant.mode) {
        None | Some(QuantMode::Fp16) => None,
        Some(mode) => Some(format!("quantisation in the mode {mode} is not built here")),
    }
}

/// The name that a document has in a build: what the publisher says of its own graphs is not said of these.
pub(super) fn name_along(document: &Path) -> String {
    let name = document.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.starts_with("release_") { name } else { format!("release_{name}") }
}
