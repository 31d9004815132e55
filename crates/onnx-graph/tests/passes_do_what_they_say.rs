//! Each pass on the pattern that it is for, and on the ones beside it that it has to leave alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/run.rs"]
mod run;

use onnx_graph::{
    Attribute::{self, Float, Int, Ints, Tensor},
    Dim, ElementType,
    ElementType::Float32,
    Error, GraphBuilder, Model, Pass, PassSet, Severity, Weight, Weights,
};
use run::{difference, values};

fn dims<const N: usize>(sizes: [u64; N]) -> [Dim; N] {
    sizes.map(Dim::Static)
}

fn weight<const N: usize>(name: &str, sizes: [u64; N]) -> Weight {
    Weight::float32(sizes, &values(name, sizes.iter().product::<u64>() as usize))
}

fn perm(axes: &[i64]) -> [(&'static str, Attribute); 1] {
    [("perm", Ints(axes.to_vec()))]
}

/// rten asks for them.
fn strides() -> [(&'static str, Attribute); 3] {
    [("strides", Ints(vec![1, 1])), ("dilations", Ints(vec![1, 1])), ("pads", Ints(vec![0; 4]))]
}

/// The operators of the rewritten model, after the results were compared.
fn operators(model: &Model, passes: &[Pass], matched: usize) -> Vec<String> {
    let done = model.rewrite(passes, &Weights::inline()).unwrap();
    let found: usize = done.reports.iter().map(|report| report.matched).sum();
    assert_eq!(found, matched, "{:?}", done.reports);
    assert!(difference(model, &done.model) < 1e-5, "{passes:?}");
    assert_eq!(done.model.inputs(), model.inputs());
    assert_eq!(done.model.outputs(), model.outputs());
    done.model.nodes().iter().map(|node| node.op_type().to_owned()).collect()
}

#[test]
fn constants_become_initializers() {
    let constant = [("value", Tensor(weight("c", [2, 3])))];
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 3]))
        .node_with("Constant", [], ["c"], constant)
        .node_with("Constant", [], ["half"], [("value_float", Float(0.5))])
        .node("Add", ["x", "c"], ["sum"])
        .node("Mul", ["sum", "half"], ["y"])
        .output("y", Float32, dims([2, 3]))
        .build();
    assert_eq!(operators(&model, &[Pass::ConstantsToInitializers], 2), ["Add", "Mul"]);
}

#[test]
fn what_is_constant_is_computed() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 6]))
        .weight("a", weight("a", [2, 3]))
        .weight("b", weight("b", [3]))
        .weight("to", Weight::int64([2], &[-1, 3]))
        .node("Add", ["a", "b"], ["ab"])
        .node_with("Transpose", ["ab"], ["abt"], perm(&[1, 0]))
        .node("Shape", ["x"], ["shape"])
        .node("Reshape", ["x", "to"], ["rows"])
        .node("MatMul", ["rows", "abt"], ["y"])
        .node("Reshape", ["y", "shape_of_y"], ["z"])
        .weight("shape_of_y", Weight::int64([2], &[2, 4]))
        .output("z", Float32, dims([2, 4]))
        .build();
    // The shape is computed and read by nobody.
    let left = operators(&model, &[Pass::ConstantFolding, Pass::DeadCode], 3);
    assert_eq!(left, ["Reshape", "MatMul", "Reshape"]);
}

/// A constant that would grow is not worth its place, and neither exponentials nor random numbers are computed here.
#[test]
fn what_would_grow_or_round_otherwise_stays() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([1, 2048]))
        .weight("a", weight("a", [1, 1]))
        .weight("shape", Weight::int64([2], &[1, 2048]))
        .node("Expand", ["a", "shape"], ["wide"])
        .node("Exp", ["a"], ["e"])
        .node("Add", ["x", "wide"], ["sum"])
        .node("Mul", ["sum", "e"], ["y"])
        .output("y", Float32, dims([1, 2048]))
        .build();
    assert_eq!(operators(&model, &[Pass::ConstantFolding], 0).len(), 4);
}

