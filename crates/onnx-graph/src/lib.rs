#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod external_data;

mod analyze;
mod attributes;
mod builder;
mod check;
mod cut;
mod describe;
mod element_type;
mod error;
mod fp16;
mod model;
mod nodes;
mod order;
mod pass;
mod port;
#[allow(missing_docs, unreachable_pub, unused, unused_qualifications, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
#[path = "proto/onnx.rs"]
mod proto; // generated, see proto/onnx.proto
mod save;
mod split;
mod tensors;
mod types;
mod walk;
mod weights;

pub use analyze::{
    Analysis, Classification, Component, Coverage, Information, Judgement, Metadata, OperatorRow, Part,
    PartRow, Parts, Rules, Source, Target, TargetResult, TargetRow, UnassignedNode, Verdict, analyze,
    analyze_with, parts,
};
pub use builder::{Attribute, GraphBuilder, Weight};
pub use check::{EngineLimits, Finding, FindingNode, Rule, Severity};
pub use describe::{
    Description, FunctionDescription, NodeCounts, OperatorCount, OutputDescription, SidecarDescription,
    TensorCount,
};
pub use element_type::{ElementType, PrecisionClass};
pub use error::{Error, ExternalDataRule, Result};
pub use fp16::{Fp16Options, Fp16Report, KeptReason, KeptTensor};
pub use model::{Model, OpsetImport, ReadLimits};
pub use nodes::Node;
pub use pass::{Pass, PassReport, PassSet, Rewritten};
pub use port::{Dim, Port, Shape, write_shape};
pub use save::{SaveOptions, Saved, SavedFile, Sidecar};
pub use split::Split;
pub use types::{Contradiction, Macs, NodeMacs, Types, ValueType};
pub use walk::Dependences;
pub use weights::Weights;
