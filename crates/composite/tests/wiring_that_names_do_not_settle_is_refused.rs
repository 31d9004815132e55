//! X15 and the releases since 0.58.0: an unused output that fits a decoder input as well as the one of its name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{DECODER, ENCODER, graph, join, wires};
use composite::{Error, Result};

fn with_output(output: &str) -> Result<()> {
    join(graph(ENCODER.0, &format!("{} {output}", ENCODER.1)), graph(DECODER.0, DECODER.1)).map(drop)
}

#[test]
fn an_unused_twin() {
    let error = with_output("pix_feat float32[1,8,4,4]").unwrap_err();
    assert!(matches!(error, Error::AmbiguousWiring { .. }));
    assert_eq!(
        error.to_string(),
        "the decoder input `embedding` could be fed from the output of that name of encoder.onnx, or from its unused \
         output `pix_feat`, whose type and shape fit as well: equal names do not settle it, and no contract rule does; \
         name the output (Wiring::wire)"
    );
}

/// Sizes that the graph leaves open may turn out to be the same when it is run.
#[test]
fn an_unused_output_of_open_sizes() {
    for output in ["pix_feat float32[1,8,height,width]", "pix_feat float32[1,?,4,4]"] {
        assert!(matches!(with_output(output), Err(Error::AmbiguousWiring { .. })), "{output}");
    }
    with_output("pix_feat float32[1,9,height,width]").unwrap();
}

#[test]
fn an_unused_output_of_another_kind() {
    for output in ["pix_feat float16[1,8,4,4]", "pix_feat float32[1,8,4,5]", "pix_feat float32[1,8,4]"] {
        with_output(output).unwrap();
    }
}

/// Two outputs of one shape that are both used are told apart by their names.
#[test]
fn used_twins() {
    let twin = " position float32[1,8,4,4]";
    let encoder = graph(ENCODER.0, &format!("{}{twin}", ENCODER.1));
    let decoder = graph(&format!("{}{twin}", DECODER.0), DECODER.1);
    assert_eq!(wires(&join(encoder, decoder).unwrap()), ["embedding", "position", "sparse"]);
}
