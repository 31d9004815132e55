//! Models written to disk: one file, or a file and a sidecar, whole or not at all.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error, ExternalDataRule, Model, Result, Weights,
    external_data::{self, EXTERNAL, ExternalTensor},
    proto::ModelProto,
    tensors::{self, Role},
    weights::set_bytes,
};

mod compare;
mod publish;
mod sidecar;

pub use sidecar::Sidecar;

/// Bytes that a protobuf may have: its lengths are signed 32-bit numbers.
const PROTOBUF_LIMIT: u64 = (1 << 31) - 1;

/// Where the weights of a saved model go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SaveOptions {
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Keep,
    Inline,
    Sidecar(Sidecar),
}

impl SaveOptions {
    /// Every tensor stays where it is (the default): external ones keep pointing to their sidecars, so that the model has
    /// to be saved into the folder they are in. A model without external tensors can go anywhere.
    pub fn keep() -> Self {
        Self::default()
    }

    /// All weights into the model. Protobuf ends at 2 GiB - 1.
    pub fn inline() -> Self {
        Self { place: Place::Inline }
    }

    /// The larger tensors into one sidecar.
    pub fn sidecar(sidecar: Sidecar) -> Self {
        Self { place: Place::Sidecar(sidecar) }
    }
}

/// What [`Model::save`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The model itself.
    pub model: SavedFile,
    /// The files that hold its external tensors: the one that was written, or those that were kept.
    pub sidecars: Vec<SavedFile>,
    /// Sidecars of the model that had this path before which the new one does not use. They are left alone, since
    /// another model of the folder may share them.
    pub unused: Vec<PathBuf>,
}

/// A file of a saved model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

impl Model {
    /// Writes the model, and its sidecar where it gets one.
    ///
    /// `weights` says where the values of external tensors are now. Everything is read before anything is replaced, so
    /// that a model may be saved over the file it came from. Files are written aside in the target's folder, made
    /// durable, and renamed: the sidecar first, which never replaces a file with other bytes, then the model. At every
    /// moment the path holds the old model with the old weights or the new one with the new weights; after an error it
    /// holds what it held before, and nothing is left aside. The same model gives the same bytes at any time and in any
    /// folder, but for the sidecar's name where another file has it (see [`Sidecar`]).
    ///
    /// Memory: the model once more, without the weights inside it, and one tensor; with [`SaveOptions::inline`], all weights.
    ///
    /// Fails with [`Error::Io`], [`Error::ExternalData`] and [`Error::Tensor`] where the weights are not to be had, with
    /// [`Error::Write`] where nothing can be written, and with [`Error::SidecarOutOfReach`], [`Error::TooLargeInline`],
    /// [`Error::SidecarOption`] and [`Error::SidecarTaken`]. A path that is no regular file is [`Error::NotAFile`], one
    /// that holds weights of this model the rule [`ExternalDataRule::IsTheModel`].
    pub fn save(&self, path: impl AsRef<Path>, weights: &Weights, options: &SaveOptions) -> Result<Saved> {
        let target = Target::new(path.as_ref())?;
        let entries = external_data::list(self, target.path)?;
        target.refuse_a_sidecar(&entries, weights)?;
        match &options.place {
            Place::Keep => {
                let sidecars = target.reachable(&entries, weights)?;
                target.publish(self.proto(), None, sidecars)
            }
            Place::Inline => {
                target.publish(&self.with_all_inside(&entries, weights, &target)?, None, Vec::new())
            }
            Place::Sidecar(options) => {
                let name = options.name_beside(target.path)?;
                let mut proto = self.proto().clone();
                let written = sidecar::write(&mut proto, weights, options, &name, &target)?;
                if let Some(written) = &written {
                    rename_location(&mut proto, written.name())?;
                }
                target.publish(&proto, written, Vec::new())
            }
        }
    }

