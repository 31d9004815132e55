//! D14: on a disk that fills up at any point there is an error that says so, and what was there before still is.
//!
//! Needs to mount small file systems in memory, so it is run by name: `cargo test -- --ignored a_full_disk`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{fs, path::PathBuf, process::Command};

use loopback::hub::{Hub, wanted};
use release_assets::{Cache, Error, Outcome};
use support::{contents, release_members, zip_of};

/// A file system in memory, gone with its value.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn new(kib: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={kib}k");
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", &options, "none"]).arg(folder.path()).status().unwrap();
        assert!(status.success(), "this test has to be allowed to mount");
        Self { folder }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}

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
        match Cache::new(disk.cache()).acquire(&wanted(), &client) {
            Ok(release) => {
                assert_eq!(contents(&release.root).len(), 6);
                enough += 1;
            }
            Err(Error::DiskFull { .. }) => {
                let left = support::tree(&disk.cache());
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
    let cache = Cache::new(disk.cache());
    let release = cache.acquire(&wanted(), &client).unwrap();
    fs::write(release.root.join("bundle/metadata.json"), "{}").unwrap();
    let damaged = contents(&release.root);
    let filler = disk.folder.path().join("filler");
    // Fills what is left; that writing ends in an error is the point.
    let _ = fs::write(&filler, vec![1; 2 << 20]);
    let error = cache.acquire(&wanted(), &client).unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
    assert_eq!(contents(&release.root), damaged);
    fs::remove_file(filler).unwrap();
    assert!(matches!(cache.acquire(&wanted(), &client).unwrap().outcome, Outcome::Repaired { .. }));
}
