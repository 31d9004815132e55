//! P4, P8, P18, EV7: which two inputs take the points, in which type, and how many they hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{DECODER, ENCODER, decoder, graph, join, rule_for};
use composite::{CoordinateSpace, Rule};
use onnx_graph::ElementType::{Float32, Int32, Int64};

fn with_points(points: &str) -> onnx_graph::GraphBuilder {
    graph(&format!("{points} image float32[1,3,64,64]"), ENCODER.1)
}

#[test]
fn label_types() {
    for (name, element_type) in [("float32", Float32), ("int32", Int32), ("int64", Int64)] {
        let prompt = join(with_points(&format!("l {name}[1,2] c float32[1,2,2]")), decoder()).unwrap().prompt;
        assert_eq!((prompt.coordinates.as_str(), prompt.labels.as_str()), ("c", "l"));
        assert_eq!((prompt.label_type, prompt.coordinate_type), (element_type, Float32));
        assert_eq!(prompt.space, CoordinateSpace::Unit);
    }
}

#[test]
fn slots_and_shapes() {
    for (points, slots) in [
        ("c float32[1,1,2] l float32[1,1]", 1),
        ("c float32[1,6,2] l float32[1,6]", 6),
        ("c float32[1,1,5,2] l int64[1,1,5]", 5),
    ] {
        let prompt = join(with_points(points), decoder()).unwrap().prompt;
        assert_eq!(prompt.slots, slots, "{points}");
        assert_eq!(prompt.coordinate_shape[..prompt.coordinate_shape.len() - 1], prompt.label_shape);
    }
}

/// Whatever else the encoder takes would have to be made up.
#[test]
fn further_inputs_of_the_encoder_are_refused() {
    for further in ["gain float32[1]", "box float32[1,4]", "mask float32[1,1,16,16]", "flag bool[1]"] {
        let points = format!("c float32[1,6,2] l float32[1,6] {further}");
        let rule = rule_for(join(with_points(&points), decoder()), "decoder.onnx");
        // A second input of rank 4 leaves open which one is the image.
        let input = further.split(' ').next().unwrap();
        let want = Rule::EncoderInput { encoder: "encoder.onnx".into(), input: input.into() };
        assert_eq!(rule, if input == "mask" { Rule::Alone } else { want }, "{further}");
    }
}

#[test]
fn what_is_no_single_prompt() {
    for points in [
        "c float32[1,6,2]",
        "l float32[1,6]",
        "c float32[1,6,2] l bool[1,6]",
        "c int64[1,6,2] l float32[1,6]",
        "c float32[1,6,2] l float32[1,5]",
        "c float32[1,6,2] l float32[1,1,6]",
        "c float32[1,6,3] l float32[1,6]",
        "c float32[1,6,2] d float32[1,6,2] l float32[1,6]",
        "c float32[1,6,2] l float32[1,6] m float32[1,6]",
        "c float32[6,2] l float32[6]",
    ] {
        let rule = rule_for(join(with_points(points), decoder()), "decoder.onnx");
        assert_eq!(rule, Rule::NoPrompt("encoder.onnx".into()), "{points}");
    }
}

/// A prompt whose slots are left open, or that speaks of several objects, is one, but none that can be fed yet.
#[test]
fn what_is_a_prompt_without_fixed_slots() {
    for points in [
        "c float32[1,n,2] l float32[1,n]",
        "c float32[b,1,n,2] l int64[b,1,n]",
        "c float32[1,?,2] l float32[1,m]",
        "c float32[1,0,2] l float32[1,0]",
        "c float32[4,6,2] l float32[4,6]",
    ] {
        let rule = rule_for(join(with_points(points), decoder()), "decoder.onnx");
        assert_eq!(rule, Rule::OpenSlots("encoder.onnx".into()), "{points}");
    }
    // The same in the decoder, as onnx-community's exports have it, is told apart from having no prompt at all.
    let points = "input_points float32[b,1,n,2] input_labels int64[b,1,n]";
    let encoder = graph("image float32[1,3,64,64]", ENCODER.1);
    let rule = rule_for(join(encoder, graph(&format!("{} {points}", DECODER.0), DECODER.1)), "decoder.onnx");
    assert_eq!(rule, Rule::PromptInDecoder);
}

/// A type that no publication has could be opened and never be clicked.
#[test]
fn types_that_cannot_be_fed_are_refused() {
    for (points, wrong) in [
        ("c float64[1,2,2] l float32[1,2]", "c float64[1,2,2]"),
        ("c float32[1,2,2] l uint8[1,2]", "l uint8[1,2]"),
        ("c float32[1,2,2] l float64[1,2]", "l float64[1,2]"),
    ] {
        let rule = rule_for(join(with_points(points), decoder()), "decoder.onnx");
        assert!(matches!(&rule, Rule::PromptType { port, .. } if port.to_string() == wrong), "{rule}");
    }
}
