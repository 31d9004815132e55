//! The example `build_composite` as a person uses it: a table that fits a terminal, a file that the other examples open, and one clear
//! line where something is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_line;

use std::path::{Path, PathBuf};

use command_line::run;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn model() -> PathBuf {
    fixtures().join("tiny-sam/tiny-sam-onnx-float")
}

#[test]
fn show_is_a_table_that_fits() {
    let (code, table, told) = run("build_composite", &["show", model().to_str().unwrap()]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    for line in [
        "image encoder   TinySamEncoder.onnx, fp32",
        "  in  image               float32[1,3,256,256]  the picture",
        "  out image_embeddings    float32[1,128,16,16]  per image, kept",
        "      sparse_embedding    float32[1,7,128]      per prompt",
        "  out masks               float32[1,1,64,64]    logits of the masks",
        "picture         stretched to 256x256, RGB, [0,1], float32",
        "once per image  image encoder (116 nodes)",
        "per prompt      prompt encoder (22 nodes), mask decoder (355 nodes)",
    ] {
        assert!(table.lines().any(|found| found == line), "{line} in {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

/// What was written down once is opened by its file, and gives the same mask.
#[test]
fn a_written_composite_is_opened() {
    let place = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(model()).unwrap().map(|entry| entry.unwrap().path()) {
        std::fs::copy(&file, place.path().join(file.file_name().unwrap())).unwrap();
    }
    let composite = place.path().join("composite.json");
    let (folder, file) = (place.path().to_str().unwrap(), composite.to_str().unwrap());
    let (code, table, told) = run("build_composite", &["show", folder, "-o", file]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert!(table.ends_with(&format!("written         {file}\n")), "{table}");
    let (_, again, _) = run("build_composite", &["show", file]);
    assert_eq!(again, table.replace(&format!("written         {file}\n"), ""));
    let image = fixtures().join("images/chelsea.jpg");
    let click = |model: &str, out: &str| {
        let out = place.path().join(out);
        let arguments = [
            "--model",
            model,
            "--image",
            image.to_str().unwrap(),
            "--point",
            "100,100",
            "--engine",
            "rten",
            "--out",
        ];
        let (code, shown, told) = run("segment_point", &[&arguments[..], &[out.to_str().unwrap()]].concat());
        assert_eq!(code, Some(0), "{told}{shown}");
        std::fs::read(out.join("mask.png")).unwrap()
    };
    assert_eq!(click(file, "a"), click(folder, "b"));
    // One byte more, and it is another graph.
    let graph = place.path().join("TinySamDecoder.onnx");
    let mut bytes = std::fs::read(&graph).unwrap();
    bytes.extend([0xfa, 0x3e, 0x00]);
    std::fs::write(&graph, bytes).unwrap();
    let (code, _, told) = run("build_composite", &["show", file]);
    assert_eq!(code, Some(2));
    assert!(told.contains("`TinySamDecoder.onnx` is not the graph that it was written for"), "{told}");
}

#[test]
fn refusals_are_one_line() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let model = model();
    let model = model.to_str().unwrap();
    for (arguments, words) in [
        (vec!["show", empty], "holds no ONNX graph"),
        (vec!["show", "/no/such/place"], "/no/such/place"),
        (vec!["show", model, "--wire", "image_embeddings=nothing"], "nothing"),
        (vec!["show", model, "-o", "/no/such/place/composite.json"], "/no/such/place"),
    ] {
        let (code, shown, told) = run("build_composite", &arguments);
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{arguments:?}: {told}");
        assert!(told.starts_with("error: ") && told.lines().count() == 1, "{told}");
        assert!(told.contains(words), "{told}");
    }
}

/// W13, W14: what is printed is one JSON document, and `auto` is what the publisher has.
#[test]
fn config_is_one_document() {
    let model = model();
    let model = model.to_str().unwrap();
    let read = |arguments: &[&str]| -> serde_json::Value {
        let (code, shown, told) = run("build_composite", &[&["config", model], arguments].concat());
        assert_eq!((code, told.as_str()), (Some(0), ""));
        serde_json::from_str(&shown).unwrap()
    };
    let half = read(&["--precision", "fp16"]);
    let names: Vec<&String> = half.as_object().unwrap().keys().collect();
    assert_eq!(names, ["image-encoder", "prompt-decoder"]);
    assert_eq!(half["prompt-decoder"]["quant"]["mode"], "fp16");
    assert_eq!(half["prompt-decoder"]["loader"]["component_name"], "prompt-decoder");
    assert!(read(&[])["image-encoder"]["quant"].is_null());
    // One component is a recipe as its file has it.
    let one = read(&["--component", "prompt-decoder", "--precision", "fp16"]);
    assert_eq!(one, half["prompt-decoder"]);
    let (code, _, told) = run("build_composite", &["config", model, "--component", "decoder"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("there are image-encoder, prompt-decoder"), "{told}");
}

#[test]
fn a_build_says_where_it_is() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let (model, folder) = (model(), out.to_str().unwrap());
    let model = model.to_str().unwrap();
    let (code, shown, told) = run("build_composite", &[model, "-o", folder, "--precision", "fp16"]);
    assert_eq!(code, Some(0), "{told}");
    for line in ["image-encoder: converting to half precision", "publishing"] {
        assert!(told.lines().any(|found| found == line), "{told}");
    }
    for (word, path) in [
        ("image-encoder", "image-encoder/model.onnx"),
        ("prompt-decoder", "prompt-decoder/model.onnx"),
        ("composite", "composite.json"),
        ("built", "build.json"),
    ] {
        let path = out.join(path);
        assert!(path.is_file(), "{}", path.display());
        let line = format!("{word:15} {}", path.display());
        assert!(shown.lines().any(|found| found.starts_with(&line)), "{line} in {shown}");
    }
    let (_, again, _) = run("build_composite", &[model, "-o", folder, "--precision", "fp16"]);
    assert!(again.contains("found whole, nothing to do"), "{again}");
    // By a recipe of the SAM 2 release.
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/recipes/qualcomm_Segment-Anything-Model-2/cpu/cpu");
    let recipe = recipes.join("mask-generation_fp32_prompt-decoder_config.json");
    let one = place.path().join("one");
    let arguments = [model, "-o", one.to_str().unwrap(), "-c", recipe.to_str().unwrap()];
    let (code, shown, told) = run("build_composite", &arguments);
    assert_eq!(code, Some(0), "{told}");
    assert!(shown.starts_with("prompt-decoder") && !shown.contains("composite.json"), "{shown}");
}
