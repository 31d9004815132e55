//! XD2, D2: an archive whose graphs cannot be used is neither kept nor remembered, and errors name what the caller knows.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{fs, path::Path};

use loopback::hub::{ARCHIVE, Hub, digest};
use release_assets::{Error, Outcome, Trust, UrlRelease};
use support::{Place, graph_with_sidecar, release_zip, zip_of};

/// A sound archive with a graph whose weights lie outside of its folder.
fn bad_zip() -> Vec<u8> {
    zip_of(&[("b/m.onnx", graph_with_sidecar("../w.data", 4)), ("w.data", vec![0; 16])])
}

fn assert_graph(error: &Error, name: &Path) {
    let Error::Graph { archive, graph, .. } = error else { panic!("{error:?}") };
    assert_eq!((archive.as_path(), graph.as_str()), (name, "b/m.onnx"));
}

/// Once the publisher has mended it, it is had without further words.
#[test]
fn a_download_is_asked_for_again() {
    let (place, hub) = (Place::new(), Hub::new(bad_zip()));
    let client = hub.server.client().build().unwrap();
    let url = hub.server.url(ARCHIVE);
    for _ in 0..2 {
        let error = place.cache().acquire_url(&UrlRelease::new(&url), &client).unwrap_err();
        assert_graph(&error, Path::new(&url));
        assert_eq!(place.files(), [] as [&str; 0]);
    }
    hub.world.lock().unwrap().archive = release_zip();
    let mended = place.cache().acquire_url(&UrlRelease::new(&url), &client).unwrap();
    assert_eq!((mended.trust, mended.outcome), (Trust::FirstUse, Outcome::Extracted));
}

#[test]
fn an_import_leaves_nothing() {
    let place = Place::new();
    let zip = place.write("by-hand.zip", &bad_zip());
    assert_graph(&place.cache().import(&zip, None).unwrap_err(), &zip);
    assert_eq!(place.files(), ["by-hand.zip"]);
}

/// One that an earlier version kept stays what it is until the caller expects another one; then nothing was damaged.
#[test]
fn one_that_was_kept_is_replaced_when_a_change_is_accepted() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let client = hub.server.client().build().unwrap();
    let url = hub.server.url(ARCHIVE);
    let wanted = UrlRelease::new(&url);
    let good = place.cache().acquire_url(&wanted, &client).unwrap();
    let bucket = place.cache_root().join("archives-v1");
    fs::remove_dir_all(bucket.join(&good.archive_sha256)).unwrap();
    let bad = digest(&bad_zip());
    fs::create_dir(bucket.join(&bad)).unwrap();
    fs::write(bucket.join(&bad).join("release.zip"), bad_zip()).unwrap();
    for name in support::tree(&place.cache_root()).iter().filter(|name| name.contains("/archive-")) {
        let path = place.cache_root().join(name);
        let fact = fs::read_to_string(&path).unwrap().replace(&good.archive_sha256, &bad);
        fs::write(path, fact).unwrap();
    }
    let error = place.cache().acquire_url(&wanted, &client).unwrap_err();
    assert_graph(&error, Path::new(&url));
    let mended = place.cache().acquire_url(&wanted.accept_changed_archive(), &client).unwrap();
    assert_eq!((mended.archive_sha256, mended.outcome), (good.archive_sha256, Outcome::Extracted));
}
