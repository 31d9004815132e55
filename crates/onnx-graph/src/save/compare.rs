use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

/// What has a file's name already.
pub(super) enum Found {
    Nothing,
    TheSame,
    Another,
}

/// Compares what has the name `path` with `file`. A link is another file, whatever it leads to: it may lead elsewhere tomorrow.
pub(super) fn compare(path: &Path, file: &mut File) -> io::Result<Found> {
    let found = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        result => result?,
    };
    if !found.is_file() || found.len() != file.metadata()?.len() {
        return Ok(Found::Another);
    }
    let mut there = io::BufReader::with_capacity(CHUNK, File::open(path)?);
    let mut same = true;
    in_chunks(file, |chunk| {
        let mut other = vec![0; chunk.len()];
        same &= there.read_exact(&mut other).is_ok() && other == chunk;
        same
    })?;
    Ok(if same { Found::TheSame } else { Found::Another })
}

/// FNV-1a, 64 bits: it tells sidecars apart, and what it cannot tell apart is compared.
pub(super) fn digest(file: &mut File) -> io::Result<u64> {
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
    in_chunks(file, |chunk| {
        for &byte in chunk {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        true
    })?;
    Ok(digest)
}

const CHUNK: usize = 1 << 16;

/// Hands over a file from its start, piece by piece, until `next` has had enough.
fn in_chunks(file: &mut File, mut next: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 || !next(chunk.get(..read).unwrap_or_default()) {
            return Ok(());
        }
    }
}
