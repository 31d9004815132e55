//! The cache as a whole: checking everything in it, and removing what is no longer used.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    Cache, Damage, Error, Result,
    cache::{ARCHIVE_NAME, LEFTOVER_AGE, LEFTOVERS},
    extract::Archive,
    files,
    provenance::Request,
    tree::{self, Depth, State},
};

/// What [`Cache::verify`] found of one thing in the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The archive or extraction.
    pub path: PathBuf,
    /// The archive's SHA-256, as the cache's layout has it.
    pub archive_sha256: String,
    /// What is wrong; nothing where every byte is right.
    pub damage: Vec<Damage>,
    /// False where the archive is not kept in the cache (it was opened by path), so that the extraction was held
    /// against its own record alone.
    pub against_archive: bool,
}

/// What [`Cache::gc`] removed, or would remove.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Cleaned {
    /// Folders and files, each with its bytes.
    pub removed: Vec<(PathBuf, u64)>,
    /// Bytes in all.
    pub bytes: u64,
}

impl Cache {
    /// Hashes everything in the cache and says what is wrong. Nothing is changed: what is damaged is mended when it is
    /// next asked for.
    ///
    /// Errors: [`Error::Io`] (the cache cannot be listed), [`Error::Cancelled`].
    pub fn verify(&self) -> Result<Vec<Checked>> {
        let mut found = Vec::new();
        for (sha256, folder) in self.archives()? {
            let kept = folder.join(ARCHIVE_NAME);
            let archive = if files::exists(&kept) {
                let opened = Archive::open(&kept, Some(&sha256), self.archive_limits(), self.progress());
                let damage = match &opened {
                    Ok(_) => Vec::new(),
                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                    Err(_) => vec![Damage::Archive],
                };
                found.push(Checked {
                    path: kept,
                    archive_sha256: sha256.clone(),
                    damage,
                    against_archive: true,
                });
                opened.ok()
            } else {
                None
            };
            self.verify_extractions(&sha256, &folder, archive, &mut found)?;
        }
        Ok(found)
    }

    fn verify_extractions(
        &self,
        sha256: &str,
        folder: &Path,
        mut archive: Option<Archive>,
        found: &mut Vec<Checked>,
    ) -> Result<()> {
        for (name, path) in folders(folder)? {
            let damage = match (tree::read_record(&path), &mut archive) {
                (Err(reason), _) => vec![Damage::Record { reason }],
                (Ok(record), archive) => {
                    match Request::of_record(&record).filter(|request| request.key() == name) {
                        None => vec![Damage::Record { reason: "it speaks of another request".to_owned() }],
                        Some(request) => match archive {
                            Some(archive) => {
                                match tree::inspect(&path, archive, &request, Depth::Full, self.progress())? {
                                    State::Valid(_) => Vec::new(),
                                    State::Absent => vec![Damage::NotAFolder],
                                    State::Damaged(damage) => damage,
                                }
                            }
                            None => tree::inspect_by_record(&path, &record, self.progress())?,
                        },
                    }
                }
            };
            found.push(Checked {
                path,
                archive_sha256: sha256.to_owned(),
                damage,
                against_archive: archive.is_some(),
            });
        }
        Ok(())
    }

    /// Removes archives and extractions that were not used for `unused`, and what killed processes left. With `dry`
    /// nothing is removed, only listed. What an address gave first stays remembered, so that an archive that is
    /// fetched again must be what it was.
    ///
    /// Errors: [`Error::Io`] (the cache cannot be listed, or something cannot be removed).
    pub fn gc(&self, unused: Duration, dry: bool) -> Result<Cleaned> {
        let mut cleaned = Cleaned::default();
        let mut candidates: Vec<PathBuf> = Vec::new();
        for (_, folder) in self.archives()? {
            if is_older(&folder, unused) {
                candidates.push(folder);
            }
        }
        let bucket = self.bucket();
        for entry in fs::read_dir(&bucket).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let left =
                name.to_str().is_some_and(|name| LEFTOVERS.iter().any(|prefix| name.starts_with(prefix)));
            if left && is_older(&entry.path(), LEFTOVER_AGE) {
                candidates.push(entry.path());
            }
        }
        for path in candidates {
            let bytes = size_of(&path);
            if !dry {
                // Renamed first: a reader never sees half of an entry.
                let aside = bucket.join(files::unique_name(&LEFTOVERS[0].into()));
                files::rename(&path, &aside).map_err(|e| Error::io(&path, e))?;
                files::remove(&aside).map_err(|e| Error::io(&path, e))?;
            }
            cleaned.bytes += bytes;
            cleaned.removed.push((path, bytes));
        }
        Ok(cleaned)
    }

    /// The folders of the bucket that are named by an archive's hash, sorted.
    fn archives(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut found = folders(&self.bucket())?;
        found.retain(|(name, _)| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()));
        Ok(found)
    }
}

/// The folders in a folder by name, sorted; none if it is not there.
fn folders(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let fail = |e| Error::io(folder, e);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(fail(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn is_older(path: &Path, age: Duration) -> bool {
    let touched = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
    touched.and_then(|at| SystemTime::now().duration_since(at).ok()).is_some_and(|past| past >= age)
}

/// Bytes of all files below a path. Links are not followed; the depth is that of our own layout and of archives.
fn size_of(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum()
        }
        Ok(found) => found.len(),
        Err(_) => 0,
    }
}
