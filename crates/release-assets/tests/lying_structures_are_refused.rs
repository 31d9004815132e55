//! Z4, RA+: headers that disagree, bytes that belong to nothing, ends that are not the end, and wrong
//! checksums.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use release_assets::ArchiveRule as Rule;
use support::{Place, Raw, raw_zip, raw_zip_with, release_zip};

fn refuse_one(change: impl FnOnce(&mut Raw)) -> Rule {
    let other = Raw::deflated("x", b"some data, some data").with(change);
    Place::new().refuse(&raw_zip(&[Raw::graph(), other]))
}

#[test]
fn local_header_and_directory_disagree() {
    let field = |rule: Rule| match rule {
        Rule::HeaderMismatch { field } => field,
        other => panic!("{other}"),
    };
    assert_eq!(field(refuse_one(|raw| raw.local_name = Some(b"y".to_vec()))), "name");
    assert_eq!(field(refuse_one(|raw| raw.local_method = Some(0))), "method");
    assert_eq!(field(refuse_one(|raw| raw.local_crc = Some(1))), "CRC-32");
    assert_eq!(field(refuse_one(|raw| raw.local_size = Some(1))), "size");
    assert_eq!(field(refuse_one(|raw| raw.local_compressed = Some(1))), "compressed size");
    assert_eq!(field(refuse_one(|raw| raw.local_flags = Some(1))), "flags");
    assert_eq!(field(refuse_one(|raw| raw.local_flags = Some(1 << 3))), "flags");
}

#[test]
fn no_header_where_the_directory_says() {
    assert_eq!(refuse_one(|raw| raw.offset = Some(1_000_000)), Rule::NoLocalHeader);
    // The header's signature is one byte further on.
    let gap = Raw::graph().with(|raw| raw.after = vec![0]);
    let early = (30 + gap.name.len() + gap.data.len()) as u32;
    let other = Raw::new("x", b"y").with(|raw| raw.offset = Some(early));
    assert_eq!(Place::new().refuse(&raw_zip(&[gap, other])), Rule::NoLocalHeader);
}

#[test]
fn bytes_before_the_archive() {
    let zip = raw_zip(&[Raw::graph()]);
    // Offsets left as they were, as when two files are glued together.
    assert_eq!(Place::new().refuse(&[b"#!/bin/sh\n", &zip[..]].concat()), Rule::PrependedData);
    // Offsets moved along, as in a self-extracting archive.
    let mut moved = Raw::graph();
    moved.offset = Some(0);
    let hidden = Raw::new("hidden", b"not listed");
    let both = raw_zip(&[hidden.clone(), moved.with(|raw| raw.offset = None)]);
    let listed_end = both.len();
    // Take the first member out of the directory: 46 bytes and its name.
    let start = u32::from_le_bytes(both[listed_end - 6..listed_end - 2].try_into().unwrap()) as usize;
    let record = 46 + hidden.name.len();
    let mut unlisted = [&both[..start], &both[start + record..]].concat();
    let end = unlisted.len() - 22;
    unlisted[end + 8..end + 12].copy_from_slice(&[1, 0, 1, 0]);
    let size = (end - start) as u32;
    unlisted[end + 12..end + 16].copy_from_slice(&size.to_le_bytes());
    assert_eq!(Place::new().refuse(&unlisted), Rule::PrependedData);
}

#[test]
fn bytes_between_members() {
    assert_eq!(refuse_one(|raw| raw.after = b"hidden".to_vec()), Rule::HiddenData { bytes: 6 });
    // A descriptor that was announced but is not one.
    let rule = refuse_one(|raw| (raw.flags, raw.after) = (1 << 3, vec![0; 16]));
    assert_eq!(rule, Rule::HiddenData { bytes: 16 });
}

#[test]
fn bytes_behind_the_archive() {
    let zip = raw_zip(&[Raw::graph()]);
    assert_eq!(Place::new().refuse(&[&zip[..], b"x"].concat()), Rule::TrailingData);
}

/// A data descriptor has to say what the directory says, in any of its four shapes.
#[test]
fn data_descriptors_that_disagree() {
    let member = |after: Vec<u8>| {
        let raw = Raw::deflated("x", b"some data, some data").with(|raw| {
            (raw.flags, raw.after) = (1 << 3, after);
            (raw.local_crc, raw.local_size, raw.local_compressed) = (Some(0), Some(0), Some(0));
        });
        raw_zip(&[Raw::graph(), raw])
    };
    let truth = Raw::deflated("x", b"some data, some data");
    let numbers = [truth.crc.unwrap(), truth.data.len() as u32, truth.size.unwrap()];
    let descriptor = |signed: bool, long: bool, numbers: [u32; 3]| {
        let mut bytes = if signed { b"PK\x07\x08".to_vec() } else { Vec::new() };
        bytes.extend(numbers[0].to_le_bytes());
        for size in &numbers[1..] {
            bytes.extend(size.to_le_bytes());
            bytes.extend(&[0; 4][..if long { 4 } else { 0 }]);
        }
        bytes
    };
    for (signed, long) in [(false, false), (true, false), (false, true), (true, true)] {
        assert!(Place::new().open(&member(descriptor(signed, long, numbers))).is_ok());
        for field in 0..3 {
            let mut wrong = numbers;
            wrong[field] ^= 1;
            let rule = Place::new().refuse(&member(descriptor(signed, long, wrong)));
            assert!(matches!(rule, Rule::HiddenData { .. }), "{rule}");
        }
        if signed {
            let mut unsigned = descriptor(signed, long, numbers);
            unsigned[0] = b'Q';
            assert!(matches!(Place::new().refuse(&member(unsigned)), Rule::HiddenData { .. }));
        }
    }
}

