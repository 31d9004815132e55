//! Types and shapes: what file and graph say together, whichever says more; what cannot be told is unknown, and a file that
//! contradicts its graph is found out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bytes, field};
use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Bool, Float16, Float32, Int64, Undefined},
    Error, GraphBuilder, Model, Types, Weight, Weights, write_shape,
};

fn infer(model: &Model) -> Types {
    Types::infer(model, &Weights::inline()).unwrap()
}

/// Element type and dims in one word, such as `float32[1,n,?]`.
fn told(types: &Types, value: &str) -> String {
    let found = types.get(value).unwrap_or_else(|| panic!("{value} is not there"));
    let mut text = found.element_type.to_string();
    write_shape(&mut text, &found.shape).unwrap();
    text
}

fn dims<const N: usize>(dims: [&str; N]) -> [Dim; N] {
    dims.map(|dim| dim.parse().map_or_else(|_| dim.into(), Dim::Static))
}

fn graph() -> GraphBuilder {
    GraphBuilder::new("g")
}

#[test]
fn symbols_are_kept_as_far_as_they_go() {
    let model = graph()
        .input("x", Float32, dims(["n", "3", "h", "?"]))
        .input("y", Float32, dims(["n", "1", "w", "1"]))
        .node("Add", ["x", "y"], ["sum"])
        .node("Relu", ["x"], ["same"])
        .node_with("Transpose", ["x"], ["turned"], [("perm", Attribute::Ints(vec![2, 0, 3, 1]))])
        .node_with("Concat", ["x", "x"], ["twice"], [("axis", Attribute::Int(2))])
        .node_with("Concat", ["x", "nothing"], ["once"], [("axis", Attribute::Int(2))])
        .weight("nothing", Weight::float32([1, 3, 0, 1], &[]))
        .weight("flat", Weight::int64([3], &[0, -1, 1]))
        .node("Reshape", ["y", "flat"], ["column"])
        .node("Shape", ["y"], ["sizes"])
        .node("ConstantOfShape", ["sizes"], ["zeros"])
        .node_with("Flatten", ["y"], ["rows"], [("axis", Attribute::Int(2))])
        .build();
    let types = infer(&model);
    for (value, expected) in [
        ("sum", "float32[n,3,?,?]"),
        ("same", "float32[n,3,h,?]"),
        ("turned", "float32[h,n,?,3]"),
        ("twice", "float32[n,3,?,?]"),
        // Parts of a concatenation have the same size along the other axes, and one of them is known.
        ("once", "float32[1,3,h,1]"),
        ("column", "float32[n,w,1]"),
        ("sizes", "int64[4]"),
        ("zeros", "float32[n,1,w,1]"),
        ("rows", "float32[n,w]"),
    ] {
        assert_eq!(told(&types, value), expected, "{value}");
    }
    assert_eq!(types.contradictions(), []);
    assert_eq!(types.sizes("sum"), None);
}

#[test]
fn broadcasting_of_every_kind_of_dim() {
    for (a, b, both) in [
        ("1", "1", "1"),
        ("1", "5", "5"),
        ("5", "5", "5"),
        ("0", "1", "0"),
        ("0", "0", "0"),
        ("0", "s", "0"),
        ("0", "?", "0"),
        ("5", "s", "5"),
        ("5", "?", "5"),
        ("1", "s", "s"),
        ("1", "?", "?"),
        ("s", "s", "s"),
        ("s", "t", "?"),
        ("s", "?", "?"),
        ("?", "?", "?"),
        // No such result exists: the graph cannot run.
        ("2", "3", "?"),
    ] {
        let model = graph().input("a", Float32, dims([a])).input("b", Float32, dims([b]));
        let model = model.node("Add", ["a", "b"], ["c"]).node("Mul", ["b", "a"], ["d"]).build();
        let types = infer(&model);
        assert_eq!(told(&types, "c"), format!("float32[{both}]"), "{a} with {b}");
        assert_eq!(told(&types, "d"), format!("float32[{both}]"), "{b} with {a}");
    }
}

