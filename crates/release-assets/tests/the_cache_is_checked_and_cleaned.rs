//! The cache as a whole: every byte can be checked without changing anything, and what is unused can be removed.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod loopback;
mod support;

use std::{
    fs,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use loopback::hub::{Hub, wanted};
use release_assets::{Damage, Error, Outcome, Phase};
use serde_json::{Value, json};
use support::{Place, release_members, release_zip, zip_of};

#[test]
fn everything_is_checked_and_nothing_changed() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let cache = place.cache();
    assert_eq!(cache.verify().unwrap().len(), 0, "an empty cache");
    let release = cache.acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let mut members = release_members();
    members.pop();
    let by_path = cache.open_archive(place.write("other.zip", &zip_of(&members))).unwrap();
    let found = cache.verify().unwrap();
    assert_eq!(found.len(), 3, "an archive and two extractions");
    assert!(found.iter().all(|checked| checked.damage.is_empty()), "{found:?}");
    assert_eq!(found.iter().filter(|checked| !checked.against_archive).count(), 1);

    fs::write(release.root.join("bundle/metadata.json"), "{}").unwrap();
    fs::write(release.root.parent().unwrap().join("release.zip"), "x").unwrap();
    fs::remove_file(by_path.root.join("bundle/weights.data")).unwrap();
    fs::write(by_path.root.join("bundle/new"), "x").unwrap();
    let before = support::contents(&place.cache_root());
    let damage: Vec<_> = cache.verify().unwrap().into_iter().flat_map(|checked| checked.damage).collect();
    for expected in [
        Damage::Archive,
        Damage::Changed { path: "bundle/metadata.json".to_owned() },
        Damage::Missing { path: "bundle/weights.data".to_owned() },
        Damage::Unexpected { path: "bundle/new".to_owned() },
    ] {
        assert!(damage.contains(&expected), "{expected:?} in {damage:?}");
    }
    assert_eq!(damage.len(), 4);
    assert_eq!(support::contents(&place.cache_root()), before, "checking changes nothing");
}

/// A record that was moved to where another request's should be is no proof.
#[test]
fn a_record_of_another_request_is_noticed() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let one = place.cache().acquire(&wanted(), &client).unwrap();
    let two = place.cache().acquire(&wanted().precision("fp16"), &client).unwrap();
    fs::copy(one.provenance(), two.provenance()).unwrap();
    let damage: Vec<_> = place.cache().verify().unwrap().into_iter().flat_map(|c| c.damage).collect();
    assert!(matches!(damage[..], [Damage::Record { .. }]), "{damage:?}");
}

#[test]
fn what_is_unused_is_removed_and_comes_back() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let cache = place.cache();
    let release = cache.acquire(&wanted(), &client).unwrap();
    assert_eq!(cache.gc(Duration::from_hours(24), false).unwrap().removed.len(), 0, "it was used just now");
    let dry = cache.gc(Duration::ZERO, true).unwrap();
    assert_eq!(dry.removed.len(), 1);
    assert!(dry.bytes > release_zip().len() as u64 && release.root.exists());
    let done = cache.gc(Duration::ZERO, false).unwrap();
    assert_eq!((done.bytes, release.root.exists()), (dry.bytes, false));
    let again = cache.acquire(&wanted(), &client).unwrap();
    assert_eq!((again.root, again.outcome), (release.root, Outcome::Extracted));
    assert_eq!(hub.downloads(), 2);
}

/// The one named exception to hashing: sizes and times.
#[test]
fn stat_only_is_fast_and_blind_by_name() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let release = place.cache().acquire(&wanted(), &client).unwrap();
    let fast = place.cache().stat_only();
    assert_eq!(fast.acquire(&wanted(), &client).unwrap().outcome, Outcome::Reused);
    // A change of size or time is seen.
    let weights = release.root.join("bundle/weights.data");
    fs::write(&weights, [1; 255]).unwrap();
    assert!(matches!(fast.acquire(&wanted(), &client).unwrap().outcome, Outcome::Repaired { .. }));
    fs::write(&weights, [1; 256]).unwrap();
    assert!(matches!(fast.acquire(&wanted(), &client).unwrap().outcome, Outcome::Repaired { .. }));
    // One that keeps both is not, and that is what the default is for.
    let time = fs::metadata(&weights).unwrap().modified().unwrap();
    fs::write(&weights, [1; 256]).unwrap();
    fs::File::options().write(true).open(&weights).unwrap().set_modified(time).unwrap();
    assert_eq!(fast.acquire(&wanted(), &client).unwrap().outcome, Outcome::Reused);
    assert!(matches!(place.cache().acquire(&wanted(), &client).unwrap().outcome, Outcome::Repaired { .. }));
}

