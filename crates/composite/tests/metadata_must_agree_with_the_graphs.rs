//! How a picture is prepared comes from the publisher's `metadata.json`, which has to describe the graphs that are there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use common::{DECODER, ENCODER, Release, decoder, encoder, graph};
use composite::{Error, Preprocessing, ResizeRule, Result};
use serde_json::{Value, json};

/// A word on a change to the metadata, and the change.
type Edit = (&'static str, fn(&mut Value));

fn release() -> Release {
    Release::new(encoder(), decoder())
}

/// Opens the release after a change to its metadata.
fn edited(release: &Release, edit: impl FnOnce(&mut Value)) -> Result<Preprocessing> {
    let path = release.dir.path().join("metadata.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut document);
    fs::write(&path, document.to_string()).unwrap();
    release.open().map(|c| *c.preprocessing())
}

/// The error's text behind the path.
fn said(release: &Release, result: Result<Preprocessing>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Metadata { .. }), "{error:?}");
    let path = release.dir.path().join("metadata.json");
    error.to_string().strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
}

#[test]
fn the_published_form() {
    let preprocessing = edited(&release(), |_| {}).unwrap();
    assert_eq!(preprocessing, Preprocessing::stretch(64, 64));
    assert_eq!(
        (preprocessing.resize, preprocessing.mean, preprocessing.std),
        (ResizeRule::Stretch, [0.0; 3], [1.0; 3])
    );
}

#[test]
fn harmless_differences() {
    let edits: [Edit; 6] = [
        ("renamed files", |d| {
            let files = d["model_files"].as_object_mut().unwrap();
            let renamed = files.values().cloned().enumerate().map(|(i, v)| (format!("{i}.onnx"), v));
            *files = renamed.collect();
        }),
        ("a third graph", |d| {
            d["model_files"]["memory.onnx"] = json!({"inputs": {"x": {"shape": [1], "dtype": "float32"}}});
        }),
        ("no outputs", |d| {
            d["model_files"]["decoder.onnx"].as_object_mut().unwrap().remove("outputs");
        }),
        ("no colour", |d| {
            image(d).as_object_mut().unwrap().remove("image_metadata");
        }),
        ("unknown fields", |d| image(d)["unknown"] = json!({"a": [1]})),
        ("whole numbers", |d| image(d)["value_range"] = json!([0, 1])),
    ];
    for (what, edit) in edits {
        let preprocessing = edited(&release(), edit).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((preprocessing.height, preprocessing.width), (64, 64), "{what}");
    }
}

/// What the runtime would read or feed wrongly is refused although the graphs alone could not tell.
#[test]
fn ranges_that_would_give_a_wrong_mask() {
    let edits: [Edit; 4] = [
        (
            "port `coordinates` has the value range [0.0, 1024.0], which is not supported; supported is [0.0, 1.0]",
            |d| {
                d["model_files"]["encoder.onnx"]["inputs"]["coordinates"]["value_range"] = json!([0, 1024]);
            },
        ),
        ("port `mask` has the value range [0.0, 1.0], which is not supported; supported is logits", |d| {
            d["model_files"]["decoder.onnx"]["outputs"]["mask"]["value_range"] = json!([0.0, 1.0]);
        }),
        ("port `mask` has softmax applied, which is not supported", |d| {
            d["model_files"]["decoder.onnx"]["outputs"]["mask"]["softmax_applied"] = true.into();
        }),
        ("", |d| {
            d["model_files"]["encoder.onnx"]["inputs"]["coordinates"]["value_range"] = json!([0, 1]);
            d["model_files"]["decoder.onnx"]["outputs"]["mask"]["value_range"] = json!([-32, 32]);
            d["model_files"]["decoder.onnx"]["outputs"]["mask"]["softmax_applied"] = false.into();
        }),
    ];
    for (text, edit) in edits {
        let release = release();
        let result = edited(&release, edit);
        if text.is_empty() {
            assert!(result.is_ok(), "{result:?}");
        } else {
            let found = said(&release, result);
            assert!(found.contains(text), "{found}");
        }
    }
}

fn image(document: &mut Value) -> &mut Value {
    &mut document["model_files"]["encoder.onnx"]["inputs"]["image"]
}

