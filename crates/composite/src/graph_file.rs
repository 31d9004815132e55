use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use onnx_graph::{Dependences, Model, Node, Port, PrecisionClass};

use crate::{Error, Offset, Result, files::folder_of};

/// How deep below the folder graphs are looked for: a release has one top folder, a repository a few.
const MAX_DEPTH: usize = 6;
/// Every graph is held against every other; a repository with all its variants has a few dozen.
const MAX_GRAPHS: usize = 128;
/// A folder with more entries than this is no model release.
const MAX_ENTRIES: usize = 20_000;

/// An ONNX graph on disk with what pairing needs to know of it. The model itself is not kept: a folder may hold several
/// precisions of it, with their weights inside.
#[derive(Debug, Clone)]
pub struct GraphFile {
    /// The file.
    pub path: PathBuf,
    /// What a caller feeds.
    pub inputs: Vec<Port>,
    /// What the graph gives.
    pub outputs: Vec<Port>,
    /// Half or single precision, by the graph's initializers.
    pub precision: PrecisionClass,
    /// True where the graph holds 8-bit weights.
    pub quantized: bool,
    /// The inputs that each output depends on.
    depends: BTreeMap<String, BTreeSet<String>>,
    /// Outputs that are probabilities, with the operator that makes them so.
    pub(crate) squashed: BTreeMap<String, String>,
    /// Outputs that are another output with a constant added.
    pub(crate) offsets: BTreeSet<Offset>,
}

impl GraphFile {
    /// Reads one graph and checks its sidecars against `root` (see [`onnx_graph::external_data::verify`]).
    pub fn read(path: &Path, root: &Path) -> Result<Self> {
        let graph = |source| Error::Graph { path: path.to_owned(), source };
        let model = Model::read(path).map_err(graph)?;
        onnx_graph::external_data::verify_model(&model, path, root).map_err(graph)?;
        Self::new(path.to_owned(), &model)
    }

    /// Describes a model that has been read already. An error where its outputs cannot be computed from its inputs.
    pub fn new(path: PathBuf, model: &Model) -> Result<Self> {
        let (inputs, outputs) = (model.inputs(), model.outputs());
        if outputs.len() > MAX_OUTPUTS {
            return Err(Error::TooManyOutputs { path, found: outputs.len(), limit: MAX_OUTPUTS });
        }
        let graph = |source| Error::Graph { path: path.clone(), source };
        let walk = Dependences::new(model).map_err(graph)?;
        let depends = depends(&walk, &outputs).map_err(graph)?;
        let offsets = offsets(model, &walk, &outputs).map_err(graph)?;
        let (precision, quantized) = (model.precision(), model.is_quantized());
        let squashed = squashed(model, &outputs);
        Ok(Self { path, inputs, outputs, precision, quantized, depends, squashed, offsets })
    }

    /// The inputs that an output depends on, sorted; none for a constant, and for a name that is no output.
    pub fn inputs_of(&self, output: &str) -> impl Iterator<Item = &str> {
        self.depends.get(output).into_iter().flatten().map(String::as_str)
    }

    /// Reads the model; external tensors stay on disk. An error where its ports are not those described here.
    pub fn model(&self) -> Result<Model> {
        let path = || self.path.clone();
        let model = Model::read(&self.path).map_err(|source| Error::Graph { path: path(), source })?;
        if model.inputs() == self.inputs && model.outputs() == self.outputs {
            Ok(model)
        } else {
            Err(Error::GraphChanged { path: path() })
        }
    }

    /// The folder that the graph's sidecars are relative to.
    pub fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// The file's name without its folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn input(&self, name: &str) -> Option<&Port> {
        self.inputs.iter().find(|p| p.name == name)
    }

    pub(crate) fn output(&self, name: &str) -> Option<&Port> {
        self.outputs.iter().find(|p| p.name == name)
    }
}

/// Encoders and decoders have a handful of outputs.
const MAX_OUTPUTS: usize = 64;

fn depends(
    walk: &Dependences<'_>,
    outputs: &[Port],
) -> onnx_graph::Result<BTreeMap<String, BTreeSet<String>>> {
    let names: Vec<&str> = outputs.iter().map(|p| p.name.as_str()).collect();
    let inputs = walk.inputs_of_each(&names)?;
    let owned = |inputs: BTreeSet<&str>| inputs.into_iter().map(str::to_owned).collect();
    Ok(names.into_iter().map(str::to_owned).zip(inputs.into_iter().map(owned)).collect())
}

