//! X9: fixed, named and unknown sizes are three things, zero is a size, and a default is not an input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field, graph, number};
use onnx_graph::{
    Dim,
    ElementType::{self, Float16, Float32, Int64},
    GraphBuilder, Model, Port, PrecisionClass, Weight,
};

/// A `Dimension` message's bytes.
fn port_with_dim(dimension: &[u8]) -> Port {
    let shape = bytes(1, dimension);
    let tensor = [number(1, 1), bytes(2, shape)].concat();
    let info = [bytes(1, "x"), bytes(2, bytes(1, tensor))].concat();
    let model = bytes(field::MODEL_GRAPH, bytes(field::GRAPH_INPUT, info));
    Model::from_bytes(model).unwrap().inputs().remove(0)
}

#[test]
fn kinds_of_dims() {
    for (dimension, expected, printed) in [
        (number(1, 0), Dim::Static(0), "x float32[0]"),
        (number(1, 64), Dim::Static(64), "x float32[64]"),
        (number(1, u64::MAX), Dim::Unknown, "x float32[?]"), // -1
        (bytes(2, "height"), Dim::Symbolic("height".into()), "x float32[height]"),
        (bytes(2, ""), Dim::Unknown, "x float32[?]"),
        (vec![], Dim::Unknown, "x float32[?]"),
    ] {
        let port = port_with_dim(&dimension);
        assert_eq!(port.shape, Some(vec![expected]), "{dimension:?}");
        assert_eq!(port.to_string(), printed);
    }
}

#[test]
fn no_shape_is_not_rank_zero() {
    let scalar = graph(&[]).input("x", Float32, []).build().inputs().remove(0);
    assert_eq!((scalar.rank(), scalar.static_shape()), (Some(0), Some(vec![])));
    let untyped = graph(&[]).untyped_output("x").build().outputs().remove(0);
    assert_eq!((untyped.rank(), untyped.element_type), (None, ElementType::Undefined));
    assert_eq!(untyped.to_string(), "x undefined[...]");
}

#[test]
fn ports_keep_their_order_and_defaults_are_no_inputs() {
    let model = GraphBuilder::new("test")
        .input("z", Float32, [1.into(), "n".into(), "?".into()])
        .input("default", Float32, [1.into()])
        .input("a", Int64, [])
        .weight("default", Weight::float32([1], &[0.0]))
        .output("y", Float16, [0.into()])
        .output("b", Float32, [])
        .build();
    let print = |ports: Vec<Port>| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(print(model.inputs()), "z float32[1,n,?] a int64[]");
    assert_eq!(print(model.outputs()), "y float16[0] b float32[]");
}

#[test]
fn precision_is_that_of_most_weights() {
    use ElementType::{Int8, Uint8};
    for (types, precision, quantized) in [
        (&[][..], PrecisionClass::Fp32, false),
        (&[Int64], PrecisionClass::Fp32, false),
        (&[Float32, Float16], PrecisionClass::Fp32, false),
        (&[Float32, Float16, Float16], PrecisionClass::Fp16, false),
        (&[Float16, Int64, Int64], PrecisionClass::Fp16, false),
        (&[Float32, Int8], PrecisionClass::Fp32, true),
        (&[Float16, Uint8], PrecisionClass::Fp16, true),
    ] {
        let weights = types.iter().enumerate().fold(graph(&[]), |g, (i, &element_type)| {
            g.weight(&format!("w{i}"), Weight::raw(element_type, [0], vec![]))
        });
        let model = weights.build();
        assert_eq!((model.precision(), model.is_quantized()), (precision, quantized), "{types:?}");
    }
}
