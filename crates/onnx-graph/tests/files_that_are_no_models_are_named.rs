//! X6, X7: what people hand over in place of a model is said by name, with the file it is about.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field, fixture_graphs, graph, outputs, write};
use onnx_graph::{Error, Model, ReadLimits};

#[test]
fn other_formats_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 134217728\n";
    let truncated = {
        let whole = std::fs::read(&fixture_graphs()[0]).unwrap();
        whole[..whole.len() / 2].to_vec()
    };
    for (content, reason) in [
        (&b""[..], "the file is empty"),
        (lfs.as_bytes(), "git-LFS pointer"),
        (b"<!DOCTYPE html><title>404</title>", "page of HTML"),
        (b"<HTML>", "page of HTML"),
        (b"\n  <html lang=en>", "page of HTML"),
        (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "page of HTML or XML"),
        (b"PK\x03\x04\x14\0", "zip archive"),
        (b"{\"error\": \"Repository not found\"}", ""),
        (&truncated, &format!("({} bytes)", truncated.len())),
    ] {
        let path = write(folder.path(), "model.onnx", content);
        let error = Model::read(&path).unwrap_err();
        assert!(matches!(&error, Error::NotOnnx { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{} is not an ONNX model: ", path.display())), "{text}");
        assert!(text.contains(reason) && !text.ends_with(": "), "{text}");
    }
}

/// Cut anywhere, a model is refused; only where the cut leaves a complete message without a graph is it another error.
#[test]
fn every_truncation_is_refused() {
    let whole = outputs(graph(&["x"]).node("Relu", ["x"], ["y"]), &["y"]).build().to_bytes().unwrap();
    let graph_end = whole.len() - bytes(8, [0x10, 17]).len();
    for end in 0..graph_end {
        let error = Model::from_bytes(&whole[..end]).unwrap_err();
        assert!(matches!(error, Error::NotOnnx { .. } | Error::NoGraph { .. }), "{end}: {error:?}");
    }
}

#[test]
fn a_model_without_a_graph() {
    let error = Model::from_bytes(common::number(1, 8)).unwrap_err();
    assert_eq!(error.to_string(), "the given buffer holds an ONNX model without a graph");
    // An empty graph is one.
    assert_eq!(Model::from_bytes(bytes(field::MODEL_GRAPH, [])).unwrap().node_count(), 0);
}

#[test]
fn a_folder_and_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.onnx");
    assert!(matches!(Model::read(&missing), Err(Error::Io { path, .. }) if path == missing));
    assert!(matches!(Model::read(folder.path()), Err(Error::NotAFile { path }) if path == folder.path()));
}

/// Opening a pipe would wait for a writer that never comes.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("model.onnx");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(Model::read(&pipe), Err(Error::NotAFile { .. })));
    assert!(matches!(onnx_graph::external_data::verify(&pipe, folder.path()), Err(Error::NotAFile { .. })));
}

#[test]
fn a_file_above_the_limit_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let model = graph(&["x"]).build().to_bytes().unwrap();
    let path = write(folder.path(), "model.onnx", &model);
    let max_bytes = model.len() as u64;
    let limits = ReadLimits { max_bytes, ..ReadLimits::default() };
    assert!(Model::read_with_limits(&path, limits).is_ok());
    let limits = ReadLimits { max_bytes: max_bytes - 2, ..limits };
    let Error::TooLarge { found, limit, .. } = Model::read_with_limits(&path, limits).unwrap_err() else {
        panic!("another error")
    };
    assert_eq!((found, limit), (max_bytes, max_bytes - 2));
}