/// Somebody who forges a file, its CRC-32 and the record together deceives a reuse, as documented, but not this: the archive says
/// what the file should be.
#[test]
fn a_forged_file_is_found_by_the_archive() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let release = place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let file = release.root.join("bundle/weights.data");
    let mut bytes = fs::read(&file).unwrap();
    let crc = support::crc32(&bytes);
    let old = release_assets::sha256_file(&file).unwrap();
    bytes[0] ^= 1;
    // Four bytes at the end bring the checksum back: each of its bits is a sum of theirs.
    let end = bytes.len() - 4;
    let at = |patch: u32, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[end..].copy_from_slice(&patch.to_le_bytes());
        support::crc32(&bytes)
    };
    let zero = at(0, &bytes);
    let mut rows: Vec<(u32, u32)> = (0..32).map(|bit| (at(1 << bit, &bytes) ^ zero, 1 << bit)).collect();
    let (mut wanted_sum, mut patch) = (zero ^ crc, 0);
    for bit in 0..32 {
        let pivot = rows.iter().position(|(sum, _)| sum >> bit & 1 == 1).unwrap();
        let row = rows.swap_remove(pivot);
        for other in rows.iter_mut().filter(|(sum, _)| sum >> bit & 1 == 1) {
            *other = (other.0 ^ row.0, other.1 ^ row.1);
        }
        if wanted_sum >> bit & 1 == 1 {
            wanted_sum ^= row.0;
            patch ^= row.1;
        }
    }
    bytes[end..].copy_from_slice(&patch.to_le_bytes());
    assert_eq!(support::crc32(&bytes), crc);
    fs::write(&file, &bytes).unwrap();
    let new = release_assets::sha256_file(&file).unwrap();
    let record = fs::read_to_string(release.provenance()).unwrap().replace(&old, &new);
    fs::write(release.provenance(), record).unwrap();
    let damage: Vec<_> =
        place.cache().verify().unwrap().into_iter().flat_map(|checked| checked.damage).collect();
    assert_eq!(damage, [Damage::Changed { path: "bundle/weights.data".to_owned() }]);
}

/// Old extractions go while their archive is in use, and what cannot be removed does not keep the rest.
#[test]
fn extractions_age_one_by_one() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let cache = place.cache();
    let old = cache.acquire(&wanted().precision("fp16"), &client).unwrap();
    let new = cache.acquire(&wanted(), &client).unwrap();
    let past = std::time::SystemTime::now() - Duration::from_hours(100);
    fs::File::open(&old.root).unwrap().set_modified(past).unwrap();
    let cleaned = cache.gc(Duration::from_hours(24), false).unwrap();
    assert_eq!(cleaned.removed.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&old.root]);
    assert!(new.root.exists() && cleaned.failed.is_empty());
    // Left by killed processes, in both places.
    for path in ["archives-v1/.download-1", "facts-v1/.writing-1"] {
        let file = fs::File::create(place.cache_root().join(path)).unwrap();
        file.set_modified(past).unwrap();
    }
    assert_eq!(cache.gc(Duration::from_hours(24), false).unwrap().removed.len(), 2);
}

/// A clock that was set back makes all times lie in the future: nothing is old for that.
#[test]
fn times_in_the_future_are_not_old() {
    let place = Place::new();
    let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
    let leftover = place.cache_root().join("archives-v1/.download-1");
    fs::write(&leftover, "x").unwrap();
    let future = std::time::SystemTime::now() + Duration::from_hours(1000);
    for path in [leftover.as_path(), &release.root, release.root.parent().unwrap()] {
        fs::File::open(path).unwrap().set_modified(future).unwrap();
    }
    for age in [Duration::MAX, Duration::from_hours(24)] {
        assert_eq!(place.cache().gc(age, false).unwrap().removed.len(), 0);
    }
    assert_eq!(
        place.cache().gc(Duration::ZERO, false).unwrap().removed.len(),
        1,
        "asked for whatever its age"
    );
}

/// What stands in the place of a folder, and an extraction under another archive's name.
#[cfg(unix)]
#[test]
fn links_and_moved_extractions_are_noticed() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let release = place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let moved = place.cache_root().join("archives-v1").join("a".repeat(64));
    fs::create_dir(&moved).unwrap();
    fs::rename(&release.root, moved.join(release.root.file_name().unwrap())).unwrap();
    std::os::unix::fs::symlink(moved.join(release.root.file_name().unwrap()), &release.root).unwrap();
    let damage: Vec<_> =
        place.cache().verify().unwrap().into_iter().flat_map(|checked| checked.damage).collect();
    let other_archive = Damage::RecordField { field: "archive_sha256".to_owned() };
    assert!(
        damage.len() == 2 && damage.contains(&Damage::NotAFolder) && damage.contains(&other_archive),
        "{damage:?}"
    );
}

