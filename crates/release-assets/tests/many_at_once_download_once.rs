//! D15, D1: threads and processes at once on one empty cache download once; processes that are killed at any moment
//! leave nothing that looks complete and is not, and the next call succeeds.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{
    env, fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use loopback::hub::{Hub, wanted};
use release_assets::{Cache, Client, Outcome, Release, sha256_file};
use support::{Place, contents, release_members, zip_of};

const CACHE: &str = "RELEASE_ASSETS_TEST_CACHE";
const ENDPOINT: &str = "RELEASE_ASSETS_TEST_ENDPOINT";
const SLOWLY: &str = "RELEASE_ASSETS_TEST_SLOWLY";

/// Not a test of its own: the body of the child processes.
#[test]
fn child() {
    let Some(root) = env::var_os(CACHE).map(PathBuf::from) else { return };
    let pem = fs::read(root.with_extension("pem")).unwrap();
    let client = Client::builder()
        .endpoint(env::var(ENDPOINT).unwrap())
        .token(None)
        .proxy(None)
        .offline(false)
        .root_certificates(pem)
        .build()
        .unwrap();
    let slowly = env::var_os(SLOWLY).is_some();
    let cache = Cache::new(root).on_progress(move |_, _, _| {
        if slowly {
            thread::sleep(Duration::from_millis(1));
        }
        ControlFlow::Continue(())
    });
    assert_right(&cache.acquire(&wanted(), &client).unwrap());
}

fn spawn_child(place: &Place, hub: &Hub, slowly: bool) -> Child {
    let pem = place.cache_root().with_extension("pem");
    if !pem.exists() {
        fs::write(pem, hub.server.pem()).unwrap();
    }
    let mut command = support::child();
    command.env(CACHE, place.cache_root()).env(ENDPOINT, hub.server.url(""));
    if slowly {
        command.env(SLOWLY, "1").stderr(Stdio::null());
    }
    command.spawn().unwrap()
}

fn large_zip() -> Vec<u8> {
    let noise = support::noise(300_000);
    let mut members = release_members();
    members.push(("bundle/noise.bin", noise));
    zip_of(&members)
}

fn assert_right(release: &Release) {
    assert_eq!(release.inventory.len(), 5);
    for entry in &release.inventory {
        assert_eq!(sha256_file(release.root.join(&entry.path)).unwrap(), entry.sha256);
    }
}

fn assert_tidy(root: &Path) {
    let hidden: Vec<_> = support::tree(root).into_iter().filter(|path| path.contains("/.")).collect();
    assert_eq!(hidden, [] as [&str; 0], "leftovers");
}

#[test]
fn eight_threads_and_four_processes_on_an_empty_cache() {
    for round in 0..50 {
        let (place, hub) = (Place::new(), Hub::new(large_zip()));
        let client = hub.server.client().build().unwrap();
        let children: Vec<Child> = (0..4).map(|_| spawn_child(&place, &hub, false)).collect();
        let barrier = Barrier::new(8);
        let acquire = || {
            barrier.wait();
            place.cache().acquire(&wanted(), &client).unwrap()
        };
        let releases: Vec<Release> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(acquire)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        releases.iter().for_each(assert_right);
        for mut child in children {
            assert!(child.wait().unwrap().success(), "round {round}");
        }
        assert_eq!(hub.downloads(), 1, "round {round}");
        assert_tidy(&place.cache_root());
    }
}

#[test]
fn two_hundred_kills() {
    let hub = Hub::new(large_zip());
    let client = hub.server.client().build().unwrap();
    // How long the whole takes on this machine, just now.
    let start = Instant::now();
    assert!(spawn_child(&Place::new(), &hub, true).wait().unwrap().success());
    let whole = start.elapsed();
    let mut unfinished = 0;
    let mut moments = support::Random(20_261_130);
    for round in 0..200 {
        let moment = moments.next();
        let place = Place::new();
        let mut child = spawn_child(&place, &hub, true);
        // Over all that the child does, and a little beyond.
        thread::sleep(whole.mul_f64(moment * 1.3));
        child.kill().unwrap();
        child.wait().unwrap();
        let release = place.cache().acquire(&wanted(), &client).unwrap();
        assert!(
            !matches!(release.outcome, Outcome::Repaired { .. }),
            "half an entry was visible in round {round}, at {moment} of {whole:?}: {}",
            release.outcome
        );
        assert_right(&release);
        unfinished += u32::from(release.outcome == Outcome::Extracted);
        assert_eq!(contents(&release.root).len(), 6);
    }
    assert!((1..200).contains(&unfinished), "{unfinished} of 200 were killed before the end");
}
