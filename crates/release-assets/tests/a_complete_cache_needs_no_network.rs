//! W2, D6, D7: what is here is used without a network; what is missing is named; a zip can be brought by hand.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{ops::ControlFlow, time::Duration};

use loopback::hub::{ARCHIVE, COMMIT, Hub, wanted};
use release_assets::{Client, Damage, Error, HubRelease, Outcome, Phase, Pin, Trust, UrlRelease};
use support::{Place, release_zip};

/// A client whose every use of the network fails: there is nobody at its endpoint, and it may not even ask.
fn offline(hub: &Hub) -> Client {
    hub.server.client().offline(true).build().unwrap()
}

fn by_url(hub: &Hub) -> UrlRelease {
    UrlRelease::new(hub.server.url(ARCHIVE))
}

fn missing(place: &Place, wanted: &HubRelease, client: &Client) -> String {
    let error = place.cache().acquire(wanted, client).unwrap_err();
    let Error::Offline { missing } = error else { panic!("{error:?}") };
    missing
}

#[test]
fn a_remembered_revision_opens_offline() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let online =
        place.cache().acquire(&wanted().revision("main"), &hub.server.client().build().unwrap()).unwrap();
    let before = hub.server.requests().len();
    for revision in ["main", COMMIT] {
        let release = place.cache().acquire(&wanted().revision(revision), &offline(&hub)).unwrap();
        assert_eq!((&release.archive_sha256, release.fetched_bytes), (&online.archive_sha256, 0));
        assert_eq!(release.commit.as_deref(), Some(COMMIT));
    }
    // Other precisions of the same archive too, and what was damaged is mended from it.
    std::fs::write(online.root.join("bundle/encoder.onnx"), "x").unwrap();
    let mended = place.cache().acquire(&wanted().revision("main"), &offline(&hub)).unwrap();
    assert!(matches!(mended.outcome, Outcome::Repaired { .. }));
    place.cache().acquire(&wanted().revision("main").precision("fp16"), &offline(&hub)).unwrap();
    assert_eq!(hub.server.requests().len(), before, "the network was used");
}

/// Online too, a full commit whose manifest and archive are here needs no network.
#[test]
fn a_commit_is_settled() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    place.cache().acquire(&wanted(), &client).unwrap();
    let before = hub.server.requests().len();
    place.cache().acquire(&wanted().revision(COMMIT), &client).unwrap();
    assert_eq!(hub.server.requests().len(), before);
    place.cache().acquire(&wanted(), &client).unwrap();
    assert_eq!(hub.server.requests().len(), before + 2, "a branch may have moved");
}

#[test]
fn what_is_missing_is_named() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let said = missing(&place, &wanted(), &offline(&hub));
    assert!(said.contains("the default branch of owner/Model-1"), "{said}");
    let client = hub.server.client().build().unwrap();
    let release = place.cache().acquire(&wanted(), &client).unwrap();
    let said = missing(&place, &wanted().revision("v1"), &offline(&hub));
    assert!(said.contains("v1 of owner/Model-1"), "{said}");
    let kept = release.root.parent().unwrap().join("release.zip");
    std::fs::write(&kept, "x").unwrap();
    let said = missing(&place, &wanted(), &offline(&hub));
    assert!(said.contains("a sound copy of the archive") && said.contains(ARCHIVE), "{said}");
    std::fs::remove_file(&kept).unwrap();
    let said = missing(&place, &wanted(), &offline(&hub));
    assert!(said.contains(ARCHIVE), "{said}");
    // Nothing was lost by asking: with the network back the release is whole again.
    let mended = place.cache().acquire(&wanted(), &client).unwrap();
    assert!(
        matches!(mended.outcome, Outcome::Repaired { ref reasons } if *reasons == [Damage::ArchiveMissing])
    );
    // An address that was never used.
    let error =
        place.cache().acquire_url(&UrlRelease::new("https://localhost:1/x.zip"), &offline(&hub)).unwrap_err();
    assert!(matches!(error, Error::Offline { .. }), "{error:?}");
}

