//! AN1: parts and patterns come from structure: names do not matter, and what has no known shapes matches nothing and crashes nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::many_single_char_names)]

mod common;

use onnx_graph::{
    Attribute, Dim, ElementType::Float32, GraphBuilder, Model, Part, Types, Weight, Weights, analyze_with,
    parts,
};
use proptest::prelude::*;

fn types(model: &Model) -> Types {
    Types::infer(model, &Weights::inline()).unwrap()
}

/// Builds a graph whose value names are all passed through `name`.
struct Net<'n> {
    graph: GraphBuilder,
    name: &'n dyn Fn(&str) -> String,
    shapes: bool,
}

fn dims(sizes: &[u64]) -> Vec<Dim> {
    sizes.iter().copied().map(Dim::from).collect()
}

impl Net<'_> {
    fn input(mut self, name: &str, sizes: &[u64]) -> Self {
        self.graph = self.graph.input(&(self.name)(name), Float32, dims(sizes));
        self
    }

    fn weight(mut self, name: &str, sizes: &[u64]) -> Self {
        let count = sizes.iter().product::<u64>() as usize;
        self.graph =
            self.graph.weight(&(self.name)(name), Weight::float32(sizes.to_vec(), &vec![0.5; count]));
        self
    }

    fn integers(mut self, name: &str, sizes: &[u64], values: &[i64]) -> Self {
        self.graph = self.graph.weight(&(self.name)(name), Weight::int64(sizes.to_vec(), values));
        self
    }

    fn node(self, op: &str, inputs: &[&str], output: &str, sizes: &[u64]) -> Self {
        self.node_with(op, inputs, output, sizes, &[])
    }

    fn node_with(
        mut self,
        op: &str,
        inputs: &[&str],
        output: &str,
        sizes: &[u64],
        attributes: &[(&str, &[i64])],
    ) -> Self {
        let inputs: Vec<String> = inputs
            .iter()
            .map(|input| if input.is_empty() { String::new() } else { (self.name)(input) })
            .collect();
        let output = (self.name)(output);
        let attributes = attributes.iter().map(|(name, values)| match values {
            [value] if *name == "axis" => (*name, Attribute::Int(*value)),
            values => (*name, Attribute::Ints(values.to_vec())),
        });
        self.graph =
            self.graph.node_with(op, inputs.iter().map(String::as_str), [output.as_str()], attributes);
        if self.shapes {
            self.graph = self.graph.value(&output, Float32, dims(sizes));
        }
        self
    }

    fn output(mut self, name: &str, sizes: &[u64]) -> Self {
        self.graph = self.graph.output(&(self.name)(name), Float32, dims(sizes));
        self
    }
}

/// A backbone of two stages with one block each, and a neck.
fn encoder(name: &dyn Fn(&str) -> String, shapes: bool) -> (Model, Vec<Part>) {
    use Part::{BackboneStage, Neck, Normalisation, PatchEmbedding, PromptEncoder};
    let mut net = Net { graph: GraphBuilder::new("e"), name, shapes }
        .input("image", &[1, 3, 8, 8])
        .input("clicks", &[1, 2, 2]);
    for (weight, sizes) in [
        ("mean", &[1, 3, 1, 1][..]),
        ("w", &[4, 3, 1, 1]),
        ("v", &[4, 4, 1, 1]),
        ("l", &[4, 4, 1, 1]),
        ("matrix", &[2, 4]),
    ] {
        net = net.weight(weight, sizes);
    }
    net = net.integers("size", &[4], &[1, 4, 8, 8]);
    let a = &[1, 4, 8, 8];
    let b = &[1, 4, 4, 4];
    let model = net
        .node("Sub", &["image", "mean"], "n", &[1, 3, 8, 8])
        .node("Conv", &["n", "w"], "p", a)
        .node("Conv", &["p", "v"], "s1a", a)
        .node("Relu", &["s1a"], "s1b", a)
        .node("Add", &["p", "s1b"], "s1", a)
        .node_with("MaxPool", &["s1"], "s2a", b, &[("kernel_shape", &[2, 2]), ("strides", &[2, 2])])
        .node("Conv", &["s2a", "v"], "s2b", b)
        .node("Add", &["s2a", "s2b"], "s2", b)
        .node("Conv", &["s1", "l"], "f1", a)
        .node("Conv", &["s2", "l"], "f2", b)
        .node("Resize", &["f2", "", "", "size"], "up", a)
        .node("Add", &["f1", "up"], "out1", a)
        .node("MatMul", &["clicks", "matrix"], "code", &[1, 2, 4])
        .node("Sin", &["code"], "sparse", &[1, 2, 4])
        .output("out1", a)
        .output("f2", b)
        .output("sparse", &[1, 2, 4])
        .graph
        .build();
    let expected = [
        vec![Normalisation, PatchEmbedding],
        vec![BackboneStage(1); 3],
        vec![BackboneStage(2); 3],
        vec![Neck; 4],
        vec![PromptEncoder; 2],
    ];
    (model, expected.concat())
}

