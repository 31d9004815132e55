//! Which part of a promptable segmentation network a node belongs to, told from structure alone.

mod decoder;
mod encoder;
mod roles;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::Serialize;

use self::roles::Roles;
use super::{
    flow::Flow,
    patterns::{self, Found, Kind},
};
use crate::{Model, Types, model::port_name};

/// Nodes between the end of one part and the start of the next: no network has as many.
const FAR: usize = 4096;

/// A part of a promptable segmentation network (SAM, SAM 2, EdgeTAM and their kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Arithmetic on the image before the first convolution.
    Normalisation,
    /// From the first convolution to the first block: patch embedding and positions, or the stem.
    PatchEmbedding,
    /// A stage of the image backbone, counted from 1: what lies between two features that the neck takes.
    BackboneStage(u8),
    /// From the backbone's features to the image embeddings.
    Neck,
    /// From clicks, labels, boxes or a mask to prompt embeddings.
    PromptEncoder,
    /// A layer of the two-way transformer, counted from 1, up to the norm of its image side.
    TransformerLayer(u8),
    /// The last attention from tokens to the image, and its norm.
    FinalAttention,
    /// From the transformer's image side to the features that masks are read from.
    Upscaler,
    /// From mask tokens to masks: hypernetworks, their product with the upscaled features, the choice of masks.
    MaskHeads,
    /// From the quality token to the scores.
    QualityHead,
    /// From its token to the logit that says whether the object is there at all.
    ObjectScoreHead,
    /// From a mask and image features to what is remembered of a video frame.
    MemoryEncoder,
    /// From a mask token to the pointer that is remembered of a video frame.
    ObjectPointer,
    /// Nodes that only bring inputs into the form that several parts take.
    Glue,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normalisation => f.write_str("normalisation"),
            Self::PatchEmbedding => f.write_str("patch embedding"),
            Self::BackboneStage(stage) => write!(f, "backbone stage {stage}"),
            Self::Neck => f.write_str("neck"),
            Self::PromptEncoder => f.write_str("prompt encoder"),
            Self::TransformerLayer(layer) => write!(f, "transformer layer {layer}"),
            Self::FinalAttention => f.write_str("final attention"),
            Self::Upscaler => f.write_str("upscaler"),
            Self::MaskHeads => f.write_str("mask heads"),
            Self::QualityHead => f.write_str("quality head"),
            Self::ObjectScoreHead => f.write_str("object score head"),
            Self::MemoryEncoder => f.write_str("memory encoder"),
            Self::ObjectPointer => f.write_str("object pointer"),
            Self::Glue => f.write_str("glue"),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of each node of a model's main graph. Nodes of sub-graphs belong where the node belongs that holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    of: Vec<Option<Part>>,
}

impl Parts {
    /// The part of the node at this place of the main graph; `None` where it could not be told.
    pub fn of(&self, node: usize) -> Option<Part> {
        self.of.get(node).copied().flatten()
    }

    /// Parts of all nodes, in the graph's order.
    pub fn all(&self) -> &[Option<Part>] {
        &self.of
    }

    /// Places of the nodes whose part could not be told, ascending.
    pub fn unassigned(&self) -> Vec<usize> {
        (0..self.of.len()).filter(|&node| self.of[node].is_none()).collect()
    }

    /// Nodes of each part, in the order of the network.
    pub fn counts(&self) -> BTreeMap<Part, usize> {
        let mut counts = BTreeMap::new();
        for part in self.of.iter().flatten() {
            *counts.entry(*part).or_default() += 1;
        }
        counts
    }
}

/// Assigns every node of the main graph to a part of the network, from what it depends on, what shapes its values have
/// and how it is connected; names of nodes and values are never looked at.
///
/// What cannot be told is left unassigned. Nothing in `model` makes this fail: a graph of another kind just has no parts.
pub fn parts(model: &Model, types: &Types) -> Parts {
    let flow = Flow::new(model);
    let found = patterns::find(&flow, types);
    parts_in(&flow, types, &found, &output_names(model))
}

/// The same with what the caller has found already.
pub(crate) fn parts_in(flow: &Flow<'_>, types: &Types, found: &[Found], outputs: &[&str]) -> Parts {
    let mut sorter = Sorter::new(flow, types, found);
    sorter.memory();
    sorter.prompts();
    sorter.image();
    sorter.decoder(outputs);
    sorter.constants();
    Parts { of: sorter.of }
}

