//! CP1 to CP7, CP+, P3: which graphs are an encoder and its decoder, and which rule keeps others from being one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::{
    DECODER, ENCODER, choose, decoder, encoder, file, graph, join, only_ports, rule_for, weighing, wires,
};
use composite::{Error, GraphFile, Rule, Wiring, select};
use onnx_graph::{
    ElementType::{self, Float16, Float32, Int8, Uint8},
    PrecisionClass::{Fp16, Fp32},
};

fn refused(encoder: (&str, &str), decoder: (&str, &str)) -> Rule {
    rule_for(join(graph(encoder.0, encoder.1), graph(decoder.0, decoder.1)), "decoder.onnx")
}

/// A pair of one kind of weights, with two embeddings of rank 4.
fn family(prefix: &str, weights: ElementType) -> [GraphFile; 2] {
    let shared = format!("{} features float32[1,4,8,8]", ENCODER.1);
    [("encoder", graph(ENCODER.0, &shared)), ("decoder", graph(&shared, DECODER.1))]
        .map(|(name, graph)| file(&format!("{prefix}_{name}.onnx"), weighing(graph, weights)))
}

#[test]
fn the_published_contract() {
    let graphs = [file("first.onnx", encoder()), file("second.onnx", decoder())];
    let pair = choose(&graphs).unwrap();
    assert_eq!(
        (pair.encoder.file_name(), pair.decoder.file_name()),
        ("first.onnx".into(), "second.onnx".into())
    );
    assert_eq!(pair.image, "image");
    assert_eq!(wires(&pair), ["embedding", "sparse"]);
    assert_eq!((pair.masks.as_str(), pair.scores.as_str()), ("mask", "quality"));
}

/// CP1's form, in half and single precision: told by what it is, though it cannot be fed yet.
#[test]
fn points_in_the_decoder_are_not_supported() {
    let encoder = ("pixels float32[1,3,64,64]", "embedding float32[1,8,4,4] position float32[1,8,4,4]");
    let decoder = (
        "points float32[1,1,2,2] labels int64[1,1,2] embedding float32[1,8,4,4] position float32[1,8,4,4]",
        "scores float32[1,1,3] masks float32[1,1,3,16,16]",
    );
    assert_eq!(refused(encoder, decoder), Rule::PromptInDecoder);
}

#[test]
fn an_unquantised_pair_is_better() {
    for quantised in [Int8, Uint8] {
        let both = [family("a", quantised), family("b", Float32)].concat();
        let pair = choose(&both).unwrap();
        assert_eq!(pair.encoder.path, Path::new("b_encoder.onnx"));
        assert_eq!(pair.decoder.path, Path::new("b_decoder.onnx"));
        assert!(choose(&family("a", quantised)).unwrap().encoder.quantized);
        // The two are never mixed.
        let mixed = [both[0].clone(), both[3].clone()];
        assert_eq!(rule_for(choose(&mixed), "b_decoder.onnx"), Rule::Quantization("a_encoder.onnx".into()));
    }
}

#[test]
fn precision_by_preference() {
    let both = [family("half", Float16), family("single", Float32)].concat();
    let chosen = |graphs: &[_], precisions: &[_]| {
        select(Path::new("release"), graphs, Vec::new(), precisions, &Wiring::new())
            .unwrap()
            .encoder
            .file_name()
    };
    assert_eq!(chosen(&both, &[Fp16, Fp32]), "half_encoder.onnx");
    assert_eq!(chosen(&both, &[Fp32, Fp16]), "single_encoder.onnx");
    assert_eq!(chosen(&both, &[Fp32]), "single_encoder.onnx");
    // CP1: where half precision is asked for and incomplete, single is next.
    assert_eq!(chosen(&[&both[..1], &both[2..]].concat(), &[Fp16, Fp32]), "single_encoder.onnx");
    // Half precision is not asked for, of encoder and decoder alike.
    for name in ["half_encoder.onnx", "half_decoder.onnx"] {
        assert_eq!(rule_for(choose(&both[..2]), name), Rule::NotAskedFor(Fp16));
    }
    let mixed = [both[0].clone(), both[3].clone()];
    let result = select(Path::new("release"), &mixed, Vec::new(), &[Fp16, Fp32], &Wiring::new());
    assert_eq!(rule_for(result, "single_decoder.onnx"), Rule::Precision("half_encoder.onnx".into()));
}

