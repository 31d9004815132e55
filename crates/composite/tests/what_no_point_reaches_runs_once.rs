//! The split into what a picture needs once and what each prompt needs follows from reachability alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Write;

use common::{Release, fixture, graph, only_ports};
use composite::{Component, Composite, Error, GraphFile, Plan, Result, Rule, Step, Value};
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
    let encoder = nodes(only_ports(common::ENCODER.0, given));
    let release = Release::new(encoder, graph(given, common::DECODER.1));
    release.open()?.plan()
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
    assert_eq!(parts.collect::<Vec<_>>(), [3, 1, 1]);
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
    let branch =
        GraphBuilder::new("branch").node("Mul", ["labels", "coordinates"], ["z"]).untyped_output("z");
    let plan = planned(|g| {
        g.node_with("If", ["w"], ["c"], [("then_branch", Attribute::Graph(branch))])
            .node("Neg", ["w"], ["b"])
            .node("Relu", ["image"], ["a"])
            .weight("w", Weight::float32([1], &[1.0]))
    });
    let expected = "\
image encoder(image = image) -> a, b
--
prompt encoder(coordinates = coordinates, labels = labels) -> c
mask decoder(a = a of image encoder, b = b of image encoder, c = c of prompt encoder) -> mask, quality";
    assert_eq!(drawn(&plan.unwrap()), expected);
}

/// Why the file of this name took no part.
fn rule_for(result: Result<Plan>, file: &str) -> Rule {
    let Err(Error::NoPair { graphs, .. }) = result else { panic!("{result:?}") };
    graphs.into_iter().find(|g| g.path.ends_with(file)).unwrap().rule
}

/// P1, P3: a click without its label, a label without its place, a mask that does not look at the picture.
#[test]
fn inputs_that_reach_nothing_are_refused() {
    let all = ["image", "coordinates", "labels"];
    for missing in all {
        let [first, second] = [all.iter().find(|i| **i != missing), all.iter().rfind(|i| **i != missing)];
        let plan = planned(|g| {
            g.node("A", [*first.unwrap()], ["a"])
                .node("B", [*second.unwrap()], ["b"])
                .node("C", [*first.unwrap(), *second.unwrap()], ["c"])
                .node("D", all, ["dropped"])
        });
        let want = Rule::Unreached { encoder: "encoder.onnx".into(), input: missing.into() };
        assert_eq!(rule_for(plan, "decoder.onnx"), want);
    }
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
    let missing = planned(|g| g.node("Neg", ["labels"], ["b"]));
    for (plan, said) in [(cycle, "depends on itself"), (missing, "no value `a`")] {
        let rule = rule_for(plan, "encoder.onnx");
        assert!(matches!(&rule, Rule::Unreadable(why) if why.contains(said)), "{rule:?}");
    }
}

/// What was opened is what is planned.
#[test]
fn a_graph_that_changes_after_it_was_opened() {
    let release = Release::new(common::encoder(), common::decoder());
    let composite = release.open().unwrap();
    let other = common::DECODER.1.replace("[1,1,16,16]", "[1,1,32,32]");
    let path = release.write("decoder.onnx", graph(common::DECODER.0, &other).build().to_bytes().unwrap());
    let result = composite.plan();
    assert!(matches!(&result, Err(Error::GraphChanged { path: p }) if *p == path), "{result:?}");
}

/// Walking back from very many outputs is refused before it is tried.
#[test]
fn more_outputs_than_any_encoder_has() {
    let names: Vec<String> = (0..65).map(|i| format!("o{i} float32[1,2]")).collect();
    let file = GraphFile::new("wide.onnx".into(), &graph("x float32[1,3,4,4]", &names.join(" ")).build());
    assert!(matches!(file, Err(Error::TooManyOutputs { found: 65, .. })), "{file:?}");
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