/// The smallest integer has no opposite in its type: engines wrap around, and what stands behind is not computed in a wider one.
#[test]
fn integers_that_leave_their_type_stay() {
    for op in ["Neg", "Abs"] {
        for (element, bytes) in [
            (ElementType::Int8, vec![0x80]),
            (ElementType::Int16, vec![0, 0x80]),
            (ElementType::Int32, vec![0, 0, 0, 0x80]),
        ] {
            let model = GraphBuilder::new("test")
                .input("x", ElementType::Int64, dims([1]))
                .weight("least", Weight::raw(element, [1], bytes))
                .node(op, ["least"], ["a"])
                .node_with("Cast", ["a"], ["b"], [("to", Int(i64::from(ElementType::Int64.to_onnx())))])
                .node("Add", ["x", "b"], ["y"])
                .output("y", ElementType::Int64, dims([1]))
                .build();
            let rewritten = model.rewrite(&[Pass::ConstantFolding], &Weights::inline()).unwrap().model;
            let left: Vec<&str> = rewritten.nodes().iter().map(|node| node.op_type()).collect();
            assert!(left.contains(&"Cast"), "{op} of {element}: {left:?}");
        }
    }
}

#[test]
fn nodes_that_do_nothing_go() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 3]))
        .weight("one", Weight::float32([1], &[1.0]))
        .weight("none", Weight::float32([], &[0.0]))
        .weight("shape", Weight::int64([2], &[2, 3]))
        .node("Identity", ["x"], ["b"])
        .node_with("Cast", ["b"], ["c"], [("to", Int(1))])
        .node("Reshape", ["c", "shape"], ["d"])
        .node_with("Transpose", ["d"], ["e"], perm(&[0, 1]))
        .node("Mul", ["one", "e"], ["f"])
        .node("Sub", ["f", "none"], ["g"])
        .weight("pads", Weight::int64([4], &[0; 4]))
        .weight("starts", Weight::int64([2], &[0, 0]))
        .weight("ends", Weight::int64([2], &[9, 3]))
        .node("Pad", ["g", "pads"], ["padded"])
        .node("Slice", ["padded", "starts", "ends"], ["sliced"])
        .node("Relu", ["sliced"], ["h"])
        .node("Identity", ["h"], ["y"])
        .output("y", Float32, dims([2, 3]))
        .build();
    assert_eq!(operators(&model, &[Pass::Identities], 9), ["Relu"]);
}

/// A `Dropout` whose mask is read, or that may be training, does something.
#[test]
fn dropout_goes_where_it_drops_nothing() {
    let model = |inputs: &[&'static str], outputs: &[&'static str]| {
        GraphBuilder::new("g")
            .input("x", Float32, dims([2]))
            .weight("ratio", Weight::float32([], &[0.5]))
            .weight("training", Weight::raw(ElementType::Bool, [], vec![1]))
            .node("Dropout", inputs.iter().copied(), outputs.iter().copied())
            .node("Relu", ["dropped"], ["y"])
            .output("y", Float32, dims([2]))
            .output(outputs.last().unwrap(), Float32, dims([2]))
            .build()
    };
    let nodes =
        |model: Model| model.rewrite(&[Pass::Identities], &Weights::inline()).unwrap().model.node_count();
    let plain = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .node("Dropout", ["x"], ["dropped"])
        .node("Relu", ["dropped"], ["y"])
        .output("y", Float32, dims([2]))
        .build();
    assert_eq!(nodes(plain), 1);
    assert_eq!(nodes(model(&["x"], &["dropped", "mask"])), 2);
    assert_eq!(nodes(model(&["x", "ratio", "training"], &["dropped"])), 2);
}

