#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod composite;
mod error;
mod graph_file;
mod metadata;
mod outputs;
mod plan;
mod prompt_ports;
mod select;
mod unify;

pub use composite::Composite;
pub use error::{Error, MetadataRule, Rejection, Result, Rule};
pub use graph_file::GraphFile;
pub use metadata::{Preprocessing, ResizeRule};
pub use plan::{Component, Feed, Plan, Step, Value};
pub use prompt_ports::{CoordinateSpace, PromptPorts};
pub use select::{Pair, select};
pub use unify::{Mismatch, unify};
