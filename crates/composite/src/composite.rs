use std::{
    fmt,
    path::{Path, PathBuf},
};

use onnx_graph::PrecisionClass;

use crate::{
    Error, GraphFile, Pair, Plan, Preprocessing, PromptPorts, Rejection, Result, Rule, Value,
    error::{causes, join},
    graph_file::{find_graphs, first_names},
    metadata, select,
};

/// A promptable segmentation model: an image encoder and a mask decoder that fit together, with everything that is
/// needed to feed them. Made by [`Composite::open`]; run by the crate `sam-runtime`.
#[derive(Debug, Clone)]
pub struct Composite {
    folder: PathBuf,
    pair: Pair,
    preprocessing: Preprocessing,
    skipped: Vec<Rejection>,
}

impl Composite {
    /// Finds the pair among all `*.onnx` files below `folder` (in any order, at most six levels down) and reads the
    /// `metadata.json` beside its encoder.
    ///
    /// Only single precision graphs are used. A graph that cannot be read, or whose sidecars are not what it says, takes
    /// no part and is listed in [`skipped`](Self::skipped), or in the error when no pair is left.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let (mut graphs, mut unreadable) = (Vec::new(), Vec::new());
        let paths = find_graphs(folder)?;
        if paths.is_empty() {
            let other_files = first_names(folder)?;
            return Err(Error::NoPair { folder: folder.to_owned(), graphs: Vec::new(), other_files });
        }
        for path in paths {
            match GraphFile::read(&path, folder) {
                Ok(graph) => graphs.push(graph),
                Err(error) => unreadable.push(Rejection {
                    path,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    rule: Rule::Unreadable(causes(&error)),
                }),
            }
        }
        let pair = select(folder, &graphs, unreadable.clone(), &[PrecisionClass::Fp32])?;
        let preprocessing = metadata::preprocessing(&pair)?;
        Ok(Self { folder: folder.to_owned(), pair, preprocessing, skipped: unreadable })
    }

    /// The folder that was opened.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The two graphs and how they are joined.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// The ports that take the points.
    pub fn prompt(&self) -> &PromptPorts {
        &self.pair.prompt
    }

    /// How a picture is prepared.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// Graphs below the folder that could not be read, with the reason.
    pub fn skipped(&self) -> &[Rejection] {
        &self.skipped
    }

    /// What to run per picture and what per prompt.
    pub fn plan(&self) -> Result<Plan> {
        Plan::of(self)
    }

    /// What an input of the encoder is fed. Pairing refuses an encoder with any other input.
    pub(crate) fn fed_to(&self, port: &str) -> Option<Value> {
        let Pair { image, prompt, .. } = &self.pair;
        let known = [
            (image, Value::Image),
            (&prompt.coordinates, Value::Coordinates),
            (&prompt.labels, Value::Labels),
        ];
        known.into_iter().find(|(name, _)| *name == port).map(|(_, value)| value)
    }
}

impl fmt::Display for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pair { encoder, decoder, prompt, image, masks, scores, .. } = &self.pair;
        let Preprocessing { width, height, .. } = self.preprocessing;
        for (role, graph) in [("image encoder", encoder), ("mask decoder", decoder)] {
            let (inputs, outputs) = (join(&graph.inputs), join(&graph.outputs));
            let precision =
                if graph.quantized { "quantised".to_owned() } else { graph.precision.to_string() };
            writeln!(f, "{role:14} {} {precision}: {inputs} -> {outputs}", graph.file_name())?;
        }
        writeln!(f, "{:14} {image}, stretched to {width}x{height}, [0,1]", "image")?;
        writeln!(f, "{:14} {} slots in {}, {}", "points", prompt.slots, prompt.coordinates, prompt.labels)?;
        write!(f, "{:14} {masks}, {scores}", "masks, scores")
    }
}
