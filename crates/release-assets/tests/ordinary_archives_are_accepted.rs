//! RA3 (offline part), Z6: what tools really write is extracted whole, under the process's own modes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    fs,
    io::{Cursor, Write},
};

use release_assets::{Error, Outcome};
use support::{Place, Raw, graph, raw_zip, release_members, release_zip, tree, zip_of};
use zip::{ZipWriter, write::SimpleFileOptions};

#[test]
fn a_release_is_extracted_whole() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    assert_eq!(release.outcome, Outcome::Extracted);
    for (path, data) in release_members() {
        assert_eq!(fs::read(release.root.join(path)).unwrap(), data, "{path}");
        let entry = release.inventory.iter().find(|entry| entry.path == path).unwrap();
        assert_eq!(entry.size, data.len() as u64);
        assert_eq!(entry.sha256, release_assets::sha256_file(release.root.join(path)).unwrap());
    }
    assert_eq!(tree(&release.root).len(), 5, "four files and the record");
    assert_eq!(release.metadata(), Some(release.root.join("bundle/metadata.json")));
    let graphs = ["bundle/decoder.onnx", "bundle/encoder.onnx"].map(|path| release.root.join(path));
    assert_eq!(release.graphs(), graphs);
    assert!(place.cache_root().join("CACHEDIR.TAG").is_file());
}

/// SHA-256 of known bytes, so that hashing itself is held to the standard.
#[test]
fn hashes_are_sha256_in_lower_hex() {
    let place = Place::new();
    let path = place.write("abc", b"abc");
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(release_assets::sha256_file(path).unwrap(), known);
}

/// RA+
#[test]
fn zip64_sizes_and_records() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().large_file(true);
    writer.start_file("m.onnx", options).unwrap();
    writer.write_all(&graph()).unwrap();
    // Forces the long end record, as more than 65,535 members do.
    writer.set_raw_zip64_extensible_data_sector(Box::default());
    let zip = writer.finish().unwrap().into_inner();
    assert!(Place::new().open(&zip).is_ok());

    // Central directory with all three numbers in the long field, and a long end record.
    let data = graph();
    let mut long = vec![1, 0, 24, 0];
    for number in [data.len() as u64, data.len() as u64, 0] {
        long.extend(number.to_le_bytes());
    }
    let raw = Raw::graph().with(|raw| {
        (raw.size, raw.compressed, raw.offset) = (Some(u32::MAX), Some(u32::MAX), Some(u32::MAX));
        raw.local_extra = long[..20].to_vec();
        raw.local_extra[2] = 16;
        raw.extra = long;
    });
    let short = raw_zip(&[raw]);
    let end = short.len() - 22;
    let field = |at: usize| u64::from(u32::from_le_bytes(short[end + at..end + at + 4].try_into().unwrap()));
    let (size, start) = (field(12), field(16));
    let mut zip = short[..end].to_vec();
    zip.extend(b"PK\x06\x06");
    zip.extend(44u64.to_le_bytes());
    zip.extend([45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [1, 1, size, start] {
        zip.extend(number.to_le_bytes());
    }
    zip.extend(b"PK\x06\x07");
    zip.extend(0u32.to_le_bytes());
    zip.extend((end as u64).to_le_bytes());
    zip.extend(1u32.to_le_bytes());
    zip.extend(&short[end..end + 8]);
    zip.extend([0xff; 12]);
    zip.extend([0, 0]);
    let release = Place::new().open(&zip).unwrap();
    assert_eq!(release.inventory.len(), 1);
    // The same with a short record that contradicts the long one.
    let length = zip.len();
    zip[length - 14..length - 10].copy_from_slice(&[2, 0, 2, 0]);
    assert!(matches!(Place::new().open(&zip), Err(Error::Archive { .. })));
}

/// Streaming writers put sizes and CRC behind the data.
#[test]
fn data_descriptors() {
    let mut writer = ZipWriter::new_stream(Vec::new());
    for (name, data) in release_members() {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(&data).unwrap();
    }
    let zip = writer.finish().unwrap().into_inner();
    let release = Place::new().open(&zip).unwrap();
    assert_eq!(release.inventory.len(), 4);
}

/// Folder members are fine; folders with nothing in them are not made.
#[test]
fn folder_members() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    writer.add_directory("bundle/", options).unwrap();
    writer.add_directory("bundle/empty/", options).unwrap();
    writer.start_file("bundle/m.onnx", options).unwrap();
    writer.write_all(&graph()).unwrap();
    let zip = writer.finish().unwrap().into_inner();
    let place = Place::new();
    let release = place.open(&zip).unwrap();
    assert_eq!(tree(&release.root), ["bundle/m.onnx", "release_provenance.json"]);
    assert_eq!(place.open(&zip).unwrap().outcome, Outcome::Reused);
}

/// Z6: set-user-ID, world-writable, no permissions at all: none of it reaches the disk.
#[cfg(unix)]
#[test]
fn the_archives_modes_are_ignored() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let modes = [0o104_777, 0o100_000, 0o102_666, 0o101_777];
    let members: Vec<Raw> = modes
        .iter()
        .enumerate()
        .map(|(index, &mode)| Raw::new(format!("{index}.onnx"), graph()).mode(mode))
        .collect();
    let release = place.open(&raw_zip(&members)).unwrap();
    let ordinary = place.write("ordinary", b"");
    let expected = fs::metadata(ordinary).unwrap().permissions().mode();
    for path in release.graphs() {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode(), expected);
    }
}

#[test]
fn an_archive_without_a_graph_is_no_release() {
    for members in [vec![("readme.txt", "x")], vec![("x.onnx/readme", "x")]] {
        let place = Place::new();
        let error = place.open(&zip_of(&members)).unwrap_err();
        assert!(matches!(error, Error::Layout { .. }), "{error}");
        assert_eq!(place.files(), ["release.zip"]);
    }
}

#[test]
fn two_metadata_files_are_an_error() {
    let text = String::from_utf8(graph()).unwrap();
    let zip = zip_of(&[("m.onnx", text.as_str()), ("metadata.json", "{}"), ("a/metadata.json", "{}")]);
    let message = Place::new().open(&zip).unwrap_err().to_string();
    assert!(message.contains("metadata.json, a/metadata.json"), "{message}");
}

#[test]
fn no_metadata_file_is_fine() {
    let release = Place::new().open(&raw_zip(&[Raw::graph()])).unwrap();
    assert_eq!(release.metadata(), None);
}