#[test]
fn what_says_more_is_taken() {
    let record = |dims: [&str; 2], element| {
        graph()
            .input("x", Float32, [2.into(), "n".into()])
            .node("Relu", ["x"], ["y"])
            .value("y", element, dims.map(|dim| dim.parse().map_or_else(|_| dim.into(), Dim::Static)))
            .build()
    };
    for (recorded, element, expected, contradicts) in [
        (["2", "n"], Float32, "float32[2,n]", false),
        (["2", "8"], Float32, "float32[2,8]", false),
        (["?", "?"], Undefined, "float32[2,n]", false),
        (["s", "t"], Float32, "float32[2,n]", false),
        (["3", "n"], Float32, "float32[2,n]", true),
        (["2", "n"], Float16, "float32[2,n]", true),
    ] {
        let types = infer(&record(recorded, element));
        assert_eq!(told(&types, "y"), expected, "{recorded:?}");
        let found = types.contradictions();
        assert_eq!(found.len(), usize::from(contradicts), "{recorded:?}: {found:?}");
        if let Some(found) = found.first() {
            assert_eq!((found.value.as_str(), found.recorded.element_type), ("y", element));
            assert_eq!(found.inferred.element_type, Float32);
        }
    }
    let rank = graph().input("x", Float32, dims(["2"])).node("Relu", ["x"], ["y"]);
    let types = infer(&rank.output("y", Float32, dims(["2", "1"])).build());
    assert_eq!((told(&types, "y").as_str(), types.contradictions().len()), ("float32[2]", 1));
}

/// As the exporter of the plain encoder does: features of three sizes, one symbol for the sides of all.
#[test]
fn one_symbol_for_several_sizes() {
    let conv = |stride: i64| [("strides", Attribute::Ints(vec![stride, stride]))];
    let side = || dims(["1", "8", "s", "s"]);
    let model = graph()
        .input("image", Float32, dims(["1", "3", "64", "64"]))
        .weight("w", Weight::float32([8, 3, 1, 1], &[0.0; 24]))
        .node_with("Conv", ["image", "w"], ["fine"], conv(4))
        .node_with("Conv", ["image", "w"], ["coarse"], conv(16))
        .node("Mystery", ["coarse"], ["unknown"])
        .output("fine", Float32, side())
        .output("coarse", Float32, side())
        .output("unknown", Float32, side())
        .build();
    let types = infer(&model);
    assert_eq!(told(&types, "fine"), "float32[1,8,16,16]");
    assert_eq!(told(&types, "coarse"), "float32[1,8,4,4]");
    // Only the file says something of it.
    assert_eq!(told(&types, "unknown"), "float32[1,8,s,s]");
    assert_eq!(types.contradictions(), []);
    let described: Vec<String> =
        model.describe(None).unwrap().outputs.iter().map(|output| output.port.to_string()).collect();
    assert_eq!(described, ["fine float32[1,8,16,16]", "coarse float32[1,8,4,4]", "unknown float32[1,8,s,s]"]);
}

#[test]
fn an_unknown_operator_gives_unknown_values() {
    let model = graph()
        .input("x", Float32, dims(["2"]))
        .node("Mystery", ["x"], ["y"])
        .node("Add", ["x", "y"], ["z"])
        .node("MatMul", ["x", "missing"], ["v"])
        .build();
    let types = infer(&model);
    for (value, expected) in [("y", "undefined[...]"), ("z", "float32[...]"), ("v", "float32[...]")] {
        assert_eq!(told(&types, value), expected, "{value}");
    }
    assert_eq!(types.get("missing"), None);
}

/// Operators whose attributes became inputs.
#[test]
fn each_operator_set_has_its_own_rules() {
    let ints = |ints: &[i64]| Attribute::Ints(ints.to_vec());
    let model = |opset, op: &str, input: bool, attribute: &'static str| {
        let base = graph().opset(opset).input("x", Float32, dims(["1", "4", "1"]));
        let base = base.weight("l", Weight::int64([1], &[0]));
        let inputs: &[&str] = if input { &["x", "l"] } else { &["x"] };
        let attributes = (!attribute.is_empty()).then(|| (attribute, ints(&[0])));
        base.node_with(op, inputs.iter().copied(), ["y"], attributes).build()
    };
    for (opset, op, input, attribute, expected) in [
        (11, "Squeeze", false, "axes", "float32[4,1]"),
        (13, "Squeeze", true, "", "float32[4,1]"),
        (13, "Squeeze", false, "", "float32[4]"),
        (11, "Unsqueeze", false, "axes", "float32[1,1,4,1]"),
        (13, "Unsqueeze", true, "", "float32[1,1,4,1]"),
        (11, "ReduceSum", false, "axes", "float32[1,4,1]"),
        (13, "ReduceSum", true, "", "float32[1,4,1]"),
        (17, "ReduceMean", false, "axes", "float32[1,4,1]"),
        (18, "ReduceMean", true, "", "float32[1,4,1]"),
    ] {
        assert_eq!(told(&infer(&model(opset, op, input, attribute)), "y"), expected, "{op} {opset}");
    }
}

