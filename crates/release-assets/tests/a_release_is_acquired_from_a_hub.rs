//! RA3 to RA9, W1, W3, W4: from a repository to a verified folder, and back to it after any damage.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::fs;

use loopback::{
    hub::{self, COMMIT, Hub, REPOSITORY, wanted},
    server::Reply,
};
use release_assets::{Damage, Error, HubRelease, Outcome, Release, Trust};
use serde_json::{Value, json};
use support::{Place, release_zip};

fn place_and_hub() -> (Place, Hub) {
    (Place::new(), Hub::new(release_zip()))
}

fn acquire(place: &Place, hub: &Hub, wanted: &HubRelease) -> Result<Release, Error> {
    place.cache().acquire(wanted, &hub.server.client().build().unwrap())
}

fn damage(release: &Release) -> Vec<Damage> {
    match &release.outcome {
        Outcome::Repaired { reasons } => reasons.clone(),
        other => panic!("{other}"),
    }
}

/// RA3: what is recorded; one download.
#[test]
fn the_record_says_where_everything_came_from() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted().revision("main").precision("fp16")).unwrap();
    assert_eq!(hub.downloads(), 1);
    assert_eq!((&release.outcome, &release.trust), (&Outcome::Extracted, &Trust::FirstUse));
    assert_eq!(release.fetched_bytes, hub.world.lock().unwrap().archive.len() as u64);
    assert_eq!(release.commit.as_deref(), Some(COMMIT));
    assert!(release.metadata().unwrap().ends_with("bundle/metadata.json"));
    let record: Value = serde_json::from_slice(&fs::read(release.provenance()).unwrap()).unwrap();
    let file = |name: &str| release.inventory.iter().find(|f| f.path == name).unwrap().sha256.clone();
    let manifest_sha256 = hub::digest(&hub.world.lock().unwrap().manifest);
    for (field, value) in [
        ("schema_version", json!(2)),
        ("repo_id", json!(REPOSITORY)),
        ("requested_revision", json!("main")),
        ("resolved_revision", json!(COMMIT)),
        ("pipeline_tag", json!("mask-generation")),
        ("manifest_sha256", json!(manifest_sha256)),
        ("manifest_version", json!("0.58.0")),
        ("requested_precision", json!("fp16")),
        ("source_precision", json!("float")),
        ("format", json!("onnx")),
        ("download_url", json!(hub.server.url(hub::ARCHIVE))),
        ("archive_sha256", json!(hub.archive_sha256())),
        ("tool_versions", json!({"onnx": "1.18.0", "qairt": null})),
        ("origin", json!({"file_name": "release.zip", "kind": "hub", "pin": null})),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    let sidecars = json!({"bundle/weights.data": file("bundle/weights.data")});
    assert_eq!(record["external_data"]["bundle/encoder.onnx"], sidecars);
    assert_eq!(record["inventory"].as_object().unwrap().len(), release.inventory.len());
}

/// RA4 and W3: the same again, the other precisions, a branch and its commit: one archive, one download.
#[test]
fn what_is_here_is_not_fetched_again() {
    let (place, hub) = place_and_hub();
    let first = acquire(&place, &hub, &wanted()).unwrap();
    let again = acquire(&place, &hub, &wanted()).unwrap();
    assert_eq!((&again.root, &again.outcome, again.fetched_bytes), (&first.root, &Outcome::Reused, 0));
    assert!(matches!(again.trust, Trust::SinceFirstUse { .. }), "{:?}", again.trust);
    for other in [
        wanted().precision("fp32"),
        wanted().precision("fp16"),
        wanted().precision("float"),
        wanted().revision("main"),
        wanted().revision(COMMIT),
    ] {
        let release = acquire(&place, &hub, &other).unwrap();
        assert_eq!((release.archive_sha256, release.fetched_bytes), (first.archive_sha256.clone(), 0));
    }
    assert_eq!(hub.downloads(), 1);
}

type Harm = fn(&std::path::Path);