/// One times a smaller tensor is not that tensor, adding zero is not nothing to minus zero, and what an output names
/// stays.
#[test]
fn nodes_that_do_something_stay() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([3]))
        .weight("one", Weight::float32([1, 1], &[1.0]))
        .weight("zero", Weight::float32([], &[0.0]))
        .node("Mul", ["x", "one"], ["a"])
        .node("Add", ["a", "zero"], ["b"])
        .node("Identity", ["x"], ["c"])
        .weight("minus", Weight::float32([], &[-0.0]))
        .node("Sub", ["x", "minus"], ["d"])
        .weight("last", Weight::int64([1], &[-1]))
        .weight("before", Weight::int64([1], &[-9]))
        .weight("first", Weight::int64([1], &[0]))
        .node("Slice", ["d", "last", "before", "first", "last"], ["e"])
        .weight("shift", Weight::int64([2], &[1, -1]))
        .node("Pad", ["e", "shift"], ["f"])
        .node("Neg", ["f"], ["g"])
        .output("b", Float32, dims([1, 3]))
        .output("c", Float32, dims([3]))
        .output("g", Float32, dims([3]))
        .build();
    assert_eq!(operators(&model, &[Pass::Identities], 0).len(), 7);
}

#[test]
fn unused_nodes_and_weights_go() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .weight("w", weight("w", [2]))
        .weight("unused", weight("unused", [64]))
        .node("Add", ["x", "w"], ["y"])
        .node("Add", ["x", "unused"], ["dead"])
        .node("Relu", ["dead"], ["deader"])
        .output("y", Float32, dims([2]))
        .build();
    let done = model.rewrite(&[Pass::DeadCode], &Weights::inline()).unwrap();
    assert_eq!((done.model.node_count(), done.reports[0].matched), (1, 2));
    assert!(done.model.to_bytes().unwrap().len() + 256 <= model.to_bytes().unwrap().len());
}

#[test]
fn the_same_is_computed_once() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 3]))
        .weight("w", weight("w", [3]))
        .weight("same", weight("w", [3]))
        .node("Add", ["x", "w"], ["a"])
        .node("Add", ["x", "same"], ["b"])
        .node_with("Softmax", ["a"], ["c"], [("axis", Int(1))])
        .node_with("Softmax", ["b"], ["d"], [("axis", Int(1))])
        .node_with("Softmax", ["b"], ["e"], [("axis", Int(0))])
        .node("Sum", ["c", "d", "e"], ["y"])
        .output("y", Float32, dims([2, 3]))
        .build();
    assert_eq!(operators(&model, &[Pass::Duplicates], 3), ["Add", "Softmax", "Softmax", "Sum"]);
}

#[test]
fn transpositions_are_merged() {
    let chain = |second: &[i64]| {
        GraphBuilder::new("g")
            .input("x", Float32, dims([2, 3, 4]))
            .node_with("Transpose", ["x"], ["a"], perm(&[1, 2, 0]))
            .node_with("Transpose", ["a"], ["b"], perm(second))
            .node("Relu", ["b"], ["y"])
    };
    let back = chain(&[2, 0, 1]).output("y", Float32, dims([2, 3, 4])).build();
    assert_eq!(operators(&back, &[Pass::Transposes, Pass::DeadCode], 2), ["Relu"]);
    let on = chain(&[1, 2, 0]).output("y", Float32, dims([4, 2, 3])).build();
    assert_eq!(operators(&on, &[Pass::Transposes, Pass::DeadCode], 2), ["Transpose", "Relu"]);
}

#[test]
fn views_are_merged() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2, 6]))
        .weight("shape", Weight::int64([3], &[2, 2, 3]))
        .weight("axes", Weight::int64([1], &[1]))
        .node("Reshape", ["x", "shape"], ["a"])
        .node_with("Flatten", ["a"], ["b"], [("axis", Int(2))])
        .node("Relu", ["b"], ["c"])
        .node("Unsqueeze", ["c", "axes"], ["d"])
        .node("Squeeze", ["d", "axes"], ["y"])
        .node("Neg", ["y"], ["z"])
        .output("z", Float32, dims([4, 3]))
        .build();
    assert_eq!(operators(&model, &[Pass::Reshapes, Pass::DeadCode], 4), ["Reshape", "Relu", "Neg"]);
}

