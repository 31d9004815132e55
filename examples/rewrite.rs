//! Rewrites a graph, and holds what the engines make of it against the original.
use clap::Parser;
use ndarray::{ArrayD, IxDyn};
use sam_kit::{
    onnx_graph::{Dim, ElementType, Model, Pass, PassSet, Weights},
    sam_runtime::{
        Tensor,
        engine::{self, EngineChoice, EngineOptions},
    },
};
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

#[derive(Parser)]
struct Arguments {
    model: PathBuf,
    out: Option<PathBuf>,
    #[arg(long, value_delimiter = ',')]
    passes: Vec<String>,
    #[arg(long)]
    set: Option<String>,
    #[arg(long, default_value = "auto")]
    engine: String,
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

fn main() {
    let a = Arguments::parse();
    let model = Model::read(&a.model).unwrap();
    let folder = a.model.parent().unwrap();
    let weights = Weights::in_folder(folder);
    let passes: Vec<Pass> = match a.set.as_deref() {
        Some("ort") => PassSet::OnnxRuntime.passes().to_vec(),
        Some("rten") => PassSet::Rten.passes().to_vec(),
        _ => a.passes.iter().map(|p| p.parse().unwrap()).collect(),
    };
    let t = Instant::now();
    let done = model.rewrite(&passes, &weights).unwrap();
    println!("{:?}", t.elapsed());
    for r in &done.reports {
        println!("{r}");
    }
    let mut h = std::collections::BTreeMap::new();
    for n in done.model.nodes() {
        *h.entry(n.op_type()).or_insert(0) += 1;
    }
    println!("{h:?}");
    if let Some(out) = &a.out {
        std::fs::write(out, done.model.to_bytes().unwrap()).unwrap();
    }
    if a.runs == 0 {
        return;
    }
    let mut options = EngineOptions::default();
    options.choice = a.engine.parse::<EngineChoice>().unwrap();
    let engine = engine::open(&options).unwrap();
    println!("{}", engine.info());
    let before = engine.load(&model, folder, "before").unwrap();
    let after = engine.load(&done.model, folder, "after").unwrap();
    let mut seed = 1u64;
    let inputs: Vec<(String, Tensor)> = before
        .inputs()
        .iter()
        .map(|p| {
            let dims: Vec<usize> =
                p.shape.as_ref().unwrap().iter().map(|d| d.size().unwrap_or(1) as usize).collect();
            let values = (0..dims.iter().product())
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    (seed >> 40) as f32 / (1u64 << 24) as f32
                })
                .collect();
            (p.name.clone(), Tensor::F32(ArrayD::from_shape_vec(IxDyn(&dims), values).unwrap()))
        })
        .collect();
    let feed: Vec<(&str, &Tensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let (mut tb, mut ta) = (vec![], vec![]);
    for run in 0..=a.runs {
        let t = Instant::now();
        let b = before.run(&feed).unwrap();
        let tb1 = t.elapsed();
        let t = Instant::now();
        let c = after.run(&feed).unwrap();
        let ta1 = t.elapsed();
        if run == 0 {
            for (name, x) in &b {
                let (_, y) = c.iter().find(|(n, _)| n == name).unwrap();
                let (x, y) = (x.as_f32().unwrap(), y.as_f32().unwrap());
                let d = x.iter().zip(y).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
                let (lo, hi) = x.iter().fold((f32::MAX, f32::MIN), |(l, h), &v| (l.min(v), h.max(v)));
                println!("{name}: max abs difference {d:e}, range {:e}, ratio {:e}", hi - lo, d / (hi - lo));
            }
        } else {
            tb.push(tb1);
            ta.push(ta1);
        }
    }
    tb.sort();
    ta.sort();
    println!(
        "before {:?} after {:?} ratio {:.3}",
        tb[tb.len() / 2],
        ta[ta.len() / 2],
        ta[ta.len() / 2].as_secs_f64() / tb[tb.len() / 2].as_secs_f64()
    );
}
