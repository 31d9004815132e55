//! The files that a release's graphs keep their weights in.

use std::{collections::BTreeMap, path::Path};

use crate::{InventoryEntry, release::is_graph};

/// A graph that cannot be accepted: its path in the release, and why.
pub(crate) struct BadGraph {
    pub(crate) graph: String,
    pub(crate) source: onnx_graph::Error,
}

/// Finds and checks every sidecar of every graph. Both sides are paths below `root`.
pub(crate) fn discover(
    root: &Path,
    inventory: &[InventoryEntry],
) -> Result<BTreeMap<String, Vec<String>>, BadGraph> {
    // Sidecars come as resolved paths, so they are compared with the resolved root.
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut sidecars = BTreeMap::new();
    for entry in inventory.iter().filter(|entry| is_graph(&entry.path)) {
        let graph = root.join(&entry.path);
        let found = onnx_graph::external_data::verify(&graph, root)
            .map_err(|source| BadGraph { graph: entry.path.clone(), source })?;
        let relative = found.iter().map(|path| {
            let path = path.strip_prefix(&real_root).unwrap_or(path);
            path.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
        });
        sidecars.insert(entry.path.clone(), relative.collect());
    }
    Ok(sidecars)
}
