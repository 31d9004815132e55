//! How a picture is prepared comes from the publisher's `metadata.json`, which has to describe the graphs that are there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;

use common::{DECODER, ENCODER, Release, decoder, encoder, graph};
use composite::{ChannelOrder, Error, Preprocessing, ResizeRule, Result};
use onnx_graph::ElementType;
use serde_json::{Value, json};

/// A word on a change to the metadata, what it asks for, and the change.
type ImageCase = (&'static str, Preprocessing, fn(&mut Value));

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
    // Where there is none, the folder is named.
    let folder = release.dir.path();
    let places = [folder.join("metadata.json"), folder.to_owned()].map(|p| format!("{}: ", p.display()));
    let text = error.to_string();
    places.iter().find_map(|place| text.strip_prefix(place)).unwrap().to_owned()
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
            "the port `image` has the value range [1.0, 0.0], which is not supported; supported is two numbers up to \
             65504, the lower one first",
            |d| image(d)["value_range"] = json!([1, 0]),
        ),
        (
            "the port `image` has no value range, which is not supported; supported is two numbers, such as [0.0, 1.0]",
            |d| {
                image(d).as_object_mut().unwrap().remove("value_range");
            },
        ),
        (
            "the port `image` has the color format grayscale, which is not supported; supported is rgb and bgr",
            |d| {
                image(d)["image_metadata"]["color_format"] = "grayscale".into();
            },
        ),
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
        (
            "image int8[1,3,64,64]",
            "dtype int8, which is not supported; supported is float32, float16 and uint8",
        ),
        (
            "image uint8[1,3,64,64]",
            "the value range [0.0, 1.0], which is not supported; supported is [0.0, 255.0]",
        ),
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

/// The publisher's schema has more ranges, orders and types than SAM 2's releases use.
#[test]
fn images_of_other_ranges_orders_and_types() {
    let plain = Preprocessing::stretch(64, 64);
    let edits: [ImageCase; 5] = [
        ("bytes' range", plain.range([0.0, 255.0]), |d| image(d)["value_range"] = json!([0, 255])),
        ("around zero", plain.range([-1.0, 1.0]), |d| image(d)["value_range"] = json!([-1, 1])),
        ("blue first", plain.channels(ChannelOrder::Bgr), |d| {
            image(d)["image_metadata"]["color_format"] = "bgr".into();
        }),
        ("an open range", plain.range([0.0, 65504.0]), |d| image(d)["value_range"] = json!([0, 65504])),
        ("no colour", plain, |d| image(d)["image_metadata"] = json!({})),
    ];
    for (what, expected, edit) in edits {
        assert_eq!(edited(&release(), edit).unwrap(), expected, "{what}");
    }
    for (port, expected) in [
        ("image float16[1,3,64,64]", plain.element_type(ElementType::Float16)),
        ("image uint8[1,3,64,64]", plain.element_type(ElementType::Uint8).range([0.0, 255.0])),
    ] {
        let inputs = ENCODER.0.replace("image float32[1,3,64,64]", port);
        let release = Release::new(graph(&inputs, ENCODER.1), decoder());
        let found = edited(&release, |d| {
            if port.contains("uint8") {
                image(d).as_object_mut().unwrap().remove("value_range");
            }
        });
        assert_eq!(found.unwrap(), expected, "{port}");
    }
}

const YAML: &str = "
# as some releases carry it
model_files:
  encoder.onnx:
    inputs:
      image: {shape: [1, 3, 64, 64], dtype: float32, io_type: image, value_range: [0.0, 1.0],
              image_metadata: {color_format: rgb}}
      coordinates: {shape: [1, 2, 2], dtype: float32}
      labels:
        shape: [1, 2]
        dtype: float32
  decoder.onnx:
    inputs:
      embedding: {shape: [1, 8, 4, 4], dtype: float32}
      sparse: {shape: [1, 3, 8], dtype: float32}
";

#[test]
fn the_same_document_in_yaml() {
    let release = release();
    fs::remove_file(release.dir.path().join("metadata.json")).unwrap();
    release.write("metadata.yaml", YAML);
    assert_eq!(*release.open().unwrap().preprocessing(), Preprocessing::stretch(64, 64));
    release.write("metadata.yaml", YAML.replace("rgb", "bgr").replace("[0.0, 1.0]", "[0, 255]"));
    let expected = Preprocessing::stretch(64, 64).channels(ChannelOrder::Bgr).range([0.0, 255.0]);
    assert_eq!(*release.open().unwrap().preprocessing(), expected);
    // It is held against the graphs as the other form is.
    release.write("metadata.yaml", YAML.replace("[1, 3, 64, 64]", "[1, 3, 32, 64]"));
    let text = release.open().unwrap_err().to_string();
    assert!(text.contains("metadata.yaml: port `image` is float32[1,3,32,64] here"), "{text}");
}

/// Both are there: the same is fine, two stories are not.
#[test]
fn both_forms() {
    let release = release();
    let document: Value =
        serde_json::from_slice(&fs::read(release.dir.path().join("metadata.json")).unwrap()).unwrap();
    // JSON is YAML.
    release.write("metadata.yaml", document.to_string());
    release.open().unwrap();
    let mut other = document;
    other["model_files"]["encoder.onnx"]["inputs"]["image"]["value_range"] = json!([0, 255]);
    release.write("metadata.yaml", other.to_string());
    let text = said(&release, release.open().map(|c| *c.preprocessing()));
    assert!(text.starts_with("it says other things than "), "{text}");
}

#[test]
fn files_that_are_no_yaml() {
    let deep = "[".repeat(100_000);
    let many = format!(
        "a: &a [{}]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                        d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\nmodel_files: [*d,*d,*d,*d,*d,*d,*d,*d]",
        "1,".repeat(999)
    );
    let bombs = [deep.as_str(), many.as_str()];
    for content in ["", "{", "- a", "model_files: [", "model_files: {a: {inputs: 7}}", "a: b: c"]
        .into_iter()
        .chain(bombs)
    {
        let release = release();
        fs::remove_file(release.dir.path().join("metadata.json")).unwrap();
        release.write("metadata.yaml", content);
        let text = release.open().unwrap_err().to_string();
        assert!(text.contains("metadata.yaml: not the publisher's metadata: "), "{text}");
        assert!(!text.contains('\n') && text.len() < 600, "{text}");
    }
    let release = release();
    fs::remove_file(release.dir.path().join("metadata.json")).unwrap();
    release.write("metadata.yaml", b"model_files: \xff");
    assert!(release.open().unwrap_err().to_string().contains("not the publisher's metadata"));
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
    assert_eq!(
        text,
        "no metadata.json or metadata.yaml beside the image encoder, so how to prepare pictures is unknown"
    );
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
