use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{ArchiveRule, Damage, NetworkFault, UrlRule, shown::shown};

/// What can go wrong between a request and a verified extraction. Addresses are shown without credentials and
/// queries. Each message is one line of bounded length, whatever a file or server put into it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot use {}", shown(path.display()))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The disk, or the user's share of it, is full. What was there before still is.
    #[error(
        "no space left for {}{}",
        shown(path.display()),
        needed.map(|needed| format!(": about {needed} bytes are needed")).unwrap_or_default()
    )]
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// Bytes that the whole operation writes, where that is known.
        needed: Option<u64>,
    },
    /// Something else than a regular file stands where one is needed.
    #[error("{} is not a regular file", shown(path.display()))]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No cache folder can be derived from the environment.
    #[error("no cache folder: set SAM_KIT_CACHE_DIR, or give one to Cache::new")]
    NoCacheFolder,
    /// `release_assets.json` cannot be understood.
    #[error(
        "release manifest{}: {}",
        path.as_deref().map(|p| format!(" {}", shown(p.display()))).unwrap_or_default(),
        shown(detail)
    )]
    Manifest {
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// What is wrong with it.
        detail: String,
    },
    /// The manifest has no such asset.
    #[error(
        "no `{}` asset of precision `{}` (published as `{}`){}; there is: {}",
        shown(runtime),
        shown(precision),
        shown(source_precision),
        chipset.as_deref().map(|c| format!(" for chipset `{}`", shown(c))).unwrap_or_default(),
        if available.is_empty() { "nothing".to_owned() } else { shown(available.join(", ")) }
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
        shown(archive.display()),
        member.as_deref().map(|m| format!("member `{}`: ", shown(m))).unwrap_or_default()
    )]
    Archive {
        /// The archive's path.
        archive: PathBuf,
        /// The member, as the archive spells it; none where the rule is about the archive.
        member: Option<String>,
        /// The rule that is broken.
        rule: ArchiveRule,
    },
    /// The archive has no member of this name.
    #[error("{} has no file `{}`", shown(archive.display()), shown(member))]
    NoSuchMember {
        /// The archive's path.
        archive: PathBuf,
        /// The member asked for.
        member: String,
    },
    /// A file does not have the SHA-256 that it should have.
    #[error(
        "{} ({size} bytes) has SHA-256 {found}, expected {}: delete it and fetch it again",
        shown(path.display()),
        shown(expected)
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
    #[error("{} changed while it was being read (SHA-256 {before}, then {after})", shown(path.display()))]
    ArchiveChanged {
        /// The archive's path.
        path: PathBuf,
        /// Hash before extraction.
        before: String,
        /// Hash after extraction.
        after: String,
    },
    /// The archive is sound but is no release.
    #[error("{}: {}", shown(archive.display()), shown(detail))]
    Layout {
        /// The archive's path.
        archive: PathBuf,
        /// What is missing, or there once too often.
        detail: String,
    },
    /// A graph of the release, or the data it keeps outside of itself, is not right.
    #[error("{}: the graph `{}` cannot be used", shown(archive.display()), shown(graph))]
    Graph {
        /// The archive's path.
        archive: PathBuf,
        /// The graph's path inside of the release.
        graph: String,
        /// Tensor, location and rule.
        source: onnx_graph::Error,
    },
    /// The cache entry kept changing while it was being replaced.
    #[error("{}: other processes keep replacing this cache entry", shown(path.display()))]
    Contended {
        /// The entry.
        path: PathBuf,
    },
    /// A setting, or a part of what is asked for, has no valid form.
    #[error("{name}: {}", shown(detail))]
    Setting {
        /// Which.
        name: &'static str,
        /// What is wrong; never a secret itself.
        detail: String,
    },
    /// An address that is not used.
    #[error("{}: {rule}", shown(url))]
    Url {
        /// The address.
        url: String,
        /// Why not.
        rule: UrlRule,
    },
    /// The repository has no `release_assets.json` at this commit: it publishes no releases. No other cause
    /// ends in this error.
    #[error(
        "{} publishes no releases: there is no release_assets.json at commit {}",
        shown(repository),
        shown(commit)
    )]
    NoReleases {
        /// The repository.
        repository: String,
        /// The commit.
        commit: String,
    },
    /// The hub has no such repository, or no such revision of it, or does not show it.
    #[error(
        "the hub has no {}{}{}",
        revision.as_deref().map(|r| format!("revision `{}` of ", shown(r))).unwrap_or_default(),
        shown(repository),
        if *token_sent { ", or the token may not see it" } else { ", or shows it only with a token (HF_TOKEN)" }
    )]
    NotFound {
        /// The repository.
        repository: String,
        /// The revision, if it is that which is missing.
        revision: Option<String>,
        /// Whether a token was sent.
        token_sent: bool,
    },
    /// The hub refuses to answer.
    #[error(
        "{}: refused with {status}{}",
        shown(url),
        match (*gated, *token_sent) {
            (true, _) => ": the repository is gated, its terms have to be accepted on its page",
            (false, true) => ": the token does not suffice",
            (false, false) => ": a token is needed (HF_TOKEN)",
        }
    )]
    Unauthorised {
        /// The address.
        url: String,
        /// 401 or 403.
        status: u16,
        /// The hub says that terms have to be accepted first.
        gated: bool,
        /// Whether a token was sent.
        token_sent: bool,
    },
    /// The hub cannot be reached.
    #[error(
        "{} cannot be reached; what is complete in the cache can be used offline (HF_HUB_OFFLINE=1)",
        shown(url)
    )]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        #[source]
        fault: NetworkFault,
    },
    /// The hub was reached and failed.
    #[error("the hub failed at {}", shown(url))]
    HubFault {
        /// The address.
        url: String,
        /// How.
        #[source]
        fault: NetworkFault,
    },
    /// The hub's answer makes no sense.
    #[error("{}: the hub's answer cannot be used: {}", shown(url), shown(detail))]
    Hub {
        /// The address.
        url: String,
        /// Why not.
        detail: String,
    },
    /// The archive could not be downloaded.
    #[error(
        "{} could not be downloaded ({received}{} bytes came)",
        shown(url),
        total.map(|total| format!(" of {total}")).unwrap_or_default()
    )]
    Download {
        /// The archive's address.
        url: String,
        /// Bytes of the last attempt.
        received: u64,
        /// Bytes announced or pinned.
        total: Option<u64>,
        /// Why.
        #[source]
        fault: NetworkFault,
    },
    /// The network may not be used, and the cache lacks something.
    #[error("offline, and the cache lacks {}", shown(missing))]
    Offline {
        /// What is missing.
        missing: String,
    },
    /// Something is not what the pin says.
    #[error(
        "{} is {}, but {} was pinned by {} on {}",
        shown(what),
        shown(found),
        shown(expected),
        shown(pinned_by),
        shown(pinned_at)
    )]
    PinBroken {
        /// What.
        what: String,
        /// The pinned value.
        expected: String,
        /// The value found.
        found: String,
        /// Who pinned it.
        pinned_by: String,
        /// When.
        pinned_at: String,
    },
    /// An address gives another archive than it did first.
    #[error(
        "{} gave an archive of SHA-256 {first} at its first use and gives {found} now; accept the change \
         if it is right",
        shown(url)
    )]
    ArchiveReplaced {
        /// The archive's address.
        url: String,
        /// Hash at the first use.
        first: String,
        /// Hash now.
        found: String,
    },
    /// What the cache remembers, and later answers have to be held against, cannot be understood.
    #[error(
        "what is remembered of {} cannot be used ({}: {}); accept what is given now if it is right",
        shown(of),
        shown(path.display()),
        shown(reason)
    )]
    DamagedFact {
        /// The address, or the commit and its repository.
        of: String,
        /// The file in the cache.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The cache's archive is damaged, and could not be fetched anew.
    #[error(
        "the cache's archive is not right ({}) and could not be replaced",
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NotRepaired {
        /// What is wrong with it.
        found: Vec<Damage>,
        /// Why it could not be replaced.
        source: Box<Error>,
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

    /// The error with every cause of it, in one line.
    pub(crate) fn with_causes(&self) -> String {
        causes(self)
    }

    /// Adds the manifest's path to an error that does not have it yet.
    pub(crate) fn in_manifest(self, path: &Path) -> Self {
        match self {
            Self::Manifest { path: None, detail } => Self::Manifest { path: Some(path.to_owned()), detail },
            other => other,
        }
    }

    /// An error of writing: a full disk gets its own variant, with the bytes that the whole operation needs.
    pub(crate) fn writing(
        path: impl Into<PathBuf>,
        source: io::Error,
        needed: impl Into<Option<u64>>,
    ) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.into(), needed: needed.into() }
            }
            _ => Self::io(path, source),
        }
    }
}

