//! Case X2: a backslash parts folders where a sidecar is checked, and is a letter of its name to most engines, which would read a
//! file that nobody checked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::engines;
use onnx_graph::{ElementType::Float32, GraphBuilder, Weight};
use sam_runtime::{
    Error,
    engine::{self, EngineChoice, EngineOptions},
};

#[test]
fn on_both_engines() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/w.data"), [0; 16]).unwrap();
    let model = |location: &str| {
        GraphBuilder::new("graph")
            .input("x", Float32, [4.into()])
            .weight(
                "w",
                Weight::external(Float32, [4], &[("location", location), ("offset", "0"), ("length", "16")]),
            )
            .node("Add", ["x", "w"], ["y"])
            .output("y", Float32, [4.into()])
            .build()
    };
    let (written, plain) = (model("sub\\w.data"), model("sub/w.data"));
    for choice in engines() {
        let mut options = EngineOptions::default();
        options.choice = choice;
        let engine = engine::open(&options).unwrap();
        // rten takes no folder at all in a location, which it says itself.
        assert_eq!(engine.load(&plain, folder.path(), "graph").is_ok(), choice == EngineChoice::Ort);
        let error = engine.load(&written, folder.path(), "graph").unwrap_err();
        assert!(matches!(&error, Error::Load { reason, .. } if reason.contains("sub\\w.data")), "{error:?}");
    }
}
