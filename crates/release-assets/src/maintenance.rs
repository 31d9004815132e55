//! The cache as a whole: checking everything in it, and removing what is no longer used.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Cache, Damage, Error, InventoryEntry, Result,
    cache::{ARCHIVE_NAME, FACTS, LEFTOVER_AGE, LEFTOVERS},
    extract::Archive,
    files::{self, is_older},
    pin::is_sha256,
    provenance::{RECORD_MAX_BYTES, Request},
    tree::{self, Depth, State},
};

/// What [`Cache::verify`] found of one thing in the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The archive or extraction, or the file of what is remembered, which is listed where it is damaged only.
    pub path: PathBuf,
    /// The archive's SHA-256, as the cache's layout has it; empty for what is remembered.
    pub archive_sha256: String,
    /// What is wrong; nothing where every byte is right.
    pub damage: Vec<Damage>,
    /// False where there is no sound archive in the cache (it was opened by path, or is damaged itself), so that the
    /// extraction was held against its own record alone. With one, every file is compared with what the archive gives.
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
    /// What could not be removed, each with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl Cache {
    /// Hashes everything in the cache and says what is wrong. Nothing is changed: what is damaged is mended when it is
    /// next asked for.
    ///
    /// Errors: [`Error::Io`] (the cache cannot be listed), [`Error::Cancelled`].
    pub fn verify(&self) -> Result<Vec<Checked>> {
        let mut found = Vec::new();
        for (sha256, folder) in self.archives()? {
            let mut checked = self.verify_archive(&sha256, &folder)?;
            if checked.iter().any(|checked| !checked.damage.is_empty()) {
                // Another process may have removed or replaced it while it was read: what is damaged still is.
                checked = self.verify_archive(&sha256, &folder)?;
                checked.retain(|checked| checked.damage.is_empty() || files::exists(&checked.path));
            }
            found.extend(checked);
        }
        #[cfg(feature = "network")]
        for (path, reason) in crate::facts::Facts::new(self.root()).damaged() {
            let damage = vec![Damage::Fact { reason }];
            found.push(Checked { path, archive_sha256: String::new(), damage, against_archive: false });
        }
        Ok(found)
    }

    /// Checks an archive and what was made of it.
    fn verify_archive(&self, sha256: &str, folder: &Path) -> Result<Vec<Checked>> {
        if !is_folder(folder) {
            return Ok(vec![not_a_folder(folder.to_owned(), sha256.to_owned())]);
        }
        let mut found = Vec::new();
        let kept = folder.join(ARCHIVE_NAME);
        let archive = if files::exists(&kept) {
            let opened = Archive::open(&kept, Some(sha256), self.archive_limits(), self.progress());
            let damage = match &opened {
                Ok(_) => Vec::new(),
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Err(Error::HashMismatch { .. } | Error::NotAFile { .. }) => vec![Damage::Archive],
                Err(error) => vec![unreadable(ARCHIVE_NAME, error)],
            };
            found.push(Checked {
                path: kept,
                archive_sha256: sha256.to_owned(),
                damage,
                against_archive: true,
            });
            opened.ok()
        } else {
            None
        };
        self.verify_extractions(sha256, folder, archive, &mut found)?;
        Ok(found)
    }

    fn verify_extractions(
        &self,
        sha256: &str,
        folder: &Path,
        mut archive: Option<Archive>,
        found: &mut Vec<Checked>,
    ) -> Result<()> {
        let entries = match entries(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let damage = vec![unreadable("", &error)];
                let (path, archive_sha256) = (folder.to_owned(), sha256.to_owned());
                found.push(Checked { path, archive_sha256, damage, against_archive: false });
                return Ok(());
            }
        };
        // What the archive gives, unpacked once for all extractions.
        let mut given = None;
        for (name, path) in entries {
            if name == ARCHIVE_NAME {
                continue;
            }
            if !is_folder(&path) {
                found.push(not_a_folder(path, sha256.to_owned()));
                continue;
            }
            let damage = match (tree::read_record(&path, RECORD_MAX_BYTES), &mut archive) {
                (Err(reason), _) => vec![Damage::Record { reason }],
                (Ok(record), archive) => {
                    match Request::of_record(&record).filter(|request| request.key() == name) {
                        None => vec![Damage::Record { reason: "it speaks of another request".to_owned() }],
                        Some(request) => match archive {
                            Some(archive) => {
                                match self.verify_against(&path, archive, &request, &mut given) {
                                    Ok(damage) => damage,
                                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                                    // An error that one archive ends in is said of it.
                                    Err(error) => vec![unreadable(ARCHIVE_NAME, &error)],
                                }
                            }
                            None => {
                                tree::inspect_by_record(&path, &record, &request, sha256, self.progress())?
                            }
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

    /// Checks an extraction as at a reuse, and then every file against what the archive gives when it is decompressed
    /// anew, whatever the record says.
    fn verify_against(
        &self,
        path: &Path,
        archive: &mut Archive,
        request: &Request,
        given: &mut Option<Vec<InventoryEntry>>,
    ) -> Result<Vec<Damage>> {
        let contents = match tree::inspect(path, archive, request, Depth::Full, self.progress())? {
            State::Valid(contents) => contents,
            State::Absent => return Ok(vec![Damage::NotAFolder]),
            State::Damaged(damage) => return Ok(damage),
        };
        let given = if let Some(given) = given {
            given
        } else {
            let fingerprints = archive.fingerprints(self.progress())?;
            given.insert(tree::inventory(archive, fingerprints))
        };
        // Both are sorted, and of the same paths: the extraction was found to have the archive's.
        let pairs = given.iter().zip(contents.inventory);
        let forged = pairs.filter(|(given, found)| *given != found);
        Ok(forged.map(|(_, found)| Damage::Changed { path: found.path }).collect())
    }

    /// Removes archives that were not used for `unused`, extractions that were not, and what killed processes left. With `dry`
    /// nothing is removed, only listed. What an address gave first stays remembered, so that an archive that is
    /// fetched again must be what it was.
    ///
    /// Where several users share a cache, only what its owner uses stays young. Removing goes on where one thing cannot
    /// be removed; that is listed too.
    ///
    /// Errors: [`Error::Io`] (the cache cannot be listed), [`Error::Cancelled`].
    pub fn gc(&self, unused: Duration, dry: bool) -> Result<Cleaned> {
        let mut cleaned = Cleaned::default();
        for (sha256, folder) in self.archives()? {
            if is_older(&folder, unused) {
                let _lock = if dry { None } else { Some(self.lock(&sha256)?) };
                self.remove(folder, unused, dry, &mut cleaned);
                continue;
            }
            // A link leads to a folder that is none of the cache's.
            if !is_folder(&folder) {
                continue;
            }
            // The archive is in use, some of what was made of it may not be.
            let extractions = match entries(&folder) {
                Ok(extractions) => extractions,
                Err(e) => {
                    cleaned.failed.push((folder, e.with_causes()));
                    continue;
                }
            };
            for (name, extraction) in extractions {
                if name != ARCHIVE_NAME && is_older(&extraction, unused) {
                    self.remove(extraction, unused, dry, &mut cleaned);
                }
            }
        }
        for folder in [self.bucket(), self.root().join(FACTS)] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let ours = |name: &str| LEFTOVERS.iter().any(|prefix| name.starts_with(prefix));
                if name.to_str().is_some_and(ours) && is_older(&entry.path(), LEFTOVER_AGE) {
                    self.remove(entry.path(), LEFTOVER_AGE, dry, &mut cleaned);
                }
            }
        }
        Ok(cleaned)
    }

    /// Removes one thing that is old, unless it was used meanwhile. What cannot be removed is listed.
    fn remove(&self, path: PathBuf, age: Duration, dry: bool, cleaned: &mut Cleaned) {
        let bytes = match size_of(&path) {
            Ok(bytes) => bytes,
            // Where not even a size can be had, nothing can be removed.
            Err(e) => return cleaned.failed.push((path, e.to_string())),
        };
        if !dry {
            // Renamed first: a reader never sees half of an entry.
            let aside = self.bucket().join(files::unique_name(&LEFTOVERS[0].into()));
            match files::rename(&path, &aside) {
                Ok(()) => {}
                // Somebody else was faster.
                Err(e) if e.kind() == io::ErrorKind::NotFound => return,
                Err(e) => return cleaned.failed.push((path, e.to_string())),
            }
            // Used between the look at its age and the renaming: back, if nobody has made it anew.
            if !is_older(&aside, age) && files::rename(&aside, &path).is_ok() {
                return;
            }
            let removed = may_be_emptied(&aside).and_then(|()| files::remove(&aside));
            if let Err(e) = removed {
                // Under its own name it is found and mended, or removed once that is possible.
                let place = if files::rename(&aside, &path).is_ok() { path } else { aside };
                return cleaned.failed.push((place, e.to_string()));
            }
        }
        cleaned.bytes += bytes;
        cleaned.removed.push((path, bytes));
    }

    /// What in the bucket is named by an archive's hash, sorted.
    fn archives(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut found = entries(&self.bucket())?;
        found.retain(|(name, _)| is_sha256(name));
        Ok(found)
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// A file, link or pipe where an archive's or an extraction's folder should be.
fn not_a_folder(path: PathBuf, archive_sha256: String) -> Checked {
    Checked { path, archive_sha256, damage: vec![Damage::NotAFolder], against_archive: false }
}

fn unreadable(path: &str, error: &Error) -> Damage {
    Damage::Unreadable { path: path.to_owned(), reason: error.with_causes() }
}

/// What a folder holds by name, sorted; nothing if it is not there.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let fail = |e| Error::io(folder, e);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(fail(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    found.sort();
    Ok(found)
}

/// Bytes of all files below a path. Links are not followed; the depth is that of our own layout and of archives. What somebody else
/// removes meanwhile has none.
fn size_of(path: &Path) -> io::Result<u64> {
    let gone = |e: io::Error| if e.kind() == io::ErrorKind::NotFound { Ok(0) } else { Err(e) };
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => match fs::read_dir(path) {
            Ok(mut entries) => entries.try_fold(0, |sum, entry| Ok(sum + size_of(&entry?.path())?)),
            Err(e) => gone(e),
        },
        Ok(found) => Ok(found.len()),
        Err(e) => gone(e),
    }
}

/// Whether something can be removed from a folder, told before anything of it is.
fn may_be_emptied(path: &Path) -> io::Result<()> {
    // Of a link the name goes, and nothing behind it is touched.
    if !is_folder(path) {
        return Ok(());
    }
    let trial = path.join(files::unique_name(&LEFTOVERS[0].into()));
    match files::create_new(&trial) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(e),
        Ok(_) => fs::remove_file(trial),
        // No folder, or no room for a file, which is no reason to keep what takes it.
        Err(_) => Ok(()),
    }
}