/// Pairs of outputs of which one is the other with a constant added. What only passes a value on is looked through.
fn offsets(model: &Model, walk: &Dependences<'_>, outputs: &[Port]) -> onnx_graph::Result<BTreeSet<Offset>> {
    let nodes = model.nodes();
    let givers = givers(&nodes);
    let origin = |name: &str| {
        let mut at = name.to_owned();
        // A chain cannot be longer than the graph.
        for _ in 0..=nodes.len() {
            let Some(node) = givers.get(at.as_str()).filter(|node| is(**node, "Identity")) else { break };
            let Some(input) = node.inputs().next() else { break };
            at = input.to_owned();
        }
        at
    };
    let origins: Vec<String> = outputs.iter().map(|port| origin(&port.name)).collect();
    let mut found = BTreeSet::new();
    for (output, at) in outputs.iter().zip(&origins) {
        let Some(node) = givers.get(at.as_str()).filter(|node| is(**node, "Add")) else { continue };
        let inputs: Vec<&str> = node.inputs().collect();
        let &[a, b] = inputs.as_slice() else { continue };
        for (value, constant) in [(a, b), (b, a)] {
            let from = origin(value);
            if !walk.inputs_of(constant)?.is_empty() || walk.inputs_of(value)?.is_empty() {
                continue;
            }
            let of = outputs.iter().zip(&origins).filter(|(_, origin)| **origin == from);
            found.extend(of.map(|(of, _)| Offset { output: output.name.clone(), of: of.name.clone() }));
        }
    }
    Ok(found)
}

/// Whether a node is this standard operator.
fn is(node: Node<'_>, op_type: &str) -> bool {
    node.op_type() == op_type && node.domain().is_empty()
}

fn givers<'m>(nodes: &[Node<'m>]) -> HashMap<&'m str, Node<'m>> {
    nodes.iter().flat_map(|node| node.outputs().map(move |output| (output, *node))).collect()
}

/// Outputs that a squashing function gives, looked for behind operators that only move values.
fn squashed(model: &Model, outputs: &[Port]) -> BTreeMap<String, String> {
    let nodes = model.nodes();
    let giver = givers(&nodes);
    let mut found = BTreeMap::new();
    for port in outputs {
        let mut at = port.name.as_str();
        // A chain cannot be longer than the graph.
        for _ in 0..=nodes.len() {
            let Some(node) = giver.get(at) else { break };
            match node.op_type() {
                op @ ("Sigmoid" | "HardSigmoid" | "Softmax") => {
                    found.insert(port.name.clone(), op.to_owned());
                    break;
                }
                "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" | "Transpose" | "Cast"
                | "Slice" | "Gather" | "Resize" => {}
                _ => break,
            }
            let Some(first) = node.inputs().next() else { break };
            at = first;
        }
    }
    found
}

/// All files below `folder` whose name ends in `.onnx` (in any case), sorted, so that no listing order can matter.
pub(crate) fn find_graphs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![(folder.to_owned(), 0)];
    let mut entries = 0;
    while let Some((folder, depth)) = waiting.pop() {
        let io = |source| Error::Io { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(Error::TooManyFiles { folder, limit: MAX_ENTRIES });
            }
            // Links to files are followed (hub snapshots are made of them), links to folders are not.
            let kind = entry.file_type().map_err(io)?;
            let path = entry.path();
            if kind.is_dir() {
                if depth < MAX_DEPTH {
                    waiting.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"))
                // A link to nothing is a graph that was not fetched; reading it says so.
                && (path.is_file() || kind.is_symlink() && !path.exists())
            {
                found.push(path);
            }
        }
    }
    if found.len() > MAX_GRAPHS {
        return Err(Error::TooManyGraphs {
            folder: folder.to_owned(),
            found: found.len(),
            limit: MAX_GRAPHS,
        });
    }
    found.sort();
    Ok(found)
}

/// The first few names in a folder, sorted, with a word for the rest: what a person needs to see a wrong path.
pub(crate) fn first_names(folder: &Path) -> Result<Vec<String>> {
    const SHOWN: usize = 8;
    let io = |source| Error::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let slash = if entry.file_type().map_err(io)?.is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    Ok(names)
}
