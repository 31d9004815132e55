//! Multiply-accumulates: per node and in sum, and never a nothing in place of what cannot be told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use onnx_graph::{
    Attribute, Dim,
    ElementType::{Bool, Float32},
    GraphBuilder, Macs, Model, Weight, Weights,
};

fn count(model: &Model) -> Macs {
    Macs::count(model, &Weights::inline()).unwrap()
}

fn fixed<const N: usize>(dims: [u64; N]) -> [Dim; N] {
    dims.map(Dim::Static)
}

fn weight<const N: usize>(dims: [u64; N]) -> Weight {
    Weight::float32(dims, &vec![0.0; dims.iter().product::<u64>() as usize])
}

#[test]
fn each_operator() {
    let ints = |name, list: &[i64]| (name, Attribute::Ints(list.to_vec()));
    let int = |name, value| (name, Attribute::Int(value));
    let cases = [
        // 16 output channels of 8 x 8, each a product with 3 x 3 x 3.
        ("Conv", vec![1, 3, 10, 10], vec![16, 3, 3, 3], vec![], Some(16 * 64 * 27)),
        (
            "Conv",
            vec![2, 4, 8, 8],
            vec![4, 1, 3, 3],
            vec![int("group", 4), ints("strides", &[2, 2])],
            Some(2 * 4 * 9 * 9),
        ),
        // Each of 3 x 5 x 5 input elements goes into 8 x 2 x 2.
        ("ConvTranspose", vec![1, 3, 5, 5], vec![3, 8, 2, 2], vec![ints("strides", &[2, 2])], Some(75 * 32)),
        ("MatMul", vec![5, 2, 3], vec![3, 4], vec![], Some(5 * 2 * 3 * 4)),
        ("MatMul", vec![3], vec![3], vec![], Some(3)),
        ("MatMul", vec![0, 3], vec![3, 4], vec![], Some(0)),
        ("Gemm", vec![3, 2], vec![4, 3], vec![int("transA", 1), int("transB", 1)], Some(2 * 3 * 4)),
        (
            "Einsum",
            vec![2, 3],
            vec![3, 4],
            vec![("equation", Attribute::Text("ij,jk->k".to_owned()))],
            Some(24),
        ),
        ("Add", vec![5], vec![5], vec![], None),
    ];
    for (op, x, w, attributes, expected) in cases {
        let weight = Weight::float32(w.clone(), &vec![0.0; w.iter().product::<u64>() as usize]);
        let graph =
            GraphBuilder::new("g").input("x", Float32, x.iter().map(|&d| Dim::Static(d))).weight("w", weight);
        let macs = count(&graph.node_with(op, ["x", "w"], ["y"], attributes).build());
        assert_eq!(macs.nodes().first().map(|node| node.macs), expected.map(Some), "{op} {x:?} {w:?}");
        assert_eq!(macs.total(), Some(expected.unwrap_or(0)), "{op}");
    }
}

#[test]
fn attention() {
    let heads = |heads| Attribute::Int(heads);
    let q = fixed([2, 5, 8]);
    let model = GraphBuilder::new("g").opset(23).input("q", Float32, q).input("k", Float32, fixed([2, 6, 8]));
    let model = model.node_with(
        "Attention",
        ["q", "k", "k"],
        ["y"],
        [("q_num_heads", heads(2)), ("kv_num_heads", heads(2))],
    );
    // Two batches of two heads: 5 queries with 6 keys of size 4, and the same with the values.
    assert_eq!(count(&model.build()).total(), Some(2 * 2 * 5 * 6 * (4 + 4)));
}

#[test]
fn what_cannot_be_told_is_listed() {
    let then = GraphBuilder::new("t").node("MatMul", ["x", "w"], ["a"]).untyped_output("a");
    let other = GraphBuilder::new("e").node("MatMul", ["x", "w"], ["b"]).untyped_output("b");
    let huge = Dim::Static(u64::MAX / 4);
    let model = GraphBuilder::new("g")
        .input("x", Float32, fixed([2, 3]))
        .input("n", Float32, ["n".into(), 3.into()])
        .input("huge", Float32, [huge.clone(), huge])
        .input("c", Bool, [])
        .weight("w", weight([3, 4]))
        .node("MatMul", ["x", "w"], ["known"])
        .node("MatMul", ["n", "w"], ["symbolic"])
        .node("MatMul", ["huge", "huge"], ["too_large"])
        .node("GRU", ["x", "w", "w"], ["no_rule"])
        .node("Relu", ["n"], ["nothing"])
        .node_with(
            "If",
            ["c"],
            ["y"],
            [("then_branch", Attribute::Graph(then)), ("else_branch", Attribute::Graph(other))],
        )
        .build();
    let macs = count(&model);
    let unknown: Vec<&str> = macs.unknown().map(|node| node.output.as_str()).collect();
    assert_eq!(unknown, ["symbolic", "too_large", "no_rule"]);
    assert_eq!((macs.total(), macs.in_sub_graphs()), (Some(24), Some(48)));
    let described = model.describe(None).unwrap();
    assert_eq!(described.macs_unknown.len(), 3);
}

#[test]
fn a_sum_beyond_64_bits_is_no_number() {
    let side = 1 << 21;
    let mut graph = GraphBuilder::new("g").input("x", Float32, fixed([side, side]));
    for name in ["a", "b", "c"] {
        graph = graph.node("MatMul", ["x", "x"], [name]);
    }
    let macs = count(&graph.build());
    assert!(macs.nodes().iter().all(|node| node.macs == Some(1 << 63)));
    assert_eq!(macs.total(), None);
}

/// The same numbers come from ONNX Runtime's shapes and five formulas in Python; the published encoder does 292 GFLOP.
#[test]
fn full_size_networks() {
    for (name, expected) in [
        ("published-encoder", 146_197_004_544),
        ("published-decoder", 1_827_719_168),
        ("plain-encoder", 146_197_004_544),
        ("plain-decoder", 1_827_719_168),
        ("edgetam-encoder", 19_374_551_808),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/structures");
        let macs = count(&Model::read(folder.join(name).with_extension("onnx")).unwrap());
        let unknown: Vec<_> = macs.unknown().collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert_eq!(macs.total(), Some(expected), "{name}");
    }
}
