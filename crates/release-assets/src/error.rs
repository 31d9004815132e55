use std::{
    io,
    path::{Path, PathBuf},
};

use crate::ArchiveRule;

/// What can go wrong between an archive and a verified extraction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The disk, or the user's share of it, is full. What was there before still is.
    #[error("no space left for {}: about {needed} bytes are needed", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// Bytes that the whole operation writes.
        needed: u64,
    },
    /// Something else than a regular file stands where one is needed.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No cache folder can be derived from the environment.
    #[error("no cache folder: set SAM_KIT_CACHE_DIR, or give one to Cache::new")]
    NoCacheFolder,
    /// `release_assets.json` cannot be understood.
    #[error(
        "release manifest{}: {detail}",
        path.as_deref().map(|p| format!(" {}", p.display())).unwrap_or_default()
    )]
    Manifest {
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// What is wrong with it.
        detail: String,
    },
    /// The manifest has no such asset.
    #[error(
        "no `{runtime}` asset of precision `{precision}` (published as `{source_precision}`){}; there is: {}",
        chipset.as_deref().map(|c| format!(" for chipset `{c}`")).unwrap_or_default(),
        if available.is_empty() { "nothing".to_owned() } else { available.join(", ") }
    )]
    NoAsset {
        /// The precision asked for.
        precision: String,
        /// What the publisher calls it.
        source_precision: String,
        /// The runtime asked for.
        runtime: String,
        /// The chipset asked for.
        chipset: Option<String>,
        /// Every asset there is, as `precision/runtime` or `precision/chipset/runtime`.
        available: Vec<String>,
    },
    /// The archive breaks a rule; nothing of it was kept.
    #[error(
        "{}: {}{rule}; the whole archive is refused",
        archive.display(),
        member.as_deref().map(|m| format!("member `{m}`: ")).unwrap_or_default()
    )]
    Archive {
        /// The archive's path.
        archive: PathBuf,
        /// The member, as the archive spells it, escaped; none where the rule is about the archive.
        member: Option<String>,
        /// The rule that is broken.
        rule: ArchiveRule,
    },
    /// The archive has no member of this name.
    #[error("{} has no file `{member}`", archive.display())]
    NoSuchMember {
        /// The archive's path.
        archive: PathBuf,
        /// The member asked for.
        member: String,
    },
    /// A file does not have the SHA-256 that it should have.
    #[error(
        "{} ({size} bytes) has SHA-256 {found}, expected {expected}: delete it and fetch it again",
        path.display()
    )]
    HashMismatch {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The hash it should have.
        expected: String,
        /// The hash it has.
        found: String,
    },
    /// The archive changed while it was being read; nothing of it was kept.
    #[error("{} changed while it was being read (SHA-256 {before}, then {after})", path.display())]
    ArchiveChanged {
        /// The archive's path.
        path: PathBuf,
        /// Hash before extraction.
        before: String,
        /// Hash after extraction.
        after: String,
    },
    /// The archive is sound but is no release.
    #[error("{}: {detail}", archive.display())]
    Layout {
        /// The archive's path.
        archive: PathBuf,
        /// What is missing, or there once too often.
        detail: String,
    },
    /// A graph of the release, or the data it keeps outside of itself, is not right.
    #[error("{}: the graph `{graph}` cannot be used", archive.display())]
    Graph {
        /// The archive's path.
        archive: PathBuf,
        /// The graph's path inside of the release.
        graph: String,
        /// Tensor, location and rule.
        source: onnx_graph::Error,
    },
    /// The cache entry kept changing while it was being replaced.
    #[error("{}: other processes keep replacing this cache entry", path.display())]
    Contended {
        /// The entry.
        path: PathBuf,
    },
    /// The progress callback asked to stop; nothing was left behind.
    #[error("cancelled")]
    Cancelled,
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Adds the manifest's path to an error that does not have it yet.
    pub(crate) fn in_manifest(self, path: &Path) -> Self {
        match self {
            Self::Manifest { path: None, detail } => Self::Manifest { path: Some(path.to_owned()), detail },
            other => other,
        }
    }

    /// An error of writing: a full disk gets its own variant, with the bytes that the whole operation needs.
    pub(crate) fn writing(path: impl Into<PathBuf>, source: io::Error, needed: u64) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.into(), needed }
            }
            _ => Self::io(path, source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D14: a full disk is told apart, with the path and the bytes needed.
    #[test]
    fn a_full_disk_has_its_own_error() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = Error::writing("x", kind.into(), 7);
            assert!(matches!(error, Error::DiskFull { ref path, needed: 7 } if path.ends_with("x")));
        }
        let error = Error::writing("x", io::ErrorKind::PermissionDenied.into(), 7);
        assert!(matches!(error, Error::Io { .. }));
    }
}