/// A `Squeeze` of another dim than was put in is no way back, and of dims that are not known nothing is written down.
#[test]
fn views_of_unknown_sizes_are_merged_only_where_that_is_certain() {
    let model = |out: i64| {
        GraphBuilder::new("g")
            .input("x", Float32, [Dim::from("n"), Dim::Static(1), Dim::Static(3)])
            .weight("in", Weight::int64([1], &[1]))
            .weight("out", Weight::int64([1], &[out]))
            .node("Unsqueeze", ["x", "in"], ["a"])
            .node("Squeeze", ["a", "out"], ["b"])
            .node("Relu", ["b"], ["y"])
            .output("y", Float32, [Dim::from("n"), Dim::Static(1), Dim::Static(3)])
            .build()
    };
    assert_eq!(operators(&model(1), &[Pass::Reshapes, Pass::DeadCode], 2), ["Relu"]);
    assert_eq!(operators(&model(-3), &[Pass::Reshapes, Pass::DeadCode], 2), ["Relu"]);
    assert_eq!(operators(&model(2), &[Pass::Reshapes], 0), ["Unsqueeze", "Squeeze", "Relu"]);
}

/// Channels first for the convolution, channels last around it.
fn round_trip(kernel: u64, strides: &[i64], groups: i64) -> Model {
    let (strides, dilations) = (Ints(strides.to_vec()), Ints(vec![1, 1]));
    let attributes =
        [("group", Int(groups)), ("strides", strides), ("dilations", dilations), ("pads", Ints(vec![0; 4]))];
    GraphBuilder::new("g")
        .input("x", Float32, dims([1, 4, 5, 6]))
        .weight("w", weight("w", [8, 6 / groups as u64, kernel, kernel]))
        .weight("b", weight("b", [8]))
        .node_with("Transpose", ["x"], ["first"], perm(&[0, 3, 1, 2]))
        .node_with("Conv", ["first", "w", "b"], ["conv"], attributes)
        .node_with("Transpose", ["conv"], ["last"], perm(&[0, 2, 3, 1]))
        .node("Relu", ["last"], ["y"])
        .output("y", Float32, [Dim::Static(1), Dim::Unknown, Dim::Unknown, Dim::Static(8)])
        .build()
}

#[test]
fn pointwise_convolutions_become_products() {
    let passes = [Pass::PointwiseConvolutions, Pass::Transposes, Pass::DeadCode];
    assert_eq!(operators(&round_trip(1, &[1, 1], 1), &passes, 4), ["MatMul", "Add", "Relu"]);
    for other in [round_trip(3, &[1, 1], 1), round_trip(1, &[2, 2], 1), round_trip(1, &[1, 1], 2)] {
        assert_eq!(operators(&other, &passes, 0), ["Transpose", "Conv", "Transpose", "Relu"]);
    }
    assert_eq!(operators(&round_trip(1, &[1, 1], 1), &[Pass::TokenConvolutions], 0).len(), 4);
}

#[test]
fn factors_go_into_weights() {
    let model = |reader: &str| {
        GraphBuilder::new("g")
            .input("x", Float32, dims([2, 5, 3]))
            .weight("w", weight("w", [3, 4]))
            .weight("b", weight("b", [4]))
            .weight("scale", Weight::float32([1], &[0.3]))
            .weight("divisor", Weight::float32([], &[7.0]))
            .node("MatMul", ["x", "w"], ["product"])
            .node("Add", ["product", "b"], ["sum"])
            .node_with("Transpose", ["sum"], ["turned"], perm(&[0, 2, 1]))
            .node("Mul", ["turned", "scale"], ["scaled"])
            .node("Div", ["scaled", "divisor"], ["divided"])
            .node("Relu", [reader], ["other"])
            .node("Neg", ["divided"], ["y"])
            .output("y", Float32, dims([2, 4, 5]))
            .output("other", Float32, [Dim::Static(2), Dim::Unknown, Dim::Unknown])
            .build()
    };
    let left = operators(&model("x"), &[Pass::Scales], 2);
    assert_eq!(left, ["MatMul", "Add", "Transpose", "Relu", "Neg"]);
    // Somebody else reads what would be scaled.
    assert_eq!(operators(&model("sum"), &[Pass::Scales], 0).len(), 7);
}

