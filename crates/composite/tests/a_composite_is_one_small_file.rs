//! A composite is written to one JSON file and read from it: the same graphs, bit for bit, joined and prepared in the same way; what the
//! file says has to hold of its graphs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{fs, path::PathBuf};

use common::{Release, published_decoder, published_encoder, wires};
use composite::{ChannelOrder, Composite, Error, Preprocessing, SettledBy, Wiring};
use serde_json::{Value, json};

/// A change to what the file says.
type Edit = fn(&mut Value);

/// A release with its composite written down.
fn written() -> (Release, PathBuf) {
    let release = Release::new(published_encoder(), published_decoder());
    let path = release.dir.path().join(Composite::FILE_NAME);
    release.open().unwrap().write(&path).unwrap();
    (release, path)
}

fn document(path: &PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn refused(path: &PathBuf) -> String {
    let error = Composite::read(path).unwrap_err();
    assert!(matches!(error, Error::CompositeFile { .. }), "{error:?}");
    let text = error.to_string();
    text.strip_prefix(&format!("{} is no composite: ", path.display())).unwrap().to_owned()
}

#[test]
fn what_is_read_is_what_was_written() {
    let (release, path) = written();
    // The metadata is in it.
    fs::remove_file(release.dir.path().join("metadata.json")).unwrap();
    let composite = Composite::read(&path).unwrap();
    assert_eq!(wires(composite.pair())[2], "image_embeddings <- pix_feat");
    let rule = SettledBy::Contract("still-image-of-pix-feat".to_owned());
    assert_eq!(composite.pair().wires[2].settled_by, rule);
    assert_eq!(composite.pair().wires[0].settled_by, SettledBy::Name);
    assert_eq!(*composite.preprocessing(), Preprocessing::stretch(64, 64));
    assert_eq!(composite.plan().unwrap().per_image.len(), 1);
    // Written again it is the same file.
    let again = release.dir.path().join("again.json");
    composite.write(&again).unwrap();
    assert_eq!(fs::read(&again).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn the_form() {
    let (_release, path) = written();
    let found = document(&path);
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "schema",
            "image_encoder",
            "mask_decoder",
            "image",
            "prompt",
            "wires",
            "masks",
            "scores",
            "preprocessing"
        ]
    );
    assert_eq!(found["image_encoder"]["file"], "encoder.onnx");
    assert_eq!(
        found["wires"][2],
        json!({"input": "image_embeddings", "output": "pix_feat", "settled_by": "contract",
               "rule": "still-image-of-pix-feat"})
    );
    assert_eq!(found["wires"][0]["settled_by"], "name");
    assert!(fs::metadata(&path).unwrap().len() < 4096);
}

/// The application's wire stays the application's.
#[test]
fn a_wire_of_the_applications() {
    let release = Release::new(published_encoder(), published_decoder());
    let path = release.dir.path().join("raw.json");
    let wiring = Wiring::new().wire("image_embeddings", "image_embeddings");
    Composite::builder().wiring(wiring).open(release.dir.path()).unwrap().write(&path).unwrap();
    let pair = Composite::read(&path).unwrap().pair().clone();
    assert_eq!(wires(&pair)[2], "image_embeddings");
    assert_eq!(pair.wires[2].settled_by, SettledBy::Caller);
}

/// Graphs further down, and a file that somebody has written by hand.
#[test]
fn graphs_in_a_folder_below_and_a_picture_of_another_kind() {
    let (release, path) = written();
    let mut found = document(&path);
    fs::create_dir(release.dir.path().join("graphs")).unwrap();
    for name in ["encoder.onnx", "decoder.onnx"] {
        fs::rename(release.dir.path().join(name), release.dir.path().join("graphs").join(name)).unwrap();
    }
    found["image_encoder"]["file"] = "graphs/encoder.onnx".into();
    found["mask_decoder"]["file"] = "graphs/decoder.onnx".into();
    found["preprocessing"]["channels"] = "bgr".into();
    found["preprocessing"]["mean"] = json!([0.485, 0.456, 0.406]);
    found["preprocessing"]["std"] = json!([0.229, 0.224, 0.225]);
    fs::write(&path, found.to_string()).unwrap();
    let composite = Composite::read(&path).unwrap();
    let expected = Preprocessing::stretch(64, 64)
        .channels(ChannelOrder::Bgr)
        .normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    assert_eq!(*composite.preprocessing(), expected);
    composite.write(&path).unwrap();
    assert_eq!(document(&path)["image_encoder"]["file"], "graphs/encoder.onnx");
}

#[test]
fn what_does_not_hold_of_the_graphs() {
    let edits: [(&str, Edit); 16] = [
        ("it has the schema 2, and 1 is read here", |d| d["schema"] = 2.into()),
        ("unknown field `more`", |d| d["more"] = 1.into()),
        ("`gone.onnx`, which it names, is not there", |d| d["image_encoder"]["file"] = "gone.onnx".into()),
        ("`encoder.onnx` is not the graph that it was written for", |d| {
            d["image_encoder"]["sha256"] = "0".repeat(64).into();
        }),
        ("`decoder.onnx` is not the image encoder of the two", |d| {
            let encoder = d["image_encoder"].take();
            d["image_encoder"] = d["mask_decoder"].take();
            d["mask_decoder"] = encoder;
        }),
        ("its graphs make no composite", |d| d["mask_decoder"] = d["image_encoder"].clone()),
        ("it calls the coordinates `labels`, and in the graphs they are `unnorm_coords`", |d| {
            d["prompt"]["coordinates"] = "labels".into();
        }),
        ("it calls the masks `scores`", |d| d["masks"] = "scores".into()),
        ("its graphs make no composite", |d| d["wires"][2]["output"] = "nothing".into()),
        ("its graphs make no composite", |d| d["wires"][2]["output"] = "high_res_features2".into()),
        ("it feeds high_res_features2, image_embeddings, sparse_embedding, and", |d| {
            d["wires"].as_array_mut().unwrap().remove(0);
        }),
        ("the wire to `image_embeddings` names no rule", |d| {
            d["wires"][2].as_object_mut().unwrap().remove("rule");
        }),
        ("the wire to `high_res_features1` names a rule that did not settle it", |d| {
            d["wires"][0]["rule"] = "some".into();
        }),
        ("a picture of float32[1, 3, 32, 64] does not fit", |d| d["preprocessing"]["height"] = 32.into()),
        ("a picture of uint8[1, 3, 64, 64] does not fit", |d| {
            d["preprocessing"]["element_type"] = "uint8".into();
        }),
        ("its range, mean and deviation cannot be computed with", |d| {
            d["preprocessing"]["std"] = json!([1, 0, 1]);
        }),
    ];
    for (expected, edit) in edits {
        let (_release, path) = written();
        let mut found = document(&path);
        edit(&mut found);
        fs::write(&path, found.to_string()).unwrap();
        let text = refused(&path);
        assert!(text.starts_with(expected), "{expected}: {text}");
    }
}

#[test]
fn paths_that_leave_its_folder() {
    for file in
        ["", "../encoder.onnx", "/encoder.onnx", "./../x", "a/../encoder.onnx", "a\\b.onnx", "C:x.onnx"]
    {
        let (_release, path) = written();
        let mut found = document(&path);
        found["image_encoder"]["file"] = file.into();
        fs::write(&path, found.to_string()).unwrap();
        assert_eq!(refused(&path), format!("`{file}` is no path below its folder"));
    }
}

#[test]
fn files_that_are_none() {
    let (release, path) = written();
    for content in ["", "{", "[]", "{}", "{\"schema\": 1}", "{\"schema\": \"1\"}"] {
        fs::write(&path, content).unwrap();
        refused(&path);
    }
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap(); // sparse: no bytes on disk
    assert_eq!(refused(&path), "it has more bytes than the limit of 1048576");
    let folder = release.dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert_eq!(refused(&folder), "it is no regular file");
    assert!(matches!(Composite::read(release.dir.path().join("none.json")), Err(Error::Io { .. })));
}

/// A graph that is not below the file's folder cannot be named by it; what was there before stays.
#[test]
fn a_file_somewhere_else() {
    let (release, _) = written();
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("composite.json");
    fs::write(&path, "kept").unwrap();
    let error = release.open().unwrap().write(&path).unwrap_err();
    assert!(matches!(&error, Error::CompositeFile { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"kept");
    let nowhere = release.dir.path().join("none/composite.json");
    assert!(matches!(release.open().unwrap().write(nowhere), Err(Error::Io { .. })));
}
