#![cfg_attr(feature = "network", doc = include_str!("../README.md"))]
// The README's example downloads, so that it is no documentation of a build that cannot.
#![cfg_attr(not(feature = "network"), doc = "Verified releases from archives on disk.")]
#![forbid(unsafe_code)]

#[cfg(feature = "network")]
mod acquire;
mod archive_rule;
mod cache;
mod central_directory;
mod end_records;
mod error;
mod external_data;
mod extract;
#[cfg(feature = "network")]
mod facts;
mod files;
mod hashing;
mod limits;
mod lock;
mod maintenance;
mod manifest;
mod member;
mod member_name;
#[cfg(feature = "network")]
mod network;
mod network_fault;
mod pin;
mod progress;
mod provenance;
mod release;
#[cfg(feature = "network")]
mod resolve;
mod shown;
mod tree;
mod url_rule;
#[cfg(feature = "network")]
mod wanted;
mod zip_fields;

pub use archive_rule::{ArchiveRule, Held};
pub use cache::Cache;
pub use error::{Error, Result};
pub use hashing::sha256_file;
pub use limits::Limits;
pub use maintenance::{Checked, Cleaned};
pub use manifest::{Asset, Manifest, source_precision};
pub use member::extract_member;
#[cfg(feature = "network")]
pub use network::{Client, ClientBuilder};
pub use network_fault::NetworkFault;
pub use pin::{Pin, PinnedMember};
pub use progress::Phase;
pub use release::{Damage, InventoryEntry, Outcome, Release, Trust};
pub use url_rule::UrlRule;
#[cfg(feature = "network")]
pub use wanted::{HubRelease, UrlRelease};