/// A comment is allowed; one that could be taken for the archive's end is not.
#[test]
fn ends_inside_of_comments() {
    let comment = |text: &[u8]| raw_zip_with(&[Raw::graph()], 1, 0, text);
    assert!(Place::new().open(&comment(b"made by a tool")).is_ok());
    let empty_archive = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    assert_eq!(Place::new().refuse(&comment(&empty_archive)), Rule::AmbiguousEnd);
    assert_eq!(Place::new().refuse(&comment(&[&empty_archive[..], b"more"].concat())), Rule::AmbiguousEnd);
}

#[test]
fn counts_and_sizes_of_the_directory() {
    let members = [Raw::graph(), Raw::new("x", b"y")];
    let directory = |zip: &[u8]| matches!(Place::new().refuse(zip), Rule::Directory { .. });
    assert!(directory(&raw_zip_with(&members, 1, 0, b"")), "a member that is not counted");
    assert!(directory(&raw_zip_with(&members, 3, 0, b"")), "a member that is not there");
    assert!(directory(&raw_zip_with(&members, 2, 5, b"")), "a directory that overlaps the end");
    assert_eq!(Place::new().refuse(&raw_zip_with(&members, 2, -5, b"")), Rule::PrependedData);
}

#[test]
fn several_volumes() {
    let mut zip = raw_zip(&[Raw::graph()]);
    let end = zip.len() - 22;
    zip[end + 4] = 1;
    assert_eq!(Place::new().refuse(&zip), Rule::MultiVolume);
}

#[test]
fn wrong_checksums() {
    let rule = refuse_one(|raw| (raw.crc, raw.local_crc) = (Some(1), Some(1)));
    assert!(matches!(rule, Rule::Crc { declared: 1, .. }));
    let stored = Raw::new("x", b"data").with(|raw| raw.crc = Some(1));
    assert!(matches!(Place::new().refuse(&raw_zip(&[stored, Raw::graph()])), Rule::Crc { declared: 1, .. }));
}

#[test]
fn damaged_compressed_bytes() {
    assert_eq!(refuse_one(|raw| raw.data = vec![0xff; 20]), Rule::Corrupt);
    let cut = refuse_one(|raw| raw.data.truncate(5));
    assert!(matches!(cut, Rule::Corrupt | Rule::ActualSize { .. }), "{cut}");
}

#[test]
fn stored_members_with_two_sizes() {
    let rule =
        Place::new().refuse(&raw_zip(&[Raw::graph(), Raw::new("x", b"data").with(|raw| raw.size = Some(3))]));
    assert_eq!(rule, Rule::StoredSize { compressed: 4, size: 3 });
}

#[test]
fn broken_extra_fields() {
    assert_eq!(refuse_one(|raw| raw.extra = vec![1, 2, 3]), Rule::ExtraField);
    assert_eq!(refuse_one(|raw| raw.extra = vec![9, 9, 200, 0, 1]), Rule::ExtraField);
    assert_eq!(refuse_one(|raw| raw.local_extra = vec![1]), Rule::ExtraField);
    assert_eq!(refuse_one(|raw| raw.size = Some(u32::MAX)), Rule::Zip64);
    assert_eq!(refuse_one(|raw| raw.extra = [[1, 0, 0, 0], [1, 0, 0, 0]].concat()), Rule::Zip64);
}

/// RA+: cut off anywhere, an archive is an error and leaves nothing.
#[test]
fn archives_cut_off_anywhere() {
    let zip = release_zip();
    for length in (0..zip.len()).step_by(7) {
        let place = Place::new();
        assert!(place.open(&zip[..length]).is_err(), "accepted {length} bytes of {}", zip.len());
        assert_eq!(place.files(), ["release.zip"]);
    }
}

#[test]
fn files_that_are_no_archive() {
    for bytes in [&b""[..], b"<html>not found</html>", &[0; 4096]] {
        assert_eq!(Place::new().refuse(bytes), Rule::NotZip);
    }
}

/// A folder holds nothing, so that no byte may be its own: but for the end mark of an empty stream that some tools write.
#[test]
fn folders_with_bytes() {
    let folder = |method: u16, data: &[u8]| {
        let with = |raw: &mut Raw| (raw.method, raw.size, raw.crc) = (method, Some(0), Some(0));
        Raw::new("d/", data).with(with)
    };
    for (method, data) in [(0, &b""[..]), (8, b""), (8, b"\x03\0")] {
        Place::new().open(&raw_zip(&[Raw::graph(), folder(method, data)])).unwrap();
    }
    for data in [&[7; 5000][..], b"\x03", b"\x03\x01", b"\x03\0\0", b"\x01\0\0\xff\xff"] {
        let rule = Place::new().refuse(&raw_zip(&[Raw::graph(), folder(8, data)]));
        assert_eq!(rule, Rule::FolderData { bytes: data.len() as u64 });
    }
    let wrong = folder(8, b"\x03\0").with(|raw| raw.crc = Some(1));
    assert_eq!(Place::new().refuse(&raw_zip(&[Raw::graph(), wrong])), Rule::Crc { declared: 1, found: 0 });
}
