//! D19: a callback that says stop ends the call at its next block, and nothing stays behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    ops::ControlFlow,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use release_assets::{Error, Outcome, Phase};
use support::{Place, release_zip};

#[test]
fn at_every_report() {
    let mut stop_at = 0;
    loop {
        let place = Place::new();
        let path = place.write("release.zip", &release_zip());
        let reports = AtomicU32::new(0);
        let callback = move |_, _, _| {
            let stop = reports.fetch_add(1, Ordering::Relaxed) == stop_at;
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match place.cache().on_progress(callback).open_archive(&path) {
            Err(Error::Cancelled) => assert_eq!(place.files(), ["release.zip"], "at report {stop_at}"),
            Ok(release) => {
                assert_eq!(release.outcome, Outcome::Extracted);
                break;
            }
            Err(other) => panic!("{other}"),
        }
        // The next call is not disturbed by the cancelled one.
        assert_eq!(place.cache().open_archive(&path).unwrap().outcome, Outcome::Extracted);
        stop_at += 1;
    }
    assert!(stop_at >= 8, "only {stop_at} reports");
}

/// Each phase starts at zero, never goes back, and ends at its total.
#[test]
fn progress_counts_every_byte_of_each_phase() {
    let place = Place::new();
    let path = place.write("release.zip", &release_zip());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let cache = place.cache().on_progress(move |phase, done, total| {
        sink.lock().unwrap().push((phase, done, total));
        ControlFlow::Continue(())
    });
    let total = cache.open_archive(&path).unwrap().inventory.iter().map(|entry| entry.size).sum::<u64>();
    let archive = release_zip().len() as u64;
    cache.open_archive(&path).unwrap();
    let seen = seen.lock().unwrap();
    for (phase, total, times) in [
        (Phase::HashArchive, archive, 2),
        (Phase::Extract, total, 1),
        (Phase::RecheckArchive, archive, 1),
        (Phase::Verify, total, 1),
    ] {
        let of_phase: Vec<_> = seen.iter().filter(|report| report.0 == phase).collect();
        assert!(of_phase.iter().all(|report| report.2 == total), "{phase:?}");
        assert_eq!(of_phase.iter().filter(|report| report.1 == 0).count(), times, "{phase:?}");
        assert_eq!(of_phase.iter().filter(|report| report.1 == total).count(), times, "{phase:?}");
    }
}

/// A panic of the caller's own is the caller's, on whichever thread it happens, and no cancelled run.
#[test]
fn a_panic_in_the_callback_is_passed_on() {
    let place = Place::new();
    place.open(&release_zip()).unwrap();
    let main = std::thread::current().id();
    let cache = place.cache().on_progress(move |phase, done, _| {
        if phase == Phase::Verify && done > 0 {
            assert!(std::thread::current().id() == main, "the caller's own");
            // Leaves the other thread something to do.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        ControlFlow::Continue(())
    });
    let zip = place.dir.path().join("release.zip");
    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| cache.open_archive(zip))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the caller's own"));
}
