//! RA3 (offline part), RA9, W1: `release_assets.json` beside its archive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;

use release_assets::{Asset, Error, Manifest, Outcome, Release, source_precision};
use serde_json::{Value, json};
use support::{Place, release_zip};

fn manifest() -> Value {
    json!({
        "version": "0.58.0",
        "future": [1, 2],
        "precisions": {
            "float": {
                "universal_assets": {
                    "onnx": {
                        "download_url": "https://user:secret@host.example/a/b/model-onnx-float.zip?x=1",
                        "tool_versions": { "onnx": "1.18", "qairt": null },
                        "unknown": true
                    },
                    "tflite": { "download_url": "https://host.example/model-tflite-float.zip" }
                },
                "chipset_assets": {
                    "chip-1": { "onnx": { "download_url": "https://host.example/model-onnx-float-chip_1.zip" } }
                }
            },
            "w8a8": { "universal_assets": { "onnx": 5, "tflite": { "url": "x" } } },
            "odd": []
        }
    })
}

fn open(place: &Place, precision: &str, runtime: &str) -> Result<Release, Error> {
    place.cache().open_release_folder(place.dir.path().join("folder"), precision, runtime)
}

fn folder(manifest: &Value) -> Place {
    let place = Place::new();
    fs::create_dir(place.dir.path().join("folder")).unwrap();
    place.write("folder/release_assets.json", manifest.to_string().as_bytes());
    place.write("folder/model-onnx-float.zip", &release_zip());
    place
}

#[test]
fn the_selected_archive_is_opened_and_recorded() {
    let place = folder(&manifest());
    let release = open(&place, "fp16", "onnx").unwrap();
    assert_eq!(release.graphs().len(), 2);
    let record: Value = serde_json::from_slice(&fs::read(release.provenance()).unwrap()).unwrap();
    let manifest_path = place.dir.path().join("folder/release_assets.json");
    assert_eq!(record["manifest_sha256"], json!(release_assets::sha256_file(manifest_path).unwrap()));
    assert_eq!(record["manifest_version"], json!("0.58.0"));
    assert_eq!(record["requested_precision"], json!("fp16"));
    assert_eq!(record["source_precision"], json!("float"));
    assert_eq!(record["format"], json!("onnx"));
    assert_eq!(record["tool_versions"], json!({ "onnx": "1.18", "qairt": null }));
    assert_eq!(record["external_data"]["bundle/encoder.onnx"].as_object().unwrap().len(), 1);
    // Credentials have no place in a record, and nothing names a folder of this machine.
    assert_eq!(record["download_url"], json!("https://host.example/a/b/model-onnx-float.zip?…"));
    assert_eq!(
        record["origin"],
        json!({ "kind": "local archive", "file_name": "model-onnx-float.zip", "pin": null })
    );
    assert!(!record.to_string().contains(place.dir.path().to_str().unwrap()));
    assert_eq!(open(&place, "fp16", "onnx").unwrap().outcome, Outcome::Reused);
}

/// W3: requests that differ have a record each, below the one archive.
#[test]
fn requests_that_differ_do_not_fight_over_one_record() {
    let place = folder(&manifest());
    let (fp16, fp32) = (open(&place, "fp16", "onnx").unwrap(), open(&place, "fp32", "onnx").unwrap());
    assert_eq!(fp16.root.parent(), fp32.root.parent());
    for precision in ["fp16", "fp32"] {
        assert_eq!(open(&place, precision, "onnx").unwrap().outcome, Outcome::Reused);
    }
    // Put in the other's place, a record is found to speak for another request.
    fs::copy(fp32.provenance(), fp16.provenance()).unwrap();
    let Outcome::Repaired { reasons } = open(&place, "fp16", "onnx").unwrap().outcome else { panic!() };
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].to_string().contains("requested_precision"));
}

/// W1
#[test]
fn auto_fp32_and_fp16_are_the_float_archive() {
    for precision in ["auto", "fp32", "fp16", "float"] {
        assert_eq!(source_precision(precision), "float");
        assert!(open(&folder(&manifest()), precision, "onnx").is_ok());
    }
    assert_eq!(source_precision("w8a8"), "w8a8");
}