/// A cache that cannot be written is used as long as it is right. Permissions do not hold the superuser: what holds for
/// that one too is in `a_read_only_disk_is_used`.
#[cfg(unix)]
#[test]
fn a_read_only_cache_is_used() {
    use std::os::unix::fs::PermissionsExt;

    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    place.cache().acquire(&wanted(), &client).unwrap();
    let before = support::contents(&place.cache_root());
    let folders = || {
        let mut all = vec![place.cache_root()];
        let mut at = 0;
        while at < all.len() {
            let entries = std::fs::read_dir(&all[at]).unwrap().flatten();
            all.extend(entries.filter(|e| e.file_type().unwrap().is_dir()).map(|e| e.path()));
            at += 1;
        }
        all
    };
    let set = |mode| {
        for folder in folders() {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let online = place.cache().acquire(&wanted(), &client).map(|release| release.outcome);
    let without = place.cache().acquire(&wanted(), &offline(&hub)).map(|release| release.outcome);
    set(0o755);
    assert_eq!((online.unwrap(), without.unwrap()), (Outcome::Reused, Outcome::Reused));
    assert_eq!(support::contents(&place.cache_root()), before);
}

#[test]
fn a_zip_from_disk_is_imported() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let zip = place.write("by-hand.zip", &release_zip());
    let release = place.cache().import(&zip, None).unwrap();
    assert_eq!((&release.trust, &release.outcome), (&Trust::Given, &Outcome::Extracted));
    // The cache has a copy of its own.
    std::fs::remove_file(&zip).unwrap();
    assert!(release.root.parent().unwrap().join("release.zip").is_file());
    // With a pin, requests for the pinned release find it.
    let zip = place.write("by-hand.zip", &release_zip());
    let mut pin = hub.pin();
    pin.url = Some(hub.server.url(ARCHIVE));
    assert!(matches!(place.cache().import(&zip, Some(&pin)).unwrap().trust, Trust::Pinned { .. }));
    let found = place.cache().acquire_url(&by_url(&hub).pin(pin.clone()), &offline(&hub)).unwrap();
    assert_eq!(found.archive_sha256, release.archive_sha256);
    place.cache().acquire_url(&by_url(&hub), &offline(&hub)).unwrap();
    let by_pin = wanted().revision(COMMIT).pin(pin);
    let by_pin = place.cache().acquire(&by_pin, &offline(&hub)).unwrap();
    assert_eq!((by_pin.archive_sha256, by_pin.commit.as_deref()), (release.archive_sha256, Some(COMMIT)));
    assert_eq!(hub.server.requests().len(), 0);
}

#[test]
fn an_import_is_verified_like_a_download() {
    let place = Place::new();
    let zip = place.write("by-hand.zip", &release_zip());
    let other = Pin::new("0".repeat(64), "MIT", "the tests", "2026-11-30");
    let error = place.cache().import(&zip, Some(&other)).unwrap_err();
    assert!(matches!(error, Error::HashMismatch { .. }), "{error:?}");
    for (name, bytes) in [("text.zip", &b"just text"[..]), ("torn.zip", &release_zip()[..200])] {
        let error = place.cache().import(place.write(name, bytes), None).unwrap_err();
        assert!(matches!(error, Error::Archive { .. }), "{error:?}");
    }
    assert_eq!(place.files(), ["by-hand.zip", "text.zip", "torn.zip"]);
}

/// A file that somebody brought does not overrule what the address gave, and a damaged copy in the cache is reported.
#[test]
fn an_import_replaces_nothing_in_silence() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let first = place.cache().acquire_url(&by_url(&hub), &client).unwrap();
    let mut members = support::release_members();
    members[3].1 = b"{}".to_vec();
    let other = place.write("other.zip", &support::zip_of(&members));
    let mut pin = Pin::new(release_assets::sha256_file(&other).unwrap(), "MIT", "the tests", "2026-11-30");
    pin.url = Some(hub.server.url(ARCHIVE));
    place.cache().import(&other, Some(&pin)).unwrap();
    assert_eq!(
        place.cache().acquire_url(&by_url(&hub), &client).unwrap().archive_sha256,
        first.archive_sha256
    );

    let zip = place.write("same.zip", &release_zip());
    let kept = first.root.parent().unwrap().join("release.zip");
    std::fs::write(&kept, "x").unwrap();
    let mended = place.cache().import(&zip, None).unwrap();
    assert!(
        matches!(mended.outcome, Outcome::Repaired { ref reasons } if reasons.contains(&Damage::Archive))
    );
}

/// Bytes that do not unpack are no archive to keep: nothing of it stays, and what the publisher mends can be had.
#[test]
fn an_archive_that_does_not_unpack_is_not_kept() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let mut torn = release_zip();
    let at = torn.windows(4).position(|bytes| bytes == [252, 253, 254, 255]).unwrap();
    torn[at] ^= 1;
    let zip = place.write("torn.zip", &torn);
    hub.world.lock().unwrap().archive = torn;
    for error in [
        place.cache().acquire(&wanted(), &client).unwrap_err(),
        place.cache().import(&zip, None).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Archive { .. }), "{error:?}");
        assert!(!error.to_string().contains(".download-"), "{error}");
    }
    assert!(place.files().iter().all(|path| !path.ends_with("release.zip")), "{:?}", place.files());
    hub.world.lock().unwrap().archive = release_zip();
    assert_eq!(place.cache().acquire(&wanted(), &client).unwrap().trust, Trust::FirstUse);
}

