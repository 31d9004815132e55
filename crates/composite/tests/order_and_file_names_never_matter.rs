//! X13, X14, CP4: neither the listing's order, nor the ports' order, nor what the files are called changes the answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{DECODER, choose, decoder, encoder, file, graph, weighing, wires};
use composite::{Error, GraphFile};
use onnx_graph::ElementType::{Float32, Int8};
use proptest::prelude::*;

/// Everything that a caller can see of the choice.
fn answer(graphs: &[GraphFile]) -> String {
    match choose(graphs) {
        Ok(p) => {
            let (encoder, decoder) = (p.encoder.path.display(), p.decoder.path.display());
            format!("{encoder} {decoder} {} {:?} {:?} {} {}", p.image, p.prompt, p.wires, p.masks, p.scores)
        }
        Err(error) => error.to_string(),
    }
}

/// A choice to be made, an ambiguity, and a pair that fails for two reasons.
fn sets() -> [Vec<GraphFile>; 3] {
    let chosen = vec![
        file("1.onnx", weighing(encoder(), Int8)),
        file("2.onnx", weighing(decoder(), Int8)),
        file("3.onnx", weighing(encoder(), Float32)),
        file("4.onnx", weighing(decoder(), Float32)),
        file("5.onnx", graph("tokens int64[1,8]", "hidden float32[1,8]")),
    ];
    let ambiguous = vec![
        file("a.onnx", encoder()),
        file("b.onnx", decoder()),
        file("c.onnx", encoder()),
        file("d.onnx", decoder()),
    ];
    let failing = vec![
        file("w.onnx", weighing(encoder(), Int8)),
        file("x.onnx", graph(common::ENCODER.0, "embedding float32[1,8,2,2] sparse float32[1,3,8]")),
        file(
            "y.onnx",
            graph("embedding float32[1,8,4,4] sparse float32[1,3,8] s float32[1,8,1,1]", DECODER.1),
        ),
    ];
    [chosen, ambiguous, failing]
}

#[test]
fn the_sets_are_what_they_should_be() {
    let [chosen, ambiguous, failing] = sets();
    assert!(answer(&chosen).starts_with("3.onnx 4.onnx image"));
    assert!(matches!(choose(&ambiguous), Err(Error::SeveralPairs { candidates }) if candidates.len() == 4));
    assert!(matches!(choose(&failing), Err(Error::NoPair { graphs, .. }) if graphs.len() == 3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_listing_order(order in Just((0..5).collect::<Vec<usize>>()).prop_shuffle()) {
        for graphs in sets() {
            let shuffled: Vec<_> = order.iter().filter_map(|&i| graphs.get(i).cloned()).collect();
            prop_assert_eq!(answer(&shuffled), answer(&graphs));
        }
    }

    #[test]
    fn any_file_names(names in prop::collection::hash_set("[a-z]{1,8}", 5)) {
        let [graphs, ..] = sets();
        let named = graphs.into_iter().zip(&names);
        let renamed = |(mut graph, name): (GraphFile, &String)| {
            graph.path = name.into();
            graph
        };
        let named: Vec<_> = named.map(renamed).collect();
        let pair = choose(&named).unwrap();
        prop_assert_eq!(pair.encoder.path, named[2].path.clone());
        prop_assert_eq!(pair.decoder.path, named[3].path.clone());
    }

    /// The first output is high-resolution features in one exporter's graphs and the embedding in another's.
    #[test]
    fn any_port_order(
        given in Just(OUTPUTS.to_vec()).prop_shuffle(),
        taken in Just(OUTPUTS.to_vec()).prop_shuffle(),
        fed in Just(INPUTS.to_vec()).prop_shuffle(),
    ) {
        let encoder = graph(&fed.join(" "), &given.join(" "));
        let decoder = graph(&taken.join(" "), "scores float32[1,1] masks float32[1,1,16,16]");
        let pair = common::join(encoder, decoder).unwrap();
        prop_assert_eq!(wires(&pair), ["embedding", "features", "sparse"]);
        prop_assert_eq!(pair.image, "image");
        prop_assert_eq!(pair.prompt.coordinates, "coordinates");
        prop_assert_eq!((pair.masks.as_str(), pair.scores.as_str()), ("masks", "scores"));
    }
}

const INPUTS: [&str; 3] = ["image float32[1,3,64,64]", "coordinates float32[1,2,2]", "labels float32[1,2]"];
const OUTPUTS: [&str; 3] =
    ["features float32[1,32,256,256]", "embedding float32[1,256,64,64]", "sparse float32[1,3,8]"];