#[test]
fn contradictions() {
    let edits: [Edit; 13] = [
        ("port `image` is float32[1,3,32,64] here and float32[1,3,64,64] in the graph", |d| {
            image(d)["shape"] = json!([1, 3, 32, 64]);
        }),
        ("port `image` is float32[1,3,64] here and float32[1,3,64,64] in the graph", |d| {
            image(d)["shape"] = json!([1, 3, 64]);
        }),
        ("port `image` is uint8[1,3,64,64] here and float32[1,3,64,64] in the graph", |d| {
            image(d)["dtype"] = "uint8".into();
        }),
        ("port `sparse` is float32[1,2,8] here and float32[1,3,8] in the graph", |d| {
            d["model_files"]["decoder.onnx"]["inputs"]["sparse"]["shape"] = json!([1, 2, 8]);
        }),
        ("port `extra` is float32[1] here and missing in the graph", |d| {
            d["model_files"]["decoder.onnx"]["outputs"]["extra"] = json!({"shape": [1], "dtype": "float32"});
        }),
        ("0 entries of model_files have the inputs of encoder.onnx, one is needed", |d| {
            d["model_files"]["encoder.onnx"]["inputs"]["extra"] = json!({"shape": [1], "dtype": "float32"});
        }),
        ("2 entries of model_files have the inputs of decoder.onnx, one is needed", |d| {
            d["model_files"]["copy.onnx"] = d["model_files"]["decoder.onnx"].clone();
        }),
        ("0 inputs have the io_type \"image\", one is needed", |d| image(d)["io_type"] = "tensor".into()),
        ("2 inputs have the io_type \"image\", one is needed", |d| {
            d["model_files"]["encoder.onnx"]["inputs"]["labels"]["io_type"] = "image".into();
        }),
        ("`labels` has the io_type \"image\", but in the graph the image input is `image`", |d| {
            image(d)["io_type"] = "tensor".into();
            d["model_files"]["encoder.onnx"]["inputs"]["labels"]["io_type"] = "image".into();
        }),
        (
            "the port `image` has the value range [0.0, 255.0], which is not supported; supported is [0.0, 1.0]",
            |d| image(d)["value_range"] = json!([0, 255]),
        ),
        ("the port `image` has no value range, which is not supported; supported is [0.0, 1.0]", |d| {
            image(d).as_object_mut().unwrap().remove("value_range");
        }),
        ("the port `image` has the color format bgr, which is not supported; supported is rgb", |d| {
            image(d)["image_metadata"]["color_format"] = "bgr".into();
        }),
    ];
    for (expected, edit) in edits {
        let release = release();
        let result = edited(&release, edit);
        assert_eq!(said(&release, result), expected);
    }
}

/// Graphs whose image input is of a kind that cannot be prepared.
#[test]
fn images_of_another_kind() {
    for (port, what) in [
        ("image uint8[1,3,64,64]", "dtype uint8, which is not supported; supported is float32"),
        ("image float32[1,1,64,64]", "the shape [1, 1, 64, 64], which is not supported"),
        ("image float32[1,64,64,3]", "the shape [1, 64, 64, 3], which is not supported"),
        ("image float32[2,3,64,64]", "the shape [2, 3, 64, 64], which is not supported"),
        ("image float32[1,3,64,0]", "the shape [1, 3, 64, 0], which is not supported"),
        ("image float32[1,3,64,16385]", "the shape [1, 3, 64, 16385], which is not supported"),
    ] {
        let inputs = ENCODER.0.replace("image float32[1,3,64,64]", port);
        let release = Release::new(graph(&inputs, ENCODER.1), decoder());
        let text = said(&release, edited(&release, |_| {}));
        assert!(text.starts_with(&format!("the port `image` has {what}")), "{text}");
    }
}

/// G3: a size that the graph leaves open is the metadata's, height before width.
#[test]
fn sizes_that_the_graph_leaves_open() {
    let inputs = ENCODER.0.replace("64,64", "height,?");
    let release = Release::new(graph(&inputs, ENCODER.1), graph(DECODER.0, DECODER.1));
    let preprocessing = edited(&release, |d| image(d)["shape"] = json!([1, 3, 48, 80])).unwrap();
    assert_eq!((preprocessing.height, preprocessing.width), (48, 80));
}

#[test]
fn no_file() {
    let release = release();
    fs::remove_file(release.dir.path().join("metadata.json")).unwrap();
    let text = said(&release, release.open().map(|c| *c.preprocessing()));
    assert_eq!(text, "no metadata.json beside the image encoder, so how to prepare pictures is unknown");
}

/// Only the file beside the encoder speaks for it.
#[test]
fn a_file_in_another_folder() {
    let release = release();
    fs::create_dir(release.dir.path().join("other")).unwrap();
    let move_to = release.dir.path().join("other/metadata.json");
    fs::rename(release.dir.path().join("metadata.json"), move_to).unwrap();
    let text = said(&release, release.open().map(|c| *c.preprocessing()));
    assert!(text.starts_with("no metadata.json"), "{text}");
}

#[test]
fn files_that_are_no_metadata() {
    let deep = "[".repeat(100_000);
    for content in
        ["", "not JSON", "{", "[]", "{}", "{\"model_files\": []}", "\u{feff}\u{feff}{}", deep.as_str()]
    {
        let release = release();
        release.write("metadata.json", content);
        let text = said(&release, release.open().map(|c| *c.preprocessing()));
        assert!(text.starts_with("not the publisher's metadata: "), "{text}");
    }
    let release = release();
    let result = edited(&release, |d| image(d)["shape"] = json!([1, 3, -64, 64]));
    let text = said(&release, result);
    assert!(text.starts_with("not the publisher's metadata: invalid value: integer `-64`"), "{text}");
}

#[test]
fn a_byte_order_mark() {
    let release = release();
    let content = fs::read(release.dir.path().join("metadata.json")).unwrap();
    release.write("metadata.json", [b"\xEF\xBB\xBF", content.as_slice()].concat());
    assert!(release.open().is_ok());
}

#[test]
fn a_huge_file() {
    let release = release();
    let file = fs::File::create(release.dir.path().join("metadata.json")).unwrap();
    file.set_len(1 << 30).unwrap(); // sparse: no bytes on disk
    let text = said(&release, release.open().map(|c| *c.preprocessing()));
    assert_eq!(text, "the file has more bytes than the limit of 16777216");
}
