//! D1, D17: a process that dies at any moment leaves no entry that looks complete and is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    env, fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use release_assets::{Cache, Outcome};
use support::{Place, contents, release_zip};

const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";
const ABORT_AT: &str = "RELEASE_ASSETS_TEST_ABORT_AT";

/// Not a test of its own: the body of the child processes.
#[test]
fn child() {
    let Some(folder) = env::var_os(CHILD).map(PathBuf::from) else { return };
    let abort_at: Option<u32> = env::var(ABORT_AT).ok().map(|text| text.parse().unwrap());
    let reports = AtomicU32::new(0);
    let callback = move |_, _, _| {
        let report = reports.fetch_add(1, Ordering::Relaxed);
        if Some(report) == abort_at {
            // No destructor runs, as with a kill.
            std::process::abort();
        }
        if abort_at.is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        ControlFlow::Continue(())
    };
    let cache = Cache::new(folder.join("cache")).on_progress(callback);
    cache.open_archive(folder.join("release.zip")).unwrap();
}

fn spawn_child(folder: &Path, abort_at: Option<u32>) -> Child {
    let mut command = support::child();
    command.env(CHILD, folder);
    if let Some(report) = abort_at {
        command.env(ABORT_AT, report.to_string());
    }
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// The entry, seen from outside: absent, or complete. "Repaired" would mean that something else was visible.
fn assert_absent_or_complete(place: &Place) -> Outcome {
    let release = place.cache().open_archive(place.dir.path().join("release.zip")).unwrap();
    assert!(
        !matches!(release.outcome, Outcome::Repaired { .. }),
        "half an entry was visible: {}",
        release.outcome
    );
    assert_eq!(contents(&release.root).len(), 5);
    release.outcome
}

/// Every report of progress is a moment to die at.
#[test]
fn at_every_step_of_a_first_extraction() {
    let mut report = 0;
    loop {
        let place = Place::new();
        place.write("release.zip", &release_zip());
        let lived = spawn_child(place.dir.path(), Some(report)).wait().unwrap().success();
        let outcome = assert_absent_or_complete(&place);
        if lived {
            assert_eq!(outcome, Outcome::Reused);
            break;
        }
        report += 1;
    }
    assert!(report >= 8, "only {report} moments were tried");
}

/// A damaged entry stays the same damaged entry, or is whole again.
#[test]
fn at_every_step_of_a_repair() {
    let mut report = 0;
    loop {
        let place = Place::new();
        let zip = release_zip();
        let first = place.open(&zip).unwrap();
        let good = contents(&first.root);
        fs::write(first.root.join("bundle/weights.data"), b"damaged").unwrap();
        let damaged = contents(&first.root);
        let lived = spawn_child(place.dir.path(), Some(report)).wait().unwrap().success();
        let now = contents(&first.root);
        assert!(now == damaged || now == good, "another state at report {report}");
        place.open(&zip).unwrap();
        assert_eq!(contents(&first.root), good);
        if lived {
            break;
        }
        report += 1;
    }
    assert!(report >= 8, "only {report} moments were tried");
}

/// Real kills, at moments that no report marks: between the writes, the syncs and the renames.
#[test]
fn at_random_moments() {
    let mut completed = 0;
    let mut moments = support::Random(20_261_130);
    for _ in 0..40 {
        let place = Place::new();
        place.write("release.zip", &release_zip());
        let mut child = spawn_child(place.dir.path(), None);
        thread::sleep(Duration::from_millis(50).mul_f64(moments.next()));
        child.kill().unwrap();
        child.wait().unwrap();
        if assert_absent_or_complete(&place) == Outcome::Reused {
            completed += 1;
        }
    }
    assert!(completed < 40, "no kill came early enough to matter");
}
