//! An extraction on disk, held against the archive it came from.

use std::{collections::BTreeSet, fs, io, path::Path};

use serde_json::{Map, Value};

use crate::{
    Damage, Error, InventoryEntry, Phase, Result,
    central_directory::Entry,
    error::causes,
    external_data,
    extract::Archive,
    files,
    hashing::{self, Fingerprint, Job},
    member_name,
    progress::Progress,
    provenance::{self, Contents, RECORD_NAME, Request},
};

/// More reasons than these tell nobody more.
const MAX_REASONS: usize = 100;

/// The state of an extraction.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing is there.
    Absent,
    /// Every byte is right.
    Valid(Contents),
    /// Something is there that must not be used.
    Damaged(Vec<Damage>),
}

/// How much of an extraction is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Every byte.
    Full,
    /// Names, kinds, sizes, and that nothing was written after the record.
    Stat,
}

/// Checks the extraction at `root`. In full: exactly the archive's files, each of the archive's size and
/// CRC-32 and of the recorded SHA-256, sidecars found anew, and a record that says what the files, the
/// archive and the request say. Writes nothing. What cannot be checked is damaged; the only errors are a
/// cancelled run and an archive that is not what it should be.
pub(crate) fn inspect(
    root: &Path,
    archive: &mut Archive,
    request: &Request,
    depth: Depth,
    progress: &Progress,
) -> Result<State> {
    match fs::symlink_metadata(root) {
        Ok(metadata) if metadata.is_dir() => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        _ => return Ok(State::Damaged(vec![Damage::NotAFolder])),
    }
    let mut damage = check_names_and_sizes(root, archive);
    let files = archive.listing.files().count() as u64;
    let record = match read_record(root, provenance::max_bytes(files)) {
        Ok(record) => record,
        Err(reason) => {
            damage.push(Damage::Record { reason });
            Map::new()
        }
    };
    if !damage.is_empty() {
        return Ok(State::Damaged(damage));
    }
    let recorded = |path: &str| record.get("inventory")?.get(path)?.get("sha256")?.as_str();
    let fingerprints = match depth {
        Depth::Full => fingerprint_in_full(root, archive, progress, recorded, &mut damage)?,
        Depth::Stat => take_on_trust(root, archive, recorded, &mut damage),
    };
    if !damage.is_empty() {
        return Ok(State::Damaged(damage));
    }
    let inventory = inventory(archive, fingerprints);
    Ok(hold_record(root, inventory, request, &archive.sha256, &record))
}

/// Checks an extraction whose archive is not at hand against its own record: exactly the recorded files, each of the
/// recorded size and hash, sidecars found anew, and a record that says what these, the request and the archive's hash say.
/// The only error is a cancelled run.
pub(crate) fn inspect_by_record(
    root: &Path,
    record: &Map<String, Value>,
    request: &Request,
    archive_sha256: &str,
    progress: &Progress,
) -> Result<Vec<Damage>> {
    let Some(inventory) = record.get("inventory").and_then(Value::as_object) else {
        return Ok(vec![Damage::RecordField { field: "inventory".to_owned() }]);
    };
    let mut damage = Vec::new();
    let size = |entry: &Value| entry.get("size").and_then(Value::as_u64);
    let safe = |path: &str| path.split('/').all(|c| member_name::check_component(c).is_ok());
    if let Some(path) = inventory.keys().find(|path| !safe(path)) {
        return Ok(vec![Damage::Unexpected { path: path.clone() }]);
    }
    let files: BTreeSet<&str> = inventory.keys().map(String::as_str).collect();
    let folders: BTreeSet<&str> = files.iter().flat_map(|path| folders_of(path)).collect();
    find_unexpected(root, "", &files, &folders, &mut damage);
    let jobs = inventory.iter().map(|(path, e)| (size(e).unwrap_or(0), Job::Path(root.join(path)))).collect();
    let total = inventory.values().filter_map(size).fold(0, u64::saturating_add);
    let results = hashing::fingerprint_all(jobs, progress.phase(Phase::Verify, total)?);
    let mut found_files = Vec::new();
    for ((path, entry), result) in inventory.iter().zip(results) {
        let path = path.clone();
        let recorded = entry.get("sha256").and_then(Value::as_str);
        // A link would be followed by what opens the file.
        if fs::symlink_metadata(root.join(&path)).is_ok_and(|found| !found.is_file()) {
            damage.push(Damage::NotRegular { path });
            continue;
        }
        match result {
            Ok(found) if Some(found.size) == size(entry) && Some(found.sha256.as_str()) == recorded => {
                found_files.push(InventoryEntry { path, size: found.size, sha256: found.sha256 });
            }
            Ok(_) => damage.push(Damage::Changed { path }),
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(Error::Io { source, .. }) if is_missing(&source) => damage.push(Damage::Missing { path }),
            Err(Error::NotAFile { .. }) => damage.push(Damage::NotRegular { path }),
            Err(error) => damage.push(Damage::Unreadable { path, reason: error.with_causes() }),
        }
    }
    if !damage.is_empty() {
        return Ok(damage);
    }
    found_files.sort_by(|a, b| a.path.cmp(&b.path));
    match hold_record(root, found_files, request, archive_sha256, record) {
        State::Damaged(damage) => Ok(damage),
        State::Valid(_) | State::Absent => Ok(Vec::new()),
    }
}

