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

/// Two publications of which each lacks a half are not one: the halves fit each other's ports and not each other's weights.
#[test]
fn halves_of_two_publications_are_not_joined() {
    let pair = Release::new(encoder(), decoder());
    let read = |name: &str| std::fs::read(pair.dir.path().join(name)).unwrap();
    let (encoder, decoder, metadata) = (read("encoder.onnx"), read("decoder.onnx"), read("metadata.json"));
    let place = |files: &[(&str, &[u8])]| {
        let folder = empty_files(&[]);
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        folder
    };
    let torn = place(&[
        ("v1/encoder.onnx", &encoder),
        ("v1/metadata.json", &metadata),
        ("v1/decoder.onnx", b"torn"),
        ("v2/decoder.onnx", &decoder),
        ("v2/encoder.onnx", b"torn"),
    ]);
    let error = Composite::open(torn.path()).unwrap_err();
    assert!(error.to_string().contains("in another folder than encoder.onnx"), "{error}");
    // A good one beside a torn copy of it is good.
    let beside = place(&[
        ("encoder.onnx", &encoder),
        ("metadata.json", &metadata),
        ("decoder.onnx", &decoder),
        ("copy/encoder.onnx", &encoder),
        ("copy/decoder.onnx", b"torn"),
    ]);
    let composite = Composite::open(beside.path()).unwrap();
    assert_eq!(composite.pair().encoder.path, beside.path().join("encoder.onnx"));
    assert_eq!(composite.skipped().len(), 1);
    // A folder for each of the two is a publication too.
    let apart = place(&[
        ("encoder/model.onnx", &encoder),
        ("encoder/metadata.json", &metadata),
        ("decoder/model.onnx", &decoder),
    ]);
    assert!(Composite::open(apart.path()).is_ok());
}