/// Two layers of attention both ways, a last attention, an upscaler, mask and quality heads.
fn decoder(name: &dyn Fn(&str) -> String, shapes: bool) -> (Model, Vec<Part>) {
    use Part::{FinalAttention, Glue, MaskHeads, QualityHead, TransformerLayer, Upscaler};
    let (t, i): (&[u64], &[u64]) = (&[1, 3, 8], &[1, 16, 8]);
    let mut net = Net { graph: GraphBuilder::new("d"), name, shapes }
        .input("map", &[1, 8, 4, 4])
        .input("sparse", &[1, 2, 8]);
    for (weight, sizes) in
        [("token", &[1, 1, 8][..]), ("scale", &[8]), ("up", &[8, 8, 2, 2]), ("m", &[8, 8]), ("q", &[8, 1])]
    {
        net = net.weight(weight, sizes);
    }
    let swap: &[(&str, &[i64])] = &[("perm", &[0, 2, 1])];
    net = net
        .integers("flat_shape", &[3], &[1, 8, 16])
        .integers("square_shape", &[4], &[1, 8, 4, 4])
        .integers("pixel_shape", &[3], &[1, 8, 64])
        .integers("mask_shape", &[4], &[1, 1, 8, 8])
        .integers("first", &[1], &[0])
        .integers("zero", &[], &[0])
        .node_with("Concat", &["token", "sparse"], "t0", t, &[("axis", &[1])])
        .node("Reshape", &["map", "flat_shape"], "flat", &[1, 8, 16])
        .node_with("Transpose", &["flat"], "i0", i, swap);
    let mut expected = vec![Glue; 3];
    for layer in 0..3_u8 {
        let part = if layer == 2 { FinalAttention } else { TransformerLayer(layer + 1) };
        let of = |value: &str, layer: u8| format!("{value}{layer}");
        let (tokens, image) = (of("t", layer), of("i", layer));
        let (a, b, c, d) = (of("a", layer), of("b", layer), of("c", layer), of("d", layer));
        let (next, keys) = (of("t", layer + 1), of("keys", layer));
        // From the tokens to the image.
        net = net
            .node_with("Transpose", &[&image], &keys, &[1, 8, 16], swap)
            .node("MatMul", &[&tokens, &keys], &a, &[1, 3, 16])
            .node("Softmax", &[&a], &b, &[1, 3, 16])
            .node("MatMul", &[&b, &image], &c, t)
            .node("Add", &[&tokens, &c], &d, t)
            .node("LayerNormalization", &[&d, "scale"], &next, t);
        expected.extend([part; 6]);
        if layer < 2 {
            let [e, f, g, h, k] = ["e", "f", "g", "h", "k"].map(|value| of(value, layer));
            net = net
                .node_with("Transpose", &[&next], &k, &[1, 8, 3], swap)
                .node("MatMul", &[&image, &k], &e, &[1, 16, 3])
                .node("Softmax", &[&e], &f, &[1, 16, 3])
                .node("MatMul", &[&f, &next], &g, i)
                .node("Add", &[&image, &g], &h, i)
                .node("LayerNormalization", &[&h, "scale"], &of("i", layer + 1), i);
            expected.extend([part; 6]);
        }
    }
    let model = net
        .node_with("Transpose", &["i2"], "turned", &[1, 8, 16], swap)
        .node("Reshape", &["turned", "square_shape"], "square", &[1, 8, 4, 4])
        .node_with("ConvTranspose", &["square", "up"], "large", &[1, 8, 8, 8], &[("strides", &[2, 2])])
        .node("Reshape", &["large", "pixel_shape"], "pixels", &[1, 8, 64])
        .node_with("Gather", &["t3", "first"], "mask_token", &[1, 1, 8], &[("axis", &[1])])
        .node("MatMul", &["mask_token", "m"], "hyper", &[1, 1, 8])
        .node("MatMul", &["hyper", "pixels"], "product", &[1, 1, 64])
        .node("Reshape", &["product", "mask_shape"], "masks", &[1, 1, 8, 8])
        .node_with("Gather", &["t3", "zero"], "iou_token", &[1, 8], &[("axis", &[1])])
        .node("MatMul", &["iou_token", "q"], "logit", &[1, 1])
        .node("Sigmoid", &["logit"], "scores", &[1, 1])
        .output("masks", &[1, 1, 8, 8])
        .output("scores", &[1, 1])
        .graph
        .build();
    expected.extend([[Upscaler; 4].to_vec(), [MaskHeads; 4].to_vec(), [QualityHead; 3].to_vec()].concat());
    (model, expected)
}

