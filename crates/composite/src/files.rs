//! Small files, their folders and their hashes.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use crate::{Error, Result};

/// Why a small file was not read.
pub(crate) enum NotRead {
    /// Nothing has its name.
    Absent(io::Error),
    /// It is a folder, a pipe or the like.
    NoFile,
    /// It has more bytes than were allowed.
    TooLarge,
    Io(io::Error),
}

impl NotRead {
    /// As the error of a document that has to be there; `wrong` makes one of a reason.
    pub(crate) fn of_document(self, path: &Path, limit: u64, wrong: impl FnOnce(String) -> Error) -> Error {
        match self {
            Self::Absent(source) | Self::Io(source) => Error::Io { path: path.to_owned(), source },
            Self::NoFile => wrong("it is no regular file".to_owned()),
            Self::TooLarge => wrong(format!("it has more bytes than the limit of {limit}")),
        }
    }
}

/// The bytes of a regular file of at most `limit` bytes. Nothing else is opened: a pipe would wait for a writer.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, NotRead> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(NotRead::NoFile),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(NotRead::Absent(e));
        }
        Err(e) => return Err(NotRead::Io(e)),
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(NotRead::Io)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(NotRead::Io)?;
    if bytes.len() as u64 > limit { Err(NotRead::TooLarge) } else { Ok(bytes) }
}

/// The folder that a file is in; of a name alone the current one.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The SHA-256 of a file, in lower-case hex.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    release_assets::sha256_file(path).map_err(|source| Error::Hash { path: path.to_owned(), source })
}
