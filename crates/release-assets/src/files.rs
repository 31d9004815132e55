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

/// A folder by a path that may be empty, which means the current one.
pub(crate) fn folder_or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Makes the names in a folder durable. Windows has no such call and needs none.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path) {
        // What may be written to but not read is written to already; the file itself is durable.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
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

/// Marks a file or folder as used now. Best effort: a cache that cannot be written is not cleaned up either.
pub(crate) fn touch(path: &Path) {
    // Opening a pipe would wait for its other end.
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() || found.is_file()) {
        let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Whether something was last changed at least this long ago. A time in the future is not: a clock that was set back must not make
/// everything old at once.
pub(crate) fn is_older(path: &Path, age: Duration) -> bool {
    let Ok(touched) = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()) else {
        return false;
    };
    SystemTime::now().duration_since(touched).unwrap_or_default() >= age
}

/// Renames. On Windows a scanner or a reader that has the file open for a moment makes this fail, so it is tried for
/// half a second there (case D18).
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    while_denied(if cfg!(windows) { 10 } else { 0 }, || fs::rename(from, to))
}

/// Does something again, so many times at most, as long as it is not permitted.
fn while_denied(mut again: u32, mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match act() {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && again > 0 => {
                again -= 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

/// Writes a file whole or not at all: aside in its folder, durable, then under its name. What has the name already is replaced.
pub(crate) fn write_whole(folder: &Path, prefix: &str, path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |e| Error::writing(path, e, bytes.len() as u64);
    let temporary = write_aside(folder, prefix, bytes)?;
    rename(temporary.path(), path).map_err(fail)?;
    temporary.keep();
    sync_folder(folder).map_err(fail)
}

/// As [`write_whole`], unless something has the name already: that stays, and the answer is false. `link` gives a file a
/// second name that must be free; where the file system has no such thing, the file is written in its place, which
/// others may see half-written.
#[cfg(feature = "network")]
pub(crate) fn write_new(
    folder: &Path,
    prefix: &str,
    path: &Path,
    bytes: &[u8],
    link: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<bool> {
    let fail = |e| Error::writing(path, e, bytes.len() as u64);
    let temporary = write_aside(folder, prefix, bytes)?;
    let written = link(temporary.path(), path).or_else(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Err(e),
        _ => create_new(path).and_then(|mut file| {
            // Half a fact would be in everybody's way.
            let written = file.write_all(bytes).and_then(|()| file.sync_all());
            written.inspect_err(|_| drop(fs::remove_file(path)))
        }),
    });
    match written {
        Ok(()) => sync_folder(folder).map(|()| true).map_err(fail),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(fail(e)),
    }
}

/// Writes a durable file under a name that nobody knows.
fn write_aside(folder: &Path, prefix: &str, bytes: &[u8]) -> Result<Temporary> {
    let size = bytes.len() as u64;
    let (mut file, temporary) = Temporary::file(folder, &prefix.into(), Some(size))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|e| Error::writing(temporary.path(), e, size))?;
    Ok(temporary)
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
    /// Creates a new folder in `parent`, for so many bytes.
    pub(crate) fn folder(parent: &Path, prefix: &str, needed: u64) -> Result<Self> {
        let made = Self::create(parent, &prefix.into(), Some(needed), |path| fs::create_dir(path));
        made.map(|((), temporary)| temporary)
    }

    /// Creates a new file in `parent`, for so many bytes where that is known.
    pub(crate) fn file(parent: &Path, prefix: &OsString, needed: Option<u64>) -> Result<(File, Self)> {
        Self::create(parent, prefix, needed, create_new)
    }

    /// Takes over something that is there.
    pub(crate) fn adopt(path: PathBuf) -> Self {
        Self { path, keep: false }
    }

    fn create<T>(
        parent: &Path,
        prefix: &OsString,
        needed: Option<u64>,
        make: impl Fn(&Path) -> io::Result<T>,
    ) -> Result<(T, Self)> {
        loop {
            let path = parent.join(unique_name(prefix));
            match make(&path) {
                Ok(made) => return Ok((made, Self { path, keep: false })),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::writing(path, e, needed)),
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// With links and without, a name that is taken stays what it is.
    #[cfg(feature = "network")]
    #[test]
    fn what_is_new_replaces_nothing() {
        for links in [true, false] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("name");
            let write = |bytes: &[u8]| {
                write_new(place.path(), ".aside-", &path, bytes, |from, to| {
                    if links { fs::hard_link(from, to) } else { Err(io::ErrorKind::Unsupported.into()) }
                })
            };
            assert!(write(b"one").unwrap());
            assert!(!write(b"two").unwrap());
            assert_eq!(fs::read(&path).unwrap(), b"one");
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        }
    }

    /// D18: a file that somebody has open for a moment is waited for, a bounded number of times, and nothing else is.
    #[test]
    fn what_is_not_permitted_for_a_moment_is_tried_again() {
        let tries = |again, denied: u32, kind: io::ErrorKind| {
            let mut count = 0;
            let result = while_denied(again, || {
                count += 1;
                if count <= denied { Err(kind.into()) } else { Ok(()) }
            });
            (result.is_ok(), count)
        };
        assert_eq!(tries(3, 2, io::ErrorKind::PermissionDenied), (true, 3));
        assert_eq!(tries(3, 9, io::ErrorKind::PermissionDenied), (false, 4));
        assert_eq!(tries(3, 1, io::ErrorKind::NotFound), (false, 1));
    }
}
