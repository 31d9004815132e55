//! Releases since 0.58.0: the decoder's `image_embeddings` is fed `pix_feat`, which a contract rule says and the graph shows; the
//! application may say otherwise, and where nobody says anything such graphs are refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{
    Release, choose, encoder_with_pix_feat, file, graph, published_decoder, published_encoder, rule_for,
    wires,
};
use composite::{
    Component, Composite, ContractRule, Error, GraphFile, Pair, Result, Rule, SettledBy, UnusedRole, Value,
    Wiring, select,
};
use onnx_graph::{GraphBuilder, Model, PrecisionClass};

/// A full-size graph without its weights.
fn structure(name: &str) -> GraphFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/structures").join(name);
    GraphFile::new(path.clone(), &Model::read(&path).unwrap()).unwrap()
}

const RULE: &str = "still-image-of-pix-feat";
const WIRES: [&str; 4] =
    ["high_res_features1", "high_res_features2", "image_embeddings <- pix_feat", "sparse_embedding"];

#[test]
fn the_published_pair() {
    let pair = choose(&["published-encoder.onnx", "published-decoder.onnx"].map(structure)).unwrap();
    assert_eq!(wires(&pair), WIRES);
    let settled: Vec<&SettledBy> = pair.wires.iter().map(|wire| &wire.settled_by).collect();
    let rule = SettledBy::Contract(RULE.to_owned());
    assert_eq!(settled, [&SettledBy::Name, &SettledBy::Name, &rule, &SettledBy::Name]);
}

/// Three graphs; the memory encoder takes `pix_feat` as well, and stays out.
#[test]
fn the_published_trio_in_any_order() {
    let names = [
        "published-edgetam-encoder.onnx",
        "published-edgetam-decoder.onnx",
        "published-edgetam-memory-encoder.onnx",
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let pair = choose(&order.map(|at| structure(names[at]))).unwrap();
        assert_eq!(pair.encoder.file_name(), names[0]);
        assert_eq!(pair.decoder.file_name(), names[1]);
        assert_eq!(wires(&pair), WIRES);
        assert_eq!((pair.masks.as_str(), pair.scores.as_str()), ("masks", "scores"));
    }
}

fn pair(encoder: GraphBuilder, wiring: &Wiring) -> Result<Pair> {
    let graphs = [file("encoder.onnx", encoder), file("decoder.onnx", published_decoder())];
    select(Path::new("release"), &graphs, Vec::new(), &[PrecisionClass::Fp32], wiring)
}

/// The constant may come first, be computed, and be passed on; so may the embedding.
#[test]
fn a_constant_is_added_in_any_form() {
    let forms = [
        encoder_with_pix_feat(|g| g.node("Add", ["no_memory", "image_embeddings"], ["pix_feat"])),
        encoder_with_pix_feat(|g| {
            g.node("Identity", ["no_memory"], ["same"])
                .node("Add", ["image_embeddings", "same"], ["sum"])
                .node("Identity", ["sum"], ["pix_feat"])
        }),
        encoder_with_pix_feat(|g| {
            g.node("Identity", ["image_embeddings"], ["passed"])
                .node("Mul", ["no_memory", "no_memory"], ["computed"])
                .node("Add", ["passed", "computed"], ["pix_feat"])
        }),
    ];
    for form in forms {
        assert_eq!(wires(&pair(form, &Wiring::new()).unwrap()), WIRES);
    }
}

/// The names alone are not the contract.
#[test]
fn the_graph_has_to_show_it() {
    let forms = [
        encoder_with_pix_feat(|g| g.node("Mul", ["image_embeddings", "no_memory"], ["pix_feat"])),
        encoder_with_pix_feat(|g| g.node("Add", ["image_embeddings", "image_embeddings"], ["pix_feat"])),
        encoder_with_pix_feat(|g| {
            g.node("All", ["image"], ["other"]).node("Add", ["other", "no_memory"], ["pix_feat"])
        }),
        encoder_with_pix_feat(|g| {
            g.node("Relu", ["image_embeddings"], ["changed"]).node(
                "Add",
                ["changed", "no_memory"],
                ["pix_feat"],
            )
        }),
    ];
    for form in forms {
        let error = pair(form, &Wiring::new()).unwrap_err();
        assert!(matches!(error, Error::AmbiguousWiring { derived: false, .. }), "{error}");
    }
}

/// Another publisher's names: what the graph shows is said, and not enough.
#[test]
fn other_names_are_refused() {
    let encoder = published_encoder().output(
        "more",
        onnx_graph::ElementType::Float32,
        [1].map(onnx_graph::Dim::Static),
    );
    let encoder = encoder.node("All", ["image"], ["more"]);
    let error = pair(encoder.clone(), &Wiring::new()).unwrap_err();
    assert!(matches!(error, Error::AmbiguousWiring { derived: true, .. }), "{error}");
    assert!(error.to_string().contains("one is the other with a constant added"), "{error}");
    // Then the application says which.
    for (output, wire) in
        [("pix_feat", "image_embeddings <- pix_feat"), ("image_embeddings", "image_embeddings")]
    {
        let pair = pair(encoder.clone(), &Wiring::new().wire("image_embeddings", output)).unwrap();
        assert_eq!(wires(&pair)[2], wire);
        assert_eq!(pair.wires[2].settled_by, SettledBy::Caller);
    }
}