/// A weight that the factor would make infinite, or rob of its digits, though the product is neither.
#[test]
fn factors_that_leave_the_range_stay() {
    for (weight, factor) in [(1e30, 1e10), (1e-30, 1e-15)] {
        let model = GraphBuilder::new("g")
            .input("x", Float32, dims([1, 1]))
            .weight("w", Weight::float32([1, 1], &[weight]))
            .weight("scale", Weight::float32([1], &[factor]))
            .node("MatMul", ["x", "w"], ["product"])
            .node("Mul", ["product", "scale"], ["y"])
            .output("y", Float32, dims([1, 1]))
            .build();
        let done = model.rewrite(&[Pass::Scales], &Weights::inline()).unwrap();
        assert_eq!(done.reports[0].matched, 0);
    }
}

/// Attention written out head by head; `tokens` query `keys`.
fn heads(count: usize, tokens: u64, keys: u64, by_convolution: bool) -> Model {
    let (ins, channels) = (6, 4);
    let mut graph = GraphBuilder::new("g")
        .input("q", Float32, dims([1, tokens, ins]))
        .input("k", Float32, dims([1, keys, ins]))
        .weight("scale", Weight::float32([1], &[0.7]))
        .weight("axes", Weight::int64([1], &[1]));
    let mut results = Vec::new();
    for head in 0..count {
        let name = |part: &str| format!("{part}{head}");
        let layer = |graph: GraphBuilder, part: &str, source: &str| {
            let [w, b, product, sum] = ["w", "b", "p", "s"].map(|kind| name(&format!("{part}_{kind}")));
            if !by_convolution {
                return graph
                    .weight(&w, weight(&w, [ins, channels]))
                    .weight(&b, weight(&b, [channels]))
                    .node("MatMul", [source, w.as_str()], [product.as_str()])
                    .node("Add", [product.as_str(), b.as_str()], [sum.as_str()]);
            }
            let [wide, first, conv, last] = ["i", "f", "c", "l"].map(|kind| name(&format!("{part}_{kind}")));
            graph
                .weight(&w, weight(&w, [channels, ins, 1, 1]))
                .weight(&b, weight(&b, [channels]))
                .node("Unsqueeze", [source, "axes"], [wide.as_str()])
                .node_with("Transpose", [wide.as_str()], [first.as_str()], perm(&[0, 3, 1, 2]))
                .node_with("Conv", [first.as_str(), w.as_str(), b.as_str()], [conv.as_str()], strides())
                .node_with("Transpose", [conv.as_str()], [last.as_str()], perm(&[0, 2, 3, 1]))
                .node("Squeeze", [last.as_str(), "axes"], [sum.as_str()])
        };
        graph = layer(graph, "query", "q");
        graph = layer(graph, "key", "k");
        graph = layer(graph, "value", "k");
        let [query, key, value] = ["query", "key", "value"].map(|part| name(&format!("{part}_s")));
        let [turned, scaled, scores, weights, result] = ["t", "x", "scores", "weights", "r"].map(name);
        graph = graph
            .node_with("Transpose", [key.as_str()], [turned.as_str()], perm(&[0, 2, 1]))
            .node("Mul", [turned.as_str(), "scale"], [scaled.as_str()])
            .node("MatMul", [query.as_str(), scaled.as_str()], [scores.as_str()])
            .node_with("Softmax", [scores.as_str()], [weights.as_str()], [("axis", Int(-1))])
            .node("MatMul", [weights.as_str(), value.as_str()], [result.as_str()]);
        results.push(result);
    }
    let width = channels * count as u64;
    graph
        .node_with("Concat", results.iter().map(String::as_str), ["joined"], [("axis", Int(-1))])
        .weight("out", weight("out", [width, 5]))
        .weight("out_b", weight("out_b", [5]))
        .node("MatMul", ["joined", "out"], ["product"])
        .node("Add", ["product", "out_b"], ["y"])
        .output("y", Float32, dims([1, tokens, 5]))
        .build()
}