#[cfg(feature = "network")]
impl Error {
    /// Says what was wrong before, where something was. A cancelled run is no failure.
    pub(crate) fn while_repairing(self, found: &[Damage]) -> Self {
        match self {
            Self::Cancelled => Self::Cancelled,
            other if found.is_empty() => other,
            other => Self::NotRepaired { found: found.to_vec(), source: Box::new(other) },
        }
    }

    /// Names an archive by what the caller knows of it, in place of the cache's file it is in.
    pub(crate) fn of_archive(self, temporary: &Path, name: &Path) -> Self {
        let name = || name.to_owned();
        match self {
            Self::Archive { archive, member, rule } if archive == temporary => {
                Self::Archive { archive: name(), member, rule }
            }
            Self::Layout { archive, detail } if archive == temporary => {
                Self::Layout { archive: name(), detail }
            }
            Self::Graph { archive, graph, source } if archive == temporary => {
                Self::Graph { archive: name(), graph, source }
            }
            Self::HashMismatch { path, size, expected, found } if path == temporary => {
                Self::HashMismatch { path: name(), size, expected, found }
            }
            Self::ArchiveChanged { path, before, after } if path == temporary => {
                Self::ArchiveChanged { path: name(), before, after }
            }
            other => other,
        }
    }
}

/// An error's words and those of its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D14: a full disk is told apart, with the path and the bytes needed.
    #[test]
    fn a_full_disk_has_its_own_error() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = Error::writing("x", kind.into(), 7);
            assert!(matches!(error, Error::DiskFull { ref path, needed: Some(7) } if path.ends_with("x")));
            assert_eq!(error.to_string(), "no space left for x: about 7 bytes are needed");
            assert_eq!(Error::writing("x", kind.into(), None).to_string(), "no space left for x");
        }
        let error = Error::writing("x", io::ErrorKind::PermissionDenied.into(), 7);
        assert!(matches!(error, Error::Io { .. }));
    }
}
