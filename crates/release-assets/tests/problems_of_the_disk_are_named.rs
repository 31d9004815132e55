//! D3, D14: what the file system refuses is an error with the path, and leaves no half state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{env, fs, path::Path, process::Command};

use release_assets::{Cache, Error, sha256_file};
use support::{Place, release_zip};

#[test]
fn a_cache_folder_that_is_a_file() {
    let place = Place::new();
    place.write("cache", b"a file");
    let error = place.open(&release_zip()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(place.cache_root())), "{error}");
    assert_eq!(fs::read(place.cache_root()).unwrap(), b"a file");
}

#[test]
fn an_archive_that_is_missing_or_a_folder() {
    let place = Place::new();
    let error = place.cache().open_archive(place.dir.path().join("no.zip")).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("no.zip")), "{error}");
    let error = place.cache().open_archive(place.dir.path()).unwrap_err();
    assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    assert!(matches!(sha256_file(place.dir.path()), Err(Error::NotAFile { .. })));
    assert!(place.files().is_empty());
}

/// Waiting for somebody to write into a pipe would hang.
#[cfg(unix)]
#[test]
fn an_archive_that_is_a_pipe_or_device() {
    let place = Place::new();
    let pipe = place.dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(place.cache().open_archive(&pipe), Err(Error::NotAFile { .. })));
    assert!(matches!(place.cache().open_archive("/dev/zero"), Err(Error::NotAFile { .. })));
}

const CHILD: &str = "RELEASE_ASSETS_TEST_CHILD";

/// Not a test of its own: prints the default folder for the environment it was given.
#[test]
fn child() {
    if env::var_os(CHILD).is_some() {
        let text = Cache::default_root().map_or_else(|e| e.to_string(), |path| path.display().to_string());
        fs::write(env::var_os(CHILD).unwrap(), text).unwrap();
    }
}

fn default_root(variables: &[(&str, &str)]) -> String {
    let place = Place::new();
    let answer = place.dir.path().join("answer");
    let mut command = support::child();
    command.env(CHILD, &answer);
    for name in ["SAM_KIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    assert!(command.status().unwrap().success());
    fs::read_to_string(answer).unwrap()
}

#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn the_default_folder_follows_the_environment() {
    let home = ("HOME", "/h");
    assert_eq!(default_root(&[("SAM_KIT_CACHE_DIR", "/own"), ("XDG_CACHE_HOME", "/x"), home]), "/own");
    assert_eq!(default_root(&[("XDG_CACHE_HOME", "/x"), home]), "/x/sam-kit");
    assert_eq!(default_root(&[home]), "/h/.cache/sam-kit");
    // Empty is as good as unset, and a relative base would depend on where one stands.
    assert_eq!(
        default_root(&[("SAM_KIT_CACHE_DIR", ""), ("XDG_CACHE_HOME", "x"), home]),
        "/h/.cache/sam-kit"
    );
    let message = default_root(&[]);
    assert!(message.contains("SAM_KIT_CACHE_DIR"), "{message}");
    assert!(!Path::new(&message).is_absolute());
}