#[test]
fn heads_become_one_attention() {
    for by_convolution in [false, true] {
        let model = heads(3, 5, 7, by_convolution);
        let done = model.rewrite(&[Pass::BatchedAttention, Pass::DeadCode], &Weights::inline()).unwrap();
        assert_eq!(done.reports[0].matched, 1);
        let softmaxes = done.model.nodes().iter().filter(|node| node.op_type() == "Softmax").count();
        assert_eq!((softmaxes, done.model.node_count()), (1, 19));
        assert!(difference(&model, &done.model) < 1e-5);
    }
}

/// Few tokens on either side: the layers of the many are taken to the few's side.
#[test]
fn layers_of_the_many_are_absorbed() {
    let passes = [Pass::BatchedAttention, Pass::DeadCode, Pass::AbsorbedProjections, Pass::DeadCode];
    for (tokens, keys, absorbed) in [(1, 64, 1), (3, 64, 1), (16, 64, 0), (64, 64, 0), (64, 2, 1), (64, 1, 1)]
    {
        let model = heads(2, tokens, keys, false);
        let done = model.rewrite(&passes, &Weights::inline()).unwrap();
        assert_eq!(done.reports[2].matched, absorbed, "{tokens} {keys}");
        assert!(difference(&model, &done.model) < 1e-5, "{tokens} {keys}");
    }
}

#[test]
fn a_norm_and_the_sum_before_it_are_kept_apart() {
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([1, 4, 6]))
        .weight("s", weight("s", [6]))
        .weight("b", weight("b", [6]))
        .node("Add", ["x", "x"], ["sum"])
        .node_with("LayerNormalization", ["sum", "s", "b"], ["normed"], [("axis", Int(2))])
        .node("Relu", ["normed"], ["y"])
        .output("y", Float32, dims([1, 4, 6]))
        .build();
    let left = operators(&model, &[Pass::SeparateNorms], 1);
    assert_eq!(left, ["Add", "Reshape", "LayerNormalization", "Reshape", "Relu"]);
    // A scale with dims of its own is not the same for every row.
    let other = GraphBuilder::new("g")
        .input("x", Float32, dims([1, 4, 6]))
        .weight("s", weight("s", [1, 4, 6]))
        .node("Add", ["x", "x"], ["sum"])
        .node_with("LayerNormalization", ["sum", "s"], ["normed"], [("axis", Int(2))])
        .node("Relu", ["normed"], ["y"])
        .output("y", Float32, dims([1, 4, 6]))
        .build();
    let done = other.rewrite(&[Pass::SeparateNorms], &Weights::inline()).unwrap();
    assert_eq!(done.reports[0].matched, 0);
}

/// Sub-graphs read values by their names, callers fetch outputs by theirs, and a default can be replaced from outside.
#[test]
fn what_others_name_stays() {
    let branch = |result: &str| {
        GraphBuilder::new("branch").node("Neg", ["kept"], [result]).output(result, Float32, dims([2]))
    };
    let model = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .input("default", Float32, dims([1]))
        .weight("default", Weight::float32([1], &[1.0]))
        .weight("yes", Weight::raw(ElementType::Bool, [1], vec![1]))
        .node("Identity", ["x"], ["kept"])
        .node("Mul", ["x", "default"], ["same"])
        .node_with(
            "If",
            ["yes"],
            ["y"],
            [("then_branch", Attribute::Graph(branch("a"))), ("else_branch", Attribute::Graph(branch("b")))],
        )
        .output("y", Float32, dims([2]))
        .output("same", Float32, dims([2]))
        .build();
    let done = model.rewrite(Pass::ALL, &Weights::inline()).unwrap();
    assert_eq!(done.model.node_count(), 3);
    assert_eq!(done.model.inputs(), model.inputs());
}