/// Where the archive is not at hand the record is held against the files all the same, in every field that follows from them.
#[test]
fn a_bad_record_is_noticed_without_the_archive() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    let original = fs::read_to_string(release.provenance()).unwrap();
    for (field, value) in [
        ("schema_version", json!(1)),
        ("graphs", json!({})),
        ("external_data", json!(5)),
        ("unknown", json!(null)),
        ("archive_sha256", json!("0".repeat(64))),
    ] {
        let mut record: Value = serde_json::from_str(&original).unwrap();
        record[field] = value;
        fs::write(release.provenance(), format!("{record:#}")).unwrap();
        let damage: Vec<_> = place.cache().verify().unwrap().into_iter().flat_map(|c| c.damage).collect();
        assert_eq!(damage, [Damage::RecordField { field: field.to_owned() }]);
    }
    fs::write(release.provenance(), original).unwrap();
    assert!(place.cache().verify().unwrap().iter().all(|checked| checked.damage.is_empty()));
}

/// What the operating system says is not lost on the way.
#[test]
fn reasons_are_told_whole() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    fs::write(release.provenance(), vec![b' '; 65 << 20]).unwrap();
    let damage: Vec<_> = place.cache().verify().unwrap().into_iter().flat_map(|c| c.damage).collect();
    let [Damage::Record { reason }] = &damage[..] else { panic!("{damage:?}") };
    assert!(reason.ends_with("more than 67108864 bytes"), "{reason}");
}

