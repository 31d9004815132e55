//! RA4 to RA7, W4, RA+: what is in the cache is hashed in full before it is given out, and rebuilt if it is
//! not right.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use release_assets::{Damage, Outcome, Release};
use serde_json::{Value, json};
use support::{Place, contents, release_zip, tree};

const RECORD: &str = "release_provenance.json";

/// Extracts, damages, opens again: the result is Repaired, and the tree is as it was. Returns what was found
/// wrong.
fn repaired(damage: impl FnOnce(&Path)) -> Vec<Damage> {
    let place = Place::new();
    let zip = release_zip();
    let first = place.open(&zip).unwrap();
    assert_eq!(first.outcome, Outcome::Extracted);
    let good = contents(&first.root);
    damage(&first.root);
    let second = place.open(&zip).unwrap();
    assert_eq!(second.root, first.root);
    assert_eq!(second.inventory, first.inventory);
    assert_eq!(contents(&second.root), good, "not everything was restored");
    assert_eq!(place.files().len(), good.len() + 1, "leftovers: {:?}", place.files());
    assert_eq!(place.open(&zip).unwrap().outcome, Outcome::Reused);
    match second.outcome {
        Outcome::Repaired { reasons } => reasons,
        other => panic!("expected a repair, got {other}"),
    }
}

fn overwrite(root: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = root.join(name);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn edit_record(root: &Path, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    overwrite(root, RECORD, |bytes| {
        let mut record: Value = serde_json::from_slice(bytes).unwrap();
        change(record.as_object_mut().unwrap());
        *bytes = format!("{record:#}").into_bytes();
    });
}

fn changed(path: &str) -> Vec<Damage> {
    vec![Damage::Changed { path: path.to_owned() }]
}

/// RA4: the same root, and not one byte or name below the cache changes, nor any time but those of the extraction and of its
/// archive's folder, by which `gc` knows what is used.
#[test]
fn an_intact_extraction_is_reused_without_writing() {
    let place = Place::new();
    let zip = release_zip();
    let first = place.open(&zip).unwrap();
    let time = |path: &Path| fs::symlink_metadata(path).unwrap().modified().unwrap();
    let used = [first.root.clone(), first.root.parent().unwrap().to_owned()];
    let past = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
    for folder in &used {
        fs::File::open(folder).unwrap().set_modified(past).unwrap();
    }
    let snapshot = || {
        let paths: BTreeSet<PathBuf> = tree(&place.cache_root())
            .iter()
            .flat_map(|path| Path::new(path).ancestors())
            .map(|path| place.cache_root().join(path))
            .filter(|path| !used.contains(path))
            .collect();
        let times: Vec<_> = paths.into_iter().map(|path| (time(&path), path)).collect();
        (times, contents(&place.cache_root()))
    };
    let before = snapshot();
    let second = place.open(&zip).unwrap();
    assert_eq!((second.root, second.outcome), (first.root, Outcome::Reused));
    assert_eq!(snapshot(), before);
    assert!(used.iter().all(|folder| time(folder) > past), "they are used");
}

/// RA5: same size, one bit.
#[test]
fn a_changed_graph() {
    let reasons = repaired(|root| overwrite(root, "bundle/encoder.onnx", |bytes| bytes[9] ^= 1));
    assert_eq!(reasons, changed("bundle/encoder.onnx"));
}

/// RA6
#[test]
fn a_changed_sidecar() {
    let reasons = repaired(|root| overwrite(root, "bundle/weights.data", |bytes| bytes[255] ^= 0x80));
    assert_eq!(reasons, changed("bundle/weights.data"));
}

/// W4: the file that drives preprocessing.
#[test]
fn a_changed_metadata_file() {
    let reasons = repaired(|root| overwrite(root, "bundle/metadata.json", |bytes| bytes[2] = b'R'));
    assert_eq!(reasons, changed("bundle/metadata.json"));
}

#[test]
fn a_truncated_and_a_grown_file() {
    let reasons = repaired(|root| {
        overwrite(root, "bundle/weights.data", |bytes| bytes.truncate(100));
        overwrite(root, "bundle/decoder.onnx", |bytes| bytes.push(0));
    });
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}

/// RA7, W4
#[test]
fn files_and_folders_that_do_not_belong() {
    for extra in ["extra.onnx", "bundle/extra.onnx", "bundle/note.txt", "bundle/new/deep.txt"] {
        let reasons = repaired(|root| {
            let path = root.join(extra);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"x").unwrap();
        });
        let path = if extra.contains("new") { "bundle/new" } else { extra };
        assert_eq!(reasons, [Damage::Unexpected { path: path.into() }]);
    }
    let reasons = repaired(|root| fs::create_dir(root.join("empty")).unwrap());
    assert_eq!(reasons, [Damage::Unexpected { path: "empty".into() }]);
}

