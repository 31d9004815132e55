//! `build.json`: what went in, what came out.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Error, Recipe, Result,
    files::{self, NotRead, sha256},
};

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
        Ok(Self { path: below(path, folder), bytes, sha256: sha256(path)? })
    }
}

/// A path below a folder, its parts joined by `/`.
fn below(path: &Path, folder: &Path) -> String {
    let parts = path.strip_prefix(folder).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// All files below a folder but the record itself.
fn paths_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        let io = |source| Error::Io { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(io)? {
            let entry = entry.map_err(io)?;
            if entry.file_type().map_err(io)?.is_dir() {
                waiting.push(entry.path());
            } else if entry.path() != folder.join(NAME) {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// The same with their hashes, sorted by their paths.
pub(super) fn files_below(folder: &Path) -> Result<Vec<FileRecord>> {
    let records = paths_below(folder)?.into_iter().map(|path| FileRecord::of(&path, folder));
    let mut found = records.collect::<Result<Vec<_>>>()?;
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
        let damaged = |reason: String| Error::Build { folder: folder.to_owned(), reason };
        let text = match files::read(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(NotRead::Absent(_)) => return Ok(None),
            Err(NotRead::NoFile) => return Err(damaged(format!("{NAME} is no regular file"))),
            Err(NotRead::TooLarge) => {
                return Err(damaged(format!("{NAME} has more bytes than the limit of {MAX_BYTES}")));
            }
            Err(NotRead::Io(source)) => return Err(Error::Io { path, source }),
        };
        // Other programs have files of this name, and builds of theirs are not ours to replace.
        let found: Self = serde_json::from_slice(&text).map_err(|e| {
            damaged(format!("{NAME} is not of this crate's form: {e}; the folder is left alone"))
        })?;
        found.refuse_strangers(folder)?;
        Ok(Some(found))
    }

    /// What was not built is somebody's, and would be lost with a build that is replaced.
    fn refuse_strangers(&self, folder: &Path) -> Result<()> {
        let mut found: Vec<String> = paths_below(folder)?.iter().map(|path| below(path, folder)).collect();
        found.sort_unstable();
        match found.iter().find(|path| !self.outputs.iter().any(|file| file.path == **path)) {
            Some(path) => {
                let reason = format!("`{path}` was not built: it is left alone");
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
