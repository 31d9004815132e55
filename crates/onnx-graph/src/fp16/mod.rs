//! Models in half precision: computed in it, or only stored in it.

mod compute;
mod convert;
mod fence;
mod frame;
mod names;
mod retype;
mod rules;
mod sequences;
mod storage;
mod survey;

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

pub(crate) use storage::stored_count;

use crate::{
    ElementType, Error, Model, Result, Weights, external_data, proto::ModelProto, tensors, weights::set_bytes,
};

/// The oldest version of the standard operators whose `Cast` names its type by number.
const CAST_BY_NUMBER: i64 = 6;

/// How a model is brought to half precision: [`Self::compute`] or [`Self::storage`], and what is left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fp16Options {
    form: Form,
    keep_io: bool,
    blocked_operators: BTreeSet<String>,
    blocked_nodes: BTreeSet<String>,
    min_elements: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Compute,
    Storage,
}

impl Fp16Options {
    /// Weights and arithmetic in half precision, for processors that have it, by the rules of ONNX Runtime's own converter
    /// (`onnxruntime.transformers.float16`, observed at version 1.32), with its list of operators that stay in float32.
    pub fn compute() -> Self {
        Self {
            form: Form::Compute,
            keep_io: true,
            blocked_operators: rules::BLOCKED.iter().map(|&op| op.to_owned()).collect(),
            blocked_nodes: BTreeSet::new(),
            min_elements: 0,
        }
    }

    /// Weights in half precision and arithmetic in float32: half the bytes on disk, the speed of float32. Each weight is
    /// followed by a `Cast`, which ONNX Runtime folds away when a session is made with its basic optimisations or more (with
    /// none, it runs each time), and [`Model::widened`] removes for engines that know no half precision.
    ///
    /// ONNX Runtime frees the halves once they are folded, but glibc's allocator keeps most of that memory for small
    /// pieces: the peak stays some 7 to 11 % above that of float32 weights in a sidecar (SAM2.1-tiny's encoder, without
    /// memory patterns; level with float32 weights inside the model, and with `MALLOC_MMAP_THRESHOLD_=65536`).
    pub fn storage() -> Self {
        // Below, what is saved is little beside a node more.
        Self { form: Form::Storage, blocked_operators: BTreeSet::new(), min_elements: 512, ..Self::compute() }
    }

    /// Whether the graph's float32 inputs and outputs keep that type, with a `Cast` at each (the default). Storage never
    /// changes them.
    #[must_use]
    pub fn keep_io(mut self, keep: bool) -> Self {
        self.keep_io = keep;
        self
    }

    /// The operators that stay in float32, in place of the default list. Operators that know no half precision stay so in
    /// any case. Storage has no use for them.
    #[must_use]
    pub fn blocked_operators<'a>(mut self, operators: impl IntoIterator<Item = &'a str>) -> Self {
        self.blocked_operators = operators.into_iter().map(str::to_owned).collect();
        self
    }

    /// Names of nodes that stay in float32; none at first. Storage has no use for them.
    #[must_use]
    pub fn blocked_nodes<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.blocked_nodes = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Elements that a weight needs for being stored in half precision (512 where this is not called). Compute has no use
    /// for it.
    #[must_use]
    pub fn min_elements(mut self, count: u64) -> Self {
        self.min_elements = count;
        self
    }
}

/// What [`Model::to_fp16`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fp16Report {
    /// True where the model was in half precision before, and is given back as it was.
    pub already: bool,
    /// Nodes before, with those of sub-graphs and functions.
    pub nodes_before: usize,
    /// Nodes after, with those of sub-graphs and functions.
    pub nodes_after: usize,
    /// `Cast` nodes added.
    pub casts_added: usize,
    /// Tensors brought to half precision: initializers and those in attributes.
    pub tensors_converted: usize,
    /// Finite numbers beyond 65504 that were brought to it.
    pub clamped: u64,
    /// Numbers between zero and the smallest half that were brought to it.
    pub raised: u64,
    /// The float32 initializers that stay so.
    pub kept: Vec<KeptTensor>,
    /// Bytes of all tensors before, wherever they lie.
    pub bytes_before: u64,
    /// Bytes of all tensors after.
    pub bytes_after: u64,
}

impl fmt::Display for Fp16Report {
    /// A line or two, without the names of the tensors that stay.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            nodes_before, nodes_after, casts_added, tensors_converted, bytes_before, bytes_after, ..
        } = self;
        if self.already {
            return f.write_str("the model is in half precision already");
        }
        write!(
            f,
            "{tensors_converted} tensors in half precision, {} stay; {casts_added} casts added, {nodes_before} -> \
             {nodes_after} nodes; {bytes_before} -> {bytes_after} bytes of weights",
            self.kept.len()
        )?;
        match (self.clamped, self.raised) {
            (0, 0) => Ok(()),
            (large, small) => {
                write!(
                    f,
                    "; {large} numbers were too large and {small} too small, and were brought to the ends"
                )
            }
        }
    }
}

