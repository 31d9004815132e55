use std::path::{Path, PathBuf};

use release_assets::{Cache, Outcome};

use crate::{Error, Result};

/// Where a model's files came from and what was checked of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelOrigin {
    /// A folder of graphs, taken as it is: nobody vouches for its bytes.
    Folder(PathBuf),
    /// A composite's JSON file, which holds its graphs by their SHA-256.
    Composite {
        /// The file.
        file: PathBuf,
        /// The folder that it and its graphs are in.
        root: PathBuf,
    },
    /// A release archive, unpacked into the cache with every byte accounted for.
    Archive {
        /// What was opened: the archive, or the folder that holds it beside its manifest.
        opened: PathBuf,
        /// SHA-256 of the archive, lower-case hex.
        sha256: String,
        /// The verified extraction.
        root: PathBuf,
        /// Whether the extraction was made, found good, or repaired.
        outcome: Outcome,
    },
}

impl ModelOrigin {
    /// Finds the graphs' folder for a path: an archive, a folder that holds one beside its `release_assets.json`, a folder of
    /// graphs, or a composite's JSON file. An archive is verified and unpacked into `cache`; the user's where it is `None`.
    pub fn resolve(path: &Path, cache: Option<&Cache>) -> Result<Self> {
        let found = std::fs::metadata(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NoModel { path: path.to_owned() },
            _ => Error::Io { path: path.to_owned(), source },
        })?;
        let is_release = found.is_dir() && path.join(release_assets::Manifest::FILE_NAME).is_file();
        if found.is_dir() && !is_release {
            return Ok(Self::Folder(path.to_owned()));
        }
        if found.is_file() && path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let root = folder.unwrap_or(Path::new(".")).to_owned();
            return Ok(Self::Composite { file: path.to_owned(), root });
        }
        let cache = cache.cloned().map_or_else(|| Cache::default_root().map(Cache::new), Ok)?;
        let release = if is_release {
            cache.open_release_folder(path, "fp32", "onnx")?
        } else {
            cache.open_archive(path)?
        };
        Ok(Self::Archive {
            opened: path.to_owned(),
            sha256: release.archive_sha256.clone(),
            root: release.root.clone(),
            outcome: release.outcome.clone(),
        })
    }

    /// The folder that the graphs are in.
    pub fn root(&self) -> &Path {
        match self {
            Self::Folder(root) | Self::Composite { root, .. } | Self::Archive { root, .. } => root,
        }
    }
}
