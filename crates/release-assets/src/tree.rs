//! An extraction on disk, held against the archive it came from.

use std::{collections::BTreeSet, fs, io, path::Path};

use serde_json::{Map, Value};

use crate::{
    Damage, Error, InventoryEntry, Phase, Result, external_data,
    extract::Archive,
    files,
    hashing::{self, Fingerprint},
    progress::Progress,
    provenance::{self, Contents, RECORD_MAX_BYTES, RECORD_NAME, Request},
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

/// Checks the extraction at `root` in full: exactly the archive's files, each of the archive's size and
/// CRC-32 and of the recorded SHA-256, sidecars found anew, and a record that says what the files, the
/// archive and the request say. Writes nothing. The only error is a cancelled one: what cannot be checked is
/// damaged.
pub(crate) fn inspect(
    root: &Path,
    archive: &Archive,
    request: &Request,
    progress: &Progress,
) -> Result<State> {
    match fs::symlink_metadata(root) {
        Ok(metadata) if metadata.is_dir() => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        _ => return Ok(State::Damaged(vec![Damage::NotAFolder])),
    }
    let mut damage = check_names_and_sizes(root, archive);
    let record = match read_record(root) {
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
    let mut counter = progress.phase(Phase::Verify, archive.listing.total_bytes)?;
    let mut fingerprints = Vec::new();
    for entry in archive.listing.files() {
        let path = || entry.path.clone();
        match hashing::fingerprint_file(&root.join(&entry.path), &mut counter) {
            Ok(found) => {
                // The archive anchors size and CRC-32, the record the SHA-256; both have to hold.
                let right = found.size == entry.size && found.crc32 == entry.crc32;
                if !right || recorded(&entry.path).is_some_and(|sha256| sha256 != found.sha256) {
                    damage.push(Damage::Changed { path: path() });
                }
                fingerprints.push(found);
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => damage.push(Damage::Unreadable { path: path(), reason: error.to_string() }),
        }
    }
    if !damage.is_empty() {
        return Ok(State::Damaged(damage));
    }
    let inventory = inventory(archive, fingerprints);
    let contents = match external_data::discover(root, &inventory) {
        Ok(sidecars) => Contents { inventory, sidecars },
        Err(bad) => {
            let (path, reason) = (bad.graph, bad.source.to_string());
            return Ok(State::Damaged(vec![Damage::Unreadable { path, reason }]));
        }
    };
    let expected = provenance::expected(request, &archive.sha256, &contents);
    let fields = provenance::differences(&expected, &record);
    if fields.is_empty() {
        return Ok(State::Valid(contents));
    }
    Ok(State::Damaged(fields.into_iter().map(|field| Damage::RecordField { field }).collect()))
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

/// Compares the names, kinds and sizes on disk with the archive's, without reading any file. The record is
/// left out.
pub(crate) fn check_names_and_sizes(root: &Path, archive: &Archive) -> Vec<Damage> {
    let mut damage = Vec::new();
    let mut folders = BTreeSet::new();
    for entry in archive.listing.files() {
        folders.extend(entry.path.match_indices('/').map(|(at, _)| &entry.path[..at]));
        let path = || entry.path.clone();
        match fs::symlink_metadata(root.join(&entry.path)) {
            Ok(found) if !found.is_file() => damage.push(Damage::NotRegular { path: path() }),
            Ok(found) if found.len() != entry.size => damage.push(Damage::Changed { path: path() }),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                damage.push(Damage::Missing { path: path() });
            }
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
        let name = name.to_string_lossy();
        let path = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && folders.contains(path.as_str()) {
            find_unexpected(root, &path, files, folders, damage);
        } else if !files.contains(path.as_str()) && path != RECORD_NAME {
            damage.push(Damage::Unexpected { path });
        }
    }
}

fn read_record(root: &Path) -> std::result::Result<Map<String, Value>, String> {
    let path = root.join(RECORD_NAME);
    if !fs::symlink_metadata(&path).map_err(|e| e.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let bytes = files::read_small(&path, RECORD_MAX_BYTES).map_err(|e| e.to_string())?;
    serde_json::from_slice(&bytes).map_err(|e| e.to_string())
}
