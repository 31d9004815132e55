//! X1, X2, X3: a model that is saved replaces the old one whole or not at all, and no file of anybody else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use common::write;
use onnx_graph::{
    ElementType::{Float32, Uint8},
    Error, ExternalDataRule, GraphBuilder, Model, Result, SaveOptions, Saved, Sidecar, Weight, Weights,
    external_data,
};

/// A model with one weight of 2048 equal bytes.
fn model(fill: u8) -> Model {
    GraphBuilder::new("test").weight("w", Weight::raw(Uint8, [2, 1024], vec![fill; 2048])).build()
}

fn sidecar() -> SaveOptions {
    SaveOptions::sidecar(Sidecar::new())
}

/// Names and contents of a folder.
fn state(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name(), fs::read(e.path()).unwrap_or_default())).collect()
}

fn names(folder: &Path) -> Vec<String> {
    state(folder).into_keys().map(|name| name.into_string().unwrap()).collect()
}

/// The only weight's bytes, by the way a reader of the file finds them.
fn weight(path: &Path) -> u8 {
    let model = Model::read(path).unwrap();
    let entry = external_data::list(&model, path).unwrap().remove(0);
    let bytes = fs::read(path.parent().unwrap().join(entry.location)).unwrap();
    let bytes = &bytes[entry.offset as usize..(entry.offset + entry.length) as usize];
    assert!(bytes.iter().all(|b| *b == bytes[0]));
    bytes[0]
}

/// The save fails, and the folder is as it was.
fn refused(folder: &Path, save: impl FnOnce() -> Result<Saved>) -> Error {
    let before = state(folder);
    let error = save().unwrap_err();
    assert!(state(folder) == before, "{error:?}: {:?}", names(folder));
    error
}

#[test]
fn a_new_pair_takes_the_plain_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let saved = model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    assert_eq!(names(folder.path()), ["m.onnx", "m.onnx.data"]);
    let bytes = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert_eq!((saved.model.path.clone(), saved.model.bytes), (path.clone(), bytes("m.onnx")));
    let found: Vec<_> = saved.sidecars.iter().map(|s| (s.path.clone(), s.bytes)).collect();
    assert_eq!(found, [(folder.path().join("m.onnx.data"), 2048)]);
    assert!(saved.unused.is_empty());
    // Once more, nothing changes.
    let before = state(folder.path());
    let again = model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    assert!(again == saved && state(folder.path()) == before);
}

#[test]
fn the_old_sidecar_keeps_its_bytes_when_a_pair_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    // A neighbour shares the weights, as a cut does.
    fs::copy(&path, folder.path().join("neighbour.onnx")).unwrap();
    let saved = model(2).save(&path, &Weights::inline(), &sidecar()).unwrap();
    assert_eq!((weight(&path), weight(&folder.path().join("neighbour.onnx"))), (2, 1));
    assert_eq!(saved.unused, [folder.path().join("m.onnx.data")]);
    let name = saved.sidecars[0].path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("m.onnx.") && name.len() == "m.onnx..data".len() + 16, "{name}");
    // The name follows from the bytes.
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    let again = model(2).save(&path, &Weights::inline(), &sidecar()).unwrap();
    assert_eq!(again.sidecars, saved.sidecars);
    assert_eq!(names(folder.path()).len(), 4);
    // A model with all weights inside needs none of them, and leaves them.
    let inline = model(3).save(&path, &Weights::inline(), &SaveOptions::inline()).unwrap();
    assert_eq!(inline.unused, [saved.sidecars[0].path.clone()]);
    assert_eq!(names(folder.path()).len(), 4);
}

