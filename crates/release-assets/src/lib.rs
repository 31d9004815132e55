#![doc = include_str!("../README.md")]

mod archive_rule;
mod cache;
mod central_directory;
mod error;
mod external_data;
mod extract;
mod files;
mod hashing;
mod limits;
mod lock;
mod manifest;
mod member;
mod member_name;
mod progress;
mod provenance;
mod release;
mod tree;

pub use archive_rule::{ArchiveRule, Held};
pub use cache::Cache;
pub use error::{Error, Result};
pub use hashing::sha256_file;
pub use limits::Limits;
pub use manifest::{Asset, Manifest, source_precision};
pub use member::extract_member;
pub use progress::Phase;
pub use release::{Damage, InventoryEntry, Outcome, Release};
