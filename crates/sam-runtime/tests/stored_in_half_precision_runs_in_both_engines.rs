//! A pair whose weights are only stored in half precision opens in both engines, with the masks that the rounded weights
//! give in single precision; computed in half precision it opens in ONNX Runtime, and rten refuses it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod common;

use std::path::Path;

use onnx_graph::{Fp16Options, Model, Port, SaveOptions, Sidecar, Weights};
use sam_runtime::{
    Click, Segmentation, Segmenter, Tensor,
    engine::{Engine, EngineChoice, EngineOptions, open},
    error_chain, read_image,
};

/// Writes the fixture pair to `folder`, each graph as `convert` makes it.
fn write_pair(folder: &Path, convert: impl Fn(&Model, &Weights) -> Model) {
    let weights = Weights::in_folder(common::tiny_sam());
    for name in ["TinySamEncoder.onnx", "TinySamDecoder.onnx"] {
        let model = convert(&Model::read(common::tiny_sam().join(name)).unwrap(), &weights);
        std::fs::write(folder.join(name), model.to_bytes().unwrap()).unwrap();
    }
    std::fs::copy(common::tiny_sam().join("metadata.json"), folder.join("metadata.json")).unwrap();
}

/// A click on each of a few photographs.
fn segment(folder: &Path, engine: EngineChoice) -> Vec<Segmentation> {
    let segmenter = Segmenter::builder().engine(engine).open(folder).unwrap();
    let one = |file: &str| {
        let image = read_image(common::fixtures().join("images").join(file)).unwrap();
        let at = |x: f32, y: f32| (x * image.width() as f32, y * image.height() as f32);
        let ((x, y), (nx, ny)) = (at(0.47, 0.33), at(0.27, 0.55));
        let embeddings = segmenter.encode(&image).unwrap();
        segmenter.segment(&embeddings, [Click::positive(x, y), Click::negative(nx, ny)]).unwrap()
    };
    ["coffee.jpg", "rocket.jpg", "flower.jpg", "coins.png"].map(one).into()
}

/// The largest difference of any logit.
fn difference(a: &[Segmentation], b: &[Segmentation]) -> f32 {
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.low_res_logits().iter().zip(b.low_res_logits()));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The mean over the photographs.
fn iou(a: &[Segmentation], b: &[Segmentation]) -> f64 {
    let one = |(a, b): (&Segmentation, &Segmentation)| {
        let pairs = || a.mask.iter().zip(&b.mask);
        let both = pairs().filter(|(a, b)| **a && **b).count();
        let either = pairs().filter(|(a, b)| **a || **b).count();
        both as f64 / either as f64
    };
    let each: Vec<f64> = a.iter().zip(b).map(one).collect();
    eprintln!("IoU {each:?}");
    each.iter().sum::<f64>() / each.len() as f64
}

#[test]
fn the_same_file_serves_both() {
    let store = |model: &Model, weights: &Weights| model.to_fp16(weights, &Fp16Options::storage()).unwrap().0;
    let [stored, rounded] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_pair(stored.path(), store);
    // The same numbers in single precision, written by the other path.
    write_pair(rounded.path(), |model, weights| store(model, weights).widened(&Weights::inline()).unwrap());
    let size = |folder: &Path| {
        let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
        let weights = files.filter(|e| e.file_name() != "metadata.json");
        weights.map(|e| e.metadata().unwrap().len()).sum::<u64>()
    };
    assert!(size(stored.path()) * 100 <= size(&common::tiny_sam()) * 55);
    let [rten, ort] = common::engines();
    let in_rten = segment(stored.path(), rten);
    let rounded_in_rten = segment(rounded.path(), rten);
    assert!(difference(&in_rten, &rounded_in_rten) <= 0.0, "rten computes with other numbers");
    let in_ort = segment(stored.path(), ort);
    let between = difference(&in_rten, &in_ort);
    assert!(between <= 1e-4, "the engines are {between} apart");
    let off = difference(&in_ort, &segment(rounded.path(), ort));
    assert!(off <= 1e-4, "off by {off} of the rounded weights");
    let whole = segment(&common::tiny_sam(), ort);
    eprintln!(
        "IoU with float32 weights {}, logits off by {}",
        iou(&whole, &in_ort),
        difference(&whole, &in_ort)
    );
    assert!(iou(&whole, &in_ort) >= 0.999);
}