#[test]
fn two_pairs_are_ambiguous() {
    let graphs = [
        file("d/decoder.onnx", graph(&DECODER.0.replace("sparse", "tokens"), DECODER.1)),
        file("c/encoder.onnx", graph(ENCODER.0, &ENCODER.1.replace("sparse", "tokens"))),
        file("b/decoder.onnx", graph(&DECODER.0.replace("embedding", "features"), DECODER.1)),
        file("a/encoder.onnx", graph(ENCODER.0, &ENCODER.1.replace("embedding", "features"))),
    ];
    let error = choose(&graphs).unwrap_err();
    assert!(matches!(error, Error::SeveralPairs { .. }));
    assert_eq!(
        error.to_string(),
        "more than one encoder/decoder pair fits: a/encoder.onnx with b/decoder.onnx, c/encoder.onnx with d/decoder.onnx"
    );
}

/// A decoder with one input of rank 4 looks like an encoder too; the rule that counts is still said.
#[test]
fn what_is_wrong_with_a_decoder_is_said() {
    let text = |rule: Rule| rule.to_string();
    let port = |given, taken| {
        format!("a port differs from encoder.onnx: `embedding` is given as {given} and taken as {taken}")
    };
    let no_masks = "no single output of rank 4 or more, or named `masks` or `pred_masks`, is the masks";
    let no_scores = "no single output of rank 1 to 3, or named `scores`, `iou_scores` or `iou_predictions`, is the scores";
    for (change, to, expected) in [
        (" quality float32[1,1]", "", no_scores.to_owned()), // CP5
        (" quality float32[1,1]", " quality float32[]", no_scores.to_owned()),
        ("quality", "quality float32[1] other", no_scores.to_owned()),
        ("mask float32[1,1,16,16]", "", no_masks.to_owned()),
        ("mask", "mask float32[1,1,8,8] other", no_masks.to_owned()),
        // CP6
        (
            "embedding float32[1,8,4,4]",
            "embedding float16[1,8,4,4]",
            port("float32[1,8,4,4]", "float16[1,8,4,4]"),
        ),
        (
            "embedding float32[1,8,4,4]",
            "embedding float32[1,8,4]",
            port("float32[1,8,4,4]", "float32[1,8,4]"),
        ),
        (
            "embedding float32[1,8,4,4]",
            "embedding float32[1,9,2,2]",
            port("float32[1,8,4,4]", "float32[1,9,2,2]"),
        ),
        ("embedding", "stranger float32[1] embedding", "nothing feeds its input `stranger`".to_owned()),
        ("embedding", "embedding float32[1] embedding", "two ports are called `embedding`".to_owned()),
        ("mask", "quality float32[1] mask", "two ports are called `quality`".to_owned()),
    ] {
        let replace = |text: &str| text.replace(change, to);
        let decoder = (replace(DECODER.0), replace(DECODER.1));
        assert_eq!(text(refused(ENCODER, (&decoder.0, &decoder.1))), expected, "{change} -> {to}");
    }
    let taken = DECODER.0.replace("4,4", "64,32");
    let given = ENCODER.1.replace("4,4", "s,s");
    let rule = refused((ENCODER.0, &given), (&taken, DECODER.1));
    assert_eq!(text(rule), port("float32[1,8,s,s]", "float32[1,8,64,32]"));
}

#[test]
fn open_sizes_fit_fixed_ones() {
    for given in ["height,width", "s,s", "?,4"] {
        let encoder = graph(ENCODER.0, &ENCODER.1.replace("4,4", given));
        assert!(join(encoder, decoder()).is_ok(), "{given}");
    }
}

/// CP+: sizes that agree port by port but not together.
#[test]
fn symbols_hold_over_all_ports() {
    let encoder = |last: &str| {
        let outputs = format!("a float32[1,n,w,w] b float32[1,h,w] c float32[1,h,{last}]");
        graph(ENCODER.0, &outputs)
    };
    let decoder = || graph("a float32[1,2,p,4] b float32[1,q,p] c float32[1,q,8]", DECODER.1);
    assert!(join(encoder("h"), decoder()).is_ok());
    let rule = rule_for(join(encoder("w"), decoder()), "decoder.onnx");
    let expected =
        "a port differs from encoder.onnx: `c` is given as float32[1,h,w] and taken as float32[1,q,8]";
    assert_eq!(rule.to_string(), expected);
}