/// Nodes on a cycle are no reason to leave them out, and a name of a sub-graph's own makes none.
#[test]
fn cycles_are_errors_and_shadows_are_none() {
    let cycle = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .node("Add", ["x", "b"], ["a"])
        .node("Relu", ["a"], ["b"])
        .node("Neg", ["x"], ["y"])
        .output("y", Float32, dims([2]))
        .build();
    let error = cycle.rewrite(&[], &Weights::inline()).unwrap_err();
    assert!(matches!(error, Error::Cycle { .. }), "{error:?}");
    let twice = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .node("Relu", ["x"], ["y"])
        .node("Neg", ["x"], ["y"])
        .output("y", Float32, dims([2]))
        .build();
    let error = twice.rewrite(&[], &Weights::inline()).unwrap_err();
    assert!(matches!(error, Error::DefinedTwice { .. }), "{error:?}");
    let branch = |name: &str| {
        let inner = GraphBuilder::new("branch").node("Neg", ["x"], ["later"]).node("Relu", ["later"], [name]);
        inner.output(name, Float32, dims([2]))
    };
    let shadow = GraphBuilder::new("g")
        .input("x", Float32, dims([2]))
        .weight("yes", Weight::raw(ElementType::Bool, [1], vec![1]))
        .node_with(
            "If",
            ["yes"],
            ["chosen"],
            [("then_branch", Attribute::Graph(branch("a"))), ("else_branch", Attribute::Graph(branch("b")))],
        )
        .node("Neg", ["chosen"], ["later"])
        .node("Relu", ["later"], ["y"])
        .output("y", Float32, dims([2]))
        .build();
    let done = shadow.rewrite(&[], &Weights::inline()).unwrap();
    assert_eq!(done.model.node_count(), 3);
}

/// What a file of a few hundred bytes asks for is not computed.
#[test]
fn constants_of_absurd_sizes_are_left_alone() {
    let empty = |sizes: [u64; 2]| Weight::raw(Float32, sizes, Vec::new());
    let mut graph = GraphBuilder::new("g")
        .input("x", Float32, dims([1]))
        .weight("wide", empty([0, 1 << 60]))
        .weight("tall", empty([1 << 58, 0]))
        .weight("start", Weight::int64([1], &[0]))
        .weight("end", Weight::int64([1], &[1 << 60]))
        .weight("axis", Weight::int64([1], &[1]))
        .weight("c", weight("c", [64, 1024]))
        .node("Slice", ["wide", "start", "end", "axis"], ["a"])
        .node_with("Gather", ["tall", "start"], ["b"], [("axis", Int(1))])
        .node_with("Concat", ["tall", "tall"], ["d"], [("axis", Int(1))])
        .node_with("Concat", ["c", "c"], ["e0"], [("axis", Int(0))]);
    for at in 0..20 {
        let [from, to] = [at, at + 1].map(|at| format!("e{at}"));
        graph = graph.node_with("Concat", [from.as_str(), from.as_str()], [to.as_str()], [("axis", Int(0))]);
    }
    // Each a copy of the same large constant.
    for at in 0..512 {
        let name = format!("t{at}");
        graph = graph.node_with("Transpose", ["c"], [name.as_str()], perm(&[1, 0]));
    }
    let model = graph.node("Relu", ["x"], ["y"]).output("y", Float32, dims([1])).build();
    let done = model.rewrite(&[Pass::ConstantFolding], &Weights::inline()).unwrap();
    let size = |model: &Model| model.to_bytes().unwrap().len();
    assert!(size(&done.model) <= size(&model));
    assert!(done.reports[0].matched < 32, "{}", done.reports[0]);
}

