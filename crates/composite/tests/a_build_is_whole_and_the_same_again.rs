//! Builds: fp32 is the publisher's bytes, fp16 as the recipe asks, the same bytes in another folder and again, an earlier build
//! untouched until the new one is there, and what is not ours left alone (W13, W14).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use composite::{
    BuildOptions, BuildStep, Built, ComponentName, Composite, Error, Recipe, RecipePrecision, Result,
};
use onnx_graph::{ElementType, Model, PrecisionClass};
use serde_json::Value;

fn recipes(precision: RecipePrecision) -> Vec<Recipe> {
    ComponentName::ALL.map(|component| Recipe::new(component, precision)).to_vec()
}

fn build(folder: &Path, options: &BuildOptions) -> Result<Built> {
    let composite = Composite::open(common::fixture()).unwrap();
    composite.build(folder, options, &mut |_| ControlFlow::Continue(()))
}

/// All files below a folder with their bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        for path in fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The names of what lies in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn single_precision_is_the_publishers_bytes() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let built = build(&out, &BuildOptions::new(recipes(RecipePrecision::Fp32))).unwrap();
    assert!(!built.reused);
    let files = tree(&out);
    let source = |name: &str| fs::read(common::fixture().join(name)).unwrap();
    for (component, name) in [("image-encoder", "TinySamEncoder"), ("prompt-decoder", "TinySamDecoder")] {
        assert_eq!(files[&format!("{component}/model.onnx")], source(&format!("{name}.onnx")));
        // A sidecar keeps its name, which stands in the graph.
        assert_eq!(files[&format!("{component}/{name}.data")], source(&format!("{name}.data")));
        assert_eq!(files[&format!("{component}/release_metadata.json")], source("metadata.json"));
        assert!(files.contains_key(&format!("{component}/build_config.json")));
    }
    let record: Value = serde_json::from_slice(&files["build.json"]).unwrap();
    assert_eq!(record["components"]["image-encoder"]["inputs"][0]["path"], "TinySamEncoder.onnx");
    let outputs = record["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), files.len() - 1);
    for output in outputs {
        let name = output["path"].as_str().unwrap();
        assert_eq!(output["sha256"], release_assets::sha256_file(out.join(name)).unwrap());
    }
    // What was built opens by its file, as what it was built of.
    let composite = Composite::read(built.composite.unwrap()).unwrap();
    let source = Composite::open(common::fixture()).unwrap();
    assert_eq!(composite.pair().wires, source.pair().wires);
    assert_eq!(composite.preprocessing(), source.preprocessing());
    assert_eq!(names(place.path()), ["out"]);
}

#[test]
fn half_precision_as_asked() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let built = build(&out, &BuildOptions::new(recipes(RecipePrecision::Fp16)).analyze(true)).unwrap();
    for (_, graph) in &built.graphs {
        let model = Model::read(graph).unwrap();
        assert_eq!(model.precision(), PrecisionClass::Fp16);
        assert!(
            model.inputs().iter().chain(&model.outputs()).all(|p| p.element_type == ElementType::Float32)
        );
        assert!(graph.with_file_name("model.onnx.data").is_file());
        let analysis = fs::read(graph.with_file_name("analyze_result.json")).unwrap();
        assert!(serde_json::from_slice::<Value>(&analysis).unwrap()["components"].is_array());
    }
    Composite::read(built.composite.unwrap()).unwrap();
    // Ports in halves: the picture is then fed as halves.
    let mut halves = recipes(RecipePrecision::Fp16);
    for recipe in &mut halves {
        recipe.quant.as_mut().unwrap().fp16_keep_io_types = false;
    }
    let built = build(&place.path().join("halves"), &BuildOptions::new(halves)).unwrap();
    let composite = Composite::read(built.composite.unwrap()).unwrap();
    assert_eq!(composite.preprocessing().element_type, ElementType::Float16);
}

#[test]
fn the_same_again_and_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    for precision in [RecipePrecision::Fp32, RecipePrecision::Fp16] {
        let options = BuildOptions::new(recipes(precision)).analyze(true);
        let (one, two) =
            (place.path().join(format!("{precision:?}")), place.path().join(format!("more/{precision:?}")));
        build(&one, &options).unwrap();
        build(&two, &options).unwrap();
        assert_eq!(tree(&one), tree(&two));
        // Reused, and then built anew, it is the same.
        let before = tree(&one);
        assert!(build(&one, &options).unwrap().reused);
        assert!(!build(&one, &options.clone().rebuild(true)).unwrap().reused);
        assert_eq!(tree(&one), before);
    }
}

#[test]
fn one_component_alone() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let recipe = Recipe::new(ComponentName::PromptDecoder, RecipePrecision::Fp32);
    let built = build(&out, &BuildOptions::new([recipe])).unwrap();
    assert_eq!(built.graphs, [(ComponentName::PromptDecoder, out.join("prompt-decoder/model.onnx"))]);
    assert_eq!(
        (built.composite, names(&out)),
        (None, vec!["build.json".to_owned(), "prompt-decoder".to_owned()])
    );
    // Two precisions are two components and no composite.
    let mixed = [
        Recipe::new(ComponentName::PromptDecoder, RecipePrecision::Fp16),
        Recipe::new(ComponentName::ImageEncoder, RecipePrecision::Fp32),
    ];
    let built = build(&place.path().join("mixed"), &BuildOptions::new(mixed)).unwrap();
    assert_eq!((built.graphs.len(), built.composite), (2, None));
}

