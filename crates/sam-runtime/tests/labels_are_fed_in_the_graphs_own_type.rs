//! Case P4: labels are float32, int32 or int64, whichever the graph has, and mean the same in each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{Decoder, Encoder, engines, red_rectangle, write_model_with_labels};
use onnx_graph::ElementType::{Float32, Int32, Int64, Uint8};
use sam_runtime::{Click, Segmenter, error_chain};

#[test]
fn each_type_says_positive_and_negative() {
    for engine in engines() {
        for label_type in [Float32, Int32, Int64] {
            let folder = tempfile::tempdir().unwrap();
            write_model_with_labels(folder.path(), Encoder::Faithful, Decoder::Red, 2, label_type);
            let segmenter = Segmenter::builder().engine(engine).open(folder.path()).unwrap();
            let embeddings = segmenter.encode(&red_rectangle(64, 64, [8, 8, 16, 16])).unwrap();
            // This decoder's score is the first click's label.
            let score = |clicks: &[Click]| segmenter.segment(&embeddings, clicks).unwrap().score;
            let (positive, negative) = (Click::positive(10.0, 10.0), Click::negative(40.0, 40.0));
            assert_eq!(score(&[positive]), 1.0, "{engine:?} {label_type}");
            assert_eq!(score(&[negative, positive]), 0.0, "{engine:?} {label_type}");
        }
    }
}

#[test]
fn a_type_that_cannot_be_fed_is_refused_at_opening() {
    let folder = tempfile::tempdir().unwrap();
    write_model_with_labels(folder.path(), Encoder::Faithful, Decoder::Red, 2, Uint8);
    let error = Segmenter::open(folder.path()).unwrap_err();
    let said = error_chain(&error);
    assert!(
        said.contains("labels uint8[1,2]") && said.contains("float32, float16, int32 or int64"),
        "{said}"
    );
}
