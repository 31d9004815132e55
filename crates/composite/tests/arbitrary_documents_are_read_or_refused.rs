//! Recipes, composites' files, contract rules and metadata of any content are read or refused in one line, and never panic; a recipe
//! that is read is written without loss.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Release, published_decoder, published_encoder};
use composite::{Composite, ContractRule, Recipe};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that mean something to one of the documents, and some that mean nothing.
const WORDS: [&str; 25] = [
    "auto",
    "export",
    "optim",
    "quant",
    "compile",
    "loader",
    "eval",
    "mode",
    "fp16",
    "static",
    "rtn",
    "rtn_x",
    "samples",
    "component_name",
    "image-encoder",
    "task",
    "schema",
    "wires",
    "name",
    "fp16_op_block_list",
    "",
    "\u{0}",
    "../x",
    "model_files",
    "\n\u{1b}[31m",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![6 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A document with some values, at any depth, made others.
fn changed(document: &Value, changes: Vec<(Vec<prop::sample::Index>, Value)>) -> Value {
    fn change(at: &mut Value, way: &[prop::sample::Index], value: Value) {
        let inside = match (way.split_first(), &mut *at) {
            (Some((step, rest)), Value::Object(object)) if !object.is_empty() => {
                let place = step.index(object.len());
                object.values_mut().nth(place).map(|inside| (inside, rest))
            }
            (Some((step, rest)), Value::Array(list)) if !list.is_empty() => {
                let place = step.index(list.len());
                list.get_mut(place).map(|inside| (inside, rest))
            }
            _ => return *at = value,
        };
        if let Some((inside, rest)) = inside {
            change(inside, rest, value);
        }
    }
    let mut found = document.clone();
    for (way, value) in changes {
        change(&mut found, &way, value);
    }
    found
}

fn changes() -> impl Strategy<Value = Vec<(Vec<prop::sample::Index>, Value)>> {
    prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 1..4), any_json()), 1..3)
}

/// One line, and not the whole of what was read.
fn harmless(text: &str) -> Result<(), TestCaseError> {
    prop_assert!(!text.chars().any(char::is_control) && text.chars().count() < 2000, "{text}");
    Ok(())
}

fn whole_recipe() -> Value {
    json!({
        "auto": false, "skip_optimize": true, "export": null, "optim": {},
        "quant": {"mode": "fp16", "samples": 3, "seed": 1, "op_types_to_quantize": ["Conv"]},
        "compile": null, "loader": {"task": "mask-generation", "component_name": "prompt-decoder"}, "eval": {"n": 1},
    })
}

proptest! {
    #[test]
    fn recipes(document in any_json(), changes in changes()) {
        for document in [document, changed(&whole_recipe(), changes)] {
            match Recipe::from_json(&document.to_string()) {
                Ok(recipe) => prop_assert_eq!(Recipe::from_json(&recipe.to_json()).unwrap(), recipe),
                Err(error) => harmless(&error.to_string())?,
            }
        }
    }

    #[test]
    fn texts_that_are_no_json(text in ".{0,64}") {
        if let Err(error) = Recipe::from_json(&text) {
            harmless(&error.to_string())?;
        }
        if let Err(error) = ContractRule::from_json(&text) {
            harmless(&error.to_string())?;
        }
    }

    #[test]
    fn contract_rules(document in any_json()) {
        if let Err(error) = ContractRule::from_json(&document.to_string()) {
            harmless(&error.to_string())?;
        }
    }
}

/// What a file of any content and a composite's file with changes are for one and the same folder of graphs.
#[test]
fn files_of_composites_and_metadata() {
    let release = Release::new(published_encoder(), published_decoder());
    let path = release.dir.path().join(Composite::FILE_NAME);
    release.open().unwrap().write(&path).unwrap();
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(release.dir.path().join(name)).unwrap()).unwrap()
    };
    let (composite, metadata) = (read(Composite::FILE_NAME), read("metadata.json"));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    let strategy = (any_json(), changes(), changes());
    let result = runner.run(&strategy, |(any, of_composite, of_metadata)| {
        for document in [any.clone(), changed(&composite, of_composite)] {
            std::fs::write(&path, document.to_string()).unwrap();
            if let Err(error) = Composite::read(&path) {
                harmless(&error.to_string())?;
            }
        }
        for document in [any, changed(&metadata, of_metadata)] {
            std::fs::write(release.dir.path().join("metadata.json"), document.to_string()).unwrap();
            if let Err(error) = release.open() {
                harmless(&error.to_string())?;
            }
        }
        Ok(())
    });
    result.unwrap();
}
