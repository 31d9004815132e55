//! Verdicts come from rules alone: none means unknown, what cannot be checked stays unknown, and bad rule files are refused by line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp, clippy::too_many_lines)]

mod common;

use onnx_graph::{
    Attribute, Dim,
    ElementType::{self, Float32, Int64},
    Error, GraphBuilder, Model, Rules, Target, Types, Verdict, Weight, Weights, analyze, analyze_with,
};

fn rules(rules: &str) -> Rules {
    Rules::from_json(&format!(
        r#"{{"target": "T", "sources": [], "newest_opsets": {{"": 20}}, "types": {{"floats": ["float32", "float16"]}},
            "rules": [{rules}]}}"#
    ))
    .unwrap()
}

fn types(model: &Model) -> Types {
    Types::infer(model, &Weights::inline()).unwrap()
}

fn judged(model: &Model, by: &str) -> (Verdict, String, f64) {
    let analysis = analyze_with(&[("m", model, &types(model))], &[rules(by)]);
    let result = &analysis.components[0].results[0];
    let reason = result.information.first().map(|i| i.reason.clone()).unwrap_or_default();
    (analysis.operators[0].verdicts[0], reason, result.coverage.confidence)
}

fn one(op: &str, opset: i64, element: ElementType, dims: &[Dim], attributes: &[(&str, Attribute)]) -> Model {
    GraphBuilder::new("g")
        .opset(opset)
        .input("x", element, dims.to_vec())
        .weight("w", Weight::float32([2], &[1.0, 2.0]))
        .node_with(op, ["x", "w"], ["y"], attributes.to_vec())
        .output("y", element, dims.to_vec())
        .build()
}

