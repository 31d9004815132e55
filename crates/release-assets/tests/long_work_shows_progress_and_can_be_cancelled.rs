//! D19: every phase reports, and a call that is cancelled at any of its reports leaves nothing half-done.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use loopback::{
    hub::{Hub, wanted},
    server::Then,
};
use release_assets::{Error, Phase};
use support::{Place, release_zip};

#[test]
fn every_phase_reports() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let cache = place.cache().on_progress(move |phase, done, total| {
        log.lock().unwrap().push((phase, done, total));
        ControlFlow::Continue(())
    });
    let client = hub.server.client().build().unwrap();
    cache.acquire(&wanted(), &client).unwrap();
    cache.acquire(&wanted(), &client).unwrap();
    let seen = seen.lock().unwrap();
    let size = release_zip().len() as u64;
    for phase in [Phase::Resolve, Phase::Download, Phase::HashArchive, Phase::Extract, Phase::Verify] {
        assert!(seen.iter().any(|(found, ..)| *found == phase), "{phase:?}");
    }
    assert!(seen.contains(&(Phase::Download, size, size)), "the end is told");
    for (phase, done, total) in seen.iter() {
        assert!(*total == 0 || done <= total, "{phase:?} {done} of {total}");
    }
}

#[test]
fn a_cancelled_call_leaves_nothing() {
    let hub = Hub::new(release_zip());
    let client = hub.server.client().build().unwrap();
    for stop_at in 0.. {
        let place = Place::new();
        let count = Mutex::new(0);
        let cache = place.cache().on_progress(move |_, _, _| {
            let mut count = count.lock().unwrap();
            *count += 1;
            if *count > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match cache.acquire(&wanted(), &client) {
            Ok(_) => {
                assert!(stop_at > 5, "only {stop_at} reports");
                return;
            }
            Err(Error::Cancelled) => {}
            Err(other) => panic!("{other:?}"),
        }
        // What was complete may stay: what a revision is, and a verified archive. Nothing else.
        for path in place.files() {
            let complete = path.starts_with("cache/facts-v1/") || path.ends_with("/release.zip");
            assert!(complete && !path.contains("/."), "{stop_at}: {path}");
        }
        place.cache().acquire(&wanted(), &client).unwrap();
    }
}

/// Waiting for a server that says nothing is no reason not to listen.
#[test]
fn a_silent_server_does_not_hold_a_cancelled_call() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    hub.misbehave_at_archive(|_, _, reply| reply.then(Then::Stall(10)));
    let start = Instant::now();
    let cache = place.cache().on_progress(move |phase, _, _| {
        let late = phase == Phase::Download && start.elapsed() > Duration::from_millis(300);
        if late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let client = hub.server.client().stall_timeout(Duration::from_secs(15)).build().unwrap();
    let error = cache.acquire(&wanted(), &client).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