#[test]
fn order_cycles_and_repetition() {
    let model = graph()
        .input("x", Float32, dims(["2", "3"]))
        .node("Relu", ["b"], ["c"])
        .node("Relu", ["x"], ["a"])
        .node("Transpose", ["a"], ["b"])
        .node("Add", ["x", "q"], ["p"])
        .node("Neg", ["p"], ["q"])
        .node("Neg", ["q"], ["behind"])
        .value("q", Float32, dims(["7"]))
        .build();
    let types = infer(&model);
    assert_eq!(told(&types, "c"), "float32[3,2]");
    // What stands on a cycle is never computed: only the file can tell.
    assert_eq!(told(&types, "q"), "float32[7]");
    assert_eq!(types.get("behind"), None);
    let sorted: Vec<&str> = types.iter().map(|(name, _)| name).collect();
    assert!(sorted.is_sorted(), "{sorted:?}");

    let twice = graph().input("x", Float32, dims(["1"])).node("Relu", ["x"], ["y"]).node("Neg", ["x"], ["y"]);
    let error = Types::infer(&twice.build(), &Weights::inline()).unwrap_err();
    assert!(matches!(&error, Error::DefinedTwice { name } if name == "y"), "{error:?}");
}

/// An initializer that is listed as an input can be fed: its values are no constants.
#[test]
fn defaults_may_change() {
    let target = || Weight::int64([2], &[3, 2]);
    let model = |listed: bool| {
        let graph = graph().input("x", Float32, dims(["2", "3"])).weight("s", target());
        let graph = if listed { graph.input("s", Int64, dims(["2"])) } else { graph };
        graph.node("Reshape", ["x", "s"], ["y"]).build()
    };
    assert_eq!(told(&infer(&model(false)), "y"), "float32[3,2]");
    assert_eq!(told(&infer(&model(true)), "y"), "float32[?,?]");
}

#[test]
fn values_of_sub_graphs() {
    let branch = |own: &str, op: &str| {
        GraphBuilder::new("b")
            .node(op, ["x"], [own])
            .node("Relu", [own], ["shared"])
            .node("Neg", ["outer"], ["shadow"])
            .untyped_output("shared")
    };
    let model = graph()
        .input("x", Float32, dims(["2", "n"]))
        .input("c", Bool, [])
        .node("Relu", ["x"], ["outer"])
        .node("Shape", ["x"], ["shadow"])
        .node_with(
            "If",
            ["c"],
            ["y"],
            [
                ("then_branch", Attribute::Graph(branch("left", "Relu"))),
                ("else_branch", Attribute::Graph(branch("right", "Transpose"))),
            ],
        )
        .build();
    let types = infer(&model);
    assert_eq!(told(&types, "left"), "float32[2,n]");
    assert_eq!(told(&types, "right"), "float32[n,2]");
    assert_eq!(told(&types, "y"), "float32[?,?]");
    // Both branches have it, with other shapes; the main graph has it, as something else.
    assert_eq!(types.get("shared"), None);
    assert_eq!(told(&types, "shadow"), "int64[2]");
}

#[test]
fn a_known_condition_takes_one_branch() {
    let branch = |op: &str| GraphBuilder::new("b").node(op, ["x"], ["r"]).untyped_output("r");
    for (condition, expected) in [(1, "float32[2,3]"), (0, "float32[3,2]")] {
        let model = graph()
            .input("x", Float32, dims(["2", "3"]))
            .weight("c", Weight::raw(Bool, [], vec![condition]))
            .node_with(
                "If",
                ["c"],
                ["y"],
                [
                    ("then_branch", Attribute::Graph(branch("Relu"))),
                    ("else_branch", Attribute::Graph(branch("Transpose"))),
                ],
            )
            .build();
        assert_eq!(told(&infer(&model), "y"), expected);
    }
}

/// A node with inputs, outputs, operator and encoded attributes.
fn node(inputs: &[&str], outputs: &[&str], op_type: &str, attributes: &[u8]) -> Vec<u8> {
    let names = |field, names: &[&str]| names.iter().flat_map(|name| bytes(field, name)).collect::<Vec<u8>>();
    [names(1, inputs), names(2, outputs), bytes(4, op_type), attributes.to_vec()].concat()
}

