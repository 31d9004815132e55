//! `extract_member`: one file out of a wheel, by the archive's hash, complete or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{fs, path::PathBuf};

use release_assets::{ArchiveRule, Error, Limits, extract_member, sha256_file};
use support::{Place, Raw, raw_zip};

const MEMBER: &str = "pkg/capi/lib.so.1";

struct Wheel {
    place: Place,
    zip: PathBuf,
    hash: String,
    target: PathBuf,
}

fn wheel(members: &[Raw]) -> Wheel {
    let place = Place::new();
    let zip = place.write("a.whl", &raw_zip(members));
    fs::create_dir(place.dir.path().join("out")).unwrap();
    let (hash, target) = (sha256_file(&zip).unwrap(), place.dir.path().join("out/lib.so"));
    Wheel { place, zip, hash, target }
}

fn library() -> Vec<u8> {
    (0..300_000u32).flat_map(u32::to_le_bytes).collect()
}

fn good() -> Wheel {
    wheel(&[Raw::new("pkg/__init__.py", b""), Raw::deflated(MEMBER, &library()), Raw::new("pkg/x", b"x")])
}

impl Wheel {
    fn extract(&self, member: &str) -> Result<bool, Error> {
        extract_member(&self.zip, member, &self.hash, &self.target, &Limits::default())
    }

    fn files(&self) -> Vec<String> {
        self.place.files().into_iter().filter(|path| path != "a.whl").collect()
    }
}

#[test]
fn the_member_alone_is_written() {
    let wheel = good();
    assert!(wheel.extract(MEMBER).unwrap());
    assert_eq!(fs::read(&wheel.target).unwrap(), library());
    assert_eq!(wheel.files(), ["out/lib.so"]);
}

/// Nothing to do the second time; other content is replaced, even of the same size.
#[test]
fn a_target_that_is_there_is_compared() {
    let wheel = good();
    assert!(wheel.extract(MEMBER).unwrap());
    let written = fs::metadata(&wheel.target).unwrap().modified().unwrap();
    assert!(!wheel.extract(MEMBER).unwrap());
    assert_eq!(fs::metadata(&wheel.target).unwrap().modified().unwrap(), written);
    for other in [b"half".to_vec(), vec![0; library().len()]] {
        fs::write(&wheel.target, other).unwrap();
        assert!(wheel.extract(MEMBER).unwrap());
        assert_eq!(fs::read(&wheel.target).unwrap(), library());
    }
    assert_eq!(wheel.files(), ["out/lib.so"]);
}

/// D3: path, size, both hashes, and what to do.
#[test]
fn an_archive_with_another_hash_is_not_read() {
    let mut wheel = good();
    let found = std::mem::replace(&mut wheel.hash, "0".repeat(64));
    let message = wheel.extract(MEMBER).unwrap_err().to_string();
    let size = fs::metadata(&wheel.zip).unwrap().len().to_string();
    for part in ["a.whl", &found, &wheel.hash, &size, "fetch"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(wheel.files().contains(&"out".to_owned()), "nothing was written");
    wheel.hash = found.to_uppercase();
    assert!(wheel.extract(MEMBER).unwrap(), "hex is hex in either case");
}

#[test]
fn a_member_that_is_not_there() {
    for member in ["pkg/capi/lib.so", "lib.so.1", "pkg", "", "../a.whl"] {
        assert!(matches!(good().extract(member), Err(Error::NoSuchMember { .. })), "{member}");
    }
}

/// The whole archive has to be sound, not the member alone; and a damaged member is not left half written.
#[test]
fn an_archive_that_lies() {
    let evil = wheel(&[Raw::deflated(MEMBER, &library()), Raw::new("../x", b"x")]);
    let rule = |wheel: &Wheel| match wheel.extract(MEMBER) {
        Err(Error::Archive { rule, .. }) => rule,
        other => panic!("{other:?}"),
    };
    assert_eq!(rule(&evil), ArchiveRule::ParentComponent);
    let damaged = wheel(&[Raw::deflated(MEMBER, &library()).with(|raw| raw.crc = Some(1))]);
    assert!(matches!(rule(&damaged), ArchiveRule::Crc { .. }));
    fs::write(&damaged.target, b"old").unwrap();
    assert!(matches!(rule(&damaged), ArchiveRule::Crc { .. }));
    assert_eq!(fs::read(&damaged.target).unwrap(), b"old", "the target is as it was");
    assert_eq!(damaged.files(), ["out/lib.so"]);
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let wheel = good();
    let target = wheel.place.dir.path().join("none/lib.so");
    let error = extract_member(&wheel.zip, MEMBER, &wheel.hash, target, &Limits::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.to_string_lossy().contains("none")), "{error}");
}

/// The longest name that a file can have is one like any other.
#[test]
fn a_target_with_a_long_name() {
    let mut wheel = good();
    wheel.target = wheel.place.dir.path().join("out").join("n".repeat(250));
    assert!(wheel.extract(MEMBER).unwrap());
    assert_eq!(fs::read(&wheel.target).unwrap(), library());
    assert_eq!(wheel.files().len(), 1);
}
