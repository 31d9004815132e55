//! What is computed in half precision is, node by node and tensor by tensor, what ONNX Runtime's own converter makes of it;
//! where that makes no valid model, ours is one (the goldens are made by `fixtures/fp16/golden.py`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "common/decoded.rs"]
mod decoded;

use std::path::{Path, PathBuf};

use onnx_graph::{
    Attribute,
    ElementType::{Float32, Int32},
    Error, Fp16Options, GraphBuilder, Model, Types, Weights,
};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn goldens() -> Vec<Value> {
    let text = std::fs::read_to_string(fixtures().join("fp16/goldens.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn names<'v>(case: &'v Value, key: &str) -> Option<Vec<&'v str>> {
    Some(case.get(key)?.as_array()?.iter().map(|n| n.as_str().unwrap()).collect())
}

fn convert(case: &Value) -> Model {
    let file = case["model"].as_str().unwrap();
    let folder = if file.starts_with("Tiny") { "tiny-sam/tiny-sam-onnx-float" } else { "fp16" };
    let folder = fixtures().join(folder);
    let mut options = Fp16Options::compute().keep_io(case["keep_io"].as_bool().unwrap());
    if let Some(operators) = names(case, "operators") {
        options = options.blocked_operators(operators);
    }
    if let Some(nodes) = names(case, "nodes") {
        options = options.blocked_nodes(nodes);
    }
    let model = Model::read(folder.join(file)).unwrap();
    model.to_fp16(&Weights::in_folder(folder), &options).unwrap().0
}

#[test]
fn lines_are_equal() {
    let mut compared = 0;
    for case in goldens().iter().filter(|case| case.get("refused").is_none()) {
        let title = format!("{}, keep_io {}", case["name"], case["keep_io"]);
        let ours = decoded::lines(&convert(case));
        if let Some(theirs) = names(case, "lines") {
            let missing: Vec<_> = theirs.iter().filter(|line| !ours.iter().any(|o| o == *line)).collect();
            let more: Vec<_> = ours.iter().filter(|line| !theirs.contains(&line.as_str())).collect();
            assert!(missing.is_empty() && more.is_empty(), "{title}\ntheirs: {missing:#?}\nours: {more:#?}");
            assert_eq!(ours.len(), theirs.len(), "{title}");
        } else {
            let digest = decoded::sha256(ours.join("\n").as_bytes());
            assert_eq!(digest, case["sha256"].as_str().unwrap(), "{title}");
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared} goldens");
}

#[test]
fn nodes_stand_behind_what_they_need() {
    for case in goldens() {
        let model = decoded::decoded(&convert(&case));
        let disorder = decoded::disorder(&model.graph, &[]);
        assert!(disorder.is_empty(), "{}, keep_io {}: {disorder:#?}", case["name"], case["keep_io"]);
    }
}

/// Every record of a type is what the operators' rules make of the values.
#[test]
fn recorded_types_hold() {
    for case in goldens() {
        let half = convert(&case);
        let types = Types::infer(&half, &Weights::inline()).unwrap();
        let wrong = types.contradictions();
        assert!(wrong.is_empty(), "{}, keep_io {}: {wrong:#?}", case["name"], case["keep_io"]);
        let half = decoded::decoded(&half);
        for info in &half.graph.value_info {
            let name = decoded::text(&info.name);
            if let Some(weight) = decoded::initializer(&half, name) {
                assert_eq!(decoded::elem_type(info), weight.data_type.unwrap(), "{}: {name}", case["name"]);
            }
        }
    }
}

/// Where the converter's result is refused (`fixtures/fp16/golden.py` says by whom), these lines stand in ours. All of them were
/// loaded by ONNX Runtime 1.32 and passed by ONNX's checker.
#[test]
fn models_that_the_converter_breaks() {
    let expected: [(&str, bool, &[&str]); 17] = [
        // Scalar attributes are half precision's too.
        ("scalar_constants", true, &["Constant k:  -> k value=FLOAT16[] 5980a792ab44dad0"]),
        ("scalar_constants", false, &["Constant l:  -> l value=FLOAT16[4] 155f9b845892564d"]),
        // A type that is meant without being named.
        ("windows", true, &["HannWindow h: n -> h output_datatype=10"]),
        ("windows", false, &["HannWindow h: n -> h output_datatype=10"]),
        // The fence stands in the graph that gives the value.
        (
            "if_blocked_inside",
            true,
            &[
                "Cast r_cast_to_fp32_node: r -> r_cast_to_fp32 to=1",
                "if.else_branch/Max c: graph_input_cast_0_cast_to_fp32,r_cast_to_fp32 -> else_cast_to_fp16",
                "if.else_branch/Cast else_cast_to_fp16_node: else_cast_to_fp16 -> else to=10",
                "if.then_branch/Cast a_cast_to_fp32_node: a -> a_cast_to_fp32 to=1",
                "if.then_branch/Min b: a_cast_to_fp32,own -> then_cast_to_fp16",
            ],
        ),
        (
            "if_blocked_inside",
            false,
            &[
                "Cast x_cast_to_fp32_node: x -> x_cast_to_fp32 to=1",
                "if.then_branch/Max a: x_cast_to_fp32,w -> a_cast_to_fp16",
            ],
        ),
        (
            "loop_blocked_inside",
            true,
            &[
                "Cast w_cast_to_fp32_node: w -> w_cast_to_fp32 to=1",
                "loop.body/Cast so_cast_to_fp32_node: so -> so_cast_to_fp32 to=1",
                "loop.body/Max scan: so_cast_to_fp32,w_cast_to_fp32 -> scan_cast_to_fp16",
            ],
        ),
        ("loop_blocked_inside", false, &["loop.body/input s FLOAT16", "loop.body/output scan FLOAT16"]),
        // A function is left alone, so its calls are fenced.
        ("function", true, &["Shift f: graph_input_cast_0_cast_to_fp32 -> graph_output_cast_0_cast_to_fp16"]),
        ("function", false, &["Shift f: x_cast_to_fp32 -> y_cast_to_fp16"]),
        // No half precision before opset 19.
        ("quantized", true, &["QuantizeLinear a: graph_input_cast_0_cast_to_fp32,s,z -> q"]),
        ("quantized", false, &["DequantizeLinear b: q,s,z -> y_cast_to_fp16"]),
        // The record of a weight that stays is left as it is: no `Cast` from float32 to float32.
        ("resize_recorded", true, &["Resize r: graph_input_cast_0,,s -> graph_output_cast_0 mode=nearest"]),
        ("resize_recorded", false, &["Resize r: x,,s -> y mode=nearest"]),
        // A port that no node gives keeps its type where ports do.
        (
            "weight_given_out",
            true,
            &[
                "output w FLOAT",
                "Cast w_cast_to_fp16_node: w -> w_cast_to_fp16 to=10",
                "Mul mul: graph_input_cast_0,w_cast_to_fp16 -> graph_output_cast_1",
            ],
        ),
        (
            "input_given_out",
            true,
            &["output x FLOAT", "Relu relu: graph_input_cast_0 -> graph_output_cast_1"],
        ),
        // What a fenced node has in it reads what it captures in single precision.
        (
            "if_blocked",
            false,
            &[
                "If if: c -> y_cast_to_fp16 else_branch=graph then_branch=graph",
                "if.then_branch/Add a: x_cast_to_fp32,w -> a",
                "if.then_branch/output then FLOAT",
            ],
        ),
    ];
    let goldens = goldens();
    let refused = goldens.iter().filter(|case| case.get("refused").is_some());
    let mut seen = 0;
    for case in refused {
        let (name, keep_io) = (case["name"].as_str().unwrap(), case["keep_io"].as_bool().unwrap());
        let (.., wanted) = expected.iter().find(|(n, keep, _)| (*n, *keep) == (name, keep_io)).unwrap();
        let ours = decoded::lines(&convert(case));
        for line in *wanted {
            assert!(ours.iter().any(|o| o == line), "{name}, keep_io {keep_io}: {line}\n{ours:#?}");
        }
        seen += 1;
    }
    assert_eq!(seen, expected.len());
}

#[test]
fn a_type_that_nobody_knows_is_named() {
    let model = GraphBuilder::new("test")
        .input("x", Float32, [4.into()])
        .node("OfSomebody", ["x"], ["a"])
        .node("Max", ["x", "a"], ["y"])
        .output("y", Float32, [4.into()])
        .build();
    let found = model.to_fp16(&Weights::inline(), &Fp16Options::compute());
    let Err(Error::UntypedValue { value, op_type, .. }) = found else { panic!("{found:?}") };
    assert_eq!((value.as_str(), op_type.as_str()), ("a", "Max"));
}

/// The converter writes a model that ONNX Runtime refuses: a sequence of floats is given halves.
#[test]
fn sequences_are_refused_by_name() {
    let message = |field: u8, inside: &[u8]| [&[field << 3 | 2, inside.len() as u8], inside].concat();
    let floats = message(1, &[1 << 3, 1]);
    // Graph, recorded value, its type: a sequence, and an optional sequence.
    for (field, element) in [(4, floats.clone()), (9, message(4, &message(1, &floats)))] {
        let record = [message(1, b"many"), message(2, &message(field, &message(1, &element)))].concat();
        let model = GraphBuilder::new("test").input("x", Float32, [4.into()]).node("Relu", ["x"], ["y"]);
        let mut bytes = model.output("y", Float32, [4.into()]).build().to_bytes().unwrap();
        // A message that comes twice is one.
        bytes.extend(message(7, &message(13, &record)));
        let model = Model::from_bytes(bytes).unwrap();
        let found = model.to_fp16(&Weights::inline(), &Fp16Options::compute());
        assert!(matches!(&found, Err(Error::NoHalf { value }) if value == "many"), "{found:?}");
        // Stored in halves it computes as before.
        model.to_fp16(&Weights::inline(), &Fp16Options::storage()).unwrap();
    }
}

/// Bits are bits: what takes them apart keeps its single precision.
#[test]
fn bits_are_those_of_single_precision() {
    let model = GraphBuilder::new("test")
        .opset(26)
        .input("x", Float32, [4.into()])
        .node("Relu", ["x"], ["a"])
        .node_with("BitCast", ["a"], ["y"], [("to", Attribute::Int(i64::from(Int32.to_onnx())))])
        .output("y", Int32, [4.into()])
        .build();
    let (half, _) = model.to_fp16(&Weights::inline(), &Fp16Options::compute()).unwrap();
    let lines = decoded::lines(&half);
    assert!(
        lines.iter().any(|line| line.starts_with("BitCast") && line.contains("a_cast_to_fp32")),
        "{lines:#?}"
    );
}

#[test]
fn nodes_out_of_order_are_put_in_order() {
    let model = GraphBuilder::new("test")
        .input("x", Float32, [4.into()])
        .node("Max", ["a", "x"], ["y"])
        .node("Relu", ["x"], ["a"])
        .output("y", Float32, [4.into()])
        .build();
    let (half, report) = model.to_fp16(&Weights::inline(), &Fp16Options::compute()).unwrap();
    assert_eq!(decoded::disorder(&decoded::decoded(&half).graph, &[]), [""; 0]);
    assert_eq!((report.nodes_before, report.nodes_after, report.casts_added), (2, 7, 5));
    let circle = GraphBuilder::new("test")
        .node("Relu", ["b"], ["a"])
        .node("Relu", ["a"], ["b"])
        .output("b", Float32, [4.into()])
        .build();
    let found = circle.to_fp16(&Weights::inline(), &Fp16Options::compute());
    assert!(matches!(found, Err(Error::Cycle { .. })), "{found:?}");
}

/// Reports on the full-size graphs in the folder that `ONNX_GRAPH_FULL_SIZE` names: one more `Cast` for each float port.
#[test]
#[ignore = "needs full-size graphs"]
fn full_size_graphs_get_a_cast_for_each_port() {
    let folder = PathBuf::from(std::env::var("ONNX_GRAPH_FULL_SIZE").unwrap());
    for name in ["encoder.onnx", "decoder.onnx"] {
        let model = Model::read(folder.join(name)).unwrap();
        let ports = model.inputs().into_iter().chain(model.outputs());
        let ports = ports.filter(|p| p.element_type == Float32).count();
        let weights = Weights::in_folder(&folder);
        let (half, report) = model.to_fp16(&weights, &Fp16Options::compute()).unwrap();
        println!("{name}: {} nodes, {} after, {report:?}", report.nodes_before, report.nodes_after);
        assert_eq!((report.casts_added, report.nodes_after), (ports, report.nodes_before + ports));
        assert!(report.bytes_after * 100 <= report.bytes_before * 51);
        assert!(decoded::disorder(&decoded::decoded(&half).graph, &[]).is_empty());
        let (_, report) = model.to_fp16(&weights, &Fp16Options::storage()).unwrap();
        assert!(report.bytes_after * 100 <= report.bytes_before * 51, "{report:?}");
    }
}
