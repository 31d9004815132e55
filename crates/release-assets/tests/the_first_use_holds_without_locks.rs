//! D15: what an address gave first is decided once, whether or not there are locks, and nobody is handed an archive that
//! somebody else downloaded.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use loopback::{
    hub::{ARCHIVE, Hub, digest},
    server::Reply,
};
use release_assets::{Error, Release, Trust, UrlRelease};
use support::{Place, release_members, release_zip, zip_of};

fn other_zip() -> Vec<u8> {
    let mut members = release_members();
    members[3].1 = b"{}".to_vec();
    zip_of(&members)
}

/// Two threads that do not wait for each other download at the same moment; the address gives each of them its own bytes.
fn two_at_once(place: &Place, hub: &Hub, bytes: [Vec<u8>; 2], accept: bool) -> Vec<Result<Release, Error>> {
    let both = Arc::new(Barrier::new(2));
    hub.misbehave_at_archive(move |number, _, reply| {
        let Some(bytes) = bytes.get(number) else { return reply };
        both.wait();
        Reply::ok(bytes)
    });
    let client = hub.server.client().build().unwrap();
    let wanted = UrlRelease::new(hub.server.url(ARCHIVE));
    let wanted = if accept { wanted.accept_changed_archive() } else { wanted };
    let acquire = || place.cache().patience(Duration::ZERO).acquire_url(&wanted, &client);
    thread::scope(|scope| {
        let threads = [scope.spawn(acquire), scope.spawn(acquire)];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn one_of_two_archives_is_the_first() {
    for _ in 0..10 {
        let (place, hub) = (Place::new(), Hub::new(release_zip()));
        let mut done = two_at_once(&place, &hub, [release_zip(), other_zip()], false);
        done.sort_by_key(Result::is_err);
        let (first, second) = (done.remove(0).unwrap(), done.remove(0).unwrap_err());
        assert_eq!(first.trust, Trust::FirstUse);
        let Error::ArchiveReplaced { first: before, found, .. } = second else { panic!("{second:?}") };
        assert_eq!(before, first.archive_sha256);
        assert_ne!(found, first.archive_sha256);
        let client = hub.server.client().offline(true).build().unwrap();
        let later = place.cache().acquire_url(&UrlRelease::new(hub.server.url(ARCHIVE)), &client).unwrap();
        assert_eq!(later.archive_sha256, first.archive_sha256);
    }
}

#[test]
fn the_same_archive_twice_is_one_first_use() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let done = two_at_once(&place, &hub, [release_zip(), release_zip()], false);
    let trust: Vec<_> = done.into_iter().map(|release| release.unwrap().trust).collect();
    assert_eq!(trust.iter().filter(|trust| **trust == Trust::FirstUse).count(), 1, "{trust:?}");
}

/// Who accepts a change is given what came, not what somebody else accepted meanwhile.
#[test]
fn each_is_given_what_it_downloaded() {
    for _ in 0..10 {
        let (place, hub) = (Place::new(), Hub::new(release_zip()));
        let done = two_at_once(&place, &hub, [release_zip(), other_zip()], true);
        let mut found: Vec<_> = done.into_iter().map(|release| release.unwrap().archive_sha256).collect();
        let mut expected = vec![digest(&release_zip()), digest(&other_zip())];
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}