/// An earlier build is what it was until the new one is whole, whenever the new one ends.
#[test]
fn an_interrupted_build_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let before = BuildOptions::new(recipes(RecipePrecision::Fp32));
    build(&out, &before).unwrap();
    let files = tree(&out);
    let options = BuildOptions::new(recipes(RecipePrecision::Fp16)).analyze(true).rebuild(true);
    let composite = Composite::open(common::fixture()).unwrap();
    let mut steps = Vec::new();
    let whole = composite.build(place.path().join("other"), &options, &mut |step| {
        steps.push(step.clone());
        ControlFlow::Continue(())
    });
    whole.unwrap();
    assert_eq!(steps.first(), Some(&BuildStep::Hash(ComponentName::ImageEncoder)));
    assert_eq!(steps.last(), Some(&BuildStep::Publish));
    for end in 0..steps.len() {
        let mut at = 0;
        let result = composite.build(&out, &options, &mut |_| {
            at += 1;
            if at > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
        assert_eq!(tree(&out), files, "step {end}");
        assert_eq!(names(place.path()), ["other", "out"], "step {end}");
    }
    // A disk that takes no folder.
    fs::write(place.path().join("file"), "").unwrap();
    assert!(matches!(build(&place.path().join("file/out"), &before), Err(Error::Io { .. })));
}

/// What somebody does to a build.
type Change = fn(&Path);

fn said(result: Result<Built>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Build { .. } | Error::Recipe { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_build_that_is_not_what_it_was() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let options = BuildOptions::new(recipes(RecipePrecision::Fp32));
    build(&out, &options).unwrap();
    let other = BuildOptions::new(recipes(RecipePrecision::Fp16));
    assert!(said(build(&out, &other)).contains("built otherwise, or of other files"));
    let changes: [(&str, Change); 2] = [
        ("is not what was built", |out| fs::write(out.join("image-encoder/model.onnx"), b"x").unwrap()),
        ("is not what was built", |out| {
            fs::remove_file(out.join("prompt-decoder/TinySamDecoder.data")).unwrap();
        }),
    ];
    for (words, change) in changes {
        change(&out);
        let text = said(build(&out, &options));
        assert!(text.contains(words), "{text}");
        assert!(!build(&out, &options.clone().rebuild(true)).unwrap().reused);
        assert!(build(&out, &options).unwrap().reused);
    }
}

/// What somebody else has put there is never removed, asked to build anew or not.
#[test]
fn what_is_not_ours_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let options = BuildOptions::new(recipes(RecipePrecision::Fp32));
    for rebuild in [false, true] {
        let options = options.clone().rebuild(rebuild);
        let strange: [(&str, &str); 3] = [
            ("notes.txt", "it holds other things than a build"),
            ("build.json", "is not of this crate's form"),
            ("image-encoder/notes.txt", "it holds other things than a build"),
        ];
        for (at, (name, words)) in strange.into_iter().enumerate() {
            let out = place.path().join(format!("{rebuild}{at}"));
            let file = out.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "{}").unwrap();
            let text = said(build(&out, &options));
            assert!(text.contains(words), "{text}");
            assert_eq!(fs::read(&file).unwrap(), b"{}");
        }
        let out = place.path().join(format!("{rebuild}built"));
        build(&out, &options).unwrap();
        fs::write(out.join("mine.txt"), "mine").unwrap();
        assert!(said(build(&out, &options)).contains("`mine.txt` was not built: it is left alone"));
        assert_eq!(fs::read(out.join("mine.txt")).unwrap(), b"mine");
        // A folder that is empty is anybody's.
        let empty = place.path().join(format!("{rebuild}empty"));
        fs::create_dir(&empty).unwrap();
        build(&empty, &options).unwrap();
    }
}

#[test]
fn what_is_not_built_here() {
    let place = tempfile::tempdir().unwrap();
    let decoder = || Recipe::new(ComponentName::PromptDecoder, RecipePrecision::Fp32).to_value();
    let changed = |change: fn(&mut Value)| {
        let mut value = decoder();
        change(&mut value);
        Recipe::from_json(&value.to_string()).unwrap()
    };
    for (recipe, words) in [
        (changed(|r| r["export"] = serde_json::json!({"opset": 17})), "exports from a checkpoint"),
        (changed(|r| drop(r.as_object_mut().unwrap().remove("export"))), "exports from a checkpoint"),
        (changed(|r| r["optim"] = serde_json::json!({"level": 2})), "optim.level is not built here"),
        (changed(|r| r["compile"] = serde_json::json!({})), "compiles for a device"),
        (changed(|r| r["quant"] = serde_json::json!({"mode": "static"})), "quantisation in the mode static"),
        (changed(|r| drop(r["loader"].as_object_mut().unwrap().remove("component_name"))), "is left out"),
    ] {
        let text = said(build(&place.path().join("out"), &BuildOptions::new([recipe])));
        assert!(text.contains(words), "{text}");
    }
    let twice = [changed(|_| {}), changed(|_| {})];
    assert!(
        said(build(&place.path().join("out"), &BuildOptions::new(twice))).contains("two recipes are for")
    );
    assert!(said(build(&place.path().join("out"), &BuildOptions::new([]))).contains("there is no recipe"));
    assert_eq!(names(place.path()), [] as [&str; 0]);
}