/// An initializer that stays in float32.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeptTensor {
    /// Its name.
    pub name: String,
    /// Why it stays.
    pub reason: KeptReason,
}

/// Why an initializer stays in float32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeptReason {
    /// Nobody reads it in half precision.
    NoHalfUser,
    /// It is an input or output of the graph, whose type stays.
    Port,
    /// It is sparse.
    Sparse,
    /// It has fewer elements than [`Fp16Options::min_elements`].
    Small,
    /// Half precision is too coarse for it: a number is beyond 65504, or all are so small that the largest is off by more
    /// than rounding takes from ordinary halves.
    Range,
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHalfUser => "nobody reads it in half precision",
            Self::Port => "it is an input or output of the graph",
            Self::Sparse => "it is sparse",
            Self::Small => "it is small",
            Self::Range => "its numbers are beyond the range of half precision",
        })
    }
}

impl Model {
    /// The model in half precision, with all tensors inside, and what was done.
    ///
    /// In the compute form every float32 value becomes float16, in sub-graphs as well, but for what the options and the
    /// operators' own types keep, which stands between `Cast` nodes. Calls of model-local functions stay in float32, and so
    /// do sparse weights. Values beyond the range of half precision are brought to its ends (reference 3.11); NaN and
    /// infinities stay. A model whose weights are only stored in half precision is [widened](Self::widened) first.
    /// The nodes stand in an order of evaluation. Training information goes, since it speaks of the weights' old types.
    ///
    /// In the storage form only initializers change, of any graph: a weight `w` becomes `w_fp16`, and a node `w_from_fp16`
    /// gives `w`. Numbers are rounded, and a weight that half precision is too coarse for stays as it is.
    ///
    /// Where a wanted name is taken, a number is put behind it. Fails with [`Error::Opset`], with [`Error::UntypedValue`]
    /// where a node stays in float32 and the type of a value that it reads or gives is not known, in the compute form with
    /// [`Error::NoHalf`] where a sequence of float32 is recorded, and where the weights cannot be read.
    pub fn to_fp16(&self, weights: &Weights, options: &Fp16Options) -> Result<(Self, Fp16Report)> {
        let found = self.opset("").unwrap_or_default();
        if found < CAST_BY_NUMBER {
            return Err(Error::Opset { needed: CAST_BY_NUMBER, found });
        }
        if options.form == Form::Compute {
            sequences::refuse(self)?;
        }
        let (model, mut report) = match options.form {
            Form::Storage => storage::store(self, weights, options)?,
            Form::Compute if self.graphs().into_iter().any(|graph| stored_count(graph) > 0) => {
                compute::convert(&self.widened(weights)?, weights, options)?
            }
            Form::Compute => compute::convert(self, weights, options)?,
        };
        report.nodes_before = self.nodes().len();
        report.bytes_before = self.tensor_bytes()?;
        report.already = report.tensors_converted == 0 && self.has_half_tensors();
        if report.already {
            report.casts_added = 0;
        }
        let model = inlined(if report.already { self.proto().clone() } else { model }, weights)?;
        report.nodes_after = model.nodes().len();
        report.bytes_after = model.tensor_bytes()?;
        Ok((model, report))
    }

    /// Bytes of all tensors by their dims and types; strings count for nothing.
    fn tensor_bytes(&self) -> Result<u64> {
        let mut total = 0_u64;
        tensors::for_each(self.proto(), &mut |tensor| {
            total = total.saturating_add(external_data::byte_length(tensor).unwrap_or_default());
            Ok(())
        })?;
        Ok(total)
    }

    fn has_half_tensors(&self) -> bool {
        let mut found = false;
        // The visitor never fails, so neither does the visit.
        let _ = tensors::for_each(self.proto(), &mut |tensor| {
            found |= convert::element_type(tensor) == ElementType::Float16;
            Ok(())
        });
        found
    }
}

/// The model with all tensors inside.
fn inlined(mut model: ModelProto, weights: &Weights) -> Result<Model> {
    tensors::for_each_mut(&mut model, &mut |tensor, _| {
        if tensor.data_location == Some(external_data::EXTERNAL) {
            let bytes = weights.bytes(tensor)?.into_owned();
            set_bytes(tensor, bytes);
        }
        Ok(())
    })?;
    Ok(Model::from_proto(model))
}
