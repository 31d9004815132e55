//! What it costs to open a release that is in the cache already: archive and files hashed in full on two threads,
//! beside `openssl dgst -sha256` on the same files, turn by turn in one run. See `benches/README.md`.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

use std::{
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use sam_kit::{
    onnx_graph::{ElementType, GraphBuilder, Weight},
    release_assets::{Cache, Client, Pin, Release, UrlRelease, sha256_file},
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

const ROUNDS: usize = 15;
const URL: &str = "https://archives.example/release.zip";

/// The published release's graphs with the bytes of their weights, which do not compress.
const GRAPHS: [(&str, usize); 2] = [("encoder", 134_000_000), ("decoder", 25_000_000)];
/// Into how many tensors these are divided.
const TENSORS: usize = 200;

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        // xorshift64: good enough not to be compressed.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend(state.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// A model whose weights lie in a sidecar, one behind the other.
fn graph(location: &str, bytes: usize) -> Vec<u8> {
    let shape = [1_u64, 3].map(Into::into);
    let length = bytes / TENSORS;
    let graph = GraphBuilder::new("graph")
        .input("x", ElementType::Float32, shape.clone())
        .node("Identity", ["x"], ["y"])
        .output("y", ElementType::Float32, shape);
    let graph = (0..TENSORS).fold(graph, |graph, index| {
        let (offset, length) = ((index * length).to_string(), length.to_string());
        let entries = [("location", location), ("offset", &offset), ("length", &length)];
        let dims = [(bytes / TENSORS / 4) as u64];
        graph.weight(&format!("w{index}"), Weight::external(ElementType::Float32, dims, &entries))
    });
    graph.build().to_bytes().expect("a graph")
}

fn archive() -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, data: &[u8]| {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        writer.start_file(name, options).expect("a member");
        writer.write_all(data).expect("its bytes");
    };
    for (name, bytes) in GRAPHS {
        add(&format!("release/{name}.onnx"), &graph(&format!("{name}.data"), bytes));
        add(&format!("release/{name}.data"), &noise(bytes));
    }
    writer.finish().expect("an archive").into_inner()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn openssl(files: &[PathBuf]) {
    let output = Command::new("openssl").args(["dgst", "-sha256"]).args(files).output().expect("openssl");
    assert!(output.status.success());
}

fn main() {
    let place = tempfile::tempdir().expect("a folder");
    let zip = place.path().join("release.zip");
    fs::write(&zip, archive()).expect("the archive");
    let mut pin = Pin::new(sha256_file(&zip).expect("its hash"), "none", "the bench", "2026-11-30");
    pin.url = Some(URL.to_owned());
    let cache = Cache::new(place.path().join("cache"));
    cache.import(&zip, Some(&pin)).expect("an import");
    let client = Client::builder().endpoint("https://hub.example").token(None).proxy(None).offline(true);
    let client = client.build().expect("a client");
    let wanted = UrlRelease::new(URL).pin(pin);
    let open = |cache: &Cache| -> Release { cache.acquire_url(&wanted, &client).expect("a release") };
    let release = open(&cache);
    let kept = release.root.parent().map(|folder| folder.join("release.zip")).expect("the archive");
    let files: Vec<PathBuf> =
        release.inventory.iter().map(|file| release.root.join(&file.path)).chain([kept]).collect();
    let bytes: u64 = files.iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
    let one_by_one = |files: &[PathBuf]| files.iter().for_each(|file| drop(sha256_file(Path::new(file))));
    let stat_only = cache.clone().stat_only();
    let (mut ours, mut single, mut peer, mut stat) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(timed(|| open(&cache)).0);
        peer.push(timed(|| openssl(&files)).0);
        single.push(timed(|| one_by_one(&files)).0);
        stat.push(timed(|| open(&stat_only)).0);
    }
    let (ours, single, peer, stat) = (median(ours), median(single), median(peer), median(stat));
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!("{:.1} MB in {} files, medians of {ROUNDS} rounds, in turns", bytes as f64 / 1e6, files.len());
    println!("open, everything hashed  {:>8.1} ms {:>7.0} MB/s", ours * 1e3, rate(ours));
    println!("sha256_file, one thread  {:>8.1} ms {:>7.0} MB/s", single * 1e3, rate(single));
    println!("openssl dgst -sha256     {:>8.1} ms {:>7.0} MB/s", peer * 1e3, rate(peer));
    println!("open, stat_only          {:>8.1} ms", stat * 1e3);
    println!("open / openssl           {:>8.2}", ours / peer);
}