    fn with_all_inside(
        &self,
        entries: &[ExternalTensor],
        weights: &Weights,
        target: &Target<'_>,
    ) -> Result<ModelProto> {
        let needed = entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.length));
        if needed > PROTOBUF_LIMIT {
            let path = target.path.to_owned();
            return Err(Error::TooLargeInline { path, needed, limit: PROTOBUF_LIMIT });
        }
        let mut proto = self.proto().clone();
        tensors::for_each_mut(&mut proto, &mut |tensor, _| {
            if tensor.data_location == Some(EXTERNAL) {
                let bytes = weights.bytes(tensor)?.into_owned();
                set_bytes(tensor, bytes);
            }
            Ok(())
        })?;
        Ok(proto)
    }
}

/// Gives all external tensors the location `name`.
fn rename_location(proto: &mut ModelProto, name: &str) -> Result<()> {
    tensors::for_each_mut(proto, &mut |tensor, _: Role| {
        let location = tensor.external_data.iter_mut().find(|e| e.key.as_deref() == Some("location"));
        if let Some(location) = location {
            location.value = Some(name.to_owned());
        }
        Ok(())
    })
}

/// The path that a model is saved to.
struct Target<'p> {
    path: &'p Path,
    folder: &'p Path,
}

impl<'p> Target<'p> {
    fn new(path: &'p Path) -> Result<Self> {
        // What a rename would replace has to be a file, or a link to one: never a device or a pipe.
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => return Err(Error::NotAFile { path: path.to_owned() }),
            _ if path.file_name().is_none() => return Err(Error::NotAFile { path: path.to_owned() }),
            _ => {}
        }
        let folder = path.parent().filter(|f| *f != OsStr::new("")).unwrap_or(Path::new("."));
        Ok(Self { path, folder })
    }

    /// Writing over a file that holds weights of the model would lose them for whoever else reads them there.
    fn refuse_a_sidecar(&self, entries: &[ExternalTensor], weights: &Weights) -> Result<()> {
        let (Some(folder), Ok(real)) = (weights.folder(), fs::canonicalize(self.path)) else { return Ok(()) };
        let mut seen = BTreeSet::new();
        for entry in entries.iter().filter(|entry| seen.insert(&entry.location)) {
            if fs::canonicalize(folder.join(&entry.location)).is_ok_and(|sidecar| sidecar == real) {
                let rule = ExternalDataRule::IsTheModel;
                return Err(external_data::error(self.path, &entry.tensor, &entry.location, rule));
            }
        }
        Ok(())
    }

    /// The sidecars of a model that keeps them, each once, if the model finds them from where it will be.
    fn reachable(&self, entries: &[ExternalTensor], weights: &Weights) -> Result<Vec<SavedFile>> {
        let mut sidecars: Vec<SavedFile> = Vec::new();
        let Some(first) = entries.first() else { return Ok(sidecars) };
        let from = weights.folder().ok_or_else(|| Error::NoFolder { tensor: first.tensor.clone() })?;
        let real = |path: &Path| {
            fs::canonicalize(path).map_err(|source| Error::Io { path: path.to_owned(), source })
        };
        if real(from)? != real(self.folder)? {
            let (tensor, to) = (first.tensor.clone(), self.folder.to_owned());
            return Err(Error::SidecarOutOfReach { tensor, from: from.to_owned(), to });
        }
        let mut known: HashMap<&str, u64> = HashMap::new();
        for entry in entries {
            let fail = |rule| external_data::error(self.path, &entry.tensor, &entry.location, rule);
            let bytes = if let Some(&bytes) = known.get(entry.location.as_str()) {
                bytes
            } else {
                let path = self.folder.join(&entry.location);
                let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
                let bytes = file.ok_or_else(|| fail(ExternalDataRule::Missing))?.len();
                known.insert(&entry.location, bytes);
                sidecars.push(SavedFile { path, bytes });
                bytes
            };
            let end = entry.offset.saturating_add(entry.length);
            if end > bytes {
                return Err(fail(ExternalDataRule::TooShort { offset: entry.offset, end, file: bytes }));
            }
        }
        Ok(sidecars)
    }
}
