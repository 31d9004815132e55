//! The split into what a picture needs once and what each prompt needs follows from reachability alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Write;

use common::{Release, fixture, graph};
use composite::{Component, Composite, Error, Plan, Result, Rule, Step, Value};
use onnx_graph::{Attribute, GraphBuilder, Weight};

fn value(value: &Value) -> String {
    match value {
        Value::Port(component, port) => format!("{port} of {component}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// `component(input = value, ...) -> outputs` for each step; per image and per prompt are parted by a line.
fn drawn(plan: &Plan) -> String {
    let mut text = String::new();
    let mut draw = |step: &Step| {
        let feeds: Vec<_> = step.feeds.iter().map(|f| format!("{} = {}", f.port, value(&f.value))).collect();
        writeln!(text, "{}({}) -> {}", step.component, feeds.join(", "), step.outputs.join(", ")).unwrap();
    };
    plan.per_image.iter().for_each(&mut draw);
    let split = plan.per_image.len();
    plan.per_prompt.iter().for_each(draw);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(split, "--");
    lines.join("\n")
}

fn kept(plan: &Plan) -> Vec<String> {
    plan.kept_per_image().into_iter().map(value).collect()
}

/// Outputs `a`, `b`, `c` of an encoder with these nodes, and a decoder that takes all three.
fn planned(nodes: impl FnOnce(GraphBuilder) -> GraphBuilder) -> Result<Plan> {
    let given = "a float32[1,8,4,4] b float32[1,3,8] c float32[1,2]";
    let encoder = nodes(graph(common::ENCODER.0, given));
    let release = Release::new(encoder, graph(given, common::DECODER.1));
    release.open().unwrap().plan()
}

#[test]
fn picture_and_points_apart() {
    let plan = planned(|g| {
        g.node("Concat", ["labels", "coordinates"], ["b"])
            .node("Conv", ["image", "w"], ["features"])
            .node("Relu", ["features"], ["a"])
            .node("Pool", ["features"], ["c"])
            .weight("w", Weight::float32([1], &[1.0]))
    });
    let plan = plan.unwrap();
    let expected = "\
image encoder(image = image) -> a, c
--
prompt encoder(coordinates = coordinates, labels = labels) -> b
mask decoder(a = a of image encoder, b = b of prompt encoder, c = c of image encoder) -> mask, quality";
    assert_eq!(drawn(&plan), expected);
    assert_eq!(kept(&plan), ["a of image encoder", "c of image encoder"]);
    // Each graph is the part alone: no ports and no nodes of the other.
    let parts = plan.per_image.iter().chain(&plan.per_prompt).map(|s| s.model.node_count());
    assert_eq!(parts.collect::<Vec<_>>(), [3, 1, 0]);
    assert_eq!(plan.per_image[0].model.inputs().len(), 1);
}

#[test]
fn an_output_of_both_is_run_per_prompt() {
    let plan = planned(|g| {
        g.node("Relu", ["image"], ["a"]).node("Concat", ["labels", "coordinates"], ["b"]).node(
            "Mul",
            ["a", "b"],
            ["c"],
        )
    });
    let plan = plan.unwrap();
    let expected = "\
image encoder(image = image) -> a
--
prompt encoder(coordinates = coordinates, labels = labels) -> b
image and prompt encoder(coordinates = coordinates, image = image, labels = labels) -> c
mask decoder(a = a of image encoder, b = b of prompt encoder, c = c of image and prompt encoder) -> mask, quality";
    assert_eq!(drawn(&plan), expected);
    // The picture itself has to be kept too.
    assert_eq!(kept(&plan), ["image", "a of image encoder"]);
}

/// Constants are the picture's; points that come in through a sub-graph are still points.
#[test]
fn captured_points_and_constants() {
    let branch = GraphBuilder::new("branch").node("Neg", ["labels"], ["z"]).untyped_output("z");
    let plan = planned(|g| {
        g.node_with("If", ["w"], ["c"], [("then_branch", Attribute::Graph(branch))])
            .node("Neg", ["w"], ["b"])
            .node("Relu", ["image"], ["a"])
            .weight("w", Weight::float32([1], &[1.0]))
    });
    let expected = "\
image encoder(image = image) -> a, b
--
prompt encoder(labels = labels) -> c
mask decoder(a = a of image encoder, b = b of image encoder, c = c of prompt encoder) -> mask, quality";
    assert_eq!(drawn(&plan.unwrap()), expected);
}

#[test]
fn points_that_reach_nothing_are_refused() {
    let unused = planned(|g| {
        g.node("Relu", ["image"], ["a"]).node("Pool", ["image"], ["b"]).node("Max", ["image"], ["c"]).node(
            "Concat",
            ["coordinates", "labels"],
            ["dropped"],
        )
    });
    let Err(Error::NoPair { graphs, .. }) = unused else { panic!("{unused:?}") };
    assert_eq!(graphs[0].rule, Rule::PromptUnused("decoder.onnx".into()));
}

#[test]
fn an_encoder_that_cannot_be_evaluated() {
    let cycle = planned(|g| {
        g.node("Add", ["image", "b"], ["a"]).node("Add", ["a", "labels"], ["b"]).node(
            "Neg",
            ["labels"],
            ["c"],
        )
    });
    let Err(Error::Graph { source, .. }) = cycle else { panic!("{cycle:?}") };
    assert!(matches!(source, onnx_graph::Error::Cycle { .. }), "{source:?}");
    let missing = planned(|g| g.node("Neg", ["labels"], ["b"]));
    let Err(Error::Graph { source, .. }) = missing else { panic!("{missing:?}") };
    assert!(matches!(source, onnx_graph::Error::UnknownValue { .. }), "{source:?}");
}

#[test]
fn the_fixture() {
    let composite = Composite::open(fixture()).unwrap();
    let plan = composite.plan().unwrap();
    let expected = "\
image encoder(image = image) -> high_res_features1, high_res_features2, image_embeddings
--
prompt encoder(labels = labels, unnorm_coords = coordinates) -> sparse_embedding
mask decoder(image_embeddings = image_embeddings of image encoder, \
high_res_features1 = high_res_features1 of image encoder, high_res_features2 = high_res_features2 of image encoder, \
sparse_embedding = sparse_embedding of prompt encoder) -> masks, scores";
    assert_eq!(drawn(&plan), expected);
    let kept = plan.kept_per_image();
    let kept: Vec<_> = kept.iter().map(|v| matches!(v, Value::Port(Component::ImageEncoder, _))).collect();
    assert_eq!(kept, [true; 3]);
    // The two parts share no node but constants, and together they are no more than the whole.
    let nodes = |step: &Step| step.model.node_count();
    let (image, prompt) = (nodes(&plan.per_image[0]), nodes(&plan.per_prompt[0]));
    let whole = composite.pair().encoder.model().unwrap().node_count();
    assert!(image + prompt <= whole && prompt < image, "{image} and {prompt} of {whole}");
}