/// Finds the sidecars of files that are right anew, and holds the record against all that is known.
fn hold_record(
    root: &Path,
    inventory: Vec<InventoryEntry>,
    request: &Request,
    archive_sha256: &str,
    record: &Map<String, Value>,
) -> State {
    let contents = match external_data::discover(root, &inventory) {
        Ok(sidecars) => Contents { inventory, sidecars },
        Err(bad) => {
            let (path, reason) = (bad.graph, causes(&bad.source));
            return State::Damaged(vec![Damage::Unreadable { path, reason }]);
        }
    };
    let expected = provenance::expected(request, archive_sha256, &contents);
    let fields = provenance::differences(&expected, record);
    if fields.is_empty() {
        return State::Valid(contents);
    }
    State::Damaged(fields.into_iter().map(|field| Damage::RecordField { field }).collect())
}

/// Hashes every file, and the archive too if that was not done yet. Files that are wrong become damage.
fn fingerprint_in_full<'a>(
    root: &Path,
    archive: &mut Archive,
    progress: &Progress,
    recorded: impl Fn(&str) -> Option<&'a str>,
    damage: &mut Vec<Damage>,
) -> Result<Vec<Fingerprint>> {
    let entries: Vec<Entry> = archive.listing.files().cloned().collect();
    let mut jobs: Vec<_> =
        entries.iter().map(|entry| (entry.size, Job::Path(root.join(&entry.path)))).collect();
    let mut total = archive.listing.total_bytes;
    let with_archive = archive.hash_job().map(|job| {
        total = total.saturating_add(job.0);
        jobs.push(job);
    });
    let mut results = hashing::fingerprint_all(jobs, progress.phase(Phase::Verify, total)?);
    if results.iter().any(|result| matches!(result, Err(Error::Cancelled))) {
        return Err(Error::Cancelled);
    }
    if with_archive.is_some()
        && let Some(result) = results.pop()
    {
        archive.accept_hash(&result?.sha256)?;
    }
    let mut fingerprints = Vec::new();
    for (entry, result) in entries.iter().zip(results) {
        let path = || entry.path.clone();
        match result {
            Ok(found) => {
                // Size and CRC-32 tie the file to the archive, the SHA-256 to what was extracted then; all have to hold.
                // (Who can write here can forge both: see the README.)
                let right = found.size == entry.size && found.crc32 == entry.crc32;
                if !right || recorded(&entry.path).is_some_and(|sha256| sha256 != found.sha256) {
                    damage.push(Damage::Changed { path: path() });
                }
                fingerprints.push(found);
            }
            Err(error) => damage.push(Damage::Unreadable { path: path(), reason: error.with_causes() }),
        }
    }
    Ok(fingerprints)
}

