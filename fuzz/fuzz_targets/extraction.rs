//! Any bytes as an archive: an error or a verified extraction, and never anything outside of the cache.
#![no_main]

use std::{fs, path::Path};

use libfuzzer_sys::fuzz_target;
use release_assets::{Cache, Limits, sha256_file};

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fuzz_target!(|bytes: &[u8]| {
    let place = tempfile::tempdir().expect("a folder");
    let zip = place.path().join("release.zip");
    fs::write(&zip, bytes).expect("the archive");
    let limits = Limits::default().total_bytes(1 << 20).entries(64);
    let cache = Cache::new(place.path().join("cache")).limits(limits);
    if let Ok(release) = cache.open_archive(&zip) {
        assert!(release.root.starts_with(place.path().join("cache")));
        for file in &release.inventory {
            let found = sha256_file(release.root.join(&file.path)).expect("a file of the inventory");
            assert_eq!(found, file.sha256);
        }
        cache.open_archive(&zip).expect("what was accepted once");
        assert_eq!(names(place.path()), ["cache", "release.zip"]);
    } else {
        assert!(names(place.path()).iter().all(|name| name == "cache" || name == "release.zip"));
    }
});
