//! D13, D18: nothing that the cache writes needs a privilege, a name that some system refuses, or a move from one disk to another.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::{
    collections::BTreeSet,
    fs,
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use loopback::hub::{Hub, wanted};
use release_assets::Phase;
use support::{Place, release_zip, tree};

/// D18: files and folders alone, no links, and no name that Windows takes for a stream or a device.
#[test]
fn no_links_and_no_colons() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let revision = wanted().revision("refs/pr/1:x");
    let client = hub.server.client().build().unwrap();
    assert!(place.cache().acquire(&revision, &client).is_err());
    place.cache().acquire(&wanted().revision("main"), &client).unwrap();
    let paths = tree(&place.cache_root());
    assert!(paths.len() > 8, "{paths:?}");
    for path in paths {
        let found = fs::symlink_metadata(place.cache_root().join(&path)).unwrap();
        assert!(found.is_file(), "{path}");
        assert!(
            !path.contains([':', '\\', '*', '?', '"', '<', '>', '|']) && !path.ends_with(['.', ' ']),
            "{path}"
        );
    }
}

/// D13: what is not complete yet lies in the cache's own folders, so that the last step is a rename on one disk, and nothing is
/// written anywhere else.
#[test]
fn what_is_unfinished_lies_beside_its_place() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let (log, root) = (seen.clone(), place.cache_root());
    let cache = place.cache().on_progress(move |phase, done, _| {
        if done > 0 {
            let hidden = tree(&root).into_iter().filter_map(|path| {
                let (folder, name) = path.split_once("/.")?;
                Some((phase == Phase::Download, format!("{folder}/.{}", name.split('-').next()?)))
            });
            log.lock().unwrap().extend(hidden);
        }
        ControlFlow::Continue(())
    });
    cache.acquire(&wanted(), &hub.server.client().build().unwrap()).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.contains(&(true, "archives-v1/.download".to_owned())), "{seen:?}");
    assert!(seen.contains(&(false, "archives-v1/.staging".to_owned())), "{seen:?}");
    assert_eq!(tree(place.dir.path()).iter().filter(|path| !path.starts_with("cache/")).count(), 0);
}
