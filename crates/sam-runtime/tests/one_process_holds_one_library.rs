//! Case O1: an attempt that failed leaves the way free; a library in use cannot be changed for another one.
//! A file, and so a process, of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use sam_runtime::{Error, LibraryProblem, Segmenter, engine::onnxruntime};

#[test]
fn the_first_library_that_works_stays() {
    common::require_onnxruntime();
    let path = std::env::var_os(onnxruntime::PATH_VARIABLE)
        .map_or_else(|| onnxruntime::cached_library().unwrap(), PathBuf::from);
    let missing = Path::new("/nothing/here/libonnxruntime.so");
    let open = |path: &Path| Segmenter::builder().onnxruntime_library(path).open(common::tiny_sam());
    assert!(matches!(open(missing), Err(Error::Library { problem: LibraryProblem::Missing, .. })));
    assert_eq!(open(&path).unwrap().engine().library.as_deref(), Some(path.as_path()));
    // The same library again is fine, another one is not.
    assert!(open(&path).is_ok());
    assert!(matches!(open(missing), Err(Error::LibraryInUse { .. })));
}
