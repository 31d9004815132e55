//! Members of a listed archive, decompressed and written.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use flate2::bufread::DeflateDecoder;

use crate::{
    ArchiveRule, Error, Held, Limits, Phase, Result,
    central_directory::{self, Entry, Listing, Method},
    files,
    hashing::{self, BLOCK, Fingerprint, Fingerprinter, Job},
    progress::{Counter, Progress},
    zip_fields::Fault,
};

/// An archive file, open, hashed and listed. Everything is read through one handle.
#[derive(Debug)]
pub(crate) struct Archive {
    file: File,
    path: PathBuf,
    size: u64,
    /// The hash of the bytes once [`hashed`](Self::hashed) is set; what they should have before.
    pub(crate) sha256: String,
    hashed: bool,
    limits: Limits,
    pub(crate) listing: Listing,
}

impl Archive {
    /// Opens and hashes the archive; with `expected`, another hash is an error. Then checks its whole
    /// structure.
    pub(crate) fn open(
        path: &Path,
        expected: Option<&str>,
        limits: &Limits,
        progress: &Progress,
    ) -> Result<Self> {
        let (mut file, size) = files::open_regular(path)?;
        if expected.is_none() {
            // What is no archive at all, however long, is told before it is hashed.
            list(&mut file, path, size, limits)?;
        }
        let counter = progress.phase(Phase::HashArchive, size)?;
        let sha256 = hashing::hash_open_file(&mut file, path, Some(counter))?;
        if let Some(expected) = expected {
            compare(path, size, expected, &sha256)?;
        }
        // The listing that counts is read between this hash and the one after the extraction.
        let listing = list(&mut file, path, size, limits)?;
        Ok(Self { file, path: path.to_owned(), size, sha256, hashed: true, limits: *limits, listing })
    }

    /// Opens an archive whose hash is known and will be checked beside the files of its extraction, on another
    /// thread. Until then nothing that the listing says is trusted.
    #[cfg(feature = "network")]
    pub(crate) fn open_unhashed(
        path: &Path,
        expected: &str,
        limits: &Limits,
        progress: &Progress,
    ) -> Result<Self> {
        let (mut file, size) = files::open_regular(path)?;
        match list(&mut file, path, size, limits) {
            Ok(listing) => {
                let sha256 = expected.to_owned();
                Ok(Self {
                    file,
                    path: path.to_owned(),
                    size,
                    sha256,
                    hashed: false,
                    limits: *limits,
                    listing,
                })
            }
            // Damage is told from an archive that was never sound.
            Err(_) => Self::open(path, Some(expected), limits, progress),
        }
    }

    /// Hashes the archive if that was not done yet.
    pub(crate) fn ensure_hashed(&mut self, progress: &Progress) -> Result<()> {
        if self.hashed {
            return Ok(());
        }
        let counter = progress.phase(Phase::HashArchive, self.size)?;
        let found = hashing::hash_open_file(&mut self.file, &self.path, Some(counter))?;
        self.accept_hash(&found)
    }

    /// The work of hashing the archive, with its size; none if that was done.
    pub(crate) fn hash_job(&mut self) -> Option<(u64, Job<'_>)> {
        (!self.hashed).then_some((self.size, Job::Open(&mut self.file, &self.path)))
    }

    pub(crate) fn accept_hash(&mut self, found: &str) -> Result<()> {
        compare(&self.path, self.size, &self.sha256, found)?;
        // The listing that counts is read between this hash and the one after the extraction.
        self.listing = list(&mut self.file, &self.path, self.size, &self.limits)?;
        self.hashed = true;
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(feature = "network")]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Copies the archive into a new, empty file and makes that durable; the hash is that of what was written.
    #[cfg(feature = "network")]
    pub(crate) fn copy_to(&mut self, target: &mut File, path: &Path, progress: &Progress) -> Result<String> {
        let size = self.size;
        let mut counter = progress.phase(Phase::Import, size)?;
        let write_error = |e| Error::writing(path, e, size);
        self.file.seek(SeekFrom::Start(0)).map_err(|e| Error::io(&self.path, e))?;
        let mut fingerprinter = Fingerprinter::default();
        hashing::read_blocks(&mut self.file, &self.path, |block| {
            target.write_all(block).map_err(write_error)?;
            fingerprinter.update(block);
            counter.add(block.len())
        })?;
        target.sync_all().map_err(write_error)?;
        Ok(fingerprinter.finish().sha256)
    }

    /// Decompresses every member and checks it, without writing anything. In the order of the listing.
    pub(crate) fn fingerprints(&mut self, progress: &Progress) -> Result<Vec<Fingerprint>> {
        let mut counter = progress.phase(Phase::Verify, self.listing.total_bytes)?;
        let entries: Vec<Entry> = self.listing.files().cloned().collect();
        entries.iter().map(|entry| self.decode(entry, |block| counter.add(block.len()))).collect()
    }

    /// Hashes the archive again: what was extracted between two equal hashes came from these bytes.
    pub(crate) fn recheck(&mut self, progress: &Progress) -> Result<()> {
        let counter = progress.phase(Phase::RecheckArchive, self.size)?;
        let after = hashing::hash_open_file(&mut self.file, &self.path, Some(counter))?;
        if after == self.sha256 {
            return Ok(());
        }
        Err(Error::ArchiveChanged { path: self.path.clone(), before: self.sha256.clone(), after })
    }

