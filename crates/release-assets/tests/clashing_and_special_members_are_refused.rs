//! Z2, Z5, Z7, RA2: duplicates and twins, links and devices, encryption and unknown methods.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{fs, ops::ControlFlow};

use release_assets::{ArchiveRule as Rule, Error, Phase};
use support::{Place, Raw, raw_zip};

fn refuse(names: &[&str]) -> Rule {
    let mut members = vec![Raw::graph()];
    members.extend(names.iter().map(|name| Raw::new(name, if name.ends_with('/') { "" } else { "x" })));
    for raw in &mut members {
        raw.flags = 1 << 11;
    }
    Place::new().refuse(&raw_zip(&members))
}

fn refuse_one(change: impl FnOnce(&mut Raw)) -> Rule {
    Place::new().refuse(&raw_zip(&[Raw::graph(), Raw::new("x", b"data").with(change)]))
}

/// RA2: a general reader collapses these into one.
#[test]
fn duplicates() {
    for names in [
        &["a", "a"][..],
        &["./a", "a"],
        &["a/b", "a//b"],
        &["a\\b", "a/b"],
        &["a/", "a"],
        &["a", "a/"],
        &["a/", "a/"],
    ] {
        assert_eq!(refuse(names), Rule::Duplicate, "{names:?}");
    }
}

/// Z5
#[test]
fn case_twins() {
    for (a, b) in
        [("A", "a"), ("weights.data", "Weights.DATA"), ("É", "é"), ("straße", "STRASSE"), ("d/x", "D/y")]
    {
        assert!(matches!(refuse(&[a, b]), Rule::CaseTwin { .. }), "{a} {b}");
    }
    assert_eq!(refuse(&["d/x", "D/y"]), Rule::CaseTwin { other: "d".into() });
}

#[test]
fn files_used_as_folders() {
    for names in [["a", "a/b"], ["a/b", "a"], ["a/b/c", "a/b"], ["x/y", "x/y/z/w"]] {
        assert_eq!(refuse(&names), Rule::FileAsFolder, "{names:?}");
    }
}

/// Z2: the link itself is refused, so that nothing can be written through it.
#[test]
fn links() {
    assert_eq!(refuse_one(|raw| raw.attributes = 0o120_777 << 16), Rule::Link);
    // The field in which PKWARE keeps the target of a hard link.
    let field = [&[0x0d, 0, 16, 0][..], &[0; 12], b"m.on"].concat();
    assert_eq!(refuse_one(|raw| raw.extra = field), Rule::Link);
}

/// Z2
#[test]
fn devices_pipes_and_sockets() {
    for kind in [0o010_000, 0o020_000, 0o060_000, 0o140_000] {
        let rule = refuse_one(|raw| raw.attributes = (kind | 0o644) << 16);
        assert_eq!(rule, Rule::SpecialFile { kind });
    }
}

#[test]
fn members_that_are_and_are_not_folders() {
    assert_eq!(refuse_one(|raw| raw.attributes = 0o040_755 << 16), Rule::FolderMismatch);
    assert_eq!(refuse_one(|raw| raw.attributes = 0x10), Rule::FolderMismatch);
    assert_eq!(refuse_one(|raw| raw.name = b"d/".to_vec()), Rule::FolderMismatch);
    let regular = Raw::new("d/", b"").mode(0o100_644);
    assert_eq!(Place::new().refuse(&raw_zip(&[Raw::graph(), regular])), Rule::FolderMismatch);
}

/// Z7
#[test]
fn encryption() {
    for flag in [1 << 0, 1 << 6, 1 << 13] {
        assert_eq!(refuse_one(|raw| raw.flags = flag), Rule::Encrypted);
    }
}

/// Z7: nothing but stored and deflate can be decoded at all.
#[test]
fn other_methods() {
    for method in [1, 6, 9, 12, 14, 93, 95, 98, 99] {
        assert_eq!(refuse_one(|raw| raw.method = method), Rule::Method { method });
    }
    assert_eq!(refuse_one(|raw| raw.flags = 1 << 5), Rule::Method { method: 0 });
}

/// A file system that takes two names for one shows it by a name that is taken in a new folder. Here somebody takes it.
#[test]
fn names_that_the_file_system_takes_for_one() {
    for taken in ["m.onnx", "d"] {
        let place = Place::new();
        let bucket = place.cache_root().join("archives-v1");
        let cache = place.cache().on_progress(move |phase, done, _| {
            if (phase, done) == (Phase::Extract, 0) {
                let mut entries = fs::read_dir(&bucket).unwrap().flatten().map(|entry| entry.path());
                let staging = entries.find(|path| path.to_string_lossy().contains(".staging-")).unwrap();
                fs::write(staging.join(taken), "").unwrap();
            }
            ControlFlow::Continue(())
        });
        let zip = place.write("release.zip", &raw_zip(&[Raw::graph(), Raw::new("d/x", b"x")]));
        let error = cache.open_archive(zip).unwrap_err();
        assert!(matches!(error, Error::Archive { rule: Rule::FileSystemTwin, .. }), "{taken}: {error:?}");
        assert_eq!(place.files(), ["release.zip"]);
    }
}
