//! SHA-256 of files, streamed.

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
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

/// Fingerprints a file of an extraction.
pub(crate) fn fingerprint_file(path: &Path, counter: &mut Counter<'_>) -> Result<Fingerprint> {
    let (mut file, _) = files::open_regular(path)?;
    let mut fingerprinter = Fingerprinter::default();
    read_blocks(&mut file, path, |block| {
        fingerprinter.update(block);
        counter.add(block.len())
    })?;
    Ok(fingerprinter.finish())
}

/// SHA-256 of a few bytes in memory, in lower-case hex.
pub(crate) fn sha256_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn read_blocks(file: &mut File, path: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