#[test]
fn each_condition() {
    use Verdict::{Partial, Supported, Unknown, Unsupported};
    let relu = |when: &str| format!(r#"{{"operators": ["Op"], "verdict": "supported", "when": {{{when}}}}}"#);
    let image: Vec<Dim> = [1_u64, 2, 4, 4].map(Dim::from).to_vec();
    let open: Vec<Dim> = vec![1.into(), "n".into()];
    let text = |word: &str| Attribute::Text(word.to_owned());
    let cases: Vec<(Model, String, Verdict, &str)> = vec![
        (one("Op", 20, Float32, &image, &[]), relu(""), Supported, ""),
        (one("Other", 20, Float32, &image, &[]), relu(""), Unknown, "no rule"),
        (
            one("Op", 21, Float32, &image, &[]),
            relu(""),
            Unknown,
            "the rules end at operator set 20, the model has 21",
        ),
        (one("Op", 20, Float32, &image, &[]), relu(r#""types": {"input 0": ["floats"]}"#), Supported, ""),
        (
            one("Op", 20, Int64, &image, &[]),
            relu(r#""types": {"input 0": ["floats"]}"#),
            Unsupported,
            "input 0 is int64",
        ),
        (
            one("Op", 20, Int64, &image, &[]),
            relu(r#""types": {"input 1": ["float32"], "output 0": ["int64"]}"#),
            Supported,
            "",
        ),
        (
            one("Op", 20, Int64, &image, &[]),
            relu(r#""types": {"inputs": ["int64"]}"#),
            Unsupported,
            "input 1 is float32",
        ),
        (one("Op", 20, Float32, &image, &[]), relu(r#""ranks": {"input 0": [4]}"#), Supported, ""),
        (
            one("Op", 20, Float32, &open, &[]),
            relu(r#""ranks": {"input 0": [4]}"#),
            Unsupported,
            "input 0 has 2 dims",
        ),
        (
            one("Op", 20, Float32, &open, &[]),
            relu(r#""static_shapes": true"#),
            Unsupported,
            "input 0 has an open dim",
        ),
        (
            one("Op", 20, Float32, &["?".into()], &[]),
            relu(r#""static_shapes": true"#),
            Unknown,
            "the shape of output 0 is not known",
        ),
        (one("Op", 20, Float32, &image, &[]), relu(r#""largest_dim": 4"#), Supported, ""),
        (
            one("Op", 20, Float32, &image, &[]),
            relu(r#""largest_dim": 3"#),
            Unsupported,
            "input 0 has a dim of 4",
        ),
        (one("Op", 20, Float32, &image, &[]), relu(r#""constant": [1, 5]"#), Supported, ""),
        (
            one("Op", 20, Float32, &image, &[]),
            relu(r#""constant": [0]"#),
            Unsupported,
            "input 0 is not a weight",
        ),
        (one("Op", 20, Float32, &image, &[]), relu(r#""without": [2]"#), Supported, ""),
        (one("Op", 20, Float32, &image, &[]), relu(r#""without": [1]"#), Unsupported, "input 1 is given"),
        (
            one("Op", 20, Float32, &image, &[]),
            relu(r#""outputs_at_most": 0"#),
            Unsupported,
            "1 outputs are used",
        ),
        (
            one("Op", 20, Float32, &image, &[]),
            relu(r#""attributes": {"mode": [null, "linear"]}"#),
            Supported,
            "",
        ),
        (
            one("Op", 20, Float32, &image, &[("mode", text("cubic"))]),
            relu(r#""attributes": {"mode": [null, "linear"]}"#),
            Unsupported,
            "mode is cubic",
        ),
        (
            one("Op", 20, Float32, &image, &[]),
            relu(r#""attributes": {"mode": ["linear"]}"#),
            Unsupported,
            "mode is not given",
        ),
        (
            one("Op", 20, Float32, &image, &[("to", Attribute::Int(9))]),
            relu(r#""attributes": {"to": {"not": [9]}}"#),
            Unsupported,
            "to is 9",
        ),
        (
            one("Op", 20, Float32, &image, &[("d", Attribute::Ints(vec![1, 1]))]),
            relu(r#""attributes": {"d": [[1, 1]]}"#),
            Supported,
            "",
        ),
        (
            one("Op", 20, Float32, &image, &[("axis", Attribute::Int(3))]),
            relu(r#""last_axis": true"#),
            Supported,
            "",
        ),
        (
            one("Op", 20, Float32, &image, &[("axis", Attribute::Int(1))]),
            relu(r#""last_axis": true"#),
            Unsupported,
            "axis 1 is not the last",
        ),
        (
            one("Op", 20, Int64, &image, &[]),
            relu(r#""types": {"input 0": ["float32"]}"#)
                + r#", {"operators": ["Op"], "verdict": "partial", "reason": "slowly"}"#,
            Partial,
            "slowly",
        ),
        (
            one("Op", 12, Float32, &image, &[]),
            r#"{"operators": ["Op"], "opsets": "13-", "verdict": "supported"}"#.to_owned(),
            Unknown,
            "no rule for operator set 12",
        ),
        (
            one("Op", 12, Float32, &image, &[]),
            r#"{"operators": ["Op"], "opsets": "9-12", "verdict": "supported"}"#.to_owned(),
            Supported,
            "",
        ),
    ];
    for (at, (model, by, verdict, reason)) in cases.iter().enumerate() {
        let found = judged(model, by);
        assert_eq!((found.0, found.1.as_str()), (*verdict, *reason), "case {at}: {by}");
        assert_eq!(found.2, f64::from(u8::from(*verdict != Unknown)), "case {at}");
    }
}

/// An operator whose input has no known type is never supported by a rule that asks for one.
#[test]
fn what_is_not_known_stays_unknown() {
    let model = GraphBuilder::new("g")
        .opset(20)
        .node("Make", ["x"], ["a"])
        .node("Op", ["a"], ["y"])
        .untyped_output("y")
        .build();
    let by = r#"{"operators": ["Op"], "verdict": "supported", "when": {"types": {"input 0": ["float32"]}}},
                {"operators": ["Op"], "verdict": "partial", "reason": "anything"}"#;
    let analysis = analyze_with(&[("m", &model, &types(&model))], &[rules(by)]);
    let op = analysis.operators.iter().find(|row| row.operator == "Op").unwrap();
    assert_eq!(op.verdicts, [Verdict::Unknown]);
}

#[test]
fn bad_rule_files_name_the_line() {
    let head = "{\n\"target\": \"T\",\n\"sources\": [],\n\"rules\": [\n";
    for (rest, line, said) in [
        ("{\"operators\": [\"Op\"], \"verdict\": \"maybe\"}]}", 5, "unknown variant `maybe`"),
        ("{\"operators\": [\"Op\"], \"verdict\": \"supported\", \"wen\": {}}]}", 5, "unknown field `wen`"),
        (
            "{\"operators\": [\"Op\"],\n\"opsets\": \"13-9\", \"verdict\": \"supported\"}]}",
            6,
            "`13-9` is no range",
        ),
        (
            "{\"operators\": [\"Op\"],\n\"verdict\": \"supported\", \"when\": {\"types\": {\"input x\": []}}}]}",
            6,
            "does not end in a number",
        ),
        ("{\"operators\": [\"Op\"], \"verdict\": \"partial\"}]}", 5, "the verdict partial needs a reason"),
        (
            "{\"operators\": [\"Op\"], \"verdict\": \"supported\", \"when\": {\"types\": {\"inputs\": [\"flaot\"]}}}]}",
            5,
            "`flaot` is no element type and no list",
        ),
        ("{\"operators\": [\"Op\"]", 5, "EOF"),
    ] {
        let error = Rules::from_json(&format!("{head}{rest}")).unwrap_err();
        let Error::Rules { line: found, reason, .. } = &error else { panic!("{error:?}") };
        assert!(reason.contains(said), "{reason}");
        assert_eq!(*found, line, "{error}");
    }
    let huge = format!("{head}{}", " ".repeat(5 << 20));
    assert!(matches!(Rules::from_json(&huge), Err(Error::Rules { .. })));
}

#[test]
fn every_target_has_rules_with_a_source() {
    for target in Target::ALL {
        let rules = Rules::built_in(*target).unwrap();
        assert_eq!(rules.target(), target.to_string());
        assert!(
            rules.sources().iter().all(|s| s.address.starts_with("https://") && !s.version.is_empty()),
            "{target}"
        );
        assert!(!rules.sources().is_empty(), "{target}");
        // A target whose source lists no operators says so.
        assert!(!rules.operators().is_empty() || rules.note().contains("Everything is unknown"), "{target}");
        assert_eq!(target.to_string().to_lowercase().parse::<Target>().unwrap(), *target);
    }
    assert!("TPU".parse::<Target>().unwrap_err().to_string().contains("rten"));
}

/// Sub-graphs and functions are judged and counted; a call of a function fares as what is in it.
#[test]
fn nested_nodes_count() {
    let branch =
        GraphBuilder::new("b").node("Known", ["x"], ["t"]).node("Strange", ["t"], ["z"]).untyped_output("z");
    let model = common::graph(&["x"])
        .opset(20)
        .node("Known", ["x"], ["a"])
        .node_with("If", ["a"], ["y"], [("then_branch", Attribute::Graph(branch))])
        .untyped_output("y")
        .build();
    let by = r#"{"operators": ["Known", "If"], "verdict": "supported"}"#;
    let analysis = analyze_with(&[("m", &model, &types(&model))], &[rules(by)]);
    let component = &analysis.components[0];
    assert_eq!(
        component.metadata.total_operators,
        component.metadata.operator_counts.values().sum::<usize>()
    );
    assert_eq!((component.metadata.total_operators, component.metadata.in_sub_graphs), (4, 2));
    let result = &component.results[0];
    assert_eq!((result.coverage.mapped, result.coverage.unknown, result.coverage.confidence), (3, 1, 0.75));
    assert!(!result.runtime_support && result.has_warnings && !result.has_errors);
    assert!(result.classification.unknown.contains("OP/ai.onnx/Strange"));

    // A function that calls another, and one that calls itself.
    let function = |name: &str, ops: &[&str]| {
        use common::{bytes, within};
        let nodes = ops.iter().map(|op| {
            within(
                &[7],
                [
                    bytes(1, "x"),
                    bytes(2, "y"),
                    bytes(4, op),
                    bytes(7, if *op == "Known" || *op == "Strange" { "" } else { "own" }),
                ]
                .concat(),
            )
        });
        within(&[25], [bytes(1, name), bytes(10, "own"), nodes.collect::<Vec<_>>().concat()].concat())
    };
    let call = |op: &str| {
        common::within(
            &[7, 1],
            [common::bytes(1, "x"), common::bytes(2, op), common::bytes(4, op), common::bytes(7, "own")]
                .concat(),
        )
    };
    let graph = [call("Good"), call("Bad"), call("Round")].concat();
    // Functions import nothing here: what is in them cannot be judged.
    let file = [
        graph,
        function("Good", &["Known"]),
        function("Bad", &["Good", "Strange"]),
        function("Round", &["Round"]),
    ]
    .concat();
    let model = Model::from_bytes(file).unwrap();
    let analysis = analyze_with(&[("m", &model, &Types::default())], &[rules(by)]);
    let metadata = &analysis.components[0].metadata;
    assert_eq!((metadata.total_operators, metadata.in_functions), (7, 4));
    let verdict = |op: &str| analysis.operators.iter().find(|row| row.operator == op).unwrap().verdicts[0];
    assert_eq!(
        (verdict("Good"), verdict("Bad"), verdict("Round")),
        (Verdict::Unknown, Verdict::Unknown, Verdict::Unknown)
    );
}

#[test]
fn the_fixture_pair_runs_on_the_processor() {
    for path in common::fixture_graphs() {
        let model = Model::read(&path).unwrap();
        let types = Types::infer(&model, &Weights::in_folder(path.parent().unwrap())).unwrap();
        let analysis = analyze(&[("fixture", &model, &types)], Target::ALL).unwrap();
        let cpu = analysis.components[0].results.iter().find(|r| r.target == "CPU/CPU").unwrap();
        assert_eq!(cpu.coverage.unsupported + cpu.coverage.partial, 0, "{:?}", cpu.information);
        let again = analyze(&[("fixture", &model, &types)], Target::ALL).unwrap();
        assert_eq!(serde_json::to_string(&analysis).unwrap(), serde_json::to_string(&again).unwrap());
        let text = analysis.to_string();
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None);
    }
}
