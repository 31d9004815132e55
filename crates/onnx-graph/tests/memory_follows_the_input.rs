//! What reading, checking and saving take from memory: never a sidecar, never more than a stated multiple of the input.
//!
//! Each case runs in a process of its own, which compares the peak of its resident memory (`VmHWM`) with what it had before.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{fs, path::Path, process::Command};

use common::{bytes, field::*, within, write};
use onnx_graph::{ElementType::Uint8, GraphBuilder, Model, SaveOptions, Severity, Sidecar, Weight, Weights};

/// 16 tensors of 4 MiB.
const TENSORS: u64 = 16;
const TENSOR: u64 = 4 << 20;
const WEIGHTS: u64 = TENSORS * TENSOR;
/// Messages of a hostile file.
const MESSAGES: usize = 50_000;
/// What pages, buffers and the allocator's own needs may add.
const SLACK: u64 = 8 << 20;

fn status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// The work of each case, on files in `folder`.
fn run(case: &str, folder: &Path) {
    let weights = Weights::in_folder(folder);
    let read = |name: &str| Model::read(folder.join(name)).unwrap();
    let out = folder.join(format!("{case}.onnx"));
    let sidecar = SaveOptions::sidecar(Sidecar::new().alignment(4096));
    match case {
        "nothing" => {}
        "read external" => drop(read("external.onnx")),
        "check external" => {
            let found = read("external.onnx").check(&folder.join("external.onnx"), &weights);
            assert!(found.iter().all(|f| f.severity < Severity::Error), "{found:?}");
        }
        "save external" => drop(read("external.onnx").save(out, &weights, &sidecar).unwrap()),
        "save external inline" => {
            drop(read("external.onnx").save(out, &weights, &SaveOptions::inline()).unwrap());
        }
        "read inline" => drop(read("inline.onnx")),
        "check inline" => drop(read("inline.onnx").check(Path::new(""), &weights)),
        "save inline" => drop(read("inline.onnx").save(out, &weights, &SaveOptions::keep()).unwrap()),
        "save inline outside" => drop(read("inline.onnx").save(out, &weights, &sidecar).unwrap()),
        "read nodes" => drop(read("nodes.onnx")),
        "check nodes" => drop(read("nodes.onnx").check(Path::new(""), &weights)),
        "check names" => drop(read("names.onnx").check(Path::new(""), &weights)),
        "check attributes" => drop(read("attributes.onnx").check(Path::new(""), &weights)),
        "check tensors" => drop(read("tensors.onnx").check(Path::new(""), &weights)),
        other => panic!("{other}"),
    }
}

#[test]
#[ignore = "run by the other test, in processes of their own"]
fn one_case() {
    let case = std::env::var("ONNX_GRAPH_MEMORY_CASE").unwrap();
    let folder = std::env::var("ONNX_GRAPH_MEMORY_FOLDER").unwrap();
    let before = status("VmRSS");
    run(&case, folder.as_ref());
    let peak = status("VmHWM").saturating_sub(before);
    fs::write(Path::new(&folder).join("peak"), peak.to_string()).unwrap();
}

/// The peak of a case in bytes.
fn peak(case: &str, folder: &Path) -> u64 {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "one_case", "--nocapture"])
        .env("ONNX_GRAPH_MEMORY_CASE", case)
        .env("ONNX_GRAPH_MEMORY_FOLDER", folder)
        .output()
        .unwrap();
    assert!(child.status.success(), "{case}: {}", String::from_utf8_lossy(&child.stderr));
    fs::read_to_string(folder.join("peak")).unwrap().parse().unwrap()
}

#[test]
fn peaks_stay_below_what_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = |weight: &dyn Fn(u64) -> Weight| {
        (0..TENSORS).fold(GraphBuilder::new("test"), |g, i| g.weight(&format!("w{i}"), weight(i))).build()
    };
    let inline = tensors(&|i| Weight::raw(Uint8, [1, TENSOR], vec![i as u8; TENSOR as usize]));
    write(folder.path(), "inline.onnx", inline.to_bytes().unwrap());
    let saved = inline.save(
        folder.path().join("external.onnx"),
        &Weights::inline(),
        &SaveOptions::sidecar(Sidecar::new()),
    );
    assert_eq!(saved.unwrap().sidecars[0].bytes, WEIGHTS);
    drop(inline);
    // The smallest messages there are, two bytes each in the file.
    let empty = |fields: &[u64], last| within(fields, bytes(last, []).repeat(MESSAGES));
    write(folder.path(), "nodes.onnx", empty(&[MODEL_GRAPH], GRAPH_NODE));
    write(folder.path(), "attributes.onnx", empty(&[MODEL_GRAPH, GRAPH_NODE], NODE_ATTRIBUTE));
    write(folder.path(), "tensors.onnx", empty(&[MODEL_GRAPH], GRAPH_INITIALIZER));
    let hostile = 2 * MESSAGES as u64;
    // Nodes that give and read values of other nodes, nine bytes each, all of them at fault.
    let node =
        |i: usize| bytes(GRAPH_NODE, [bytes(1, format!("{i:x}")), bytes(2, format!("{i:x}"))].concat());
    let names = bytes(MODEL_GRAPH, (0..100_000).flat_map(node).collect::<Vec<u8>>());
    let named = names.len() as u64;
    write(folder.path(), "names.onnx", names);
    let cases = [
        ("nothing", 0),
        // Sidecars stay on disk, or pass through one tensor at a time.
        ("read external", 0),
        ("check external", 0),
        ("save external", TENSOR),
        ("save external inline", WEIGHTS + TENSOR),
        // A model with its weights inside is in memory once, and never twice.
        ("read inline", WEIGHTS),
        ("check inline", WEIGHTS),
        ("save inline", WEIGHTS),
        ("save inline outside", WEIGHTS),
        // The worst that a file can do to lists, up to the limit of `ReadLimits::max_list_memory`. Checking adds little.
        ("read nodes", 128 * hostile),
        ("check nodes", 128 * hostile),
        ("check attributes", 1024 * hostile),
        ("check tensors", 256 * hostile),
        ("check names", 64 * named),
    ];
    let mut faults = Vec::new();
    for (case, allowed) in cases {
        let peak = peak(case, folder.path());
        let line = format!("{case}: {peak} bytes, {allowed} and {SLACK} are allowed");
        if std::env::var_os("ONNX_GRAPH_MEMORY_SHOW").is_some() || peak > allowed + SLACK {
            faults.push(line);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
