//! SHA-256 of files, streamed.

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read, Seek, SeekFrom},
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use flate2::Crc;
use sha2::{Digest, Sha256};

use crate::{Error, Result, files, progress::Counter};

/// Large enough that calls cost nothing beside hashing, small enough for the processor's cache.
pub(crate) const BLOCK: usize = 1 << 18;

/// What one pass over a file's bytes tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) size: u64,
    /// Lower-case hex.
    pub(crate) sha256: String,
    pub(crate) crc32: u32,
}

/// Size, SHA-256 and CRC-32 of bytes as they pass by.
#[derive(Default)]
pub(crate) struct Fingerprinter {
    size: u64,
    sha256: Sha256,
    crc32: Crc,
}

impl Fingerprinter {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        self.crc32.update(bytes);
    }

    pub(crate) fn finish(self) -> Fingerprint {
        Fingerprint { size: self.size, sha256: hex(&self.sha256.finalize()), crc32: self.crc32.sum() }
    }
}

/// The SHA-256 of a file in lower-case hex, read in blocks.
///
/// Errors: [`Error::NotAFile`] for anything but a regular file, [`Error::Io`] with the path.
pub fn sha256_file(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let (mut file, _) = files::open_regular(path)?;
    hash_open_file(&mut file, path, None)
}

/// Hashes an open file from its start.
pub(crate) fn hash_open_file(
    file: &mut File,
    path: &Path,
    mut counter: Option<Counter<'_>>,
) -> Result<String> {
    file.seek(SeekFrom::Start(0)).map_err(|e| Error::io(path, e))?;
    let mut sha256 = Sha256::new();
    read_blocks(file, path, |block| {
        sha256.update(block);
        counter.as_mut().map_or(Ok(()), |counter| counter.add(block.len()))
    })?;
    Ok(hex(&sha256.finalize()))
}

/// One file to be fingerprinted.
#[derive(Debug)]
pub(crate) enum Job<'a> {
    /// An open file and its path.
    Open(&'a mut File, &'a Path),
    /// A file to be opened.
    Path(PathBuf),
}

/// Fingerprints files, the largest first, on two threads: hashing keeps one core busy, and releases hold two
/// large files. Results come in the order of the jobs, which carry their files' sizes. A cancelled run ends
/// with [`Error::Cancelled`] for at least one of them.
pub(crate) fn fingerprint_all(jobs: Vec<(u64, Job<'_>)>, counter: Counter<'_>) -> Vec<Result<Fingerprint>> {
    let counter = Mutex::new(counter);
    let stop = AtomicBool::new(false);
    let mut results: Vec<_> = jobs.iter().map(|_| Err(Error::Cancelled)).collect();
    let mut queue: Vec<_> = jobs.into_iter().enumerate().collect();
    queue.sort_by_key(|(_, (size, _))| *size);
    let queue = Mutex::new(queue);
    let work = || {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Some((index, (_, job))) = locked(&queue).pop() else { break };
            let result = fingerprint(job, &counter);
            if matches!(result, Err(Error::Cancelled)) {
                stop.store(true, Ordering::Relaxed);
            }
            done.push((index, result));
        }
        done
    };
    let done = thread::scope(|scope| {
        // Where no thread can be had, this one does all the work.
        let other = thread::Builder::new().spawn_scoped(scope, work);
        let mut done = work();
        // A panic there is the caller's, whose callback it was, and goes on here.
        let others = other.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.extend(others.flatten());
        done
    });
    for (index, result) in done {
        results[index] = result;
    }
    results
}

fn fingerprint(job: Job<'_>, counter: &Mutex<Counter<'_>>) -> Result<Fingerprint> {
    let (mut opened, path);
    let (file, path) = match job {
        Job::Open(file, path) => {
            file.seek(SeekFrom::Start(0)).map_err(|e| Error::io(path, e))?;
            (file, path)
        }
        Job::Path(to_open) => {
            path = to_open;
            opened = files::open_regular(&path)?.0;
            (&mut opened, path.as_path())
        }
    };
    let mut fingerprinter = Fingerprinter::default();
    read_blocks(file, path, |block| {
        fingerprinter.update(block);
        locked(counter).add(block.len())
    })?;
    Ok(fingerprinter.finish())
}

/// What is behind a lock; a thread that panicked leaves nothing half-done in any of ours.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SHA-256 of a few bytes in memory, in lower-case hex.
pub(crate) fn sha256_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Whether a text is so many lower-case hex digits.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Hands a file's bytes on, block by block, from where it stands.
pub(crate) fn read_blocks(
    file: &mut File,
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(count) => each(&block[..count])?,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(path, e)),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
