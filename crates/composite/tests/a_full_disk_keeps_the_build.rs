//! On a disk that fills up at any point a build ends in an error, and an earlier build is what it was.
//!
//! Needs to mount small file systems in memory, so it is run by name: `cargo test -p composite -- --ignored at_any_size`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{ops::ControlFlow, path::Path, process::Command};

use composite::{BuildOptions, ComponentName, Composite, Error, Recipe, RecipePrecision};

/// A file system in memory, unmounted at the end.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(kib: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(place.path()).status();
        assert!(mounted.unwrap().success(), "this test mounts file systems");
        Self(place)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn options(precision: RecipePrecision) -> BuildOptions {
    BuildOptions::new(ComponentName::ALL.map(|component| Recipe::new(component, precision)))
}

#[test]
#[ignore = "mounts file systems"]
fn at_any_size() {
    let composite = Composite::open(common::fixture()).unwrap();
    let build = |out: &Path, options: &BuildOptions| {
        composite.build(out, options, &mut |_| ControlFlow::Continue(()))
    };
    let (first, second) =
        (options(RecipePrecision::Fp32), options(RecipePrecision::Fp16).analyze(true).rebuild(true));
    let (mut full, mut enough) = (0, 0);
    // The build takes 4.2 MB, the next one half of that.
    for kib in (4_300..7_700).step_by(150) {
        let disk = Disk::new(kib);
        let out = disk.0.path().join("out");
        build(&out, &first).unwrap();
        match build(&out, &second) {
            Ok(_) => enough += 1,
            Err(Error::Io { .. } | Error::Graph { .. }) => {
                assert!(build(&out, &first).unwrap().reused, "{kib}");
                full += 1;
            }
            Err(other) => panic!("{kib}: {other:?}"),
        }
        let left: Vec<_> =
            std::fs::read_dir(disk.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["out"], "{kib}");
    }
    assert!(full > 3 && enough > 3, "{full} full, {enough} large enough");
}
