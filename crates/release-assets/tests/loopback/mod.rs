//! Hub and archive host on loopback, over HTTPS.

pub(crate) mod hub;
pub(crate) mod server;
