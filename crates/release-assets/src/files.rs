//! File-system steps with the path in their errors.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{Error, Result};

/// Opens a regular file for reading and returns its size; a pipe, device or folder is refused before it is
/// read.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let fail = |e| Error::io(path, e);
    // Before opening: opening a pipe waits for a writer.
    if !fs::metadata(path).map_err(fail)?.is_file() {
        return Err(Error::NotAFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_file() {
        Ok((file, metadata.len()))
    } else {
        Err(Error::NotAFile { path: path.to_owned() })
    }
}

/// Reads a small file whole; more than `limit` bytes are an error.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let (file, _) = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > limit {
        let source = io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes"));
        return Err(Error::io(path, source));
    }
    Ok(bytes)
}

/// Creates a file that must not be there yet; its mode is the process's default.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Makes the names in a folder durable. Windows has no such call and needs none.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Creates a folder with all above it. A file, link or pipe in the place of the folder itself is rubbish in a folder of ours, and
/// removed.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir_all(path) {
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) && !path.is_dir() => {
            fs::remove_file(path)?;
            fs::create_dir_all(path)
        }
        result => result,
    }
}

/// Marks something as used now. Best effort: a cache that cannot be written is not cleaned up either.
pub(crate) fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether something was last changed at least this long ago. A time in the future, beyond what clocks of machines that share a folder
/// may differ by, says nothing and counts as old.
pub(crate) fn is_older(path: &Path, age: Duration) -> bool {
    const CLOCKS: Duration = Duration::from_hours(24);
    let Ok(touched) = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()) else {
        return false;
    };
    match SystemTime::now().duration_since(touched) {
        Ok(past) => past >= age,
        Err(future) => age.is_zero() || future.duration() > CLOCKS,
    }
}

/// Renames. On Windows a scanner or a reader that has the file open for a moment makes this fail, so it is tried for
/// half a second there (case D18).
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut tries = if cfg!(windows) { 10 } else { 0 };
    loop {
        match fs::rename(from, to) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && tries > 0 => {
                tries -= 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

/// Writes a file whole or not at all: aside in its folder, durable, then under its name. What has the name already is replaced.
pub(crate) fn write_whole(folder: &Path, prefix: &str, path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |e| Error::writing(path, e, bytes.len() as u64);
    let (mut file, temporary) = Temporary::file(folder, &prefix.into())?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fail)?;
    rename(temporary.path(), path).map_err(fail)?;
    temporary.keep();
    sync_folder(folder).map_err(fail)
}

/// True if anything at all has this name, a dangling link included.
pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Removes whatever has this name, without following links.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// A name that no other thread or process uses: `prefix` and a suffix of process, time and counter.
pub(crate) fn unique_name(prefix: &OsString) -> OsString {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = prefix.clone();
    name.push(format!("{:x}-{since:x}-{count:x}", std::process::id()));
    name
}

/// Something temporary that is removed again unless it is kept.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    keep: bool,
}

impl Temporary {
    /// Creates a new folder in `parent`.
    pub(crate) fn folder(parent: &Path, prefix: &str) -> Result<Self> {
        Self::create(parent, &prefix.into(), |path| fs::create_dir(path)).map(|((), temporary)| temporary)
    }

    /// Creates a new file in `parent`.
    pub(crate) fn file(parent: &Path, prefix: &OsString) -> Result<(File, Self)> {
        Self::create(parent, prefix, create_new)
    }

    /// Takes over something that is there.
    pub(crate) fn adopt(path: PathBuf) -> Self {
        Self { path, keep: false }
    }

    fn create<T>(
        parent: &Path,
        prefix: &OsString,
        make: impl Fn(&Path) -> io::Result<T>,
    ) -> Result<(T, Self)> {
        loop {
            let path = parent.join(unique_name(prefix));
            match make(&path) {
                Ok(made) => return Ok((made, Self { path, keep: false })),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::writing(path, e, 0)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name is gone: renamed to where it belongs.
    pub(crate) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.keep {
            // Best effort: what stays is ignored, and swept later.
            let _ = remove(&self.path);
        }
    }
}

/// Removes entries of a folder whose name starts with one of `prefixes` and that nobody touched for `age`.
pub(crate) fn sweep(folder: &Path, prefixes: &[&str], age: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        if ours && is_older(&entry.path(), age) {
            let _ = remove(&entry.path());
        }
    }
}