/// A branch that was resolved earlier is not what the pin speaks of: offline the pin wins.
#[test]
fn a_pin_wins_over_an_older_branch() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    place.cache().acquire(&wanted(), &client).unwrap();
    let mut pin = hub.pin();
    pin.commit = Some("f".repeat(40));
    let release = place.cache().acquire(&wanted().pin(pin.clone()), &offline(&hub)).unwrap();
    assert_eq!(release.commit, pin.commit);
    let error = place.cache().acquire(&wanted().revision("main").pin(pin), &client).unwrap_err();
    assert!(matches!(error, Error::PinBroken { .. }), "{error:?}");
}

/// `gc` has an entry aside for an instant, and holds its lock: who finds nothing waits for that and looks again.
#[test]
fn an_archive_that_is_aside_for_an_instant_is_found() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let release = place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let folder = release.root.parent().unwrap().to_owned();
    let bucket = folder.parent().unwrap().to_owned();
    let aside = bucket.join(".staging-aside");
    let lock = std::fs::File::create(bucket.join(format!(".lock-{}", release.archive_sha256))).unwrap();
    lock.lock().unwrap();
    std::fs::rename(&folder, &aside).unwrap();
    let found = std::thread::scope(|scope| {
        let reader = scope.spawn(|| place.cache().acquire(&wanted(), &offline(&hub)));
        std::thread::sleep(Duration::from_millis(200));
        std::fs::rename(&aside, &folder).unwrap();
        lock.unlock().unwrap();
        reader.join().unwrap()
    });
    assert_eq!(found.unwrap().outcome, Outcome::Reused);
}

/// A branch has moved once what it moved to is here: an update that fails takes nothing away.
#[test]
fn a_failed_update_leaves_the_old_release_usable() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let requests = [wanted().revision("main"), wanted()];
    for wanted in &requests {
        place.cache().acquire(wanted, &client).unwrap();
    }
    let later = "f".repeat(40);
    {
        let mut world = hub.world.lock().unwrap();
        world.commit.clone_from(&later);
        world.manifest = loopback::hub::manifest(&hub.server.url("/files/later.zip"));
    }
    for wanted in &requests {
        let error = place.cache().acquire(wanted, &client).unwrap_err();
        assert!(matches!(error, Error::Download { .. }), "{error:?}");
        let release = place.cache().acquire(wanted, &offline(&hub)).unwrap();
        assert_eq!(release.commit.as_deref(), Some(COMMIT));
    }
    hub.misbehave(|request, reply| match request.path.as_str() {
        "/files/later.zip" => loopback::server::Reply::ok(release_zip()),
        _ => reply,
    });
    for wanted in &requests {
        place.cache().acquire(wanted, &client).unwrap();
        let release = place.cache().acquire(wanted, &offline(&hub)).unwrap();
        assert_eq!(release.commit.as_ref(), Some(&later));
    }
}

/// An old archive that is being imported again is in use: `gc` leaves it.
#[test]
fn what_is_imported_again_is_not_cleaned_away() {
    let place = Place::new();
    let zip = place.write("a.zip", &release_zip());
    let first = place.cache().import(&zip, None).unwrap();
    let entry = first.root.parent().unwrap().to_owned();
    let past = std::time::SystemTime::now() - Duration::from_hours(24 * 31);
    for old in [&first.root, &entry] {
        std::fs::File::open(old).unwrap().set_modified(past).unwrap();
    }
    let gc = place.cache();
    let cache = place.cache().on_progress(move |phase, _, _| {
        if phase == Phase::Verify {
            assert_eq!(gc.gc(Duration::from_hours(24 * 30), false).unwrap().removed.len(), 0);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(cache.import(&zip, None).unwrap().outcome, Outcome::Reused);
    assert!(first.root.exists() && entry.join("release.zip").exists());
}

/// An archive that is removed while its release is being opened is there again afterwards.
#[test]
fn an_archive_that_is_removed_meanwhile_is_kept() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let release = place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let folder = release.root.parent().unwrap().to_owned();
    let kept = folder.join("release.zip");
    let cache = place.cache().on_progress(move |phase, _, _| {
        if phase == Phase::Verify && folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        ControlFlow::Continue(())
    });
    cache.acquire(&wanted(), &offline(&hub)).unwrap();
    assert_eq!(std::fs::read(&kept).unwrap(), release_zip());
    assert_eq!(place.cache().acquire(&wanted(), &offline(&hub)).unwrap().outcome, Outcome::Reused);
}
