//! XD1, XD2 and their kin, as far as this crate is concerned: a release whose graphs do not have the data
//! they name is refused. All places a tensor can hide in are `onnx-graph`'s tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;

use onnx_graph::ExternalDataRule;
use release_assets::Error;
use serde_json::Value;
use support::{Place, graph_with_sidecar, zip_of};

fn refuse(members: &[(&str, Vec<u8>)]) -> ExternalDataRule {
    let place = Place::new();
    let error = place.open(&zip_of(members)).unwrap_err();
    assert_eq!(place.files(), ["release.zip"], "a refused release left something behind");
    let Error::Graph { graph, source: onnx_graph::Error::ExternalData { rule, tensor, .. }, .. } = error
    else {
        panic!("refused for another reason: {error}");
    };
    assert_eq!((graph.as_str(), tensor.as_str()), ("b/m.onnx", "weight"));
    rule
}

/// XD1
#[test]
fn a_missing_sidecar() {
    assert_eq!(refuse(&[("b/m.onnx", graph_with_sidecar("w.data", 4))]), ExternalDataRule::Missing);
    // In another folder it is missing as well: the location counts from the graph's own.
    let elsewhere = [("b/m.onnx", graph_with_sidecar("w.data", 4)), ("w.data", vec![0; 16])];
    assert_eq!(refuse(&elsewhere), ExternalDataRule::Missing);
}

/// XD2
#[test]
fn a_location_that_climbs() {
    let members = [("b/m.onnx", graph_with_sidecar("../w.data", 4)), ("w.data", vec![0; 16])];
    assert_eq!(refuse(&members), ExternalDataRule::Unsafe);
}

/// W7
#[test]
fn a_sidecar_that_is_too_short() {
    let members = [("b/m.onnx", graph_with_sidecar("w.data", 4)), ("b/w.data", vec![0; 15])];
    assert!(matches!(refuse(&members), ExternalDataRule::TooShort { .. }));
}

#[test]
fn a_file_that_is_no_model() {
    let place = Place::new();
    let error = place.open(&zip_of(&[("m.onnx", "<html>")])).unwrap_err();
    assert!(matches!(error, Error::Graph { .. }), "{error}");
    assert_eq!(place.files(), ["release.zip"]);
}

#[test]
fn sidecars_in_folders_are_recorded_under_their_graph() {
    let place = Place::new();
    let members = [
        ("b/one.onnx", graph_with_sidecar("data/w.bin", 4)),
        ("b/two.onnx", graph_with_sidecar("./data/w.bin", 4)),
        ("b/data/w.bin", vec![0; 16]),
    ];
    let release = place.open(&zip_of(&members)).unwrap();
    let record: Value = serde_json::from_slice(&fs::read(release.provenance()).unwrap()).unwrap();
    let hash = release_assets::sha256_file(release.root.join("b/data/w.bin")).unwrap();
    for graph in ["b/one.onnx", "b/two.onnx"] {
        assert_eq!(record["external_data"][graph], serde_json::json!({ "b/data/w.bin": hash }));
    }
}
