//! The example `inspect` as a person uses it: a table that fits a terminal, JSON, and one clear line where something is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_line;

use std::path::{Path, PathBuf};

use sam_kit::release_assets::sha256_file;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny-sam/tiny-sam-onnx-float")
}

fn inspect(arguments: &[&str]) -> (Option<i32>, String, String) {
    command_line::run("inspect", arguments)
}

#[test]
fn a_table_that_fits() {
    let model = fixture().join("TinySamDecoder.onnx");
    let (code, table, told) = inspect(&[model.to_str().unwrap()]);
    assert_eq!((code, told.as_str()), (Some(0), ""), "{told}");
    for line in [
        "arithmetic  236 MMAC",
        "  image_embeddings    float32  [1,128,16,16]",
        "  masks               float32  [1,1,64,64]  from high_res_features1, high_res_features2,",
        "operators of 355 nodes",
        "  float32         1.41 MiB     370 k elements in 94 tensors",
        "  TinySamDecoder.data  1.40 MiB, 38 tensors",
    ] {
        assert!(table.lines().any(|found| found == line), "{line} in {table}");
    }
    let hash = sha256_file(fixture().join("TinySamDecoder.data")).unwrap();
    assert!(table.contains(&format!("    SHA-256 {hash}")), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

/// A path just as long as a line has room for, and a little shorter and longer.
#[test]
fn paths_of_any_length_fit() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap().chars().count();
    for length in 84..=96 {
        let name = format!("{}.onnx", "m".repeat(length - folder - "/.onnx".len()));
        let path = place.path().join(name);
        std::fs::copy(fixture().join("TinySamDecoder.onnx"), &path).unwrap();
        let (_, table, told) = inspect(&[path.to_str().unwrap()]);
        let wide: Vec<&str> = table.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(!table.is_empty() && wide.is_empty(), "{wide:?} {told}");
    }
}

#[test]
fn json() {
    let model = fixture().join("TinySamEncoder.onnx");
    let (code, text, _) = inspect(&[model.to_str().unwrap(), "--json"]);
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["file"]["sha256"], sha256_file(&model).unwrap());
    assert_eq!(json["inputs"][0]["shape"], serde_json::json!([1, 3, 256, 256]));
    assert_eq!(json["outputs"][3]["depends_on"], serde_json::json!(["labels", "unnorm_coords"]));
    let sidecar = &json["sidecars"][0];
    assert_eq!(sidecar["sha256"], sha256_file(fixture().join("TinySamEncoder.data")).unwrap());
    assert_eq!(json["macs"], 613_548_032);
}

#[test]
fn without_its_sidecar_and_without_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone.onnx");
    std::fs::copy(fixture().join("TinySamEncoder.onnx"), &alone).unwrap();
    let (code, table, _) = inspect(&[alone.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(table.contains("TinySamEncoder.data  MISSING, "), "{table}");
    assert!(table.contains("arithmetic  614 MMAC"), "{table}");

    let text = folder.path().join("text.onnx");
    std::fs::write(&text, "<html>").unwrap();
    for path in [folder.path().join("nothing.onnx"), text, folder.path().to_owned()] {
        let (code, table, told) = inspect(&[path.to_str().unwrap()]);
        assert_eq!((code, table.as_str()), (Some(2), ""));
        assert!(told.starts_with("error: ") && told.contains(path.to_str().unwrap()), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    assert_eq!(inspect(&[]).0, Some(2));
}

#[test]
fn check_says_what_is_wrong() {
    let folder = fixture();
    let good = folder.join("TinySamDecoder.onnx");
    let (code, text, told) = inspect(&["check", good.to_str().unwrap()]);
    assert_eq!((code, text.as_str(), told.as_str()), (Some(0), "0 errors, 0 warnings, 0 notes\n", ""));
    // Its sidecar left behind, and cut short.
    let place = tempfile::tempdir().unwrap();
    let alone = place.path().join("TinySamDecoder.onnx");
    std::fs::copy(&good, &alone).unwrap();
    let (code, text, _) = inspect(&["check", alone.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error: ") && text.contains("[external-data]"), "{text}");
    std::fs::write(place.path().join("TinySamDecoder.data"), b"short").unwrap();
    let (code, text, _) = inspect(&["check", "--json", alone.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}");
    let findings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let first = &findings[0];
    assert_eq!((&first["severity"], &first["rule"]), (&"error".into(), &"external-data".into()));
    assert!(first["value"].is_string() && first["message"].is_string(), "{first}");
    std::fs::write(&alone, b"no model").unwrap();
    let (code, _, told) = inspect(&["check", alone.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{told}");
}