/// RA9: an empty manifest has no such asset; it is not an absent one.
#[test]
fn what_is_missing_is_said_with_what_there_is() {
    let select = |manifest: &Value, precision: &str, runtime: &str, chipset: Option<&str>| {
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        manifest.select(precision, runtime, chipset).map(Asset::file_name)
    };
    for empty in [
        json!({}),
        json!({ "precisions": {} }),
        json!({ "precisions": { "float": { "universal_assets": 3 } } }),
    ] {
        let error = select(&empty, "fp16", "onnx", None).unwrap_err();
        assert!(matches!(error, Error::NoAsset { ref available, .. } if available.is_empty()), "{error}");
        let message = error.to_string();
        assert!(["onnx", "fp16", "float", "nothing"].iter().all(|word| message.contains(word)), "{message}");
    }
    let message = select(&manifest(), "int8", "onnx", None).unwrap_err().to_string();
    assert!(message.contains("float/onnx, float/tflite, float/chip-1/onnx, w8a8/onnx"), "{message}");
    // A chipset's archive is given only to who asks for it, and no other in its place.
    assert_eq!(select(&manifest(), "auto", "onnx", Some("chip-1")).unwrap(), "model-onnx-float-chip_1.zip");
    assert!(matches!(select(&manifest(), "auto", "tflite", Some("chip-1")), Err(Error::NoAsset { .. })));
    assert!(matches!(select(&manifest(), "auto", "onnx", Some("chip-2")), Err(Error::NoAsset { .. })));
    // A damaged asset is an error for who asks for it, and for nobody else.
    for runtime in ["onnx", "tflite"] {
        assert!(matches!(select(&manifest(), "w8a8", runtime, None), Err(Error::Manifest { .. })));
    }
}

#[test]
fn a_byte_order_mark_is_tolerated_and_other_shapes_are_not() {
    let text = [&b"\xef\xbb\xbf"[..], manifest().to_string().as_bytes()].concat();
    assert_eq!(Manifest::parse(&text).unwrap().version(), Some("0.58.0"));
    for text in ["", "[]", "3", "null", "{", "\"x\"", "{}x"] {
        assert!(matches!(Manifest::parse(text.as_bytes()), Err(Error::Manifest { .. })), "{text}");
    }
    // Nesting without end is an error, not a crash.
    assert!(Manifest::parse("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn file_names_come_from_the_urls_path() {
    let name = |url: &str| {
        let manifest =
            json!({ "precisions": { "float": { "universal_assets": { "onnx": { "download_url": url } } } } });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        manifest.select("auto", "onnx", None).unwrap().file_name()
    };
    assert_eq!(name("https://h/a/b.zip"), "b.zip");
    assert_eq!(name("https://h/a/my%20b%C3%A4.zip"), "my b\u{e4}.zip");
    for odd in ["100%.zip", "%zz.zip", "%4.zip", "%+1.zip", "%ff.zip", "%4\u{e4}"] {
        assert_eq!(name(&format!("https://h/a/{odd}")), odd, "what is not encoded is as it is");
    }
    assert_eq!(name("https://h/a/b.zip?v=/c.zip#/d"), "b.zip");
    for url in ["https://h/a/", "https://h", "https://h/", "https://h?x=/y", ""] {
        assert_eq!(name(url), "release.zip", "{url}");
    }
}

/// A URL cannot lead out of the folder.
#[test]
fn a_url_that_ends_in_no_file_name_is_refused() {
    for end in
        ["..", "a\\..\\..\\x", "C:x", "a\u{0}b", "NUL", ".", "%2e%2e", "..%2fx", "%2Fetc", "a%00b", "C%3Ax"]
    {
        let mut manifest = manifest();
        let url = format!("https://host.example/a/{end}");
        manifest["precisions"]["float"]["universal_assets"]["onnx"]["download_url"] = json!(url);
        let error = open(&folder(&manifest), "auto", "onnx").unwrap_err();
        assert!(matches!(error, Error::Manifest { path: Some(_), .. }), "{end:?}: {error}");
    }
}

#[test]
fn a_missing_manifest_or_archive_is_named() {
    let place = folder(&manifest());
    let message = open(&place, "auto", "tflite").unwrap_err().to_string();
    assert!(message.contains("model-tflite-float.zip"), "{message}");
    let message = open(&place, "w8a8", "onnx").unwrap_err().to_string();
    assert!(message.contains("release_assets.json") && message.contains("w8a8/onnx"), "{message}");
    fs::remove_file(place.dir.path().join("folder/release_assets.json")).unwrap();
    let message = open(&place, "auto", "onnx").unwrap_err().to_string();
    assert!(message.contains("release_assets.json"), "{message}");
}

/// Browsers decode the name of what they download, other programs keep it as it stands in the URL.
#[test]
fn an_encoded_name_is_found_either_way() {
    let mut manifest = manifest();
    manifest["precisions"]["float"]["universal_assets"]["onnx"]["download_url"] =
        json!("https://host.example/my%20release.zip");
    for name in ["my release.zip", "my%20release.zip"] {
        let place = folder(&manifest);
        place.write(&format!("folder/{name}"), &release_zip());
        assert!(open(&place, "auto", "onnx").is_ok(), "{name}");
    }
    let message = open(&folder(&manifest), "auto", "onnx").unwrap_err().to_string();
    assert!(message.contains("my release.zip"), "{message}");
}