#[test]
fn what_computes_in_half_precision_is_for_onnx_runtime() {
    let file = common::tiny_sam().join("TinySamDecoder.onnx");
    let whole = Model::read(file).unwrap();
    let weights = Weights::in_folder(common::tiny_sam());
    let (half, _) = whole.to_fp16(&weights, &Fp16Options::compute()).unwrap();
    let [rten, ort] = common::engines().map(open_engine);
    let refused = rten.load(&half, &common::tiny_sam(), "half").unwrap_err();
    assert!(error_chain(&refused).contains("float16"), "{}", error_chain(&refused));
    let fed: Vec<(String, Tensor)> =
        whole.inputs().iter().map(|port| (port.name.clone(), waves(port))).collect();
    let fed: Vec<(&str, &Tensor)> = fed.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let run = |model: &Model| ort.load(model, &common::tiny_sam(), "decoder").unwrap().run(&fed).unwrap();
    for ((name, a), (_, b)) in run(&whole).iter().zip(run(&half)) {
        let (a, b) = (a.as_f32().unwrap(), b.as_f32().unwrap());
        let range = a.fold(0.0_f32, |m, v| m.max(v.abs()));
        let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        eprintln!("{name}: off by {off} of {range}");
        assert!(off <= range * 0.02, "{name}: off by {off} of {range}");
    }
}

fn open_engine(choice: EngineChoice) -> Box<dyn Engine> {
    let mut options = EngineOptions::default();
    options.choice = choice;
    options.threads = std::num::NonZeroUsize::new(2);
    open(&options).unwrap()
}

/// Numbers that are neither large nor equal.
fn waves(port: &Port) -> Tensor {
    let shape: Vec<usize> = port.static_shape().unwrap().iter().map(|&d| d as usize).collect();
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::F32(ndarray::ArrayD::from_shape_vec(shape, values).unwrap())
}

const CHILD: &str = "SAM_RUNTIME_HALF_CHILD";

/// What float32 and stored weights cost on full-size graphs, in processes that take turns: `SAM_RUNTIME_FULL_SIZE` names a folder
/// with `encoder.onnx`, `SAM_RUNTIME_ROUNDS` how often (3 where it is not there). To be read on a machine that does nothing
/// else: run it with `--release -- --ignored --nocapture costs`.
#[test]
#[ignore = "needs full-size graphs and time"]
fn costs() {
    if let Ok(what) = std::env::var(CHILD) {
        return child(&what);
    }
    let full = std::path::PathBuf::from(std::env::var("SAM_RUNTIME_FULL_SIZE").unwrap());
    let rounds = std::env::var("SAM_RUNTIME_ROUNDS").map_or(3, |r| r.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let model = Model::read(full.join("encoder.onnx")).unwrap();
    let (stored, report) = model.to_fp16(&Weights::in_folder(&full), &Fp16Options::storage()).unwrap();
    let path = folder.path().join("encoder.onnx");
    // In the form of the other: weights that are inside are held twice while a session is made.
    let saved = stored.save(&path, &Weights::inline(), &SaveOptions::sidecar(Sidecar::new())).unwrap();
    drop((model, stored));
    let bytes = |path: &Path| path.metadata().unwrap().len();
    let whole = bytes(&full.join("encoder.onnx")) + bytes(&full.join("encoder.data"));
    let stored_bytes: u64 = bytes(&path) + saved.sidecars.iter().map(|file| file.bytes).sum::<u64>();
    let share = stored_bytes as f64 / whole as f64;
    eprintln!("bytes on disk {share:.4}, {} weights stored", report.tensors_converted);
    common::require_onnxruntime();
    for engine in ["ort", "rten"] {
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (folder, found) in [full.as_path(), folder.path()].into_iter().zip(&mut found) {
                found.push(spawn(&format!("{engine}={}", folder.display())));
            }
        }
        for (name, column) in [("load ms", 0), ("encode ms", 1), ("peak MB", 2)] {
            let [whole, stored] = [&found[0], &found[1]].map(|rows| {
                let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            });
            eprintln!("{engine} {name}: float32 {whole:.0}, stored {stored:.0}, ratio {:.3}", stored / whole);
        }
    }
}

/// Runs this test in a process of its own and gives what it measured.
fn spawn(what: &str) -> [f64; 3] {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "costs"]).env(CHILD, what);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().find_map(|line| line.strip_prefix("measured ")).unwrap_or_else(|| panic!("{text}"));
    let numbers: Vec<f64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn child(what: &str) {
    let (engine, folder) = what.split_once('=').unwrap();
    let choice = if engine == "ort" { EngineChoice::Ort } else { EngineChoice::Rten };
    let engine = open_engine(choice);
    let model = Model::read(Path::new(folder).join("encoder.onnx")).unwrap();
    let start = std::time::Instant::now();
    let session = engine.load(&model, Path::new(folder), "encoder").unwrap();
    let load = start.elapsed();
    drop(model);
    let fed: Vec<(String, Tensor)> =
        session.inputs().iter().map(|port| (port.name.clone(), waves(port))).collect();
    let fed: Vec<(&str, &Tensor)> = fed.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = std::time::Instant::now();
        session.run(&fed).unwrap();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let peak: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    eprintln!("measured {} {} {}", load.as_secs_f64() * 1e3, best * 1e3, peak / 1024.0);
}
