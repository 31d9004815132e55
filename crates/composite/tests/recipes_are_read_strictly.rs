//! Build recipes: the four of the SAM 2 release byte for byte, read and written without loss (RS5), and nothing in them passed over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::{Release, published_decoder, published_encoder};
use composite::{ComponentName, Error, Export, QuantMode, Recipe, RecipePrecision};
use onnx_graph::Fp16Options;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/recipes/qualcomm_Segment-Anything-Model-2/cpu/cpu")
}

const FOUR: [(&str, ComponentName, RecipePrecision, &str); 4] = [
    ("fp32_image-encoder", ComponentName::ImageEncoder, RecipePrecision::Fp32, "9ad1498b"),
    ("fp32_prompt-decoder", ComponentName::PromptDecoder, RecipePrecision::Fp32, "64ac85e7"),
    ("fp16_image-encoder", ComponentName::ImageEncoder, RecipePrecision::Fp16, "88226fed"),
    ("fp16_prompt-decoder", ComponentName::PromptDecoder, RecipePrecision::Fp16, "18011666"),
];

/// The reference's own files begin with these SHA-256 (its section 3.9), so that the order of keys, blanks and line ends are theirs.
#[test]
fn the_four_of_the_release() {
    for (name, component, precision, hash) in FOUR {
        let path = folder().join(format!("mask-generation_{name}_config.json"));
        let recipe = Recipe::read(&path).unwrap();
        assert_eq!(recipe, Recipe::new(component, precision), "{name}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), recipe.to_json(), "{name}");
        let found = release_assets::sha256_file(&path).unwrap();
        assert!(found.starts_with(hash), "{name}: {found}");
    }
}

#[test]
fn automatic_precision_is_the_publishers() {
    let auto = Recipe::new(ComponentName::ImageEncoder, RecipePrecision::Auto);
    assert_eq!(auto, Recipe::new(ComponentName::ImageEncoder, RecipePrecision::Fp32));
    assert_eq!(auto.fp16(), None);
}

fn encoder(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = Recipe::new(ComponentName::ImageEncoder, RecipePrecision::Fp16).to_value();
    change(&mut value);
    value
}

#[test]
fn everything_survives() {
    let full = json!({
        "auto": false,
        "skip_optimize": true,
        "export": {"opset": 17},
        "optim": {"level": 2},
        "quant": {"mode": "rtn", "rtn_group": 32, "dataset_name": "images"},
        "compile": {"device": "npu"},
        "loader": {"task": "mask-generation", "model_class": "A", "model_type": "sam2", "module_path": "m",
                   "component_name": "prompt-decoder", "user_script": "s.py", "trust_remote_code": false},
        "eval": {"samples": 7},
    });
    let recipe = Recipe::from_json(&full.to_string()).unwrap();
    let written = recipe.to_value();
    assert_eq!(Recipe::from_json(&recipe.to_json()).unwrap(), recipe);
    for key in ["auto", "skip_optimize", "export", "optim", "compile", "loader", "eval"] {
        assert_eq!(written[key], full[key], "{key}");
    }
    assert_eq!(written["quant"]["rtn_group"], 32);
    assert_eq!(written["quant"]["samples"], 10);
    let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["auto", "skip_optimize", "export", "optim", "quant", "compile", "loader", "eval"]);
    assert!(!recipe.to_json().ends_with('\n'));
}