/// Unpacking the archive to hold the files against it reports and can be cancelled, and is done once for all extractions.
#[test]
fn holding_files_against_the_archive_reports() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    for wanted in [wanted(), wanted().precision("fp16")] {
        place.cache().acquire(&wanted, &client).unwrap();
    }
    let counting = |stop_at: usize| {
        let starts = Arc::new(AtomicUsize::new(0));
        let counter = starts.clone();
        let cache = place.cache().on_progress(move |phase, done, _| {
            if phase == Phase::Verify {
                let count = counter.fetch_add(usize::from(done == 0), Ordering::Relaxed);
                if done > 0 && count == stop_at {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        (cache.verify(), starts.load(Ordering::Relaxed))
    };
    let (found, starts) = counting(usize::MAX);
    assert_eq!((found.unwrap().len(), starts), (3, 3), "two extractions hashed, one archive unpacked");
    assert!(matches!(counting(2).0, Err(Error::Cancelled)));
}

/// Only lower-case hashes are the cache's own names.
#[test]
fn folders_of_others_are_left_alone() {
    let place = Place::new();
    place.open(&release_zip()).unwrap();
    let other = place.cache_root().join("archives-v1").join("A".repeat(64));
    fs::create_dir(&other).unwrap();
    assert!(place.cache().verify().unwrap().iter().all(|checked| !checked.path.starts_with(&other)));
    place.cache().gc(Duration::ZERO, false).unwrap();
    assert!(other.exists());
}

const LONG_AGO: Duration = Duration::from_hours(24 * 100);

fn age(path: &std::path::Path) {
    let past = std::time::SystemTime::now() - LONG_AGO;
    fs::File::open(path).unwrap().set_modified(past).unwrap();
}

/// What a link in the cache leads to is none of the cache's.
#[cfg(unix)]
#[test]
fn nothing_behind_a_link_is_removed() {
    let place = Place::new();
    let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
    let (entry, other) = (release.root.parent().unwrap(), place.dir.path().join("other"));
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "x").unwrap();
    age(&other.join("mine"));
    std::os::unix::fs::symlink(&other, entry.with_file_name("a".repeat(64))).unwrap();
    for unused in [Duration::from_hours(24 * 30), Duration::ZERO] {
        place.cache().gc(unused, false).unwrap();
        assert!(other.join("mine").exists(), "{unused:?}");
    }
    assert_eq!(
        support::tree(&place.cache_root().join("archives-v1")).len(),
        0,
        "the link itself is old by now"
    );
}

const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";
const ROOT: &str = "RELEASE_ASSETS_TEST_ROOT";

/// Not a test of its own: checks or cleans the cache of the environment and says what came of it.
#[test]
fn child() {
    let (Some(root), Some(what)) = (std::env::var_os(ROOT), std::env::var_os(CHILD)) else { return };
    let cache = release_assets::Cache::new(root);
    if what == "verify" {
        for checked in cache.verify().unwrap() {
            println!("checked {:?} {:?}", checked.path, checked.damage);
        }
    } else {
        for dry in [true, false] {
            let cleaned = cache.gc(Duration::ZERO, dry).unwrap();
            println!("dry={dry} removed={} failed={:?}", cleaned.removed.len(), cleaned.failed);
        }
    }
}

/// Checks or cleans a cache as somebody whom permissions hold, which they do not hold the superuser.
#[cfg(target_os = "linux")]
fn as_nobody(place: &Place, what: &str) -> String {
    use std::{os::unix::fs::MetadataExt, process::Command};

    let program = place.dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(place.dir.path()).status().unwrap();
        assert!(owned.success());
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    }
    command.args(["--exact", "child", "--nocapture"]).env(CHILD, what).env(ROOT, place.cache_root());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// What cannot be removed stays whole where it is, and is listed.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_removed_stays() {
    use std::os::unix::fs::PermissionsExt;

    for (mode, while_dry) in [(0o555, "dry=true removed=1 failed=[]"), (0, "dry=true removed=0 failed=[(")] {
        let place = Place::new();
        let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
        let entry = release.root.parent().unwrap();
        let before = support::contents(&place.cache_root());
        let set = |mode| fs::set_permissions(entry, fs::Permissions::from_mode(mode)).unwrap();
        set(mode);
        let said = as_nobody(&place, "gc");
        set(0o755);
        assert!(said.contains(while_dry), "{mode:o}: {said}");
        let listed = format!("dry=false removed=0 failed=[({entry:?}, \"Permission denied");
        assert!(said.contains(&listed), "{mode:o}: {said}");
        assert_eq!(support::contents(&place.cache_root()), before, "{mode:o}");
        assert!(as_nobody(&place, "gc").contains("dry=false removed=1 failed=[]"), "{mode:o}");
    }
}

/// What another process removes while it is read is not damaged: it is gone.
#[test]
fn what_vanishes_while_it_is_checked_is_left_out() {
    let place = Place::new();
    let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
    let entry = release.root.parent().unwrap().to_owned();
    // The archive is hashed before its extractions are looked at.
    for gone in [release.root.clone(), entry] {
        let path = gone.clone();
        let cache = place.cache().on_progress(move |phase, done, total| {
            if phase == Phase::HashArchive && done == total {
                let _ = fs::remove_dir_all(&path);
            }
            ControlFlow::Continue(())
        });
        let found = cache.verify().unwrap();
        assert!(found.iter().all(|checked| checked.damage.is_empty()), "{found:?}");
        assert!(!gone.exists());
    }
    // As somebody does who repairs an extraction in that moment.
    let place = Place::new();
    let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
    let metadata = release.root.join("bundle/metadata.json");
    let right = fs::read(&metadata).unwrap();
    fs::write(&metadata, "{}").unwrap();
    let looks = AtomicUsize::new(0);
    let cache = place.cache().on_progress(move |phase, done, total| {
        if phase == Phase::HashArchive && done == total && looks.fetch_add(1, Ordering::Relaxed) == 1 {
            fs::write(&metadata, &right).unwrap();
        }
        ControlFlow::Continue(())
    });
    let found = cache.verify().unwrap();
    assert!(found.iter().all(|checked| checked.damage.is_empty()), "{found:?}");
}

/// A folder that cannot be listed is one of the things found, not the end of the search.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_listed_does_not_end_the_search() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let other = place.cache().import(place.write("b.zip", &zip_of(&release_members()[2..])), None).unwrap();
    let release = place.cache().import(place.write("a.zip", &release_zip()), None).unwrap();
    let entry = release.root.parent().unwrap();
    fs::set_permissions(entry, fs::Permissions::from_mode(0o000)).unwrap();
    let said = as_nobody(&place, "verify");
    fs::set_permissions(entry, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(said.contains(&format!("checked {entry:?} [Unreadable")), "{said}");
    assert!(said.contains(&format!("checked {:?} []", other.root)), "{said}");
}

/// What is remembered is looked at, too.
#[test]
fn damaged_facts_are_noticed() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    place.cache().acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    assert!(place.cache().verify().unwrap().iter().all(|checked| checked.damage.is_empty()));
    let facts = place.cache_root().join("facts-v1");
    let names = support::tree(&facts);
    assert_eq!(names.len(), 4, "a branch, its commit, a manifest, an address: {names:?}");
    for name in &names {
        let bytes = fs::read(facts.join(name)).unwrap();
        fs::write(facts.join(name), &bytes[..bytes.len() - 3]).unwrap();
    }
    let found = place.cache().verify().unwrap();
    let damaged: Vec<_> = found.iter().filter(|checked| !checked.damage.is_empty()).collect();
    assert_eq!(damaged.len(), 4);
    for (checked, name) in damaged.iter().zip(&names) {
        assert!(
            matches!(checked.damage[..], [Damage::Fact { .. }]) && checked.path.ends_with(name),
            "{checked:?}"
        );
    }
}
