#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod build;
mod composite;
mod contract;
mod display;
mod error;
mod file;
mod files;
mod graph_file;
mod metadata;
mod outputs;
mod plan;
mod prompt_ports;
mod recipe;
mod select;
mod unify;
mod wiring;

pub use build::{BuildOptions, BuildStep, Built};
pub use composite::{Composite, CompositeBuilder, UnusedGraph, UnusedRole};
pub use contract::{ContractRule, ContractSource, Offset};
pub use error::{Error, MetadataRule, Rejection, Result, Rule};
pub use graph_file::GraphFile;
pub use metadata::{ChannelOrder, Preprocessing, ResizeRule};
pub use plan::{Component, Feed, Plan, Step, Value};
pub use prompt_ports::{CoordinateSpace, PromptPorts};
pub use recipe::{ComponentName, Export, Loader, QuantMode, Quantization, Recipe, RecipePrecision};
pub use select::{Pair, select};
pub use unify::{Mismatch, unify};
pub use wiring::{SettledBy, Wire, Wiring};
