//! What goes over the network: addresses, one exchange, bounded retries, the hub's two answers.

mod address;
mod client;
mod environment;
mod exchange;
mod fetch;
mod hub;

pub use client::{Client, ClientBuilder};

pub(crate) use address::Address;
pub(crate) use hub::RevisionInfo;