/// Before version 4 of the representation every initializer had to be an input as well.
#[test]
fn new_constants_need_a_version_that_knows_them() {
    let model = round_trip(1, &[1, 1], 1);
    let mut bytes = model.to_bytes().unwrap();
    // Field 1 of a model is its version.
    assert_eq!(bytes[..2], [8, 8]);
    bytes[1] = 3;
    let old = Model::from_bytes(bytes).unwrap();
    let version = |passes: &[Pass]| old.rewrite(passes, &Weights::inline()).unwrap().model.ir_version();
    assert_eq!((version(&[Pass::DeadCode]), version(&[Pass::PointwiseConvolutions])), (3, 4));
}

/// Dims that a file records are believed where nothing follows from the graph, but nothing is built upon them.
#[test]
fn recorded_shapes_prove_nothing() {
    let n = || Dim::from("n");
    let model = GraphBuilder::new("g")
        .input("x", Float32, [n(), Dim::Static(3)])
        .value("a", Float32, dims([3, 2]))
        .weight("shape", Weight::int64([2], &[3, -1]))
        .weight("back", Weight::int64([2], &[-1, 3]))
        .node("Reshape", ["x", "shape"], ["a"])
        .node("Reshape", ["a", "back"], ["b"])
        .node("Relu", ["b"], ["y"])
        .output("y", Float32, [n(), Dim::Static(3)])
        .build();
    assert_eq!(operators(&model, &[Pass::Reshapes], 0), ["Reshape", "Reshape", "Relu"]);
    // Nor do those of outputs.
    let output = GraphBuilder::new("g")
        .input("x", Float32, [n(), Dim::Static(3)])
        .node("Relu", ["x"], ["y"])
        .node("Shape", ["y"], ["shape"])
        .node("Neg", ["shape"], ["z"])
        .output("y", Float32, dims([1, 3]))
        .output("z", ElementType::Int64, dims([2]))
        .build();
    let done = output.rewrite(&[Pass::ConstantFolding], &Weights::inline()).unwrap();
    assert_eq!((done.reports[0].matched, done.model.node_count()), (0, 3));
}

/// A node may read a value itself and through its sub-graph: the name stays for the second's sake.
#[test]
fn what_is_read_twice_over_keeps_its_name() {
    let branch = |result: &str| {
        GraphBuilder::new("branch").node("Not", ["same"], [result]).output(
            result,
            ElementType::Bool,
            dims([1]),
        )
    };
    let model = GraphBuilder::new("g")
        .input("c", ElementType::Bool, dims([1]))
        .node("Identity", ["c"], ["same"])
        .node_with(
            "If",
            ["same"],
            ["y"],
            [("then_branch", Attribute::Graph(branch("a"))), ("else_branch", Attribute::Graph(branch("b")))],
        )
        .output("y", ElementType::Bool, dims([1]))
        .build();
    let done = model.rewrite(Pass::ALL, &Weights::inline()).unwrap();
    assert_eq!(done.model.node_count(), 2);
    assert!(
        done.model.check("m.onnx".as_ref(), &Weights::inline()).iter().all(|f| f.severity != Severity::Error)
    );
}

#[test]
fn passes_are_asked_for_by_name() {
    for pass in Pass::ALL {
        assert_eq!(pass.name().parse::<Pass>().unwrap(), *pass);
    }
    let error = "transpose".parse::<Pass>().unwrap_err();
    assert!(matches!(error, Error::UnknownPass { ref name } if name == "transpose"));
    assert!(error.to_string().contains("constant-folding, identities"), "{error}");
}

/// Every set keeps the results of the pair in `fixtures/`.
#[test]
fn the_sets_keep_the_fixture_pair() {
    for path in common::fixture_graphs() {
        let model = Model::read(&path).unwrap();
        let weights = Weights::in_folder(path.parent().unwrap());
        let inline = common::inlined(&model, &weights);
        for set in [PassSet::OnnxRuntime, PassSet::Rten] {
            let done = inline.rewrite(set.passes(), &weights).unwrap();
            assert!(difference(&inline, &done.model) < 1e-5, "{set:?} {}", path.display());
            assert!(done.model.node_count() <= model.node_count());
        }
    }
}