#[test]
fn a_model_is_saved_over_the_pair_it_was_read_from() {
    for options in [
        SaveOptions::keep(),
        SaveOptions::inline(),
        sidecar(),
        SaveOptions::sidecar(Sidecar::new().alignment(4096)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        let two = GraphBuilder::new("test")
            .weight("a", Weight::raw(Uint8, [1, 1025], vec![5; 1025]))
            .weight("b", Weight::raw(Uint8, [1, 1025], vec![6; 1025]))
            .build();
        two.save(&path, &Weights::inline(), &sidecar()).unwrap();
        let read = Model::read(&path).unwrap();
        read.save(&path, &Weights::in_folder(folder.path()), &options).unwrap();
        let now = Model::read(&path).unwrap();
        let other = folder.path().join("inline.onnx");
        now.save(&other, &Weights::in_folder(folder.path()), &SaveOptions::inline()).unwrap();
        assert_eq!(Model::read(other).unwrap(), two, "{options:?}");
    }
}

#[test]
fn a_name_that_was_asked_for_is_used_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let named = |name: &str| SaveOptions::sidecar(Sidecar::new().name(name));
    model(1).save(&path, &Weights::inline(), &named("weights")).unwrap();
    assert_eq!(names(folder.path()), ["m.onnx", "weights"]);
    model(1).save(&path, &Weights::inline(), &named("weights")).unwrap();
    let error = refused(folder.path(), || model(2).save(&path, &Weights::inline(), &named("weights")));
    assert!(matches!(&error, Error::SidecarTaken { path } if path.ends_with("weights")), "{error:?}");
    for name in ["", ".", "..", "a/b", "a\\b", "/a", "c:a", "a\0", "m.onnx", "M.ONNX"] {
        let error = refused(folder.path(), || model(2).save(&path, &Weights::inline(), &named(name)));
        assert!(matches!(error, Error::SidecarOption { .. }), "{name:?}: {error:?}");
    }
    for alignment in [0, 3, 4 << 20] {
        let options = SaveOptions::sidecar(Sidecar::new().alignment(alignment));
        let error = refused(folder.path(), || model(2).save(&path, &Weights::inline(), &options));
        assert!(matches!(error, Error::SidecarOption { .. }), "{alignment}: {error:?}");
    }
}

#[test]
fn kept_sidecars_have_to_be_there() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = here.path().join("m.onnx");
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    let read = Model::read(&path).unwrap();
    let weights = Weights::in_folder(here.path());
    let kept = read.save(here.path().join("copy.onnx"), &weights, &SaveOptions::keep()).unwrap();
    let paths: Vec<PathBuf> = kept.sidecars.into_iter().map(|s| s.path).collect();
    assert_eq!(paths, [here.path().join("m.onnx.data")]);
    let keep = |folder: &Path, weights: &Weights| {
        refused(folder, || read.save(folder.join("copy.onnx"), weights, &SaveOptions::keep()))
    };
    let error = keep(there.path(), &weights);
    let Error::SidecarOutOfReach { tensor, from, to } = &error else { panic!("{error:?}") };
    assert_eq!((tensor.as_str(), from.as_path(), to.as_path()), ("w", here.path(), there.path()));
    let error = keep(there.path(), &Weights::inline());
    assert!(matches!(error, Error::NoFolder { .. }), "{error:?}");
    // Another spelling of one folder is no other folder.
    let dotted = here.path().join(".");
    read.save(here.path().join("copy.onnx"), &Weights::in_folder(dotted), &SaveOptions::keep()).unwrap();
    fs::write(here.path().join("m.onnx.data"), [1; 2047]).unwrap();
    let short = keep(here.path(), &weights);
    fs::remove_file(here.path().join("m.onnx.data")).unwrap();
    let missing = keep(here.path(), &weights);
    for (error, expected) in [
        (short, ExternalDataRule::TooShort { offset: 0, end: 2048, file: 2047 }),
        (missing, ExternalDataRule::Missing),
    ] {
        assert!(matches!(&error, Error::ExternalData { rule, .. } if *rule == expected), "{error:?}");
    }
}

#[test]
fn weights_are_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    let read = Model::read(&path).unwrap();
    for options in [SaveOptions::keep(), SaveOptions::inline(), sidecar()] {
        let weights = Weights::in_folder(folder.path());
        let onto = folder.path().join("m.onnx.data");
        let error = refused(folder.path(), || read.save(&onto, &weights, &options));
        let Error::ExternalData { rule: ExternalDataRule::IsTheModel, .. } = error else {
            panic!("{error:?}")
        };
    }
}

