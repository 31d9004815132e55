//! `build.json`: what went in, what came out.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    path::Path,
};

use release_assets::sha256_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Recipe, Result};

const NAME: &str = "build.json";
const SCHEMA: u32 = 1;
/// A build has a dozen files.
const MAX_BYTES: u64 = 4 << 20;

/// No times and no paths of the machine are in it: the same build is the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BuildRecord {
    schema: u32,
    builder: Builder,
    options: Options,
    pub(super) components: BTreeMap<String, ComponentRecord>,
    /// Every file of the build but this one.
    pub(super) outputs: Vec<FileRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Builder {
    name: String,
    version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    analyze: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentRecord {
    recipe: Value,
    inputs: Vec<FileRecord>,
}

/// A file below a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRecord {
    /// Parts joined by `/`.
    path: String,
    bytes: u64,
    sha256: String,
}

impl ComponentRecord {
    pub(super) fn new(recipe: &Recipe, inputs: Vec<FileRecord>) -> Self {
        Self { recipe: recipe.to_value(), inputs }
    }
}

impl FileRecord {
    pub(super) fn of(path: &Path, folder: &Path) -> Result<Self> {
        let bytes = fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?.len();
        let sha256 = sha256_file(path).map_err(|source| Error::Hash { path: path.to_owned(), source })?;
        let below = path.strip_prefix(folder).unwrap_or(path);
        let parts: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        Ok(Self { path: parts.join("/"), bytes, sha256 })
    }
}

/// All files below a folder, sorted by their paths.
pub(super) fn files_below(folder: &Path) -> Result<Vec<FileRecord>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        let io = |source| Error::Io { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(io)? {
            let entry = entry.map_err(io)?;
            if entry.file_type().map_err(io)?.is_dir() {
                waiting.push(entry.path());
            } else if entry.path() != folder.join(NAME) {
                found.push(FileRecord::of(&entry.path(), folder)?);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl BuildRecord {
    pub(super) fn new(analyze: bool) -> Self {
        Self {
            schema: SCHEMA,
            builder: Builder {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            options: Options { analyze },
            components: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// The record of the build that is in a folder; `None` where there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let io = |source| Error::Io { path: path.clone(), source };
        let damaged = |reason: String| Error::Build { folder: folder.to_owned(), reason };
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(damaged(format!("{NAME} is no regular file"))),
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(io(e)),
        }
        let mut text = Vec::new();
        fs::File::open(&path).map_err(io)?.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(damaged(format!("{NAME} has more bytes than the limit of {MAX_BYTES}")));
        }
        // Other programs have files of this name, and builds of theirs are not ours to replace.
        let found: Self = serde_json::from_slice(&text).map_err(|e| {
            damaged(format!("{NAME} is not of this crate's form: {e}; the folder is left alone"))
        })?;
        found.refuse_strangers(folder)?;
        Ok(Some(found))
    }

    /// What was not built is somebody's, and would be lost with a build that is replaced.
    fn refuse_strangers(&self, folder: &Path) -> Result<()> {
        let built = |found: &FileRecord| self.outputs.iter().any(|file| file.path == found.path);
        match files_below(folder)?.iter().find(|found| !built(found)) {
            Some(file) => {
                let reason = format!("`{}` was not built: it is left alone", file.path);
                Err(Error::Build { folder: folder.to_owned(), reason })
            }
            None => Ok(()),
        }
    }

    /// Holds what is there against what is wanted, and every file against its hash.
    pub(super) fn check(&self, folder: &Path, wanted: &Self) -> Result<()> {
        let differs = |reason: String| Error::Build { folder: folder.to_owned(), reason };
        let same = (self.schema, &self.builder, &self.options, &self.components)
            == (wanted.schema, &wanted.builder, &wanted.options, &wanted.components);
        if !same {
            return Err(differs("it was built otherwise, or of other files; build it anew".to_owned()));
        }
        let found = files_below(folder)?;
        match self.outputs.iter().find(|file| !found.contains(file)) {
            Some(file) => Err(differs(format!("`{}` is not what was built; build it anew", file.path))),
            None => Ok(()),
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(NAME);
        let io = |source| Error::Io { path: path.clone(), source };
        // Plain structures of texts and numbers always have a JSON form.
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let mut file = fs::File::create(&path).map_err(io)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io)
    }
}
