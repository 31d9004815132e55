use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{Result, files, shown::shown};

/// A verified extraction of a release archive: every file below [`root`](Self::root) was hashed when this was
/// made, unless the cache was told otherwise by [`Cache::stat_only`](crate::Cache::stat_only).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Release {
    /// The extraction's folder in the cache. It stays the same as long as archive and request do, after
    /// repair too.
    pub root: PathBuf,
    /// SHA-256 of the archive, in lower-case hex.
    pub archive_sha256: String,
    /// Every file of the release, sorted by path; the cache's own record is not one of them.
    pub inventory: Vec<InventoryEntry>,
    /// What had to be done.
    pub outcome: Outcome,
    /// What the archive's bytes were held against.
    pub trust: Trust,
    /// Bytes that came over the network for this call, attempts that failed included.
    pub fetched_bytes: u64,
    /// The hub's commit that the release was published at, where it comes from a hub.
    pub commit: Option<String>,
}

/// What says that an archive is the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// A pin, by whom and when.
    Pinned {
        /// Who wrote the pin.
        by: String,
        /// When, as `YYYY-MM-DD`.
        at: String,
    },
    /// Nothing: this was the first download from its address. From now on the address must give the same.
    FirstUse,
    /// The same bytes as at the first use of the address: its first download, or a pinned archive imported for it.
    SinceFirstUse {
        /// When that was, in seconds since 1970.
        at: u64,
    },
    /// Nothing: the caller gave the file.
    Given,
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned { by, at } => write!(f, "pinned by {} on {}", shown(by), shown(at)),
            Self::FirstUse => f.write_str("not pinned: trusted on first use"),
            Self::SinceFirstUse { .. } => f.write_str("not pinned: the same as at first use"),
            Self::Given => f.write_str("not pinned: a file as it was given"),
        }
    }
}

/// One file of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InventoryEntry {
    /// Path below the release's root, `/` between components.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
}

/// What [`Cache`](crate::Cache) did to give a [`Release`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The archive was extracted: there was no extraction of it.
    Extracted,
    /// The extraction was there, and every byte of it was right.
    Reused,
    /// An extraction was there and not right; it was replaced by a new one from the archive.
    Repaired {
        /// Everything that was found wrong.
        reasons: Vec<Damage>,
    },
}

/// Something that is not right in an extraction. Paths are below the release's root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The extraction's root is not a folder.
    #[error("the extraction is not a folder")]
    NotAFolder,
    /// The archive in the cache is not the one that was stored there; it was fetched again.
    #[error("the archive in the cache was changed")]
    Archive,
    /// The archive of an extraction is gone; it was fetched again.
    #[error("the archive in the cache is missing")]
    ArchiveMissing,
    /// A file of the archive is not there.
    #[error("`{}` is missing", shown(path))]
    Missing {
        /// The file.
        path: String,
    },
    /// Something is there that is not in the archive.
    #[error("`{}` does not belong to the release", shown(path))]
    Unexpected {
        /// The file, folder or link.
        path: String,
    },
    /// A link, device, pipe or folder stands where a file belongs.
    #[error("`{}` is not a regular file", shown(path))]
    NotRegular {
        /// The path.
        path: String,
    },
    /// A file's bytes are not the archive's.
    #[error("`{}` was changed", shown(path))]
    Changed {
        /// The file.
        path: String,
    },
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read: {}", shown(path), shown(reason))]
    Unreadable {
        /// The path.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The record of the extraction is missing or cannot be understood, so that nothing in it is trusted.
    #[error("the record cannot be used: {}", shown(reason))]
    Record {
        /// Why.
        reason: String,
    },
    /// What is remembered of a revision, a manifest or an address cannot be understood. Nothing mends an address's
    /// first use, which later answers are held against, but a caller who accepts what it gives now.
    #[error("what is remembered here cannot be used: {}", shown(reason))]
    Fact {
        /// Why.
        reason: String,
    },
    /// A field of the record does not say what the archive, the files and the request say.
    #[error("field `{}` of the record is wrong", shown(field))]
    RecordField {
        /// The field.
        field: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extracted => f.write_str("extracted"),
            Self::Reused => f.write_str("reused, verified"),
            Self::Repaired { reasons } => {
                f.write_str("repaired")?;
                for (index, reason) in reasons.iter().enumerate() {
                    write!(f, "{}{reason}", if index == 0 { ": " } else { "; " })?;
                }
                Ok(())
            }
        }
    }
}

impl Release {
    /// The paths of all graphs (`*.onnx`), sorted; there is at least one.
    pub fn graphs(&self) -> Vec<PathBuf> {
        let graphs = self.inventory.iter().filter(|entry| is_graph(&entry.path));
        graphs.map(|entry| self.root.join(&entry.path)).collect()
    }

    /// The path of the publisher's `metadata.json`, if the release has one. More than one is refused at
    /// opening.
    pub fn metadata(&self) -> Option<PathBuf> {
        let entry = self.inventory.iter().find(|entry| is_metadata(&entry.path))?;
        Some(self.root.join(&entry.path))
    }

    /// Copies the record and, if there is one, the publisher's metadata into a folder, as
    /// `release_provenance.json` and `release_metadata.json`: what a program that builds something else from the
    /// release keeps beside it. Each file appears complete or not at all; one that is there is replaced. Returns the
    /// paths that were written.
    ///
    /// Errors: [`Error::Io`](crate::Error::Io), [`Error::DiskFull`](crate::Error::DiskFull).
    pub fn copy_contract_files(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let folder = folder.as_ref();
        let record = (self.provenance(), folder.join(crate::provenance::RECORD_NAME));
        let metadata = self.metadata().map(|path| (path, folder.join("release_metadata.json")));
        let mut written = Vec::new();
        for (source, target) in [Some(record), metadata].into_iter().flatten() {
            let bytes = files::read_small(&source, crate::provenance::RECORD_MAX_BYTES)?;
            files::write_whole(files::folder_or_here(folder), ".contract-", &target, &bytes)?;
            written.push(target);
        }
        Ok(written)
    }

    /// The path of the record, `release_provenance.json`.
    pub fn provenance(&self) -> PathBuf {
        self.root.join(crate::provenance::RECORD_NAME)
    }
}

/// In any case of letters: what may be run as a graph is recorded and checked as one.
pub(crate) fn is_graph(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

pub(crate) fn is_metadata(path: &str) -> bool {
    path.rsplit('/').next() == Some("metadata.json")
}
