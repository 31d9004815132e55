//! CP8, CP9, X6: a folder without a pair is told by what it holds; what cannot be read is listed, not hidden.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{DECODER, ENCODER, Release, decoder, encoder, graph};
use composite::{Composite, Error, Rule};
use onnx_graph::{ElementType::Float32, GraphBuilder, Weight};

const LFS: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 134217728\n";

/// The error's text, with the folder's path left out.
fn said(folder: &Path) -> String {
    let error = Composite::open(folder).unwrap_err();
    error.to_string().replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn a_folder_without_graphs() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(said(folder.path()), "FOLDER holds no ONNX graph, it is empty");
    std::fs::create_dir(folder.path().join("weights")).unwrap();
    for name in ["model.safetensors", "config.json"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(
        said(folder.path()),
        "FOLDER holds no ONNX graph, only config.json, model.safetensors, weights/"
    );
    for i in 0..8 {
        std::fs::write(folder.path().join(format!("a{i}.txt")), "").unwrap();
    }
    let listed = "a0.txt, a1.txt, a2.txt, a3.txt, a4.txt, a5.txt, a6.txt, a7.txt, and 3 more";
    assert_eq!(said(folder.path()), format!("FOLDER holds no ONNX graph, only {listed}"));
}

#[test]
fn no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(matches!(Composite::open(&missing), Err(Error::Io { path, .. }) if path == missing));
}

/// Each graph with its ports and the first rule that it broke, in one line.
#[test]
fn a_folder_without_a_pair() {
    let outputs = DECODER.1.replace(" quality float32[1,1]", "");
    let release = Release::new(encoder(), graph(DECODER.0, &outputs));
    release.write(
        "text/bert.onnx",
        graph("ids int64[1,n]", "hidden float32[1,n,8]").build().to_bytes().unwrap(),
    );
    release.write("text/lost.onnx", LFS);
    assert_eq!(
        said(release.dir.path()),
        "FOLDER holds no encoder/decoder pair: \
         decoder.onnx (embedding float32[1,8,4,4], sparse float32[1,3,8] -> mask float32[1,1,16,16]): \
         no single output of rank 1 to 3, or named `scores`, `iou_scores` or `iou_predictions`, is the scores; \
         encoder.onnx (image float32[1,3,64,64], coordinates float32[1,2,2], labels float32[1,2] -> \
         embedding float32[1,8,4,4], sparse float32[1,3,8]): an image encoder, but no decoder fits it; \
         text/bert.onnx (ids int64[1,n] -> hidden float32[1,n,8]): neither an image encoder (one input of \
         rank 4) nor fed by one (no port in common with an encoder); \
         text/lost.onnx: unreadable: FOLDER/text/lost.onnx is not an ONNX model: it is a git-LFS pointer, \
         the model itself was not fetched"
    );
}

/// A good pair is used although other graphs are broken, and these are listed with the reason.
#[test]
fn broken_graphs_beside_a_pair() {
    let release = Release::new(encoder(), decoder());
    let sidecar = Weight::external(Float32, [4], &[("location", "gone.data")]);
    let incomplete = GraphBuilder::new("incomplete").weight("w", sidecar).build();
    let files = [
        release.write("a/lost.onnx", LFS),
        release.write("b/incomplete.ONNX", incomplete.to_bytes().unwrap()),
    ];
    let composite = release.open().unwrap();
    let skipped: Vec<_> = composite.skipped().iter().map(ToString::to_string).collect();
    assert_eq!(
        skipped,
        [
            format!(
                "{0}: unreadable: {0} is not an ONNX model: it is a git-LFS pointer, the model itself was not fetched",
                files[0].display()
            ),
            format!(
                "{0}: unreadable: {0}: external data of tensor `w` at `gone.data`: no such file",
                files[1].display()
            ),
        ]
    );
}

/// A link to a file that was never fetched, as in a hub snapshot, is a graph that cannot be read.
#[cfg(unix)]
#[test]
fn a_broken_link() {
    let release = Release::new(encoder(), decoder());
    let link = release.dir.path().join("lost.onnx");
    std::os::unix::fs::symlink("../blobs/abc", &link).unwrap();
    let composite = release.open().unwrap();
    let [skipped] = composite.skipped() else { panic!("{:?}", composite.skipped()) };
    assert_eq!(skipped.path, link);
    assert!(
        skipped.to_string().contains(&format!("cannot read {}: No such file", link.display())),
        "{skipped}"
    );
}

/// CP9: a set that is malformed as a whole is an error, not an absence.
#[test]
fn only_broken_graphs() {
    let release = Release::new(encoder(), decoder());
    release.write("encoder.onnx", b"");
    let Err(Error::NoPair { graphs, .. }) = release.open() else { panic!("no error") };
    let rules: Vec<_> =
        graphs.iter().map(|g| (g.path.file_name().unwrap().to_str().unwrap(), &g.rule)).collect();
    assert!(
        matches!(rules.as_slice(), [("decoder.onnx", Rule::Alone), ("encoder.onnx", Rule::Unreadable(_))]),
        "{rules:?}"
    );
}

/// A sidecar that lies outside of the folder makes its graph unusable, though the file exists.
#[test]
fn sidecars_are_held_to_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.data"), [0; 16]).unwrap();
    let sidecar = Weight::external(Float32, [4], &[("location", "../w.data")]);
    let release = Release { dir: tempfile::tempdir_in(folder.path()).unwrap() };
    let encoder = graph(ENCODER.0, ENCODER.1).weight("w", sidecar).build();
    release.write("encoder.onnx", encoder.to_bytes().unwrap());
    release.write("decoder.onnx", decoder().build().to_bytes().unwrap());
    let text = said(release.dir.path());
    assert!(text.contains("at `../w.data`: the location leaves the model's folder"), "{text}");
}

#[test]
fn a_composite_describes_itself() {
    let composite = Release::new(encoder(), decoder()).open().unwrap();
    assert!(composite.skipped().is_empty());
    assert_eq!(
        composite.to_string(),
        "\
image encoder   encoder.onnx, fp32
  in  image        float32[1,3,64,64]  the picture
      coordinates  float32[1,2,2]      x and y of 2 points, 0 to 1 over the picture
      labels       float32[1,2]        1 on the object, 0 beside it, -1 no point
  out embedding    float32[1,8,4,4]    per prompt
      sparse       float32[1,3,8]      per prompt
mask decoder    decoder.onnx, fp32
  in  embedding    float32[1,8,4,4]
      sparse       float32[1,3,8]
  out mask         float32[1,1,16,16]  logits of the masks
      quality      float32[1,1]        a score for each
picture         stretched to 64x64, RGB, [0,1], float32"
    );
}
