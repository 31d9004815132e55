//! D15: threads and processes at once on one empty or damaged cache, with and without working locks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    env, fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Child,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use release_assets::{Cache, Outcome, Phase, Release, sha256_file};
use support::{Place, contents, release_members, release_zip, tree};

const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";

/// Not a test of its own: the body of the child processes.
#[test]
fn child() {
    let Some(folder) = env::var_os(CHILD).map(PathBuf::from) else { return };
    for _ in 0..3 {
        let release = Cache::new(folder.join("cache")).open_archive(folder.join("release.zip")).unwrap();
        assert_right(&release);
    }
}

fn spawn_child(folder: &Path) -> Child {
    support::child().env(CHILD, folder).spawn().unwrap()
}

fn assert_right(release: &Release) {
    assert_eq!(release.inventory.len(), 4);
    for entry in &release.inventory {
        assert_eq!(sha256_file(release.root.join(&entry.path)).unwrap(), entry.sha256);
    }
}

/// Eight threads open the archive at the same moment. Their outcomes.
fn open_with_threads(place: &Place, cache: &Cache) -> Vec<Outcome> {
    let barrier = Barrier::new(8);
    let zip = place.dir.path().join("release.zip");
    let open = || {
        barrier.wait();
        cache.open_archive(&zip).unwrap()
    };
    let releases: Vec<Release> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    releases.iter().for_each(assert_right);
    releases.into_iter().map(|release| release.outcome).collect()
}

fn assert_tidy(place: &Place) {
    let files = place.files();
    assert_eq!(files.len(), 1 + release_members().len() + 1, "leftovers: {files:?}");
    let root = place.cache().open_archive(place.dir.path().join("release.zip")).unwrap().root;
    for (path, data) in release_members() {
        assert_eq!(fs::read(root.join(path)).unwrap(), data);
    }
}

/// With locks, one does the work and the others use it.
#[test]
fn threads_and_processes_on_an_empty_cache() {
    for _ in 0..5 {
        let place = Place::new();
        place.write("release.zip", &release_zip());
        let children: Vec<Child> = (0..4).map(|_| spawn_child(place.dir.path())).collect();
        open_with_threads(&place, &place.cache());
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_tidy(&place);
    }
}

/// The lock saves the work: of eight threads one extracts, the others wait.
#[test]
fn one_of_many_threads_extracts() {
    let place = Place::new();
    place.write("release.zip", &release_zip());
    let extractions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&extractions);
    let cache = place.cache().on_progress(move |phase, done, _| {
        if phase == Phase::Extract && done == 0 {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    });
    let outcomes = open_with_threads(&place, &cache);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Extracted).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Reused).count(), 7, "{outcomes:?}");
    assert_eq!(extractions.load(Ordering::Relaxed), 1);
}

/// Puts a folder where the lock file would be: as on a file system without locks, nobody gets one.
fn defeat_locks(place: &Place) -> PathBuf {
    let hash = sha256_file(place.dir.path().join("release.zip")).unwrap();
    let path = place.cache_root().join("archives-v1").join(format!(".lock-{hash}"));
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn threads_without_locks_on_an_empty_cache() {
    for _ in 0..20 {
        let place = Place::new();
        place.write("release.zip", &release_zip());
        let lock = defeat_locks(&place);
        let outcomes = open_with_threads(&place, &place.cache());
        let extracted = outcomes.iter().filter(|outcome| **outcome == Outcome::Extracted).count();
        assert_eq!(extracted, 1, "one tree is published, the others find it: {outcomes:?}");
        fs::remove_dir(lock).unwrap();
        assert_tidy(&place);
    }
}

/// All have finished their extraction when the first one publishes, so that they collide at the rename.
#[test]
fn threads_without_locks_that_publish_at_once() {
    for _ in 0..25 {
        let place = Place::new();
        place.write("release.zip", &release_zip());
        let lock = defeat_locks(&place);
        let barrier = Barrier::new(8);
        let cache = place.cache().on_progress(move |phase, done, total| {
            if phase == Phase::RecheckArchive && done == total {
                barrier.wait();
            }
            ControlFlow::Continue(())
        });
        let outcomes = open_with_threads(&place, &cache);
        let extracted = outcomes.iter().filter(|outcome| **outcome == Outcome::Extracted).count();
        assert_eq!(extracted, 1, "{outcomes:?}");
        fs::remove_dir(lock).unwrap();
        assert_tidy(&place);
    }
}

#[test]
fn threads_on_a_damaged_cache() {
    for round in 0..10 {
        let place = Place::new();
        let first = place.open(&release_zip()).unwrap();
        let good = contents(&first.root);
        fs::write(first.root.join("bundle/weights.data"), b"damaged").unwrap();
        fs::write(first.root.join("extra.onnx"), b"x").unwrap();
        let outcomes = open_with_threads(&place, &place.cache());
        assert!(outcomes.iter().any(|outcome| matches!(outcome, Outcome::Repaired { .. })), "round {round}");
        assert_eq!(contents(&first.root), good);
        assert_tidy(&place);
    }
}

/// A lock that somebody holds for ever does not stop who needs nothing but a valid entry.
#[test]
fn a_held_lock_does_not_block_reuse() {
    let place = Place::new();
    let first = place.open(&release_zip()).unwrap();
    let path = place.cache_root().join("archives-v1").join(format!(".lock-{}", first.archive_sha256));
    let lock = fs::File::create(path).unwrap();
    lock.lock().unwrap();
    assert_eq!(place.open(&release_zip()).unwrap().outcome, Outcome::Reused);
    drop(lock);
    assert!(tree(&place.cache_root()).iter().any(|path| path.contains(".lock-")));
}
