//! W3, W5: an extraction belongs to the archive's bytes and to the request, not to a path; the record says
//! so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    fs::{self, File},
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use release_assets::{Outcome, Phase, sha256_file};
use support::{Place, release_members, release_zip, zip_of};

#[test]
fn two_names_for_the_same_bytes_share_one_entry() {
    let place = Place::new();
    let zip = release_zip();
    let first = place.cache().open_archive(place.write("first.zip", &zip)).unwrap();
    let second = place.cache().open_archive(place.write("second.zip", &zip)).unwrap();
    assert_eq!(second.root, first.root);
    assert_eq!(second.outcome, Outcome::Reused);
}

#[test]
fn other_bytes_have_their_own_entry() {
    let place = Place::new();
    let first = place.open(&release_zip()).unwrap();
    let mut members = release_members();
    members[1].1[0] ^= 1;
    let second = place.open(&zip_of(&members)).unwrap();
    assert_ne!(second.root, first.root);
    assert_ne!(second.archive_sha256, first.archive_sha256);
    assert_eq!(place.open(&release_zip()).unwrap().outcome, Outcome::Reused);
}

/// The path of the entry is the archive's hash, below a bucket with a version.
#[test]
fn the_entrys_path_is_the_archives_hash() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    let hash = sha256_file(place.dir.path().join("release.zip")).unwrap();
    assert_eq!(release.archive_sha256, hash);
    assert_eq!(release.root.parent().unwrap(), place.cache_root().join("archives-v1").join(hash));
}

/// The whole record, word for word: names and order of the reference's schema 2, no path of this machine.
#[test]
fn the_record_of_a_local_archive() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    let hash = |path: &str| sha256_file(release.root.join(path)).unwrap();
    let (archive, decoder, encoder, metadata, weights) = (
        &release.archive_sha256,
        hash("bundle/decoder.onnx"),
        hash("bundle/encoder.onnx"),
        hash("bundle/metadata.json"),
        hash("bundle/weights.data"),
    );
    let sizes: Vec<u64> = release.inventory.iter().map(|entry| entry.size).collect();
    let expected = format!(
        r#"{{
  "archive_sha256": "{archive}",
  "chipset": null,
  "download_url": null,
  "external_data": {{
    "bundle/decoder.onnx": {{}},
    "bundle/encoder.onnx": {{
      "bundle/weights.data": "{weights}"
    }}
  }},
  "format": null,
  "graphs": {{
    "bundle/decoder.onnx": "{decoder}",
    "bundle/encoder.onnx": "{encoder}"
  }},
  "inventory": {{
    "bundle/decoder.onnx": {{
      "sha256": "{decoder}",
      "size": {}
    }},
    "bundle/encoder.onnx": {{
      "sha256": "{encoder}",
      "size": {}
    }},
    "bundle/metadata.json": {{
      "sha256": "{metadata}",
      "size": {}
    }},
    "bundle/weights.data": {{
      "sha256": "{weights}",
      "size": {}
    }}
  }},
  "manifest_sha256": null,
  "manifest_version": null,
  "origin": {{
    "file_name": "release.zip",
    "kind": "local archive",
    "pin": null
  }},
  "pipeline_tag": null,
  "repo_id": null,
  "requested_precision": null,
  "requested_revision": null,
  "resolved_revision": null,
  "schema_version": 2,
  "source_precision": null,
  "tool_versions": {{}}
}}"#,
        sizes[0], sizes[1], sizes[2], sizes[3]
    );
    assert_eq!(fs::read_to_string(release.provenance()).unwrap(), expected);
}

/// What a killed process left is ignored, and removed once it is old; what is young may belong to a living
/// one.
#[cfg(unix)]
#[test]
fn old_leftovers_are_swept_and_young_ones_kept() {
    let place = Place::new();
    let bucket = place.cache_root().join("archives-v1");
    for name in [".staging-old", ".replaced-old", ".staging-young", "unknown-old"] {
        fs::create_dir_all(bucket.join(name)).unwrap();
        fs::write(bucket.join(name).join("half.onnx"), b"half").unwrap();
        if name.ends_with("old") {
            let past = SystemTime::now() - Duration::from_hours(2);
            File::open(bucket.join(name)).unwrap().set_modified(past).unwrap();
        }
    }
    let release = place.open(&release_zip()).unwrap();
    let mut left: Vec<String> =
        fs::read_dir(&bucket).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [".staging-young".to_owned(), release.archive_sha256, "unknown-old".to_owned()]);
}

/// One large member may take longer than leftovers are kept: its folder stays young by the bytes that are written.
#[cfg(unix)]
#[test]
fn a_working_process_keeps_its_folder_young() {
    let place = Place::new();
    let noise = support::noise(1 << 20);
    let zip = place.write("release.zip", &zip_of(&[("m.onnx", support::graph()), ("noise.bin", noise)]));
    let bucket = place.cache_root().join("archives-v1");
    let ages = Arc::new(Mutex::new(Vec::new()));
    let seen = ages.clone();
    let cache = place.cache().on_progress(move |phase, _, _| {
        if phase == Phase::Extract {
            let staging = fs::read_dir(&bucket).unwrap().flatten().map(|entry| entry.path());
            let staging =
                staging.into_iter().find(|path| path.to_string_lossy().contains(".staging-")).unwrap();
            let age = fs::metadata(&staging).unwrap().modified().unwrap().elapsed().unwrap_or_default();
            let mut seen = seen.lock().unwrap();
            seen.push(age);
            if seen.len() == 3 {
                // In the midst of the large member.
                let past = SystemTime::now() - Duration::from_hours(2);
                File::open(staging).unwrap().set_modified(past).unwrap();
                std::thread::sleep(Duration::from_millis(1100));
            }
        }
        ControlFlow::Continue(())
    });
    cache.open_archive(zip).unwrap();
    let ages = ages.lock().unwrap();
    assert!(ages.len() > 4 && ages[3] < Duration::from_hours(1), "{ages:?}");
}