#[test]
fn the_application_is_asked_first() {
    let raw = pair(published_encoder(), &Wiring::new().wire("image_embeddings", "image_embeddings")).unwrap();
    assert_eq!(wires(&raw)[2], "image_embeddings");
    assert_eq!(raw.wires[2].settled_by, SettledBy::Caller);
}

#[test]
fn a_wire_needs_both_ends_and_one_size() {
    for (input, output) in [("image_embeddings", "none"), ("none", "pix_feat")] {
        let result = pair(published_encoder(), &Wiring::new().wire(input, output));
        // An input that is fed from nowhere is an unfed input of the decoder.
        match result.unwrap_err() {
            Error::LooseWire { input: i, output: o, .. } => assert_eq!((&*i, &*o), (input, output)),
            Error::NoPair { .. } => assert_eq!(output, "none"),
            other => panic!("{other}"),
        }
    }
    let other_size = Wiring::new().wire("image_embeddings", "high_res_features2");
    assert!(matches!(
        rule_for(pair(published_encoder(), &other_size), "decoder.onnx"),
        Rule::Port { mismatch, .. } if mismatch.produced.name == "high_res_features2"
    ));
}

fn rule_text(change: impl Fn(&mut serde_json::Value)) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts/still-image-of-pix-feat.json");
    let mut rule = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    change(&mut rule);
    rule.to_string()
}

#[test]
fn a_rule_of_the_applications_own() {
    let rule = ContractRule::from_json(&rule_text(|rule| {
        rule["name"] = "video frames".into();
        rule["wires"]["image_embeddings"] = "image_embeddings".into();
    }));
    let pair = pair(published_encoder(), &Wiring::new().rule(rule.unwrap())).unwrap();
    assert_eq!(wires(&pair)[2], "image_embeddings");
    assert_eq!(pair.wires[2].settled_by, SettledBy::Contract("video frames".to_owned()));
}

#[test]
fn a_rule_that_is_none() {
    let wrong = [
        "{}".to_owned(),
        rule_text(|rule| rule["more"] = 1.into()),
        rule_text(|rule| rule["wires"] = serde_json::json!({})),
        rule_text(|rule| rule["wires"] = serde_json::json!({"nothing": "pix_feat"})),
        rule_text(|rule| rule["wires"] = serde_json::json!({"image_embeddings": "nothing"})),
    ];
    for text in wrong {
        let error = ContractRule::from_json(&text).unwrap_err();
        assert!(matches!(error, Error::ContractRule { .. }), "{text}: {error}");
    }
}

/// A folder with all three graphs: what is run, what is shown, what is left alone.
#[test]
fn a_release_of_three_graphs() {
    let release = Release::new(published_encoder(), published_decoder());
    let memory = graph(
        "pix_feat float32[1,8,4,4] mask_for_mem float32[1,1,64,64]",
        "maskmem_features float32[1,16,8]",
    );
    release.write("memory_encoder.onnx", memory.build().to_bytes().unwrap());
    let composite = release.open().unwrap();
    let [unused] = composite.unused() else { panic!("{:?}", composite.unused()) };
    assert_eq!(unused.role, UnusedRole::MemoryEncoder);
    let shown = composite.to_string();
    for line in [
        "      pix_feat            float32[1,8,4,4]    per image, kept; to image_embeddings",
        "  out image_embeddings    float32[1,8,4,4]    not used",
        "  in  image_embeddings    float32[1,8,4,4]    from pix_feat (rule still-image-of-pix-feat)",
        "      sparse_embedding    float32[1,3,8]      per prompt",
        "not used        memory_encoder.onnx, a memory encoder",
    ] {
        assert!(shown.lines().any(|l| l == line), "{shown}");
    }
    let plan = composite.plan().unwrap();
    let decoder = plan.per_prompt.last().unwrap();
    let feed = decoder.feeds.iter().find(|feed| feed.port == "image_embeddings").unwrap();
    let Value::Port(component, output) = &feed.value else { panic!("{feed:?}") };
    assert_eq!((*component, output.as_str()), (Component::ImageEncoder, "pix_feat"));
    let image = &plan.per_image[0];
    assert!(!image.outputs.iter().any(|output| output == "image_embeddings"), "{:?}", image.outputs);
}

/// The same folder, wired as the application says.
#[test]
fn a_release_opened_with_a_wire() {
    let release = Release::new(published_encoder(), published_decoder());
    let wiring = Wiring::new().wire("image_embeddings", "image_embeddings");
    let composite = Composite::builder().wiring(wiring).open(release.dir.path()).unwrap();
    let shown = composite.to_string();
    assert!(shown.contains("from image_embeddings (by the application)"), "{shown}");
}