/// Null and left out are two things for `export`, and one for the others.
#[test]
fn what_is_left_out() {
    let recipe = Recipe::from_json("{}").unwrap();
    assert_eq!(
        (recipe.export.clone(), recipe.quant.clone(), recipe.compile.clone()),
        (Export::Defaults, None, None)
    );
    assert!(recipe.auto && !recipe.skip_optimize && recipe.loader.component.is_none());
    assert_eq!(recipe.to_value(), json!({"optim": {}, "quant": null, "compile": null}));
    let null = Recipe::from_json(r#"{"export": null, "quant": null, "loader": null}"#).unwrap();
    assert_eq!((null.export, null.quant), (Export::AlreadyOnnx, None));
    let old = Recipe::from_json(r#"{"quant": {"mode": "qdq"}}"#).unwrap();
    assert_eq!(old.quant.as_ref().unwrap().mode, QuantMode::Static);
    assert_eq!(old.to_value()["quant"]["mode"], "static");
}

#[test]
fn nothing_is_passed_over() {
    for (text, said) in [
        ("", "it is not JSON"),
        ("[]", "it is no JSON object"),
        (r#"{"quants": null}"#, "the key `quants` is not known (the nearest is `quant`)"),
        (r#"{"Export": null}"#, "the key `Export` is not known (the nearest is `export`)"),
        (r#"{"something_else": 1}"#, "the key `something_else` is not known (known are auto, skip_optimize"),
        (
            r#"{"quant": {"mode": "fp16", "fp16_keep_io_type": true}}"#,
            "the key `quant.fp16_keep_io_type` is not known (the nearest is `fp16_keep_io_types`)",
        ),
        (r#"{"quant": {"mode": "fp16", "rtn_group": 1}}"#, "the key `quant.rtn_group` is not known"),
        (
            r#"{"quant": {"mode": "static", "reduce_range": true}}"#,
            "the key `quant.reduce_range` is not known",
        ),
        (r#"{"quant": {"mode": "fp61"}}"#, "quant.mode is `fp61` (the nearest is `fp16`)"),
        (r#"{"quant": {"samples": 3}}"#, "quant.mode is left out"),
        (r#"{"quant": {"mode": 16}}"#, "quant.mode is 16, not a text"),
        (
            r#"{"quant": {"mode": "fp16", "samples": -1}}"#,
            "quant.samples is -1, not a whole number of 0 or more",
        ),
        (
            r#"{"quant": {"mode": "fp16", "fp16_op_block_list": ["Max", 1]}}"#,
            "quant.fp16_op_block_list is [\"Max\",1], not a list of texts",
        ),
        (r#"{"optim": []}"#, "optim is [], not an object"),
        (r#"{"export": 17}"#, "export is 17, not an object or null"),
        (r#"{"auto": "no"}"#, "auto is \"no\", not true or false"),
        (r#"{"loader": {"component": "x"}}"#, "the key `loader.component` is not known"),
        (
            r#"{"loader": {"component_name": "image_encoder"}}"#,
            "loader.component_name is `image_encoder` (the nearest is `image-encoder`)",
        ),
    ] {
        let error = Recipe::from_json(text).unwrap_err();
        assert!(matches!(error, Error::Recipe { path: None, .. }), "{text}: {error:?}");
        let found = error.to_string();
        let found = found.strip_prefix("the recipe cannot be used: ").unwrap();
        assert!(found.starts_with(said), "{text}: {found}");
    }
}

#[test]
fn half_precision_as_it_is_asked_for() {
    let read = |value: Value| Recipe::from_json(&value.to_string()).unwrap();
    assert_eq!(read(encoder(|_| {})).fp16(), Some(Fp16Options::compute().keep_io(true)));
    let ports = encoder(|d| d["quant"]["fp16_keep_io_types"] = false.into());
    assert_eq!(read(ports).fp16(), Some(Fp16Options::compute().keep_io(false)));
    let list = encoder(|d| d["quant"]["fp16_op_block_list"] = json!(["Softmax"]));
    assert_eq!(read(list).fp16(), Some(Fp16Options::compute().blocked_operators(["Softmax"])));
    let other = encoder(|d| d["quant"]["mode"] = "static".into());
    assert_eq!(read(other).fp16(), None);
}

/// A recipe's component is held against the graph that it is used for, whatever the file is called.
#[test]
fn a_recipe_is_for_one_graph() {
    let release = Release::new(published_encoder(), published_decoder());
    let composite = release.open().unwrap();
    let graphs = [&composite.pair().encoder.path, &composite.pair().decoder.path];
    for (at, component) in ComponentName::ALL.into_iter().enumerate() {
        let recipe = Recipe::new(component, RecipePrecision::Fp32);
        assert_eq!(recipe.graph(&composite).unwrap().path, *graphs[at]);
        recipe.check(&composite, graphs[at]).unwrap();
        let error = recipe.check(&composite, graphs[1 - at]).unwrap_err().to_string();
        assert!(error.contains("is another graph"), "{error}");
    }
    let wrong_task = encoder(|d| d["loader"]["task"] = "mask-generation".into());
    let error =
        Recipe::from_json(&wrong_task.to_string()).unwrap().graph(&composite).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "loader.task is `mask-generation`, and that of image-encoder is `image-feature-extraction`"
        ),
        "{error}"
    );
    let none = Recipe::from_json("{}").unwrap().graph(&composite).unwrap_err().to_string();
    assert!(none.ends_with("loader.component_name is left out"), "{none}");
}

#[test]
fn files_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.json");
    for content in [&b"{"[..], b"\xff\xfe", b"\"text\""] {
        std::fs::write(&path, content).unwrap();
        let error = Recipe::read(&path).unwrap_err();
        assert!(matches!(&error, Error::Recipe { path: Some(p), .. } if *p == path), "{error}");
    }
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap(); // sparse: no bytes on disk
    assert!(
        Recipe::read(&path).unwrap_err().to_string().ends_with("it has more bytes than the limit of 1048576")
    );
    assert!(matches!(Recipe::read(folder.path()), Err(Error::Recipe { .. })));
    assert!(matches!(Recipe::read(folder.path().join("none")), Err(Error::Io { .. })));
}
