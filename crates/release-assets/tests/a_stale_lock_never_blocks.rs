//! D9: a lock is waited for as long as its holder shows that it lives, and no longer; one without a holder is none.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{
    fs::{self, File},
    thread,
    time::{Duration, Instant, SystemTime},
};

use loopback::hub::{ARCHIVE, Hub, digest, wanted};
use release_assets::Outcome;
use support::{Place, release_zip};

/// The locks of the download and of the extraction, as files.
fn lock_files(place: &Place, hub: &Hub) -> [File; 2] {
    let bucket = place.cache_root().join("archives-v1");
    fs::create_dir_all(&bucket).unwrap();
    let download = digest(hub.server.url(ARCHIVE).as_bytes());
    [&download[..32], &hub.archive_sha256()]
        .map(|name| File::create(bucket.join(format!(".lock-{name}"))).unwrap())
}

fn acquire(place: &Place, hub: &Hub) -> Duration {
    let start = Instant::now();
    let cache = place.cache().patience(Duration::from_millis(300));
    let release = cache.acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    assert_eq!(release.outcome, Outcome::Extracted);
    start.elapsed()
}

#[test]
fn a_file_without_a_holder_is_no_lock() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    drop(lock_files(&place, &hub));
    assert!(acquire(&place, &hub) < Duration::from_millis(300));
}

/// A process that was stopped, or hangs, holds its locks for ever.
#[test]
fn a_silent_holder_is_passed_over() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let files = lock_files(&place, &hub);
    for file in &files {
        file.lock().unwrap();
    }
    let waited = acquire(&place, &hub);
    assert!(waited >= Duration::from_millis(600), "two locks were not waited for: {waited:?}");
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    drop(files);
}

/// A download may take long: who shows a sign of life is waited for beyond the patience.
#[test]
fn a_working_holder_is_waited_for() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let [download, _] = lock_files(&place, &hub);
    download.lock().unwrap();
    let holder = thread::spawn(move || {
        for _ in 0..15 {
            thread::sleep(Duration::from_millis(100));
            download.set_modified(SystemTime::now()).unwrap();
        }
        drop(download);
    });
    let waited = acquire(&place, &hub);
    holder.join().unwrap();
    assert!(waited >= Duration::from_millis(1400), "{waited:?}");
}
