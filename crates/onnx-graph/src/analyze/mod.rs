//! What runs where: verdicts of execution targets on a model's nodes, and the parts of the network they belong to.

mod attributes;
mod flow;
mod parts;
mod patterns;

pub use parts::{Part, Parts, parts};