#[test]
fn missing_files() {
    let reasons = repaired(|root| fs::remove_file(root.join("bundle/weights.data")).unwrap());
    assert_eq!(reasons, [Damage::Missing { path: "bundle/weights.data".into() }]);
    let reasons = repaired(|root| fs::remove_dir_all(root.join("bundle")).unwrap());
    assert_eq!(reasons.len(), 4, "{reasons:?}");
}

#[test]
fn something_else_in_the_place_of_a_file_or_folder() {
    let reasons = repaired(|root| {
        fs::remove_file(root.join("bundle/decoder.onnx")).unwrap();
        fs::create_dir(root.join("bundle/decoder.onnx")).unwrap();
    });
    assert!(reasons.contains(&Damage::NotRegular { path: "bundle/decoder.onnx".into() }), "{reasons:?}");
    let reasons = repaired(|root| {
        fs::remove_dir_all(root).unwrap();
        fs::write(root, b"a file").unwrap();
    });
    assert_eq!(reasons, [Damage::NotAFolder]);
}

/// A link is not followed, even when it leads to the right bytes.
#[cfg(unix)]
#[test]
fn links_in_the_place_of_files_folders_and_the_root() {
    use std::os::unix::fs::symlink;
    let elsewhere = tempfile::tempdir().unwrap();
    let link_to_moved = |path: &Path, name: &str| {
        let target = elsewhere.path().join(name);
        fs::rename(path, &target).unwrap();
        symlink(&target, path).unwrap();
    };
    let reasons = repaired(|root| link_to_moved(&root.join("bundle/decoder.onnx"), "a"));
    assert_eq!(reasons, [Damage::NotRegular { path: "bundle/decoder.onnx".into() }]);
    let reasons = repaired(|root| link_to_moved(&root.join("bundle"), "b"));
    assert_eq!(reasons, [Damage::Unexpected { path: "bundle".into() }]);
    let reasons = repaired(|root| link_to_moved(root, "c"));
    assert_eq!(reasons, [Damage::NotAFolder]);
    let reasons = repaired(|root| link_to_moved(&root.join(RECORD), "d"));
    assert!(matches!(reasons[..], [Damage::Record { .. }]), "{reasons:?}");
    // What the links led to was not touched.
    assert_eq!(tree(elsewhere.path()).len(), 1 + 4 + 5 + 1);
}

/// RA+: without a record nothing is trusted; D17: it is what tells a complete extraction from a partial one.
#[test]
fn a_missing_or_unreadable_record() {
    let is_record =
        |reasons: Vec<Damage>| assert!(matches!(reasons[..], [Damage::Record { .. }]), "{reasons:?}");
    is_record(repaired(|root| fs::remove_file(root.join(RECORD)).unwrap()));
    for text in ["", "{", "[]", "null", "\u{0}\u{0}\u{0}"] {
        is_record(repaired(|root| fs::write(root.join(RECORD), text).unwrap()));
    }
}

/// Every field of the record, changed or taken away, and one more than there should be.
#[test]
fn any_field_of_the_record_that_is_wrong() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    let record: Value = serde_json::from_slice(&fs::read(release.provenance()).unwrap()).unwrap();
    let fields: Vec<String> = record.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields.len(), 18);
    for field in fields {
        let wrong =
            |reasons: Vec<Damage>| assert_eq!(reasons, [Damage::RecordField { field: field.clone() }]);
        wrong(repaired(|root| edit_record(root, |record| record[&field] = json!("changed"))));
        wrong(repaired(|root| edit_record(root, |record| drop(record.remove(&field)))));
    }
    let reasons = repaired(|root| edit_record(root, |record| record["schema_version"] = json!(1)));
    assert_eq!(reasons, [Damage::RecordField { field: "schema_version".into() }]);
    let reasons = repaired(|root| edit_record(root, |record| drop(record.insert("more".into(), json!(1)))));
    assert_eq!(reasons, [Damage::RecordField { field: "more".into() }]);
}

/// A recorded hash or sidecar list that is not what the files say, with the files intact.
#[test]
fn recorded_hashes_that_are_wrong() {
    let reasons = repaired(|root| {
        edit_record(root, |record| record["graphs"]["bundle/decoder.onnx"] = json!("0".repeat(64)));
    });
    assert_eq!(reasons, [Damage::RecordField { field: "graphs".into() }]);
    let reasons = repaired(|root| {
        edit_record(root, |record| record["external_data"]["bundle/encoder.onnx"] = json!({}));
    });
    assert_eq!(reasons, [Damage::RecordField { field: "external_data".into() }]);
    let reasons = repaired(|root| {
        edit_record(root, |record| record["inventory"]["bundle/weights.data"]["size"] = json!(1));
    });
    assert_eq!(reasons, [Damage::RecordField { field: "inventory".into() }]);
}

