//! A process that is killed at any point while it builds anew leaves the earlier build or the new one, whole.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    ops::ControlFlow,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use composite::{BuildOptions, ComponentName, Composite, Recipe, RecipePrecision};

const CHILD: &str = "COMPOSITE_TEST_BUILDS_IN";

fn build(out: &Path, precision: RecipePrecision, rebuild: bool) -> composite::Result<composite::Built> {
    let recipes = ComponentName::ALL.map(|component| Recipe::new(component, precision));
    let composite = Composite::open(common::fixture()).unwrap();
    composite.build(out, &BuildOptions::new(recipes).rebuild(rebuild), &mut |_| ControlFlow::Continue(()))
}

#[test]
fn sixty_kills() {
    if let Some(out) = std::env::var_os(CHILD) {
        // Until it is killed, or for long enough that it must have been.
        for _ in 0..200 {
            for precision in [RecipePrecision::Fp16, RecipePrecision::Fp32] {
                build(Path::new(&out), precision, true).unwrap();
            }
        }
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    build(&out, RecipePrecision::Fp32, false).unwrap();
    let mut found = [0, 0];
    for round in 0..60_u64 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sixty_kills"]).env(CHILD, &out).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Steps of a prime, over several builds.
        thread::sleep(Duration::from_millis(40 + round * 37 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = [RecipePrecision::Fp32, RecipePrecision::Fp16]
            .map(|precision| build(&out, precision, false).is_ok_and(|built| built.reused));
        assert!(whole[0] != whole[1], "round {round}: {whole:?}");
        found[usize::from(whole[1])] += 1;
        for left in std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if left != out {
                assert!(left.file_name().unwrap().to_str().unwrap().starts_with(".build-"), "{left:?}");
                std::fs::remove_dir_all(left).unwrap();
            }
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}: never killed at work");
}