pub(crate) fn output_names(model: &Model) -> Vec<&str> {
    model.graph().output.iter().map(port_name).collect()
}

/// What the passes over a graph share.
struct Sorter<'f, 'm> {
    flow: &'f Flow<'m>,
    types: &'f Types,
    /// Of each node, the roles of the inputs that it depends on.
    needs: Vec<Roles>,
    /// Nodes that end a normalisation over channels.
    norm: Vec<bool>,
    of: Vec<Option<Part>>,
}

impl<'f, 'm> Sorter<'f, 'm> {
    fn new(flow: &'f Flow<'m>, types: &'f Types, found: &[Found]) -> Self {
        let mut needs = vec![Roles::default(); flow.nodes.len()];
        for input in flow.inputs() {
            let role = roles::of(types, input);
            for &node in flow.readers(input) {
                needs[node] |= role;
            }
        }
        for &node in &flow.order {
            needs[node] = flow.sources[node].iter().fold(needs[node], |all, &source| all | needs[source]);
        }
        let is_norm = |node| matches!(flow.op(node), "LayerNormalization" | "RMSNormalization");
        let mut norm: Vec<bool> = (0..flow.nodes.len()).map(is_norm).collect();
        for found in found.iter().filter(|f| f.kind == Kind::LayerNormalization) {
            norm[found.last] = true;
        }
        Self { needs, norm, of: vec![None; flow.nodes.len()], flow, types }
    }

    /// Gives a part to the nodes for which `belongs` holds and that have none yet.
    fn assign(&mut self, part: Part, belongs: impl Fn(&Self, usize) -> bool) {
        let free: Vec<usize> =
            (0..self.of.len()).filter(|&n| self.of[n].is_none() && belongs(self, n)).collect();
        for node in free {
            self.of[node] = Some(part);
        }
    }

    /// What depends on prompts alone.
    fn prompts(&mut self) {
        self.assign(Part::PromptEncoder, |this, node| {
            this.needs[node] != Roles::default() && this.needs[node].within(roles::PROMPT | roles::MASK)
        });
    }

    /// A graph of features and a mask, with neither image nor prompts, is a memory encoder.
    fn memory(&mut self) {
        let inputs = self.needs.iter().fold(Roles::default(), |all, &needs| all | needs);
        if inputs == roles::MASK | roles::FEATURE {
            self.assign(Part::MemoryEncoder, |this, node| this.needs[node] != Roles::default());
        }
    }

    /// What is computed from weights alone belongs where it is used; to the glue, where that is several parts.
    fn constants(&mut self) {
        for &node in self.flow.order.iter().rev() {
            if self.of[node].is_some() || self.needs[node] != Roles::default() {
                continue;
            }
            let mut used_by = self.flow.users[node].iter().map(|&user| self.of[user]);
            let first = used_by.next().flatten();
            self.of[node] =
                first.map(|part| if used_by.all(|of| of == Some(part)) { part } else { Part::Glue });
        }
    }

    /// True for an operator that applies weights: a convolution, a product with a weight, attention with projections.
    fn is_weighted(&self, node: usize) -> bool {
        let by_weight = || {
            let inputs = self.flow.nodes[node].input.iter();
            inputs.filter(|input| !input.is_empty()).any(|input| match self.flow.producer(input) {
                // A weight may pass through a Transpose or a Cast that was not folded.
                Some(source) => self.needs[source] == Roles::default(),
                None => self.flow.is_weight(input),
            })
        };
        match self.flow.nodes[node].op_type.as_deref().unwrap_or_default() {
            "Conv" | "ConvTranspose" | "FusedConv" | "Attention" => true,
            "MatMul" | "Gemm" | "FusedMatMul" | "Einsum" => by_weight(),
            _ => false,
        }
    }

    /// The first nodes downstream of `from` for which `stop` holds, on each path, in the graph's order; none where they are
    /// far away.
    fn first_after(&self, from: usize, stop: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let mut waiting = self.flow.users[from].clone();
        while let Some(node) = waiting.pop().filter(|_| seen.len() < FAR) {
            if !seen.insert(node) {
                continue;
            }
            if stop(node) {
                found.push(node);
            } else {
                waiting.extend(&self.flow.users[node]);
            }
        }
        found.sort_by_key(|&node| self.flow.place[node]);
        found
    }
}
