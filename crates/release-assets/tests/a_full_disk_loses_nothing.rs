//! D14, D13: on a disk that fills up at any point there is an error that says so, and what was there before still is.
//!
//! The disk is another one than that of the system's temporary files, so that a rename across the two would fail (D13).
//!
//! Needs to mount small file systems in memory, so it is run by name: `cargo test -- --ignored a_full_disk`.
#![cfg(feature = "network")]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::fs;

use loopback::hub::{Hub, wanted};
use release_assets::{Error, Outcome};
use support::{Disk, contents, release_members, zip_of};

fn zip() -> Vec<u8> {
    let noise = support::noise(200_000);
    let mut members = release_members();
    members.push(("bundle/noise.bin", noise));
    zip_of(&members)
}

#[test]
#[ignore = "mounts file systems"]
fn at_any_size() {
    let hub = Hub::new(zip());
    let client = hub.server.client().build().unwrap();
    let (mut full, mut enough) = (0, 0);
    for kib in (4..700).step_by(20) {
        let disk = Disk::new(kib);
        match disk.cache().acquire(&wanted(), &client) {
            Ok(release) => {
                assert_eq!(contents(&release.root).len(), 6);
                enough += 1;
            }
            Err(Error::DiskFull { .. }) => {
                let left = support::tree(disk.path());
                assert!(left.iter().all(|path| !path.contains("/.")), "{kib}: {left:?}");
                full += 1;
            }
            Err(other) => panic!("{kib}: {other:?}"),
        }
    }
    assert!(full > 5 && enough > 5, "{full} full, {enough} large enough");
}

#[test]
#[ignore = "mounts file systems"]
fn a_repair_without_room_keeps_the_old_tree() {
    let hub = Hub::new(zip());
    let client = hub.server.client().build().unwrap();
    let disk = Disk::new(700);
    let cache = disk.cache();
    let release = cache.acquire(&wanted(), &client).unwrap();
    fs::write(release.root.join("bundle/metadata.json"), "{}").unwrap();
    let damaged = contents(&release.root);
    let filler = disk.path().join("filler");
    // Fills what is left; that writing ends in an error is the point.
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    let error = cache.acquire(&wanted(), &client).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
    assert_eq!(contents(&release.root), damaged);
    fs::remove_file(filler).unwrap();
    assert!(matches!(cache.acquire(&wanted(), &client).unwrap().outcome, Outcome::Repaired { .. }));
}