/// A function of one input `a` and one output `b`.
fn function(name: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let opset = bytes(9, [bytes(1, ""), common::number(2, 17)].concat());
    let nodes: Vec<u8> = nodes.iter().flat_map(|node| bytes(field::FUNCTION_NODE, node)).collect();
    let ports = [bytes(4, "a"), bytes(5, "b"), bytes(6, "axes")].concat();
    bytes(field::MODEL_FUNCTION, [bytes(1, name), ports, nodes, opset].concat())
}

fn with_functions(graph: GraphBuilder, functions: &[Vec<u8>]) -> Model {
    Model::from_bytes([graph.build().to_bytes().unwrap(), functions.concat()].concat()).unwrap()
}

#[test]
fn functions_are_gone_through_at_each_call() {
    // The attribute `perm` of the inner node is the caller's `axes`.
    let reference = [bytes(1, "perm"), bytes(21, "axes")].concat();
    let turn = node(&["a"], &["t"], "Transpose", &bytes(field::NODE_ATTRIBUTE, reference));
    let body = function("Turned", &[turn, node(&["t"], &["b"], "Relu", &[])]);
    let axes = |axes: &[i64]| [("axes", Attribute::Ints(axes.to_vec()))];
    let graph = graph()
        .input("x", Float32, dims(["2", "3", "4"]))
        .node_with("Turned", ["x"], ["y"], axes(&[2, 0, 1]))
        .node_with("Turned", ["y"], ["z"], axes(&[1, 0, 2]))
        .node("Turned", ["x"], ["reversed"]);
    let types = infer(&with_functions(graph, &[body]));
    for (value, expected) in [("y", "[4,2,3]"), ("z", "[2,4,3]"), ("reversed", "[4,3,2]")] {
        assert_eq!(told(&types, value), format!("float32{expected}"), "{value}");
    }
    assert_eq!(types.get("t"), None);
}

/// Thirty functions that call the next one twice would be a billion calls.
#[test]
fn functions_that_call_each_other() {
    let call = |i: usize, last: usize| {
        let next = if i == last { "Relu".to_owned() } else { format!("F{}", i + 1) };
        let nodes = [node(&["a"], &["m"], &next, &[]), node(&["m"], &["b"], &next, &[])];
        function(&format!("F{i}"), &nodes)
    };
    for (levels, expected) in [(3, "float32[2]"), (30, "undefined[...]"), (60, "undefined[...]")] {
        let graph = graph().input("x", Float32, dims(["2"])).node("F0", ["x"], ["y"]);
        let functions: Vec<Vec<u8>> = (0..=levels).map(|i| call(i, levels)).collect();
        assert_eq!(told(&infer(&with_functions(graph, &functions)), "y"), expected, "{levels}");
    }
    let itself = function("F", &[node(&["a"], &["m"], "F", &[]), node(&["m"], &["b"], "F", &[])]);
    let graph = graph().input("x", Float32, dims(["2"])).node("F", ["x"], ["y"]);
    assert_eq!(told(&infer(&with_functions(graph, &[itself])), "y"), "undefined[...]");
}

/// Sizes that no machine has, and shapes of them: unknown, and no memory taken.
#[test]
fn hostile_sizes() {
    let huge = i64::MAX as u64;
    let model = graph()
        .input("x", Float32, [Dim::Static(huge), Dim::Static(huge)])
        .weight("many", Weight::int64([2], &[i64::MAX, i64::MAX]))
        .weight("rank", Weight::int64([1], &[1 << 40]))
        .weight("flat", Weight::int64([1], &[-1]))
        .weight("zero", Weight::int64([], &[0]))
        .weight("one", Weight::int64([], &[1]))
        .weight("end", Weight::int64([], &[i64::MAX]))
        .node("ConstantOfShape", ["many"], ["zeros"])
        .node("ConstantOfShape", ["rank"], ["long"])
        .node("Reshape", ["x", "long"], ["rank_of_long"])
        .node("Reshape", ["x", "flat"], ["flat_x"])
        .node("Tile", ["x", "many"], ["tiled"])
        .node_with("Concat", ["x", "x"], ["double"], [("axis", Attribute::Int(0))])
        .node("Expand", ["long", "many"], ["stretched"])
        .node("Range", ["zero", "end", "one"], ["range"])
        .node("Mul", ["many", "many"], ["overflow"])
        .node("ConstantOfShape", ["overflow"], ["of_overflow"])
        .node_with("SpaceToDepth", ["x"], ["moved"], [("blocksize", Attribute::Int(i64::MAX))])
        .node_with(
            "MaxPool",
            ["zeros"],
            ["pooled"],
            [
                ("kernel_shape", Attribute::Ints(vec![i64::MAX])),
                ("dilations", Attribute::Ints(vec![i64::MAX])),
            ],
        )
        .build();
    let types = infer(&model);
    for (value, expected) in [
        ("zeros", format!("float32[{huge},{huge}]")),
        ("long", format!("float32[{}]", 1_u64 << 40)),
        ("rank_of_long", "float32[...]".to_owned()),
        ("flat_x", "float32[?]".to_owned()),
        ("tiled", "float32[?,?]".to_owned()),
        ("double", format!("float32[?,{huge}]")),
        ("range", format!("int64[{huge}]")),
        ("overflow", "int64[2]".to_owned()),
        ("of_overflow", "float32[?,?]".to_owned()),
        ("moved", "undefined[...]".to_owned()),
        ("pooled", format!("float32[{huge},{huge}]")),
    ] {
        assert_eq!(told(&types, value), expected, "{value}");
    }
    model.describe(None).unwrap();
}

