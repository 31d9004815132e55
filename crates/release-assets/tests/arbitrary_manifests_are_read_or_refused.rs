//! Property: whatever stands in `release_assets.json`, it is refused, or gives just the assets that it holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::{collection::vec, prelude::*};
use release_assets::{Error, Manifest, source_precision};
use serde_json::{Map, Value, json};

const WORDS: [&str; 12] = [
    "precisions",
    "float",
    "w8a8",
    "universal_assets",
    "chipset_assets",
    "onnx",
    "tflite",
    "chip",
    "download_url",
    "tool_versions",
    "version",
    "",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => ".{0,6}"]
}

/// JSON that likes the words a manifest is made of.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
        Just(Value::from("https://archives.example/x.zip")),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((word(), inner), 0..5).prop_map(|entries| Value::from(Map::from_iter(entries))),
        ]
    })
}

/// The asset by the rules of the reference, written down a second time.
fn expected<'d>(root: &'d Value, precision: &str, runtime: &str, chipset: Option<&str>) -> Option<&'d Value> {
    let details = root.get("precisions")?.get(source_precision(precision))?;
    let by_runtime = match chipset {
        None => details.get("universal_assets")?,
        Some(chipset) => details.get("chipset_assets")?.get(chipset)?,
    };
    by_runtime.as_object()?.get(runtime)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse(&bytes);
    }

    #[test]
    fn arbitrary_documents(
        document in document(),
        precision in proptest::sample::select(&["auto", "fp16", "float", "w8a8", "", "x"][..]),
        chipset in proptest::option::of(proptest::sample::select(&["chip", "", "x"][..])),
    ) {
        // Half of them below the right root.
        for root in [document.clone(), json!({"version": "1", "precisions": document})] {
            let parsed = Manifest::parse(root.to_string().as_bytes());
            let Ok(manifest) = parsed else {
                prop_assert!(!root.is_object());
                continue;
            };
            match (manifest.select(precision, "onnx", chipset), expected(&root, precision, "onnx", chipset)) {
                (Ok(asset), Some(found)) => {
                    prop_assert_eq!(Some(asset.download_url.as_str()), found["download_url"].as_str());
                }
                (Err(Error::Manifest { .. }), Some(found)) => {
                    let versions_are_texts = found.get("tool_versions").and_then(Value::as_object).is_none_or(|v| {
                        v.values().all(|v| v.is_null() || v.is_string())
                    });
                    let whole = found.get("download_url").is_some_and(Value::is_string) && versions_are_texts;
                    prop_assert!(!whole);
                }
                (Err(Error::NoAsset { .. }), None) => {}
                (found, expected) => panic!("{found:?} for {expected:?}"),
            }
        }
    }
}
