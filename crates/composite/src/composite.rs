use std::{
    fmt,
    path::{Path, PathBuf},
};

use onnx_graph::{Port, PrecisionClass};

use crate::{
    Error, GraphFile, Pair, Plan, Preprocessing, PromptPorts, Rejection, Result, Rule, Value, Wiring,
    error::causes,
    graph_file::{find_graphs, first_names},
    metadata, select, unify,
};

/// A promptable segmentation model: an image encoder and a mask decoder that fit together, with everything that is
/// needed to feed them. Made by [`Composite::open`] or its [builder](Composite::builder); run by the crate `sam-runtime`.
#[derive(Debug, Clone)]
pub struct Composite {
    pub(crate) folder: PathBuf,
    pub(crate) pair: Pair,
    pub(crate) preprocessing: Preprocessing,
    pub(crate) unused: Vec<UnusedGraph>,
    pub(crate) skipped: Vec<Rejection>,
}

/// How a [`Composite`] is opened. Made by [`Composite::builder`].
#[derive(Debug, Clone)]
pub struct CompositeBuilder {
    precisions: Vec<PrecisionClass>,
    wiring: Wiring,
}

impl Default for CompositeBuilder {
    fn default() -> Self {
        Self { precisions: vec![PrecisionClass::Fp32], wiring: Wiring::new() }
    }
}

impl CompositeBuilder {
    /// The precisions that may be used, best first; single precision alone where this is not called.
    #[must_use]
    pub fn precisions(mut self, precisions: impl IntoIterator<Item = PrecisionClass>) -> Self {
        self.precisions = precisions.into_iter().collect();
        self
    }

    /// How the ports of encoder and decoder are joined.
    #[must_use]
    pub fn wiring(mut self, wiring: Wiring) -> Self {
        self.wiring = wiring;
        self
    }

    /// Finds the pair among all `*.onnx` files below `folder` (in any order, at most six levels down) and reads the
    /// `metadata.json` or `metadata.yaml` beside its encoder.
    ///
    /// A graph that cannot be read, or whose sidecars are not what it says, takes no part and is listed in
    /// [`skipped`](Composite::skipped), or in the error when no pair is left.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Composite> {
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
        let pair = select(folder, &graphs, unreadable.clone(), &self.precisions, &self.wiring)?;
        let preprocessing = metadata::preprocessing(&pair)?;
        let unused = unused(&pair, graphs);
        Ok(Composite { folder: folder.to_owned(), pair, preprocessing, unused, skipped: unreadable })
    }
}

/// A graph of the folder that the composite does without.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnusedGraph {
    /// The graph.
    pub graph: GraphFile,
    /// What it is for, where that can be told.
    pub role: UnusedRole,
}

/// What a graph that is not used is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnusedRole {
    /// It makes the memory of a video's frame from the encoder's embedding and the mask: no still image needs it.
    MemoryEncoder,
    /// An encoder or decoder of another precision or family, or something else.
    Other,
}

impl fmt::Display for UnusedRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MemoryEncoder => "memory encoder",
            Self::Other => "graph",
        })
    }
}

fn unused(pair: &Pair, graphs: Vec<GraphFile>) -> Vec<UnusedGraph> {
    let used = |graph: &GraphFile| [&pair.encoder.path, &pair.decoder.path].contains(&&graph.path);
    let role = |graph: &GraphFile| {
        if is_memory_encoder(pair, graph) { UnusedRole::MemoryEncoder } else { UnusedRole::Other }
    };
    let unused = graphs.into_iter().filter(|graph| !used(graph));
    unused.map(|graph| UnusedGraph { role: role(&graph), graph }).collect()
}

/// Two inputs, one of them an embedding that the encoder gives and one a mask of one channel, of the size of the image or of
/// the decoder's masks; tokens out, and no masks (SAM 2's memory encoder as the publisher splits it off).
fn is_memory_encoder(pair: &Pair, graph: &GraphFile) -> bool {
    let from_encoder =
        |port: &&Port| pair.encoder.output(&port.name).is_some_and(|o| unify([(o, *port)]).is_ok());
    let mask = |port: &&Port| {
        let dims = port.static_shape();
        !from_encoder(port)
            && matches!(dims.as_deref(), Some([_, 1, height, width]) if *height > 1 && *width > 1)
    };
    let (embeddings, masks) = (graph.inputs.iter().filter(from_encoder), graph.inputs.iter().filter(mask));
    graph.inputs.len() == 2
        && embeddings.count() == 1
        && masks.count() == 1
        && !graph
            .outputs
            .iter()
            .any(|port| port.rank() == Some(4) && port.static_shape().is_some_and(|s| s[1] == 1))
}

impl Composite {
    /// Opens a folder with the default settings; see [`CompositeBuilder::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Self::builder().open(folder)
    }

    /// Starts with the default settings: single precision, the contract rules that come with the crate.
    pub fn builder() -> CompositeBuilder {
        CompositeBuilder::default()
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

    /// Graphs below the folder that could be read and are not needed.
    pub fn unused(&self) -> &[UnusedGraph] {
        &self.unused
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