#[test]
fn a_tensor_that_cannot_be_read_leaves_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    let gone = Weight::external(Float32, [2, 1024], &[("location", "gone.data")]);
    let broken = GraphBuilder::new("test")
        .weight("a", Weight::raw(Uint8, [2, 1024], vec![9; 2048]))
        .weight("gone", gone)
        .build();
    for options in [SaveOptions::keep(), SaveOptions::inline(), sidecar()] {
        let weights = Weights::in_folder(folder.path());
        refused(folder.path(), || broken.save(&path, &weights, &options));
    }
    assert_eq!(weight(&path), 1);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let long = "x".repeat(300);
    let save = |path: &str, options: &SaveOptions| {
        let path = folder.path().join(path);
        refused(folder.path(), || model(1).save(path, &Weights::inline(), options))
    };
    // A short name for the sidecar, so that it is the model alone whose name fails, after the sidecar has its own.
    for options in [SaveOptions::keep(), SaveOptions::sidecar(Sidecar::new().name("short"))] {
        let error = save("folder", &options);
        assert!(matches!(error, Error::NotAFile { .. }), "{error:?}");
        let error = save("missing/m.onnx", &options);
        assert!(matches!(error, Error::Write { .. }), "{error:?}");
        let error = save(&long, &options);
        assert!(matches!(error, Error::Write { .. }), "{error:?}");
    }
    // A folder has the sidecar's name.
    let error = save("m.onnx", &SaveOptions::sidecar(Sidecar::new().name("folder")));
    assert!(matches!(error, Error::SidecarTaken { .. }), "{error:?}");
}

#[test]
fn more_than_a_protobuf_holds_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let half = |name: &str| Weight::external(Uint8, [1 << 30, 1], &[("location", name)]);
    let large = |last: u64| {
        GraphBuilder::new("test")
            .weight("a", half("not there"))
            .weight("b", Weight::external(Uint8, [last, 1], &[("location", "not there")]))
            .build()
    };
    let save = |last| {
        let path = folder.path().join("m.onnx");
        let weights = Weights::in_folder(folder.path());
        refused(folder.path(), || large(last).save(path, &weights, &SaveOptions::inline()))
    };
    let error = save(1 << 30);
    assert!(matches!(error, Error::TooLargeInline { needed: 0x8000_0000, .. }), "{error:?}");
    // One byte less is within the limit, and the weights are looked for.
    let error = save((1 << 30) - 1);
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
}

#[cfg(unix)]
#[test]
fn links_are_replaced_and_never_written_through() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (hub, snapshot) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let blob = write(hub.path(), "blob", model(1).to_bytes().unwrap());
    let data = write(hub.path(), "data", [1; 2048]);
    let path = snapshot.path().join("m.onnx");
    symlink(&blob, &path).unwrap();
    symlink(&data, snapshot.path().join("m.onnx.data")).unwrap();
    let before = state(hub.path());
    let saved = model(2).save(&path, &Weights::inline(), &sidecar()).unwrap();
    assert!(state(hub.path()) == before);
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(weight(&path), 2);
    // Files are as readable as any other new one.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let usual = mode(&write(snapshot.path(), "usual", []));
    assert_eq!([mode(&path), mode(&saved.sidecars[0].path)], [usual, usual]);
}

/// `ONNX_GRAPH_SMALL_DISK`: a folder on a disk of 1 MiB, such as
/// `mount -t tmpfs -o size=1m tmpfs FOLDER`.
#[test]
#[ignore = "needs a disk that is soon full"]
fn a_full_disk_leaves_the_old_pair() {
    let folder = PathBuf::from(std::env::var_os("ONNX_GRAPH_SMALL_DISK").unwrap());
    let path = folder.join("m.onnx");
    model(1).save(&path, &Weights::inline(), &sidecar()).unwrap();
    let large = GraphBuilder::new("test").weight("w", Weight::raw(Uint8, [2, 1 << 20], vec![3; 2 << 20]));
    for options in [SaveOptions::keep(), SaveOptions::inline(), sidecar()] {
        let error = refused(&folder, || large.clone().build().save(&path, &Weights::inline(), &options));
        assert!(matches!(error, Error::Write { .. }), "{error:?}");
    }
    assert_eq!(weight(&path), 1);
}
