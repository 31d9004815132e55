//! What files and servers say goes into messages as text: it commands no terminal, forges no line, and has an end.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod loopback;
mod support;

use std::fs;

use loopback::{
    hub::{Hub, wanted},
    server::Reply,
};
use release_assets::{Manifest, Pin, Trust};
use support::{Place, Raw, raw_zip, release_zip};

/// Escape sequences, a new line, a direction override and a great length.
fn evil() -> String {
    format!("\u{1b}[31m\nerror: \u{202e}forged{}", "x".repeat(10 << 20))
}

fn harmless(message: &str) {
    let start: String = message.chars().take(300).collect();
    assert!(!message.contains(['\u{1b}', '\n', '\u{202e}']), "{start}");
    assert!(message.len() < 20_000, "{} bytes: {start}", message.len());
    assert!(message.contains("\\u{1b}[31m"), "it is still told: {start}");
}

#[test]
fn of_a_manifest() {
    let manifest = serde_json::json!({"precisions": {evil(): {"universal_assets": {"onnx": 5}}}}).to_string();
    let manifest = Manifest::parse(manifest.as_bytes()).unwrap();
    harmless(&manifest.select("auto", "onnx", None).unwrap_err().to_string());
    harmless(&manifest.select(&evil(), "onnx", None).unwrap_err().to_string());
}

#[test]
fn of_a_hub() {
    for key in ["sha", "pipeline_tag"] {
        let (place, hub) = (Place::new(), Hub::new(release_zip()));
        let mut answer = serde_json::json!({"sha": "0".repeat(40), "pipeline_tag": null});
        // A text where a number is shows up in the parser's own message, too.
        answer[key] = if key == "sha" { evil().into() } else { serde_json::json!({evil(): 1}) };
        hub.misbehave(move |_, _| Reply::ok(answer.to_string()));
        let client = hub.server.client().build().unwrap();
        let message = place.cache().acquire(&wanted(), &client).unwrap_err().to_string();
        if key == "sha" {
            harmless(&message);
        }
        assert!(message.len() < 20_000 && message.lines().count() == 1);
    }
}

#[test]
fn of_a_pin() {
    let (place, hub) = (Place::new(), Hub::new(release_zip()));
    let mut pin = hub.pin();
    (pin.pinned_by, pin.size) = (evil(), Some(1));
    let zip = place.write("x.zip", &release_zip());
    harmless(&place.cache().import(&zip, Some(&pin)).unwrap_err().to_string());
    harmless(&Trust::Pinned { by: evil(), at: evil() }.to_string());
    let pin = Pin::new(evil(), "MIT", "the tests", "2026-11-30");
    harmless(&place.cache().import(&zip, Some(&pin)).unwrap_err().to_string());
}

#[test]
fn of_an_archive() {
    let name = "\u{1b}[31m\n\u{202e}".to_owned() + &"x".repeat(1000);
    let zip = raw_zip(&[Raw::graph(), Raw::new(name, b"x").with(|raw| raw.flags = 1 << 11)]);
    harmless(&Place::new().open(&zip).unwrap_err().to_string());
}

/// Names that somebody put into the cache.
#[cfg(unix)]
#[test]
fn of_the_disk() {
    let place = Place::new();
    let release = place.open(&release_zip()).unwrap();
    fs::write(release.root.join("\u{1b}[31m\n\u{202e}"), "x").unwrap();
    let checked = place.cache().verify().unwrap();
    harmless(&checked[0].damage[0].to_string());
    harmless(&place.open(&release_zip()).unwrap().outcome.to_string());
}
