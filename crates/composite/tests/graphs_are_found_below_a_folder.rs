//! Which files of a folder are looked at: by extension, six levels down, links to files but not to folders.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

/// Every graph is held against every other, so that their number has to be a repository's.
#[test]
fn more_graphs_than_any_repository_has() {
    let release = Release::new(encoder(), decoder());
    for i in 0..127 {
        release.write(&format!("more/{i}.onnx"), "");
    }
    let error = release.open().unwrap_err();
    assert!(matches!(error, Error::TooManyGraphs { found: 129, limit: 128, .. }), "{error}");
}

use std::path::Path;

use common::{Release, decoder, encoder, file};
use composite::{Composite, Error};

/// The paths that were seen: nothing pairs where every file is empty, so all are named.
fn seen(folder: &Path) -> Vec<String> {
    let Err(Error::NoPair { graphs, .. }) = Composite::open(folder) else { panic!("no error") };
    let relative = graphs.iter().map(|g| g.path.strip_prefix(folder).unwrap());
    relative.map(|p| p.to_str().unwrap().to_owned()).collect()
}

fn empty_files(paths: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

#[test]
fn by_extension_and_depth() {
    let folder = empty_files(&[
        "b.onnx",
        "a.ONNX",
        "c.onnx.data",
        "d_onnx",
        ".onnx",
        "1/2/3/4/5/6/last.onnx",
        "1/2/3/4/5/6/7/too_deep.onnx",
        "folder.onnx/e.onnx",
    ]);
    assert_eq!(seen(folder.path()), ["1/2/3/4/5/6/last.onnx", "a.ONNX", "b.onnx", "folder.onnx/e.onnx"]);
}

#[cfg(unix)]
#[test]
fn links_to_files_only() {
    use std::os::unix::fs::symlink;
    let elsewhere = empty_files(&["blob", "inside.onnx"]);
    let folder = empty_files(&[]);
    symlink(elsewhere.path().join("blob"), folder.path().join("linked.onnx")).unwrap();
    symlink(elsewhere.path(), folder.path().join("folder")).unwrap();
    symlink(elsewhere.path(), folder.path().join("folder.onnx")).unwrap();
    symlink(folder.path(), folder.path().join("loop")).unwrap();
    assert_eq!(seen(folder.path()), ["linked.onnx"]);
}

/// What is skipped is listed by path, whatever order the file system has.
#[test]
fn in_the_order_of_paths() {
    let release = Release::new(encoder(), decoder());
    let mut broken: Vec<_> = (0..8).map(|i| release.write(&format!("{}/{i}.onnx", 7 - i), "")).collect();
    broken.extend((0..8).map(|i| release.write(&format!("broken{i}.onnx"), "")));
    broken.sort();
    let composite = release.open().unwrap();
    assert_eq!(composite.skipped().iter().map(|s| s.path.clone()).collect::<Vec<_>>(), broken);
}

#[test]
fn a_pair_in_sub_folders() {
    let release = Release::new(encoder(), decoder());
    let from = |name: &str| std::fs::read(release.dir.path().join(name)).unwrap();
    let nested = Release { dir: tempfile::tempdir().unwrap() };
    nested.write("one/encoder/model.onnx", from("encoder.onnx"));
    nested.write("one/encoder/metadata.json", from("metadata.json"));
    nested.write("two/model.onnx", from("decoder.onnx"));
    let composite = nested.open().unwrap();
    assert_eq!(composite.pair().encoder.folder(), nested.dir.path().join("one/encoder"));
    assert_eq!(composite.pair().decoder.folder(), nested.dir.path().join("two"));
}

#[test]
fn a_bare_file_name_lies_in_the_current_folder() {
    assert_eq!(file("encoder.onnx", encoder()).folder(), Path::new("."));
}

#[test]
fn a_folder_that_is_no_model() {
    let folder = empty_files(&["first"]);
    for i in 0..20_000 {
        // New names for one file are made far faster than new files.
        std::fs::hard_link(folder.path().join("first"), folder.path().join(i.to_string())).unwrap();
    }
    let error = Composite::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::TooManyFiles { limit: 20_000, .. }), "{error:?}");
}