/// Believes the record's hashes as long as no file was written after the record.
fn take_on_trust<'a>(
    root: &Path,
    archive: &Archive,
    recorded: impl Fn(&str) -> Option<&'a str>,
    damage: &mut Vec<Damage>,
) -> Vec<Fingerprint> {
    let written = |path: &Path| fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok();
    let record = written(&root.join(RECORD_NAME));
    let mut fingerprints = Vec::new();
    for entry in archive.listing.files() {
        let (path, size, crc32) = (entry.path.clone(), entry.size, entry.crc32);
        let untouched = record.is_some() && written(&root.join(&path)) <= record;
        match recorded(&path) {
            Some(sha256) if untouched => {
                fingerprints.push(Fingerprint { size, sha256: sha256.to_owned(), crc32 });
            }
            _ => damage.push(Damage::Changed { path }),
        }
    }
    fingerprints
}

/// Pairs the archive's files with their fingerprints, sorted by path.
pub(crate) fn inventory(archive: &Archive, fingerprints: Vec<Fingerprint>) -> Vec<InventoryEntry> {
    let mut inventory: Vec<_> = archive
        .listing
        .files()
        .zip(fingerprints)
        .map(|(entry, found)| InventoryEntry {
            path: entry.path.clone(),
            size: found.size,
            sha256: found.sha256,
        })
        .collect();
    inventory.sort_by(|a, b| a.path.cmp(&b.path));
    inventory
}

/// Nothing has the name, or a file stands where one of its folders should.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The folders that a path goes through, outermost first.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Compares the names, kinds and sizes on disk with the archive's, without reading any file. The record is
/// left out.
pub(crate) fn check_names_and_sizes(root: &Path, archive: &Archive) -> Vec<Damage> {
    let mut damage = Vec::new();
    let mut folders = BTreeSet::new();
    for entry in archive.listing.files() {
        folders.extend(folders_of(&entry.path));
        let path = || entry.path.clone();
        match fs::symlink_metadata(root.join(&entry.path)) {
            Ok(found) if !found.is_file() => damage.push(Damage::NotRegular { path: path() }),
            Ok(found) if found.len() != entry.size => damage.push(Damage::Changed { path: path() }),
            Ok(_) => {}
            Err(e) if is_missing(&e) => damage.push(Damage::Missing { path: path() }),
            Err(e) => damage.push(Damage::Unreadable { path: path(), reason: e.to_string() }),
        }
    }
    let files: BTreeSet<&str> = archive.listing.files().map(|entry| entry.path.as_str()).collect();
    find_unexpected(root, "", &files, &folders, &mut damage);
    damage
}

/// Walks the archive's own folders, and only these, looking for what is not the archive's. Links are not
/// followed, so that the depth of the walk is the archive's.
fn find_unexpected(
    root: &Path,
    folder: &str,
    files: &BTreeSet<&str>,
    folders: &BTreeSet<&str>,
    damage: &mut Vec<Damage>,
) {
    let unreadable = |e: io::Error| Damage::Unreadable { path: folder.to_owned(), reason: e.to_string() };
    let entries = match fs::read_dir(root.join(folder)) {
        Ok(entries) => entries,
        Err(e) => return damage.push(unreadable(e)),
    };
    for entry in entries {
        if damage.len() >= MAX_REASONS {
            return;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => return damage.push(unreadable(e)),
        };
        let name = entry.file_name();
        let within =
            |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        // What is shown of a name that is not Unicode may be the archive's own name for another file.
        let Some(path) = name.to_str().map(within) else {
            damage.push(Damage::Unexpected { path: within(&name.to_string_lossy()) });
            continue;
        };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && folders.contains(path.as_str()) {
            find_unexpected(root, &path, files, folders, damage);
        } else if !files.contains(path.as_str()) && path != RECORD_NAME {
            damage.push(Damage::Unexpected { path });
        }
    }
}

pub(crate) fn read_record(root: &Path, limit: u64) -> std::result::Result<Map<String, Value>, String> {
    let path = root.join(RECORD_NAME);
    if !fs::symlink_metadata(&path).map_err(|e| e.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let bytes = files::read_small(&path, limit).map_err(|e| e.with_causes())?;
    let record = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    // A field that is there twice, or padding, would be taken otherwise by another reader.
    if provenance::to_bytes(&record) != bytes {
        return Err("it is not in the form in which records are written".to_owned());
    }
    Ok(record)
}
