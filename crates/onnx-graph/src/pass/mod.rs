//! Rewrites of a model's main graph, each alone, in any order, and reported.

mod absorb;
mod attention;
mod constants;
mod dead_code;
mod duplicates;
mod editor;
mod evaluate;
mod folding;
mod identities;
mod linear;
mod norms;
mod pointwise;
mod reshapes;
mod scales;
mod transposes;

use std::{fmt, str::FromStr};

use crate::{Error, Model, Result, Weights};
use editor::Editor;

/// Declares the passes once: variant, name, what it does (the documentation), function.
macro_rules! passes {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal, $run:expr;)+) => {
        /// A rewrite of a graph that leaves what the graph computes as it is. One that cannot prove its pattern leaves
        /// the graph alone. Sub-graphs and model-local functions are not rewritten; values that sub-graphs read keep
        /// their names, as do the graph's inputs and outputs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Pass {
            $($(#[$doc])+ $variant,)+
        }

        impl Pass {
            /// Every pass.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name by which it is asked for.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            fn run(self, editor: &mut Editor<'_>) -> Result<usize> {
                let run: fn(&mut Editor<'_>) -> Result<usize> = match self {
                    $(Self::$variant => $run,)+
                };
                run(editor)
            }
        }
    };
}

passes! {
    /// `Constant` nodes become initializers.
    ConstantsToInitializers = "constants-to-initializers", |editor| Ok(constants::run(editor));
    /// Nodes whose inputs are all constant are computed, where IEEE 754 and the operator leave one answer only
    /// (arithmetic, comparison, and whatever moves elements), and the result is not larger than what it replaces.
    ConstantFolding = "constant-folding", folding::run;
    /// Nodes that do nothing go: `Identity`, `Dropout` when not training, `Cast` to the same type, `Reshape`, `Flatten`,
    /// `Expand`, `Transpose`, `Pad` and `Slice` that change nothing, `Concat` of one, a product with one, a quotient by
    /// one, a difference to zero.
    Identities = "identities", identities::run;
    /// Nodes that no output needs go, and weights that nobody reads.
    DeadCode = "dead-code", |editor| Ok(dead_code::run(editor));
    /// Of nodes that compute the same from the same, one stays; of equal small constants too.
    Duplicates = "duplicates", |editor| Ok(duplicates::run(editor));
    /// `Transpose` after `Transpose` becomes one or none.
    Transposes = "transposes", |editor| Ok(transposes::run(editor));
    /// `Reshape`, `Squeeze`, `Unsqueeze` and `Flatten` after one another become one or none.
    Reshapes = "reshapes", reshapes::run;
    /// A 1x1 convolution of stride 1 whose input was laid out for it by a `Transpose` becomes `MatMul` (and `Add`) in
    /// the layout from before.
    PointwiseConvolutions = "pointwise-convolutions", |editor| pointwise::run(editor, false);
    /// The same for those convolutions alone that go over a list of tokens (an image of height 1).
    TokenConvolutions = "token-convolutions", |editor| pointwise::run(editor, true);
    /// A product with one constant number is multiplied into the weights of the linear layer before it.
    Scales = "scales", scales::run;
    /// Attention written out head by head (one projection for each head, the heads concatenated) becomes one
    /// attention over all heads at once.
    BatchedAttention = "batched-attention", attention::run;
    /// Attention between few tokens and many: the projection of the many is taken to the few's side, where that takes
    /// fewer multiplications. The same sums in another order; sizes have to be known.
    AbsorbedProjections = "absorbed-projections", absorb::run;
    /// A `LayerNormalization` of a sum is kept apart from the sum by a `Reshape`, so that ONNX Runtime does not fuse the
    /// two: its `SkipLayerNormalization` takes five times as long as the two alone (1.32, rows of 256: 5.2 ms and
    /// 0.9 ms for 4096 rows).
    SeparateNorms = "separate-norms", |editor| Ok(norms::run(editor));
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pass {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|pass| pass.name() == name);
        found.copied().ok_or_else(|| Error::UnknownPass { name: name.to_owned() })
    }
}

/// The passes that make graphs faster on one engine; what helps one hurts another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PassSet {
    /// ONNX Runtime on processors: its 1x1 convolutions are faster than its matrix products, so they stay.
    OnnxRuntime,
    /// rten: matrix products are faster than 1x1 convolutions.
    Rten,
}

impl PassSet {
    /// The passes, in the order in which they work best.
    pub fn passes(self) -> &'static [Pass] {
        use Pass::{
            AbsorbedProjections, BatchedAttention, ConstantFolding, ConstantsToInitializers, DeadCode,
            Duplicates, Identities, PointwiseConvolutions, Reshapes, Scales, SeparateNorms,
            TokenConvolutions, Transposes,
        };
        // The sets differ in which convolutions become products, and in what is for one engine alone.
        macro_rules! with {
            ($convolutions:ident $(, $last:ident)?) => {
                &[
                    ConstantsToInitializers,
                    ConstantFolding,
                    Identities,
                    Duplicates,
                    BatchedAttention,
                    $convolutions,
                    Scales,
                    Transposes,
                    Reshapes,
                    DeadCode,
                    AbsorbedProjections,
                    Transposes,
                    Reshapes,
                    DeadCode,
                    $($last,)?
                ]
            };
        }
        match self {
            Self::OnnxRuntime => with!(TokenConvolutions, SeparateNorms),
            Self::Rten => with!(PointwiseConvolutions),
        }
    }
}

/// What one pass did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassReport {
    /// Which.
    pub pass: Pass,
    /// Nodes of the main graph before.
    pub nodes_before: usize,
    /// Nodes of the main graph after.
    pub nodes_after: usize,
    /// How often its pattern was found and rewritten.
    pub matched: usize,
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pass, nodes_before, nodes_after, matched } = self;
        write!(f, "{:25} {matched:5} matched, {nodes_before} -> {nodes_after} nodes", pass.name())
    }
}

/// A rewritten model and what was done to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rewritten {
    /// The model. Weights that were kept point to their old sidecars; new ones are in the model.
    pub model: Model,
    /// One for each pass, in the order asked for.
    pub reports: Vec<PassReport>,
}

impl Model {
    /// Rewrites the main graph by these passes, in this order. Training information goes, since it speaks of the old graph;
    /// a model of an IR version below 4 becomes one of version 4 where constants are added. New constants have at most four
    /// times the elements of the old ones (and a million).
    ///
    /// Fails with [`Error::DefinedTwice`] and [`Error::Cycle`] for a graph that cannot be walked, and where weights that
    /// a pass computes with cannot be read ([`Error::Tensor`], [`Error::NoFolder`], [`Error::ExternalData`]).
    pub fn rewrite(&self, passes: &[Pass], weights: &Weights) -> Result<Rewritten> {
        let mut editor = Editor::new(self, weights)?;
        let mut reports = Vec::with_capacity(passes.len());
        for &pass in passes {
            let nodes_before = editor.node_count();
            let matched = pass.run(&mut editor)?;
            reports.push(PassReport { pass, nodes_before, nodes_after: editor.node_count(), matched });
        }
        Ok(Rewritten { model: editor.finish(self)?, reports })
    }
}
