//! The whole path from an archive: unpacked and verified, reused, repaired after tampering, refused when it lies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use image::RgbImage;
use release_assets::{Cache, Outcome};
use sam_runtime::{Click, Error, ModelOrigin, Segmenter, engine::EngineChoice};

fn open(path: &std::path::Path, cache: &std::path::Path) -> sam_runtime::Result<Segmenter> {
    Segmenter::builder().engine(EngineChoice::Rten).cache(Cache::new(cache)).open(path)
}

fn outcome(segmenter: &Segmenter) -> &Outcome {
    match segmenter.origin() {
        ModelOrigin::Archive { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_archive_and_its_release_folder_give_the_same_masks_as_the_folder_of_graphs() {
    let (cache, release) = (tempfile::tempdir().unwrap(), common::fixtures().join("tiny-sam/release"));
    let image = RgbImage::from_fn(120, 80, |x, y| image::Rgb([(x * 2) as u8, (y * 3) as u8, 90]));
    let answer = |segmenter: &Segmenter| {
        let embeddings = segmenter.encode(&image).unwrap();
        segmenter.segment(&embeddings, [Click::positive(60.0, 30.0)]).unwrap()
    };
    let want = answer(&open(&common::tiny_sam(), cache.path()).unwrap());
    let from_zip = open(&release.join("tiny-sam-onnx-float.zip"), cache.path()).unwrap();
    assert_eq!(outcome(&from_zip), &Outcome::Extracted);
    assert_eq!(answer(&from_zip), want);
    assert_eq!(answer(&open(&release, cache.path()).unwrap()), want);
    assert_eq!(outcome(&open(&release, cache.path()).unwrap()), &Outcome::Reused);
}

#[test]
fn a_tampered_extraction_is_repaired_before_it_is_used() {
    let (cache, release) = (tempfile::tempdir().unwrap(), common::fixtures().join("tiny-sam/release"));
    let archive = release.join("tiny-sam-onnx-float.zip");
    let first = open(&archive, cache.path()).unwrap();
    let root = first.origin().root().to_owned();
    let weights = root.join("tiny-sam-onnx-float/TinySamDecoder.data");
    let mut bytes = std::fs::read(&weights).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&weights, &bytes).unwrap();
    let again = open(&archive, cache.path()).unwrap();
    assert!(matches!(outcome(&again), Outcome::Repaired { .. }), "{:?}", outcome(&again));
    bytes[100] ^= 1;
    assert_eq!(std::fs::read(root.join("tiny-sam-onnx-float/TinySamDecoder.data")).unwrap(), bytes);
}

#[test]
fn a_truncated_archive_is_an_error_of_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(common::fixtures().join("tiny-sam/release/tiny-sam-onnx-float.zip")).unwrap();
    let archive = folder.path().join("cut.zip");
    std::fs::write(&archive, &whole[..whole.len() / 2]).unwrap();
    let error = open(&archive, &folder.path().join("cache")).unwrap_err();
    assert!(matches!(error, Error::Release(_)), "{error:?}");
    assert!(sam_runtime::error_chain(&error).contains("cut.zip"), "{}", sam_runtime::error_chain(&error));
}

#[test]
fn a_path_without_a_model_is_an_error_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nothing");
    assert!(matches!(open(&missing, folder.path()), Err(Error::NoModel { path }) if path == missing));
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    let error = sam_runtime::error_chain(&open(folder.path(), folder.path()).unwrap_err());
    assert!(error.contains("holds no ONNX graph, only notes.txt"), "{error}");
}