/// RA5, RA6, RA7, W4: a graph, a sidecar, the metadata, an extra file, the record, the whole extraction.
#[test]
fn a_damaged_extraction_is_rebuilt_without_a_download() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted()).unwrap();
    let contents = support::contents(&release.root);
    let changed = |path: &str| Damage::Changed { path: path.to_owned() };
    let cases: [(Harm, Option<Damage>); 7] = [
        (
            |root| fs::write(root.join("bundle/encoder.onnx"), "x").unwrap(),
            Some(changed("bundle/encoder.onnx")),
        ),
        (
            |root| fs::write(root.join("bundle/weights.data"), [7; 256]).unwrap(),
            Some(changed("bundle/weights.data")),
        ),
        (
            |root| fs::write(root.join("bundle/metadata.json"), "{}").unwrap(),
            Some(changed("bundle/metadata.json")),
        ),
        (
            |root| fs::write(root.join("bundle/extra.onnx"), "x").unwrap(),
            Some(Damage::Unexpected { path: "bundle/extra.onnx".to_owned() }),
        ),
        (
            |root| fs::remove_file(root.join("bundle/decoder.onnx")).unwrap(),
            Some(Damage::Missing { path: "bundle/decoder.onnx".to_owned() }),
        ),
        (|root| fs::write(root.join("release_provenance.json"), "{").unwrap(), None),
        (|root| fs::remove_file(root.join("release_provenance.json")).unwrap(), None),
    ];
    for (number, (harm, expected)) in cases.into_iter().enumerate() {
        harm(&release.root);
        let mended = acquire(&place, &hub, &wanted()).unwrap();
        assert_eq!(mended.root, release.root);
        if let Some(expected) = expected {
            assert_eq!(damage(&mended), [expected]);
        } else {
            assert!(matches!(damage(&mended)[..], [Damage::Record { .. }]), "case {number}");
        }
        assert_eq!(support::contents(&release.root), contents, "case {number}");
    }
    fs::remove_dir_all(&release.root).unwrap();
    assert_eq!(acquire(&place, &hub, &wanted()).unwrap().outcome, Outcome::Extracted);
    assert_eq!(support::contents(&release.root), contents);
    assert_eq!(hub.downloads(), 1);
}

/// Every field of the record is held against the request and the files.
#[test]
fn an_edited_record_is_not_believed() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted().revision("main")).unwrap();
    let original = fs::read_to_string(release.provenance()).unwrap();
    let record: Value = serde_json::from_str(&original).unwrap();
    for field in record.as_object().unwrap().keys() {
        let mut edited = record.clone();
        edited[field] = json!("something else");
        fs::write(release.provenance(), format!("{edited:#}")).unwrap();
        let mended = acquire(&place, &hub, &wanted().revision("main")).unwrap();
        assert_eq!(damage(&mended), [Damage::RecordField { field: field.clone() }]);
        assert_eq!(fs::read_to_string(release.provenance()).unwrap(), original, "{field}");
    }
    assert_eq!(hub.downloads(), 1);
}

/// RA8: the archive itself, changed or gone.
#[test]
fn a_damaged_archive_is_fetched_again_and_must_be_the_same() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted()).unwrap();
    let kept = release.root.parent().unwrap().join("release.zip");
    let size = fs::metadata(&kept).unwrap().len();
    let mut flipped = fs::read(&kept).unwrap();
    flipped[40] ^= 1;
    for (number, bytes) in [flipped, Vec::new(), b"PK".to_vec()].into_iter().enumerate() {
        fs::write(&kept, bytes).unwrap();
        let mended = acquire(&place, &hub, &wanted()).unwrap();
        assert_eq!((damage(&mended), mended.fetched_bytes), (vec![Damage::Archive], size), "case {number}");
        assert_eq!((&mended.root, hub.downloads()), (&release.root, 2 + number));
        assert_eq!(hub::digest(&fs::read(&kept).unwrap()), release.archive_sha256);
    }
    fs::remove_file(&kept).unwrap();
    let mended = acquire(&place, &hub, &wanted()).unwrap();
    assert_eq!((damage(&mended), mended.fetched_bytes), (vec![Damage::ArchiveMissing], size));
    fs::remove_file(&kept).unwrap();
    fs::create_dir(&kept).unwrap();
    assert_eq!(damage(&acquire(&place, &hub, &wanted()).unwrap()), [Damage::Archive]);
    assert_eq!(acquire(&place, &hub, &wanted()).unwrap().outcome, Outcome::Reused);
}

/// A damaged archive that cannot be replaced is told together with the reason, and neither hides the other.
#[test]
fn a_damaged_archive_is_named_when_it_cannot_be_fetched() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted()).unwrap();
    let kept = release.root.parent().unwrap().join("release.zip");
    fs::write(&kept, "x").unwrap();
    hub.misbehave_at_archive(|_, _, _| Reply::new(404, "gone"));
    let error = acquire(&place, &hub, &wanted()).unwrap_err();
    let Error::NotRepaired { found, source } = &error else { panic!("{error:?}") };
    assert_eq!(found, &[Damage::Archive]);
    assert!(matches!(**source, Error::Download { .. }), "{source:?}");
    hub.behave();
    assert_eq!(damage(&acquire(&place, &hub, &wanted()).unwrap()), [Damage::Archive]);
}