/// Each node takes a dozen bytes of the file, and what it gives could take ten thousand.
#[test]
fn many_values_that_are_larger_than_their_nodes() {
    let rank: Vec<Dim> = (0..64).map(|i| Dim::Symbolic(format!("{i:0>200}"))).collect();
    let mut chain = graph().input("x", Float32, rank);
    let names: Vec<String> = (0..25_000).map(|i| i.to_string()).collect();
    for name in &names {
        chain = chain.node("Relu", ["x"], [name.as_str()]);
    }
    let types = infer(&chain.build());
    let shapes = names.iter().filter(|name| types.get(name).is_some_and(|t| t.shape.is_some())).count();
    // About as many as fit 256 MiB.
    assert!((10_000..24_000).contains(&shapes), "{shapes}");
    assert_eq!(types.get("24999").map(|t| t.element_type), Some(Float32));

    let long = "s".repeat(100_000);
    let model = graph().input("x", Float32, [long.as_str().into()]).node("Relu", ["x"], ["y"]).build();
    assert_eq!(told(&infer(&model), "y"), "float32[?]");
}

/// Weights in a sidecar that is not there: shapes that depend on them are unknown, the others known.
#[test]
fn without_sidecars() {
    let entries = [("location", "weights.data")];
    let model = graph()
        .input("x", Float32, dims(["2", "6"]))
        .weight("w", Weight::external(Float32, [6, 5], &entries))
        .weight("s", Weight::external(Int64, [3], &entries))
        .node("MatMul", ["x", "w"], ["y"])
        .node("Reshape", ["x", "s"], ["z"])
        .build();
    for weights in [Weights::inline(), Weights::in_folder("/nowhere/at/all")] {
        let types = Types::infer(&model, &weights).unwrap();
        assert_eq!(told(&types, "y"), "float32[2,5]");
        assert_eq!(told(&types, "z"), "float32[?,?,?]");
    }
    let folder = tempfile::tempdir().unwrap();
    let shape: Vec<u8> = [3_i64, 2, -1].iter().flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(folder.path().join("weights.data"), shape).unwrap();
    let types = Types::infer(&model, &Weights::in_folder(folder.path())).unwrap();
    assert_eq!(told(&types, "z"), "float32[3,2,2]");
}

/// Types come through conversions and quantised operators.
#[test]
fn element_types() {
    let to = |element: ElementType| [("to", Attribute::Int(element.to_onnx().into()))];
    let model = graph()
        .input("x", Float32, dims(["2"]))
        .weight("scale", Weight::float32([], &[1.0]))
        .weight("zero", Weight::raw(ElementType::Int8, [], vec![0]))
        .node_with("Cast", ["x"], ["half"], to(Float16))
        .node("Equal", ["x", "x"], ["same"])
        .node("QuantizeLinear", ["x", "scale", "zero"], ["q"])
        .node("DequantizeLinear", ["q", "scale", "zero"], ["back"])
        .build();
    let types = infer(&model);
    for (value, element) in [
        ("half", Float16),
        ("same", Bool),
        ("q", ElementType::Int8),
        ("back", Float32),
        ("zero", ElementType::Int8),
    ] {
        assert_eq!(types.get(value).map(|t| t.element_type), Some(element), "{value}");
    }
}
