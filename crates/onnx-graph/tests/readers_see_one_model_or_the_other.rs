//! While a pair is replaced, by one process or by several, a reader never meets a model with another one's weights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::Path,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
};

use onnx_graph::{
    ElementType::Uint8, Error, GraphBuilder, Model, SaveOptions, Sidecar, Weight, Weights, external_data,
};

/// A model whose weight is named after the bytes it is filled with.
fn model(fill: u8) -> Model {
    GraphBuilder::new("test")
        .weight(&fill.to_string(), Weight::raw(Uint8, [2, 1024], vec![fill; 2048]))
        .build()
}

fn save(fill: u8, path: &Path) -> Result<(), Error> {
    model(fill).save(path, &Weights::inline(), &SaveOptions::sidecar(Sidecar::new())).map(drop)
}

/// Reads the pair as an engine would.
fn assert_whole(path: &Path) {
    let model = Model::read(path).unwrap();
    let entry = external_data::list(&model, path).unwrap().remove(0);
    let bytes = fs::read(path.parent().unwrap().join(&entry.location)).unwrap();
    let fill: u8 = entry.tensor.parse().unwrap();
    assert!(bytes == [fill; 2048], "{entry:?} has {}", bytes[0]);
}

#[test]
fn a_reader_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    save(0, &path).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                assert_whole(&path);
                reads += 1;
            }
            reads
        });
        (0..100).for_each(|round| save(round % 3, &path).unwrap());
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn several_writers_at_once() {
    const WRITERS: u8 = 4;
    for _ in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        let barrier = Barrier::new(WRITERS.into());
        std::thread::scope(|scope| {
            for fill in 0..WRITERS {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    // Whoever comes second to the sidecar's name may be told so.
                    match save(fill, path) {
                        Ok(()) | Err(Error::SidecarTaken { .. }) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                });
            }
        });
        assert_whole(&path);
    }
}
