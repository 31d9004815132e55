use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use buffa::{Message, Rope};
use tempfile::NamedTempFile;

use super::{Saved, SavedFile, Target, sidecar::Written};
use crate::{Error, Model, Result, external_data, proto::ModelProto};

impl Target<'_> {
    /// Writes the model aside, then gives sidecar and model their names.
    pub(super) fn publish(
        &self,
        proto: &ModelProto,
        written: Option<Written>,
        kept: Vec<SavedFile>,
    ) -> Result<Saved> {
        let fail = |source| Error::Write { path: self.path.to_owned(), source };
        let (model, bytes) = self.encode(proto)?;
        let mut sidecars = kept;
        let mut published = None;
        if let Some(written) = written {
            let path = self.folder.join(written.name());
            let bytes = written.bytes();
            if let Some(file) = written.into_file() {
                match file.persist_noclobber(&path) {
                    Ok(_) => published = Some(path.clone()),
                    // Somebody was faster.
                    Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(Error::SidecarTaken { path });
                    }
                    Err(e) => return Err(Error::Write { path, source: e.error }),
                }
            }
            sidecars.push(SavedFile { path, bytes });
        }
        let unused = self.unused(&sidecars);
        if let Err(e) = sync_folder(self.folder).and_then(|()| model.persist(self.path).map_err(|e| e.error))
        {
            // Nothing refers to it.
            if let Some(sidecar) = published {
                let _ = fs::remove_file(sidecar);
            }
            return Err(fail(e));
        }
        // Old or new, what has the name is whole; a failure here says only how durable the name is.
        let _ = sync_folder(self.folder);
        Ok(Saved { model: SavedFile { path: self.path.to_owned(), bytes }, sidecars, unused })
    }

    /// The encoded model in a file aside, durable. Weights inside are written from where they are in memory.
    fn encode(&self, proto: &ModelProto) -> Result<(NamedTempFile, u64)> {
        let fail = |source| Error::Write { path: self.path.to_owned(), source };
        let mut rope = Rope::new();
        proto.try_encode(&mut rope).map_err(|e| Error::Encode { reason: e.to_string() })?;
        let bytes = rope.len() as u64;
        let mut file = aside(self.folder).map_err(fail)?;
        for segment in rope.into_segments() {
            file.write_all(&segment).map_err(fail)?;
        }
        file.as_file().sync_all().map_err(fail)?;
        Ok((file, bytes))
    }

    /// Sidecars of the model that is replaced, where it is one, that the new one does not use.
    fn unused(&self, used: &[SavedFile]) -> Vec<PathBuf> {
        let old = Model::read(self.path).and_then(|old| external_data::list(&old, self.path));
        let locations: BTreeSet<String> = old.unwrap_or_default().into_iter().map(|e| e.location).collect();
        let paths = locations.into_iter().map(|location| self.folder.join(location));
        paths.filter(|path| path.is_file() && used.iter().all(|file| file.path != *path)).collect()
    }
}

/// A file beside those that it will be one of, which is gone if nobody gives it a name.
pub(super) fn aside(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".onnx-graph-");
    // As any new file: the process's umask decides who may read it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Makes the names in a folder durable. Windows has no such call and needs none.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
