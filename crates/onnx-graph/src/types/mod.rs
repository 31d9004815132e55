//! Types and shapes of values, recorded and inferred.
#![allow(clippy::unnecessary_wraps)] // the operators' rules have one signature

use std::collections::HashMap;

use serde::Serialize;

use crate::{Dim, ElementType, Model, Result, Shape, Weights};

mod attention;
mod content;
mod control;
mod dims;
mod elementwise;
mod generate;
mod index_ops;
mod infer;
mod items;
mod keep;
mod linear;
mod macs;
mod op;
mod order;
mod pooling;
mod quantised;
mod reduce;
mod resize;
mod rules;
mod shape_ops;

pub use macs::{Macs, NodeMacs};
pub(crate) use order::order;

/// Element type and shape of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueType {
    /// Element type; [`ElementType::Undefined`] where it is not known.
    pub element_type: ElementType,
    /// Dims, outermost first; `None` where the rank is not known.
    pub shape: Shape,
}

impl ValueType {
    /// All dims as sizes, where every one is known.
    pub fn sizes(&self) -> Option<Vec<u64>> {
        self.shape.as_ref()?.iter().map(Dim::size).collect()
    }
}

/// A value of which the file records something else than what its graph gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contradiction {
    /// The value's name.
    pub value: String,
    /// What the file says.
    pub recorded: ValueType,
    /// What follows from the graph, and is believed.
    pub inferred: ValueType,
}

/// Element types and shapes of a model's values.
#[derive(Debug, Clone, Default)]
pub struct Types {
    values: HashMap<String, ValueType>,
    integers: HashMap<String, Vec<i64>>,
    contradictions: Vec<Contradiction>,
}

impl Types {
    /// What follows from the graph's inputs, its weights and the rules of its operators, and what the file records: of
    /// each value the more precise of both.
    ///
    /// Nothing is guessed. An operator without a rule here gives values of unknown type; a dim that depends on a symbol
    /// in a way that no symbol expresses is [`Dim::Unknown`]. Small integer tensors are computed, so that shapes which
    /// the graph computes are known; weights that cannot be read are taken as not known, which is no error: a model is
    /// described without its sidecars as well.
    ///
    /// Sub-graphs are gone through with the values around them, and their values are among the result where no other
    /// graph of the model has a value of the same name; the main graph's names come first. The model's functions are
    /// gone through call by call, so that their results are known; their inner values are not kept.
    ///
    /// Fails with [`Error::DefinedTwice`](crate::Error::DefinedTwice) where one graph gives a value twice.
    pub fn infer(model: &Model, weights: &Weights) -> Result<Self> {
        let kept = infer::Driver::new(model, weights, &mut |_| {}).run()?;
        Ok(Self { values: kept.values, integers: kept.integers, contradictions: kept.contradictions })
    }

    /// The type of a value.
    pub fn get(&self, value: &str) -> Option<&ValueType> {
        self.values.get(value)
    }

    /// All dims of a value as sizes, where every one is known.
    pub fn sizes(&self, value: &str) -> Option<Vec<u64>> {
        self.get(value)?.sizes()
    }

    /// Number of dims of a value, where it is known.
    pub(crate) fn rank(&self, value: &str) -> Option<usize> {
        self.get(value)?.shape.as_ref().map(Vec::len)
    }

    /// All values with their types, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ValueType)> {
        let mut all: Vec<_> = self.values.iter().map(|(name, value)| (name.as_str(), value)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// Where the file records another size, rank or element type than the graph gives, in the order of evaluation.
    pub fn contradictions(&self) -> &[Contradiction] {
        &self.contradictions
    }

    /// Says what a value is that a rewrite has made.
    pub(crate) fn set(&mut self, value: &str, value_type: ValueType) {
        self.values.insert(value.to_owned(), value_type);
    }

    /// The element type of a value, [`ElementType::Undefined`] where it is not known.
    pub(crate) fn element(&self, value: &str) -> ElementType {
        self.get(value).map_or(ElementType::Undefined, |v| v.element_type)
    }

    /// The elements of a small tensor of integers or bools that follow from the graph alone, in row-major order.
    pub(crate) fn integers(&self, value: &str) -> Option<&[i64]> {
        self.integers.get(value).map(Vec::as_slice)
    }
}