    /// Decompresses one member into `sink`, counting and checking every byte.
    pub(crate) fn decode(
        &mut self,
        entry: &Entry,
        mut sink: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Fingerprint> {
        let archive = self.path.clone();
        let read_error = |e| Error::io(&archive, e);
        let refuse =
            |rule| Error::Archive { archive: archive.clone(), member: Some(entry.path.clone()), rule };
        self.file.seek(SeekFrom::Start(entry.data_offset)).map_err(read_error)?;
        let compressed = BufReader::with_capacity(BLOCK, (&mut self.file).take(entry.compressed));
        let mut source = Source::new(entry.method, compressed);
        let mut fingerprinter = Fingerprinter::default();
        let (mut block, mut size) = (vec![0; BLOCK], 0);
        loop {
            let count = match source.read(&mut block) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if is_decoder_error(&e) => return Err(refuse(ArchiveRule::Corrupt)),
                Err(e) => return Err(read_error(e)),
            };
            size += count as u64;
            if size > entry.size {
                return Err(refuse(ArchiveRule::ActualSize { declared: entry.size, held: Held::More }));
            }
            fingerprinter.update(&block[..count]);
            sink(&block[..count])?;
        }
        if size != entry.size {
            let held = Held::Exactly(size);
            return Err(refuse(ArchiveRule::ActualSize { declared: entry.size, held }));
        }
        if source.consumed().is_some_and(|bytes| bytes != entry.compressed) {
            return Err(refuse(ArchiveRule::ActualSize { declared: entry.size, held: Held::Leftover }));
        }
        let fingerprint = fingerprinter.finish();
        if fingerprint.crc32 != entry.crc32 {
            return Err(refuse(ArchiveRule::Crc { declared: entry.crc32, found: fingerprint.crc32 }));
        }
        Ok(fingerprint)
    }

    /// Writes every file below `root`, a new folder that nobody else writes to. Returns the files'
    /// fingerprints in the order of the listing.
    pub(crate) fn extract_all(&mut self, root: &Path, progress: &Progress) -> Result<Vec<Fingerprint>> {
        let needed = self.listing.total_bytes;
        let mut counter = progress.phase(Phase::Extract, needed)?;
        let mut folders = BTreeSet::new();
        let mut fingerprints = Vec::new();
        let entries: Vec<Entry> = self.listing.files().cloned().collect();
        for entry in &entries {
            self.create_parents(root, entry, &mut folders)?;
            let target = root.join(&entry.path);
            let file = files::create_new(&target).map_err(|e| self.create_error(&target, entry, e))?;
            fingerprints.push(self.write_member(entry, file, &target, needed, &mut counter)?);
        }
        for folder in folders.iter().rev() {
            let folder = root.join(folder);
            files::sync_folder(&folder).map_err(|e| Error::writing(folder, e, needed))?;
        }
        Ok(fingerprints)
    }

    /// Writes one member into a new, empty file and makes it durable.
    pub(crate) fn write_member(
        &mut self,
        entry: &Entry,
        mut file: File,
        target: &Path,
        needed: u64,
        counter: &mut Counter<'_>,
    ) -> Result<Fingerprint> {
        let write_error = |e| Error::writing(target, e, needed);
        let fingerprint = self.decode(entry, |block| {
            file.write_all(block).map_err(write_error)?;
            counter.add(block.len())
        })?;
        file.sync_all().map_err(write_error)?;
        Ok(fingerprint)
    }

    fn create_parents(&self, root: &Path, entry: &Entry, made: &mut BTreeSet<String>) -> Result<()> {
        for (at, _) in entry.path.match_indices('/') {
            let folder = &entry.path[..at];
            if !made.contains(folder) {
                let target = root.join(folder);
                fs::create_dir(&target).map_err(|e| self.create_error(&target, entry, e))?;
                made.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    /// In a new folder a name can only be taken by another member, under rules that are this file system's
    /// own.
    fn create_error(&self, target: &Path, entry: &Entry, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let (archive, member) = (self.path.clone(), Some(entry.path.clone()));
            return Error::Archive { archive, member, rule: ArchiveRule::FileSystemTwin };
        }
        Error::writing(target, error, self.listing.total_bytes)
    }
}

fn list(file: &mut File, path: &Path, size: u64, limits: &Limits) -> Result<Listing> {
    central_directory::read(&mut BufReader::new(file), size, limits).map_err(|fault| {
        let archive = path.to_owned();
        match fault {
            Fault::Rule { member, rule } => Error::Archive { archive, member, rule },
            Fault::Io(source) => Error::io(archive, source),
        }
    })
}

fn compare(path: &Path, size: u64, expected: &str, found: &str) -> Result<()> {
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let (path, expected, found) = (path.to_owned(), expected.to_owned(), found.to_owned());
    Err(Error::HashMismatch { path, size, expected, found })
}

/// The decoder's own complaints, as opposed to those of the file it reads.
fn is_decoder_error(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

enum Source<R> {
    Stored(R),
    Deflate(DeflateDecoder<R>),
}

impl<R: io::BufRead> Source<R> {
    fn new(method: Method, compressed: R) -> Self {
        match method {
            Method::Stored => Self::Stored(compressed),
            Method::Deflate => Self::Deflate(DeflateDecoder::new(compressed)),
        }
    }

    /// Compressed bytes that the decoder used.
    fn consumed(&self) -> Option<u64> {
        match self {
            Self::Stored(_) => None,
            Self::Deflate(decoder) => Some(decoder.total_in()),
        }
    }
}

impl<R: io::BufRead> Read for Source<R> {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(reader) => reader.read(block),
            Self::Deflate(decoder) => decoder.read(block),
        }
    }
}