#[test]
fn small_networks() {
    for (model, expected) in [encoder(&|n| n.to_owned(), true), decoder(&|n| n.to_owned(), true)] {
        let found = parts(&model, &types(&model));
        for (at, expected) in expected.iter().enumerate() {
            assert_eq!(found.of(at), Some(*expected), "node {at}, {}", model.nodes()[at].op_type());
        }
        assert!(found.unassigned().is_empty());
        assert_eq!(found.counts().values().sum::<usize>(), expected.len());
    }
}

#[test]
fn without_shapes_there_are_gaps_and_no_wrong_parts() {
    for (model, expected) in [encoder(&|n| n.to_owned(), false), decoder(&|n| n.to_owned(), false)] {
        let found = parts(&model, &Types::default());
        assert!(found.all().iter().all(Option::is_none));
        let found = parts(&model, &types(&model));
        for (at, expected) in expected.iter().enumerate() {
            assert!(found.of(at).is_none_or(|part| part == *expected), "node {at}: {:?}", found.of(at));
        }
    }
}

/// The layer norm of older exporters; `shapes`: whether the values' shapes are recorded.
fn decomposed_norm(shapes: bool) -> Model {
    let name = |n: &str| n.to_owned();
    let mut net = Net { graph: GraphBuilder::new("n"), name: &name, shapes };
    net = if shapes { net.input("x", &[1, 4, 8]) } else { net };
    let (x, one): (&[u64], &[u64]) = (&[1, 4, 8], &[1, 4, 1]);
    net.weight("two", &[1])
        .weight("scale", &[8])
        .node_with("ReduceMean", &["x"], "mean", one, &[("axes", &[-1])])
        .node("Sub", &["x", "mean"], "off", x)
        .node("Pow", &["off", "two"], "square", x)
        .node_with("ReduceMean", &["square"], "variance", one, &[("axes", &[-1])])
        .node("Add", &["variance", "two"], "sum", one)
        .node("Sqrt", &["sum"], "root", one)
        .node("Div", &["off", "root"], "normed", x)
        .node("Mul", &["normed", "scale"], "y", x)
        .output("y", x)
        .graph
        .build()
}

#[test]
fn an1_a_pattern_without_shapes_never_matches() {
    for (shapes, expected) in [(true, Some(&1)), (false, None)] {
        let model = decomposed_norm(shapes);
        let analysis = analyze_with(&[("m", &model, &types(&model))], &[]);
        let found = &analysis.components[0].metadata.detected_pattern_count;
        assert_eq!(found.get("SUBGRAPH/LayerNormalization"), expected, "{found:?}");
    }
}

proptest! {
    #[test]
    fn names_do_not_matter(salt in any::<u64>()) {
        let random = |name: &str| {
            let mut hash = salt ^ 0x9e37_79b9_7f4a_7c15;
            name.bytes().for_each(|b| hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
            format!("{hash:x}")
        };
        for build in [encoder, decoder] {
            let (model, expected) = build(&random, true);
            let found = parts(&model, &types(&model));
            let expected: Vec<Option<Part>> = expected.into_iter().map(Some).collect();
            prop_assert_eq!(found.all(), expected.as_slice());
        }
    }

    /// Any wiring of these operators: no crash, every node once.
    #[test]
    fn any_graph_is_taken(wiring in prop::collection::vec((0..10_usize, 0..40_usize, 0..40_usize), 1..40), shapes in any::<bool>()) {
        const OPS: [&str; 10] =
            ["Add", "Conv", "MatMul", "Softmax", "Div", "Sub", "Sqrt", "ReduceMean", "LayerNormalization", "Erf"];
        let mut graph = GraphBuilder::new("g").input("v0", Float32, dims(&[1, 3, 8, 8])).weight("v1", Weight::float32([1], &[1.0]));
        for (at, (op, a, b)) in wiring.iter().enumerate() {
            let (a, b, out) = (format!("v{a}"), format!("v{b}"), format!("v{}", at + 2));
            graph = graph.node_with(OPS[*op], [a.as_str(), b.as_str()], [out.as_str()], [("axis", Attribute::Int(-1))]);
            if shapes {
                graph = graph.value(&out, Float32, dims(&[1, 3, 8, 8]));
            }
        }
        let model = graph.untyped_output("v5").build();
        let found = parts(&model, &types(&model));
        prop_assert_eq!(found.all().len(), wiring.len());
        let analysis = analyze_with(&[("m", &model, &types(&model))], &[]);
        prop_assert_eq!(analysis.components[0].metadata.total_operators, wiring.len());
        prop_assert!(!analysis.to_string().is_empty());
    }
}
