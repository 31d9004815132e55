//! W5, D2: the bytes that were extracted are the bytes that were hashed, even if the file is written to
//! meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{fs, ops::ControlFlow, path::PathBuf};

use release_assets::{Error, Outcome, Phase};
use support::{Place, release_zip};

/// Changes the archive in place at the start of a phase.
fn change_at(phase: Phase, path: PathBuf) -> impl Fn(Phase, u64, u64) -> ControlFlow<()> + Send + Sync {
    move |now, done, _| {
        if now == phase && done == 0 {
            let mut bytes = fs::read(&path).unwrap();
            // Behind the end: no member is affected, so that no other check can notice.
            bytes.extend([0; 3]);
            fs::write(&path, bytes).unwrap();
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_change_while_extracting() {
    for phase in [Phase::Extract, Phase::RecheckArchive] {
        let place = Place::new();
        let path = place.write("release.zip", &release_zip());
        let cache = place.cache().on_progress(change_at(phase, path.clone()));
        let error = cache.open_archive(&path).unwrap_err();
        assert!(matches!(error, Error::ArchiveChanged { .. }), "{phase:?}: {error}");
        assert_eq!(place.files(), ["release.zip"]);
    }
}

/// A reuse reads nothing from the archive but its hash and structure, which are taken from one handle at the
/// start.
#[test]
fn a_change_after_the_hash_of_a_reuse() {
    let place = Place::new();
    let zip = release_zip();
    place.open(&zip).unwrap();
    let path = place.write("release.zip", &zip);
    let cache = place.cache().on_progress(change_at(Phase::Verify, path.clone()));
    assert_eq!(cache.open_archive(&path).unwrap().outcome, Outcome::Reused);
    // The next open sees the file as it is now.
    assert!(matches!(place.cache().open_archive(&path), Err(Error::Archive { .. })));
}
