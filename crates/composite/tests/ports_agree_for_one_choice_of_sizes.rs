//! CP6, CP7, CP+: one symbol means one size over all ports that are joined, and each side has its own symbols.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use common::ports;
use composite::unify;
use onnx_graph::{Dim, ElementType::Float32, Port};
use proptest::prelude::*;

fn joined(produced: &[Port], consumed: &[Port]) -> Result<(), String> {
    unify(produced.iter().zip(consumed)).map_err(|m| m.to_string())
}

#[test]
fn examples() {
    let ok = Ok(());
    let refused = |text: &str| Err(text.to_owned());
    for (produced, consumed, expected) in [
        // Types and ranks.
        ("a float32[2]", "a float32[2]", ok.clone()),
        ("a float32[2]", "a float16[2]", refused("`a` is given as float32[2] and taken as float16[2]")),
        ("a float32[2]", "a float32[2,1]", refused("`a` is given as float32[2] and taken as float32[2,1]")),
        ("a float32[]", "a float32[]", ok.clone()),
        ("a float32[...]", "a float32[2]", ok.clone()),
        ("a float32[...]", "a int64[2]", refused("`a` is given as float32[...] and taken as int64[2]")),
        // Sizes; zero is one.
        (
            "a float32[1,256,64,64]",
            "a float32[1,128,32,32]",
            refused("`a` is given as float32[1,256,64,64] and taken as float32[1,128,32,32]"),
        ),
        ("a float32[0]", "a float32[5]", refused("`a` is given as float32[0] and taken as float32[5]")),
        ("a float32[0,s]", "a float32[0,0]", ok.clone()),
        ("a float32[?]", "a float32[5]", ok.clone()),
        ("a float32[?]", "a float32[s]", ok.clone()),
        // An unknown size ties nothing together.
        ("a float32[?] b float32[?]", "a float32[2] b float32[3]", ok.clone()),
        ("a float32[s] b float32[s]", "a float32[?] b float32[3]", ok.clone()),
        // Symbols.
        ("a float32[1,256,height,width]", "a float32[1,256,64,64]", ok.clone()),
        (
            "a float32[1,256,s,s]",
            "a float32[1,256,64,32]",
            refused("`a` is given as float32[1,256,s,s] and taken as float32[1,256,64,32]"),
        ),
        ("a float32[1,h,w] b float32[h,4,4]", "a float32[1,p,p] b float32[7,4,4]", ok.clone()),
        (
            "a float32[1,h,9] b float32[h,4,4]",
            "a float32[1,p,p] b float32[7,4,4]",
            refused("`b` is given as float32[h,4,4] and taken as float32[7,4,4]"),
        ),
        // The same symbol on both sides is two symbols.
        ("a float32[s] b float32[2]", "a float32[3] b float32[s]", ok.clone()),
        // Bound before they are joined, and after.
        (
            "a float32[s] b float32[2] c float32[s]",
            "a float32[1] b float32[t] c float32[t]",
            refused("`c` is given as float32[s] and taken as float32[t]"),
        ),
        (
            "c float32[s] a float32[s] b float32[2]",
            "c float32[t] a float32[1] b float32[t]",
            refused("`b` is given as float32[2] and taken as float32[t]"),
        ),
        // A chain over three ports: w = x = y = z.
        (
            "a float32[w] b float32[y] c float32[y,w]",
            "a float32[x] b float32[x] c float32[3,4]",
            refused("`c` is given as float32[y,w] and taken as float32[3,4]"),
        ),
        ("a float32[w] b float32[y] c float32[y,w]", "a float32[x] b float32[x] c float32[3,3]", ok.clone()),
    ] {
        assert_eq!(joined(&ports(produced), &ports(consumed)), expected, "{produced} -> {consumed}");
    }
}

/// A shape that no model has takes the time of one pass, not of one per dim (which would be minutes).
#[test]
fn very_long_shapes() {
    let port =
        |dims: &mut dyn Iterator<Item = String>| vec![Port::new("a", Float32, dims.map(Dim::Symbolic))];
    // Each dim joins one more symbol to one growing class.
    let many = port(&mut (0..200_000).map(|i| format!("s{i}")));
    let one = port(&mut (0..200_000).map(|_| "s".to_owned()));
    let start = Instant::now();
    joined(&many, &one).unwrap();
    joined(&one, &many).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// All symbols, by side, with every choice of sizes tried.
fn satisfiable(couples: &[(Vec<Dim>, Vec<Dim>)]) -> bool {
    const SIZES: u64 = 4;
    let names = ["a", "b", "c"];
    let count = names.len() as u32 * 2;
    (0..SIZES.pow(count)).any(|choice| {
        let sizes: HashMap<_, _> = (0..count)
            .map(|i| ((i % 2 == 0, names[i as usize / 2]), choice / SIZES.pow(i) % SIZES))
            .collect();
        let size = |produced: bool, dim: &Dim| match dim {
            Dim::Static(size) => Some(*size),
            Dim::Symbolic(name) => Some(sizes[&(produced, name.as_str())]),
            Dim::Unknown => None,
        };
        let equal = |(p, c): (&Dim, &Dim)| match (size(true, p), size(false, c)) {
            (Some(p), Some(c)) => p == c,
            _ => true,
        };
        couples.iter().all(|(p, c)| p.len() == c.len() && p.iter().zip(c).all(equal))
    })
}

fn any_dim() -> impl Strategy<Value = Dim> {
    prop_oneof![
        2 => (0_u64..4).prop_map(Dim::Static),
        4 => prop::sample::select(vec!["a", "b", "c"]).prop_map(Dim::from),
        1 => Just(Dim::Unknown),
    ]
}

/// Two shapes, of one rank as a rule.
fn any_couple() -> impl Strategy<Value = (Vec<Dim>, Vec<Dim>)> {
    let of_rank = |rank| prop::collection::vec(any_dim(), rank);
    prop_oneof![
        9 => (0_usize..4).prop_flat_map(move |rank| (of_rank(rank), of_rank(rank))),
        1 => (of_rank(2), of_rank(3)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Refused exactly where no choice of sizes exists, at the first port after which there is none.
    #[test]
    fn as_trying_every_size(couples in prop::collection::vec(any_couple(), 1..5)) {
        let port = |(i, dims): (usize, &Vec<Dim>)| Port::new(&i.to_string(), Float32, dims.clone());
        let produced: Vec<Port> = couples.iter().map(|c| &c.0).enumerate().map(port).collect();
        let consumed: Vec<Port> = couples.iter().map(|c| &c.1).enumerate().map(port).collect();
        let expected = (0..couples.len()).find(|&last| !satisfiable(&couples[..=last]));
        let found = unify(produced.iter().zip(&consumed)).err().map(|m| m.produced.name.parse().unwrap());
        prop_assert_eq!(found, expected);
    }
}
