//! RA10: record and metadata are copied beside what is built from a release.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use support::{Place, release_zip, tree};

const NAMES: [&str; 2] = ["release_provenance.json", "release_metadata.json"];
const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";

/// Not a test of its own: copies into the folder that it stands in.
#[test]
fn child() {
    let Some(place) = env::var_os(CHILD).map(PathBuf::from) else { return };
    let release =
        release_assets::Cache::new(place.join("cache")).open_archive(place.join("release.zip")).unwrap();
    for here in ["", "."] {
        let written = release.copy_contract_files(here).unwrap();
        assert_eq!(written, NAMES.map(|name| Path::new(here).join(name)));
    }
}

#[test]
fn each_is_whole_and_replaces_what_was_there() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    let folder = place.dir.path().join("out");
    fs::create_dir(&folder).unwrap();
    for _ in 0..2 {
        let written = release.copy_contract_files(&folder).unwrap();
        assert_eq!(written, NAMES.map(|name| folder.join(name)));
        assert_eq!(fs::read(&written[0]).unwrap(), fs::read(release.provenance()).unwrap());
        assert_eq!(fs::read(&written[1]).unwrap(), fs::read(release.metadata().unwrap()).unwrap());
        assert_eq!(tree(&folder).len(), 2);
    }
}

/// No folder at all is the one where the program stands.
#[test]
fn into_the_current_folder() {
    let place = Place::new();
    place.open(&release_zip()).unwrap();
    let here = place.dir.path().join("here");
    fs::create_dir(&here).unwrap();
    let mut child = support::child();
    assert!(child.env(CHILD, place.dir.path()).current_dir(&here).status().unwrap().success());
    assert_eq!(tree(&here).len(), 2);
}