/// RA9: a manifest without the asset is no absent release; what there is is said.
#[test]
fn a_missing_asset_is_said_with_what_there_is() {
    let (place, hub) = place_and_hub();
    let said = |wanted: &HubRelease| acquire(&place, &hub, wanted).unwrap_err();
    let error = said(&wanted().precision("int8"));
    let Error::NoAsset { precision, available, .. } = &error else { panic!("{error}") };
    assert_eq!(precision, "int8");
    assert_eq!(*available, ["float/onnx", "float/tflite", "float/snapdragon-x/onnx", "w8a8/onnx"]);
    assert!(matches!(said(&wanted().chipset("none")), Error::NoAsset { chipset: Some(_), .. }));
    assert!(matches!(said(&wanted().precision("w8a8")), Error::Manifest { .. }));
    for (manifest, detail) in
        [("{}", "NoAsset"), ("[]", "Manifest"), ("", "Manifest"), ("<html>", "Manifest")]
    {
        hub.world.lock().unwrap().manifest = manifest.as_bytes().to_vec();
        let error = format!("{:?}", said(&wanted()));
        assert!(error.starts_with(detail), "{manifest}: {error}");
    }
    assert_eq!(hub.downloads(), 0);
    assert_eq!(place.files(), [] as [&str; 0], "nothing of a request that failed is kept");
}

/// The commit is what counts: when a branch moves on, the next call follows it, and both releases stay.
#[test]
fn a_branch_that_moves_on_is_followed() {
    let (place, hub) = place_and_hub();
    let before = acquire(&place, &hub, &wanted()).unwrap();
    let later = "f".repeat(40);
    hub.world.lock().unwrap().commit.clone_from(&later);
    let after = acquire(&place, &hub, &wanted()).unwrap();
    assert_eq!(after.commit.as_deref(), Some(later.as_str()));
    assert_ne!(after.root, before.root);
    assert!(before.root.exists());
}

/// Archives that are sound and no releases, in the place of ours: damage like any other, not the publisher's fault.
#[test]
fn another_archive_in_the_archives_place_is_damage() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted()).unwrap();
    let kept = release.root.parent().unwrap().join("release.zip");
    let graph = support::graph();
    let two: [(&str, &[u8]); 3] =
        [("a/metadata.json", b"{}"), ("b/metadata.json", b"{}"), ("g.onnx", &graph)];
    let empty: [(&str, &[u8]); 0] = [];
    for other in [support::zip_of(&empty), support::zip_of(&[("readme.txt", "x")]), support::zip_of(&two)] {
        fs::write(&kept, other).unwrap();
        assert_eq!(damage(&acquire(&place, &hub, &wanted()).unwrap()), [Damage::Archive]);
    }
}

/// Files in the places of folders, folders in the places of files: rubbish is removed, the release comes back.
#[test]
fn rubbish_in_the_cache_is_cleared_away() {
    let (place, hub) = place_and_hub();
    let release = acquire(&place, &hub, &wanted()).unwrap();
    let entry = release.root.parent().unwrap().to_owned();
    fs::remove_dir_all(&entry).unwrap();
    fs::write(&entry, "a file in the folder's place").unwrap();
    acquire(&place, &hub, &wanted()).unwrap();
    let facts = place.cache_root().join("facts-v1");
    for name in support::tree(&facts) {
        fs::remove_file(facts.join(&name)).unwrap();
        fs::create_dir(facts.join(&name)).unwrap();
    }
    // What only saves asking is asked for again; what answers are held against is not given up in silence.
    let error = acquire(&place, &hub, &wanted()).unwrap_err();
    assert!(matches!(error, Error::DamagedFact { .. }), "{error:?}");
    acquire(&place, &hub, &wanted().accept_changed_archive()).unwrap();
    let downloads = hub.downloads();
    acquire(&place, &hub, &wanted()).unwrap();
    assert_eq!(hub.downloads(), downloads, "what was learnt is remembered again");
    fs::remove_dir_all(&facts).unwrap();
    fs::write(&facts, "a file").unwrap();
    acquire(&place, &hub, &wanted()).unwrap();
}

/// A pipe where the archive's folder was: opening it would wait for its other end for ever.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_cache_blocks_nobody() {
    let (place, hub) = place_and_hub();
    let entry = acquire(&place, &hub, &wanted()).unwrap().root.parent().unwrap().to_owned();
    fs::remove_dir_all(&entry).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&entry).status().unwrap().success());
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(acquire(&place, &hub, &wanted()).map(|found| found.outcome)));
    let outcome = done.recv_timeout(std::time::Duration::from_secs(30)).expect("it must not wait");
    assert_eq!(
        outcome.unwrap(),
        Outcome::Repaired { reasons: vec![Damage::ArchiveMissing, Damage::NotAFolder] }
    );
}

/// Links that lead to themselves, in the place of the archive, its folder and the bucket.
#[cfg(unix)]
#[test]
fn links_in_circles_are_cleared_away() {
    let (place, hub) = place_and_hub();
    let kept = acquire(&place, &hub, &wanted()).unwrap().root.parent().unwrap().join("release.zip");
    for path in kept.ancestors().take(3) {
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
        let mended = acquire(&place, &hub, &wanted()).unwrap();
        assert!(mended.fetched_bytes > 0, "{path:?}");
        assert_eq!(acquire(&place, &hub, &wanted()).unwrap().outcome, Outcome::Reused, "{path:?}");
    }
}