/// A file and its entry in the record changed together: the archive itself still says otherwise.
#[test]
fn a_file_and_its_record_changed_together() {
    let reasons = repaired(|root| {
        overwrite(root, "bundle/metadata.json", |bytes| bytes[2] = b'R');
        let sha256 = release_assets::sha256_file(root.join("bundle/metadata.json")).unwrap();
        edit_record(root, |record| record["inventory"]["bundle/metadata.json"]["sha256"] = json!(sha256));
    });
    assert_eq!(reasons, changed("bundle/metadata.json"));
}

/// CRC-32 is linear: its own polynomial, laid over the bytes, changes them and not the checksum. SHA-256 sees
/// it.
#[test]
fn a_change_that_keeps_size_and_crc() {
    let reasons = repaired(|root| {
        overwrite(root, "bundle/weights.data", |bytes| {
            let before = support::crc32(bytes);
            for bit in 0..33 {
                let coefficient = (0x1_04c1_1db7_u64 >> (32 - bit) & 1) as u8;
                bytes[100 + bit / 8] ^= coefficient << (bit % 8);
            }
            assert_eq!(support::crc32(bytes), before);
        });
    });
    assert_eq!(reasons, changed("bundle/weights.data"));
}

/// A deleted extraction is simply made again.
#[test]
fn a_deleted_extraction_is_extracted_again() {
    let place = Place::new();
    let first = place.open(&release_zip()).unwrap();
    fs::remove_dir_all(&first.root).unwrap();
    assert_eq!(place.open(&release_zip()).unwrap().outcome, Outcome::Extracted);
}

/// Times mean nothing: a file that was only touched is as good as before.
#[test]
fn a_touched_file_is_not_damaged() {
    let place = Place::new();
    let first: Release = place.open(&release_zip()).unwrap();
    let file = fs::File::options().write(true).open(first.root.join("bundle/weights.data")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(place.open(&release_zip()).unwrap().outcome, Outcome::Reused);
}

/// A repair that cannot succeed leaves the old extraction where it was.
#[test]
fn the_old_tree_stays_if_the_new_one_cannot_be_made() {
    let place = Place::new();
    let zip = release_zip();
    let first = place.open(&zip).unwrap();
    overwrite(&first.root, "bundle/weights.data", |bytes| bytes[0] ^= 1);
    let damaged = contents(&first.root);
    // Cancelling stands for any failure while the new tree is built.
    let stop = |phase, done, _| {
        let now = phase == release_assets::Phase::Extract && done > 0;
        if now { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let cancelled = place.cache().on_progress(stop).open_archive(place.write("release.zip", &zip));
    assert!(matches!(cancelled, Err(release_assets::Error::Cancelled)));
    assert_eq!(contents(&first.root), damaged);
    assert_eq!(place.files().len(), damaged.len() + 1, "{:?}", place.files());
}

/// Names that are no Unicode are shown as the archive's own names, and are not taken for them.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_only_looks_like_the_archives() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let zip = support::zip_of(&[
        ("m.onnx", support::graph()),
        ("d\u{fffd}/a.txt", b"x".to_vec()),
        ("e\u{fffd}.txt", b"x".to_vec()),
    ]);
    for name in [&b"d\xfe"[..], b"e\xff.txt"] {
        let place = Place::new();
        let first = place.open(&zip).unwrap();
        let planted = first.root.join(OsStr::from_bytes(name));
        if name.ends_with(b".txt") {
            fs::write(planted, "x").unwrap();
        } else {
            fs::create_dir(&planted).unwrap();
            fs::write(planted.join("b"), "x").unwrap();
        }
        let expected = Damage::Unexpected { path: String::from_utf8_lossy(name).into_owned() };
        assert_eq!(place.open(&zip).unwrap().outcome, Outcome::Repaired { reasons: vec![expected] });
    }
}

/// Readers differ in which of two fields of one name they take, and padding hides things: the record has one form.
#[test]
fn a_record_that_says_something_twice() {
    for (from, to) in [
        ("{\n  \"archive_sha256\":", "{\n  \"archive_sha256\": \"f\",\n  \"archive_sha256\":"),
        ("\"kind\": \"local archive\"", "\"kind\": \"hub\",\n    \"kind\": \"local archive\""),
        ("\n}", "\n\n}"),
    ] {
        let reasons = repaired(|root| {
            overwrite(root, RECORD, |bytes| {
                let text = String::from_utf8(bytes.clone()).unwrap();
                assert!(text.contains(from), "{text}");
                *bytes = text.replace(from, to).into_bytes();
            });
        });
        assert!(matches!(reasons[..], [Damage::Record { .. }]), "{from:?}: {reasons:?}");
    }
}
