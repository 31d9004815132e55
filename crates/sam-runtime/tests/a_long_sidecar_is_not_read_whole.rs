//! A sidecar may be longer than the graph says: what is behind costs nothing. A file, and so a process, of its own: it
//! looks at the process's peak memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use sam_runtime::{Click, Segmenter, engine::EngineChoice, read_image};

#[test]
fn three_gigabytes_behind_the_weights_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(common::tiny_sam()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    // Sparse: the disk is not filled either.
    let sidecar =
        std::fs::File::options().write(true).open(folder.path().join("TinySamEncoder.data")).unwrap();
    sidecar.set_len(3 << 30).unwrap();
    let segmenter = Segmenter::builder().engine(EngineChoice::Rten).open(folder.path()).unwrap();
    let image = read_image(common::fixtures().join("images/coffee.jpg")).unwrap();
    let embeddings = segmenter.encode(&image).unwrap();
    assert!(segmenter.segment(&embeddings, Click::positive(282.0, 132.0)).is_ok());
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
        let peak: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(peak < 1 << 20, "{peak} KiB");
    }
}
