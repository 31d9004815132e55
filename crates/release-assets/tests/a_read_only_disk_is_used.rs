//! D14: a cache on a disk that nobody can write to, as in a container's image, is used as long as it is right.
//!
//! Permissions do not hold the superuser, so this mounts small file systems in memory and is run by name:
//! `cargo test -- --ignored a_read_only_disk`.
#![cfg(feature = "network")]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::fs;

use loopback::hub::{Hub, wanted};
use release_assets::{Error, Outcome};
use support::{Disk, contents, release_zip};

#[test]
#[ignore = "mounts file systems"]
fn what_is_right_is_reused() {
    let hub = Hub::new(release_zip());
    let online = hub.server.client().build().unwrap();
    let offline = hub.server.client().offline(true).build().unwrap();
    let disk = Disk::new(700);
    disk.cache().acquire(&wanted(), &online).unwrap();
    let before = contents(disk.path());
    disk.make_read_only();
    assert!(fs::write(disk.path().join("x"), "").is_err(), "it is read-only");
    for client in [&online, &offline] {
        assert_eq!(disk.cache().acquire(&wanted(), client).unwrap().outcome, Outcome::Reused);
    }
    assert!(disk.cache().verify().unwrap().iter().all(|checked| checked.damage.is_empty()));
    assert_eq!(contents(disk.path()), before);
}

/// Without the archive, without the extraction, with a damaged one: errors with a path, and nothing is given out.
#[test]
#[ignore = "mounts file systems"]
fn what_is_incomplete_is_an_error() {
    let hub = Hub::new(release_zip());
    let client = hub.server.client().build().unwrap();
    for case in 0..4 {
        let disk = Disk::new(700);
        if case > 0 {
            let release = disk.cache().acquire(&wanted(), &client).unwrap();
            match case {
                1 => fs::remove_file(release.root.parent().unwrap().join("release.zip")).unwrap(),
                2 => fs::remove_dir_all(&release.root).unwrap(),
                _ => fs::write(release.root.join("bundle/metadata.json"), "{}").unwrap(),
            }
        }
        disk.make_read_only();
        let error = disk.cache().acquire(&wanted(), &client).unwrap_err();
        let error = match error {
            Error::NotRepaired { source, .. } => *source,
            other => other,
        };
        let Error::Io { path, source } = error else { panic!("{case}: {error:?}") };
        assert!(path.starts_with(disk.path()), "{case}: {}", path.display());
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{case}");
    }
}
