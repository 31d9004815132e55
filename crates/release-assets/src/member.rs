use std::{fs, path::Path};

use crate::{
    Error, Limits, Phase, Result,
    extract::Archive,
    files::{self, Temporary},
    hashing,
    progress::Progress,
};

/// Takes one file out of an archive whose SHA-256 is known, and puts it at `target`.
///
/// The archive's hash is checked first, then the structure of the whole archive (every
/// [`ArchiveRule`](crate::ArchiveRule)), and the member's bytes while they are written to a new file beside
/// `target`. That file is made durable and renamed, so that `target` is at every moment absent, what it was,
/// or complete. `target`'s folder must exist.
///
/// Returns true if `target` was written, false if it already held exactly the member's bytes. A `target` with
/// any other content is replaced.
///
/// `member` is the path inside of the archive with `/` between components; `expected_archive_sha256` is hex.
///
/// Errors: [`Error::HashMismatch`] before anything is read from the archive, [`Error::Archive`],
/// [`Error::NoSuchMember`], [`Error::DiskFull`], [`Error::Io`].
pub fn extract_member(
    zip: impl AsRef<Path>,
    member: &str,
    expected_archive_sha256: &str,
    target: impl AsRef<Path>,
    limits: &Limits,
) -> Result<bool> {
    let (zip, target) = (zip.as_ref(), target.as_ref());
    let progress = Progress::default();
    let mut archive = Archive::open(zip, Some(expected_archive_sha256), limits, &progress)?;
    let entry = archive.listing.files().find(|entry| entry.path == member).cloned();
    let Some(entry) = entry else {
        return Err(Error::NoSuchMember { archive: zip.to_owned(), member: member.to_owned() });
    };
    let parent = files::folder_or_here(target.parent().unwrap_or(Path::new("")));
    let needed = entry.size;
    // Only a file of the right size is worth decompressing the member for.
    if fs::symlink_metadata(target).is_ok_and(|m| m.is_file() && m.len() == needed) {
        let wanted = archive.decode(&entry, |_| Ok(()))?;
        if hashing::sha256_file(target)? == wanted.sha256 {
            return Ok(false);
        }
    }
    // Not made from the target's own name, which may be as long as names can be.
    let (file, temporary) = Temporary::file(parent, &".extracting-".into(), Some(needed))?;
    let mut counter = progress.phase(Phase::Extract, needed)?;
    archive.write_member(&entry, file, temporary.path(), needed, &mut counter)?;
    archive.recheck(&progress)?;
    files::rename(temporary.path(), target).map_err(|e| Error::writing(target, e, needed))?;
    temporary.keep();
    files::sync_folder(parent).map_err(|e| Error::writing(parent, e, needed))?;
    Ok(true)
}
