//! The engine trait is enough to bring another engine: here one that counts its runs and lets rten work.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    num::NonZeroUsize,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::{Decoder, Encoder, write_model};
use image::RgbImage;
use onnx_graph::{Model, Port};
use sam_runtime::{
    Click, Result, Segmenter, Tensor,
    engine::{self, Engine, EngineChoice, EngineInfo, EngineKind, EngineOptions, Session},
};

#[derive(Debug)]
struct Counting {
    info: EngineInfo,
    inner: Box<dyn Engine>,
    runs: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct CountingSession {
    inner: Box<dyn Session>,
    runs: Arc<AtomicUsize>,
}

impl Engine for Counting {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn load(&self, model: &Model, folder: &Path, name: &str) -> Result<Box<dyn Session>> {
        let inner = self.inner.load(model, folder, name)?;
        Ok(Box::new(CountingSession { inner, runs: Arc::clone(&self.runs) }))
    }
}

impl Session for CountingSession {
    fn inputs(&self) -> &[Port] {
        self.inner.inputs()
    }

    fn outputs(&self) -> &[Port] {
        self.inner.outputs()
    }

    fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.inner.run(inputs)
    }
}

#[test]
fn an_image_is_run_once_and_each_click_twice() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), Encoder::Faithful, Decoder::Disc, 2);
    let runs = Arc::new(AtomicUsize::new(0));
    let mut options = EngineOptions::default();
    options.choice = EngineChoice::Rten;
    let counting = Counting {
        info: EngineInfo::new(EngineKind::Custom("counting"), "1", NonZeroUsize::MIN),
        inner: engine::open(&options).unwrap(),
        runs: Arc::clone(&runs),
    };
    let segmenter = Segmenter::builder().open_with(&counting, folder.path()).unwrap();
    assert_eq!(segmenter.engine().to_string(), "counting 1");
    let embeddings = segmenter.encode(&RgbImage::new(30, 20)).unwrap();
    assert_eq!(runs.swap(0, Ordering::Relaxed), 1, "the image part");
    for x in 0..5_u8 {
        segmenter.segment(&embeddings, Click::positive(f32::from(x), 5.0)).unwrap();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 10, "the prompt part and the decoder for each click");
}
