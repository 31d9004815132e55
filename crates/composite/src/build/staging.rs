//! A folder that is made aside and takes its place as a whole.

use std::{fs, io, path::Path};

use tempfile::TempDir;

use crate::{Error, Result, files::folder_of};

/// What is not published is removed.
pub(super) struct Staging(TempDir);

impl Staging {
    /// In the folder that `target` will be in, which is made where it is missing.
    pub(super) fn beside(target: &Path) -> Result<Self> {
        let parent = folder_of(target);
        let io = |source| Error::Io { path: parent.to_owned(), source };
        fs::create_dir_all(parent).map_err(io)?;
        tempfile::Builder::new().prefix(".build-").tempdir_in(parent).map(Self).map_err(io)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes the place of what is there, in one step where the system has one: then there is always a build, the earlier one or the
    /// new one. Elsewhere there is none for an instant. Where it fails, what was there is put back.
    pub(super) fn publish(self, target: &Path) -> Result<()> {
        let io = |source| Error::Io { path: target.to_owned(), source };
        open_to_all(self.path()).map_err(io)?;
        match fs::symlink_metadata(target) {
            Ok(_) if exchange(self.path(), target) => {}
            Ok(_) => self.replace(target).map_err(io)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::rename(self.path(), target).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        sync(folder_of(target));
        // What is aside now, if anything is, goes with `self`.
        Ok(())
    }

    fn replace(&self, target: &Path) -> io::Result<()> {
        let aside = tempfile::Builder::new().prefix(".build-").tempdir_in(folder_of(target))?;
        let old = aside.path().join("old");
        fs::rename(target, &old)?;
        let Err(error) = fs::rename(self.path(), target) else { return Ok(()) };
        if fs::rename(&old, target).is_ok() {
            return Err(error);
        }
        // Better left aside than removed.
        let kept = aside.keep().join("old");
        Err(io::Error::other(format!("{error}; what was there is at {}", kept.display())))
    }
}

/// Two folders change places. False where the system, or the file system, cannot do that in one step.
fn exchange(one: &Path, other: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        false
    }
}

/// A temporary folder is its owner's alone; a build is as open as a folder that anybody makes.
fn open_to_all(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let plain = folder.join(".plain");
        fs::create_dir(&plain)?;
        let mode = fs::metadata(&plain)?.permissions().mode();
        fs::remove_dir(&plain)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Makes a rename durable, where the system can.
fn sync(folder: &Path) {
    #[cfg(unix)]
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
    #[cfg(not(unix))]
    let _ = folder;
}

/// A file's bytes under another name, durable.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let writing = |source| Error::Io { path: to.to_owned(), source };
    let mut source = fs::File::open(from).map_err(|source| Error::Io { path: from.to_owned(), source })?;
    let mut target = fs::File::create(to).map_err(writing)?;
    io::copy(&mut source, &mut target).and_then(|_| target.sync_all()).map_err(writing)
}

/// A folder that is there and holds anything but a build stays as it is.
pub(super) fn refuse_a_strange_folder(folder: &Path) -> Result<()> {
    let strange = |reason: &str| Err(Error::Build { folder: folder.to_owned(), reason: reason.to_owned() });
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Io { path: folder.to_owned(), source }),
        Ok(found) if !found.is_dir() => strange("it is there already, and no folder"),
        Ok(_) => {
            let mut entries =
                fs::read_dir(folder).map_err(|source| Error::Io { path: folder.to_owned(), source })?;
            if entries.next().is_none() { Ok(()) } else { strange("it holds other things than a build") }
        }
    }
}