/// CP+: newer decoders have more outputs of low rank; a known name settles which are the scores.
#[test]
fn scores_are_told_from_other_outputs() {
    for (outputs, masks, scores) in [
        (
            "iou_scores float32[1,3] pred_masks float32[1,3,16,16] object_score_logits float32[1,1]",
            "pred_masks",
            "iou_scores",
        ),
        (
            "object_score_logits float32[1,1] masks float32[1,1,16,16] scores float32[1,1] obj_ptr float32[1,8]",
            "masks",
            "scores",
        ),
        (
            "low_res float32[1,1,4,4] masks float32[1,1,16,16] iou_predictions float32[1,1]",
            "masks",
            "iou_predictions",
        ),
        ("scores float32[1,1,3] masks float32[1,1,3,16,16]", "masks", "scores"),
    ] {
        let pair = join(encoder(), graph(DECODER.0, outputs)).unwrap();
        assert_eq!((pair.masks.as_str(), pair.scores.as_str()), (masks, scores), "{outputs}");
    }
    // A name does not make a scalar the scores.
    let outputs = "masks float32[1,1,16,16] scores float32[] other float32[1,3] more float32[1,1]";
    assert_eq!(refused(ENCODER, (DECODER.0, outputs)), Rule::NoScores);
}

#[test]
fn points_on_one_side_exactly() {
    let name = || "encoder.onnx".to_owned();
    let points = " coordinates float32[1,2,2] labels float32[1,2]";
    let without = ENCODER.0.replace(points, "");
    assert_eq!(refused((&without, ENCODER.1), DECODER), Rule::NoPrompt(name()));
    let with = format!("{}{points}", DECODER.0);
    assert_eq!(refused(ENCODER, (&with, DECODER.1)), Rule::TwoPrompts(name()));
    // P3: coordinates without labels are no prompt.
    let unlabelled = ENCODER.0.replace(" labels float32[1,2]", "");
    assert_eq!(refused((&unlabelled, ENCODER.1), DECODER), Rule::NoPrompt(name()));
}

#[test]
fn graphs_of_another_kind() {
    let other = ("input_ids int64[1,77]", "hidden float32[1,77,8]");
    assert_eq!(refused(ENCODER, other), Rule::NoRole);
    let twice = ENCODER.1.replace("sparse", "embedding");
    let result = join(graph(ENCODER.0, &twice), decoder());
    assert_eq!(rule_for(result, "encoder.onnx"), Rule::DuplicatePort("embedding".into()));
    let outputs = "masks float32[1,1,16,16] scores float32[1,1] scores float32[1,1]";
    assert_eq!(refused(ENCODER, (DECODER.0, outputs)), Rule::DuplicatePort("scores".into()));
    let result = choose(&[file("encoder.onnx", encoder())]);
    assert_eq!(rule_for(result, "encoder.onnx"), Rule::Alone);
    // Two pictures as input: neither is the image.
    let two = format!("other float32[1,3,64,64] {}", ENCODER.0);
    let result = join(graph(&two, ENCODER.1), decoder());
    assert_eq!(rule_for(result, "encoder.onnx"), Rule::NoRole);
}

/// The mask of a decoder that gives probabilities would be the whole image: all of them are above 0. The scores may be
/// probabilities, and what only ends in one of these operators for another output does not matter.
#[test]
fn masks_that_are_probabilities_are_refused() {
    let decoder = |op: &str, behind: &[&str]| {
        let graph = only_ports(DECODER.0, DECODER.1)
            .node("All", ["embedding", "sparse"], ["logits", "level"])
            .node("Sigmoid", ["level"], ["quality"])
            .node(op, ["logits"], ["step0"]);
        let graph = behind.iter().enumerate().fold(graph, |graph, (i, op)| {
            graph.node(op, [format!("step{i}").as_str()], [format!("step{}", i + 1).as_str()])
        });
        graph.node("Identity", [format!("step{}", behind.len()).as_str()], ["mask"])
    };
    for (op, behind) in
        [("Sigmoid", &[][..]), ("Softmax", &["Transpose", "Cast"]), ("HardSigmoid", &["Reshape"])]
    {
        let rule = rule_for(join(encoder(), decoder(op, behind)), "decoder.onnx");
        assert_eq!(rule, Rule::Probabilities { port: "mask".into(), op: op.into() });
    }
    for (op, behind) in [("Relu", &["Identity"][..]), ("Sigmoid", &["Mul"]), ("Conv", &[])] {
        assert!(join(encoder(), decoder(op, behind)).is_ok(), "{op} {behind:?}");
    }
}
