use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use composite::{Component, Composite, Feed, PromptPorts, Step, Value};
use image::RgbImage;
use ndarray::{Array2, ArrayD, Axis, IxDyn};
use onnx_graph::ElementType;
use release_assets::Cache;

use crate::{
    Click, Embeddings, Error, Label, ModelOrigin, Result, Segmentation, Tensor,
    engine::{self, EngineChoice, EngineInfo, EngineOptions, Session},
    preprocess::image_tensor,
};

/// How a [`Segmenter`] is opened. Made by [`Segmenter::builder`].
#[derive(Debug, Default)]
pub struct SegmenterBuilder {
    engine: EngineOptions,
    cache: Option<Cache>,
}

impl SegmenterBuilder {
    /// Which engine runs the graphs; [`EngineChoice::Auto`] where this is not called.
    #[must_use]
    pub fn engine(mut self, choice: EngineChoice) -> Self {
        self.engine.choice = choice;
        self
    }

    /// Threads for one run of a graph; as many as this process may use where this is not called.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.engine.threads = Some(threads);
        self
    }

    /// The path of ONNX Runtime's library; see [`engine::onnxruntime::candidates`] for where it is looked for otherwise.
    #[must_use]
    pub fn onnxruntime_library(mut self, path: impl Into<PathBuf>) -> Self {
        self.engine.library = Some(path.into());
        self
    }

    /// The cache that archives are unpacked into; the user's cache folder where this is not called.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Opens a model: a folder of ONNX graphs with their `metadata.json`, a release archive, or a folder that holds a
    /// release archive beside its `release_assets.json`.
    ///
    /// An archive is verified and unpacked into the cache. The graphs are paired by contract, split into what an image
    /// needs once and what each click needs, and loaded.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Segmenter> {
        let origin = ModelOrigin::resolve(path.as_ref(), self.cache.as_ref())?;
        let composite = Composite::open(origin.root())?;
        let plan = composite.plan()?;
        let engine = engine::open(&self.engine)?;
        let load = |steps: &[Step]| -> Result<Vec<LoadedStep>> {
            let load = |step: &Step| {
                let name = step.component.to_string();
                let session = engine.load(&step.model, &step.folder, &name)?;
                Ok(LoadedStep { session, name, component: step.component, feeds: step.feeds.clone() })
            };
            steps.iter().map(load).collect()
        };
        Ok(Segmenter {
            per_image: load(&plan.per_image)?,
            per_prompt: load(&plan.per_prompt)?,
            kept: plan.kept_per_image().into_iter().cloned().collect(),
            engine: engine.info().clone(),
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            negative_clicks: OnceLock::new(),
            composite,
            origin,
        })
    }
}

/// Tells the embeddings of one segmenter from another's within this process.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// A step of the plan with its session; the graph itself is the engine's now.
#[derive(Debug)]
struct LoadedStep {
    session: Box<dyn Session>,
    name: String,
    component: Component,
    feeds: Vec<Feed>,
}

/// A model that turns clicks into masks: an image is encoded once, each prompt on it then costs milliseconds.
///
/// All methods take `&self`, and the type may be shared between threads; runs of one ONNX Runtime graph queue.
#[derive(Debug)]
pub struct Segmenter {
    composite: Composite,
    origin: ModelOrigin,
    engine: EngineInfo,
    per_image: Vec<LoadedStep>,
    per_prompt: Vec<LoadedStep>,
    kept: Vec<Value>,
    identity: u64,
    negative_clicks: OnceLock<bool>,
}

impl Segmenter {
    /// Opens a model with the default settings; see [`SegmenterBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder().open(path)
    }

    /// Starts with the default settings: [`EngineChoice::Auto`], all threads, the user's cache folder.
    pub fn builder() -> SegmenterBuilder {
        SegmenterBuilder::default()
    }

    /// Which engine answers.
    pub fn engine(&self) -> &EngineInfo {
        &self.engine
    }

    /// The graphs, how they are joined, and how pictures are prepared.
    pub fn composite(&self) -> &Composite {
        &self.composite
    }

    /// Where the files came from.
    pub fn origin(&self) -> &ModelOrigin {
        &self.origin
    }

    /// Points that one prompt can hold.
    pub fn slots(&self) -> usize {
        self.composite.prompt().slots
    }

    /// Runs the per-image part once. The image is upright 8-bit RGB of any size ([`read_image`](crate::read_image)).
    pub fn encode(&self, image: &RgbImage) -> Result<Embeddings> {
        let tensor = image_tensor(image, self.composite.preprocessing())?;
        let values = self.encode_tensor(Tensor::F32(tensor.into_dyn()))?;
        let (width, height) = image.dimensions();
        Ok(Embeddings { values: Arc::new(values), width, height, made_by: self.identity })
    }

    fn encode_tensor(&self, image: Tensor) -> Result<BTreeMap<Value, Tensor>> {
        let mut values = BTreeMap::from([(Value::Image, image)]);
        for step in &self.per_image {
            step.run(&BTreeMap::new(), &mut values)?;
        }
        values.retain(|value, _| self.kept.contains(value));
        Ok(values)
    }

    /// Turns one prompt, all of whose clicks speak of one object, into a mask at the image's own size.
    ///
    /// Clicks are in pixels of the image that was encoded. Their order does not matter to SAM 2's family.
    /// The first negative click probes the model once: one that gives the same prompt for a point whatever its label is
    /// refused with [`Error::NegativeClicksInert`], since its mask would be wrong without an error.
    pub fn segment(&self, embeddings: &Embeddings, clicks: &[Click]) -> Result<Segmentation> {
        if embeddings.made_by != self.identity {
            return Err(Error::ForeignEmbeddings);
        }
        if !clicks.iter().any(|c| c.label == Label::Positive) {
            return Err(Error::NoPositiveClick);
        }
        let (width, height) = (embeddings.width, embeddings.height);
        let mut values = prompt_values(self.composite.prompt(), clicks, width, height)?;
        if clicks.iter().any(|c| c.label == Label::Negative) && !self.honours_negative_clicks()? {
            return Err(Error::NegativeClicksInert);
        }
        for step in &self.per_prompt {
            step.run(&embeddings.values, &mut values)?;
        }
        let (logits, score) = self.single_mask(&mut values)?;
        Ok(Segmentation::new(logits, score, width, height))
    }

    /// Whether the model tells a negative click from a positive one, found by running its prompt part on one point with
    /// either label (and, in models whose prompt part takes the image, on a black image). The answer is kept.
    pub fn honours_negative_clicks(&self) -> Result<bool> {
        if let Some(&known) = self.negative_clicks.get() {
            return Ok(known);
        }
        let prompt = self.composite.prompt();
        let profile = self.composite.preprocessing();
        let kept = if self.kept.contains(&Value::Image) {
            let black = RgbImage::new(profile.width, profile.height);
            BTreeMap::from([(Value::Image, Tensor::F32(image_tensor(&black, profile)?.into_dyn()))])
        } else {
            BTreeMap::new()
        };
        let probe = |label| -> Result<BTreeMap<Value, Tensor>> {
            let click = Click { point: crate::PixelPoint::new(0.5, 0.25), label };
            let mut values = prompt_values(prompt, &[click], 1, 1)?;
            // All steps before the decoder, which is the last.
            for step in self.per_prompt.iter().rev().skip(1).rev() {
                step.run(&kept, &mut values)?;
            }
            values.remove(&Value::Labels);
            Ok(values)
        };
        let differs = probe(Label::Positive)? != probe(Label::Negative)?;
        Ok(*self.negative_clicks.get_or_init(|| differs))
    }

    /// The decoder's single mask with its score.
    fn single_mask(&self, values: &mut BTreeMap<Value, Tensor>) -> Result<(Array2<f32>, f32)> {
        let pair = self.composite.pair();
        let mut take = |port: &str| {
            let found = values.remove(&Value::Port(Component::MaskDecoder, port.to_owned()));
            let missing = || Error::PortMissing { graph: "mask decoder".to_owned(), port: port.to_owned() };
            found.ok_or_else(missing)
        };
        let (masks, scores) = (take(&pair.masks)?, take(&pair.scores)?);
        let wrong = Error::MaskShape { masks: masks.shape().to_vec(), scores: scores.shape().to_vec() };
        let (Tensor::F32(mut masks), Tensor::F32(scores)) = (masks, scores) else { return Err(wrong) };
        let (Some(&score), 1) = (scores.iter().next(), scores.len()) else { return Err(wrong) };
        // [1, 1, h, w], or with an object axis of one before it.
        while masks.ndim() > 2 {
            if masks.shape()[0] != 1 {
                return Err(wrong);
            }
            masks.index_axis_inplace(Axis(0), 0);
        }
        let logits = masks.into_dimensionality().map_err(|_| wrong)?;
        Ok((logits, score))
    }
}

impl LoadedStep {
    /// Feeds the step from what was made before and what was kept, and adds what it gives.
    fn run(&self, kept: &BTreeMap<Value, Tensor>, values: &mut BTreeMap<Value, Tensor>) -> Result<()> {
        let mut inputs = Vec::with_capacity(self.feeds.len());
        for feed in &self.feeds {
            let value = values.get(&feed.value).or_else(|| kept.get(&feed.value));
            let missing = || Error::PortMissing { graph: self.name.clone(), port: feed.port.clone() };
            inputs.push((feed.port.as_str(), value.ok_or_else(missing)?));
        }
        let outputs = engine::run_checked(self.session.as_ref(), &self.name, &inputs)?;
        values.extend(outputs.into_iter().map(|(name, t)| (Value::Port(self.component, name), t)));
        Ok(())
    }
}

/// Fills the model's point slots: the clicks first, then padding with label -1 at (0, 0).
fn prompt_values(
    prompt: &PromptPorts,
    clicks: &[Click],
    width: u32,
    height: u32,
) -> Result<BTreeMap<Value, Tensor>> {
    if clicks.len() > prompt.slots {
        return Err(Error::TooManyClicks { slots: prompt.slots, found: clicks.len() });
    }
    let mut coordinates = vec![0.0_f32; prompt.slots * 2];
    let mut labels = vec![-1_i8; prompt.slots];
    for ((click, xy), label) in clicks.iter().zip(coordinates.chunks_exact_mut(2)).zip(&mut labels) {
        let (x, y) = click.point.to_unit(width, height)?;
        xy.copy_from_slice(&[x, y]);
        *label = match click.label {
            Label::Positive => 1,
            Label::Negative => 0,
        };
    }
    let shape = |dims: &[u64]| IxDyn(&dims.iter().map(|&d| d as usize).collect::<Vec<_>>());
    let unsupported = |port: &str, element_type: ElementType| Error::PortMismatch {
        graph: "prompt encoder".to_owned(),
        port: onnx_graph::Port { name: port.to_owned(), element_type, shape: None },
        found: "float32, int32 or int64 prompts".to_owned(),
    };
    let coordinates = match prompt.coordinate_type {
        ElementType::Float32 => ArrayD::from_shape_vec(shape(&prompt.coordinate_shape), coordinates).ok(),
        _ => None,
    };
    let coordinates = coordinates.ok_or_else(|| unsupported(&prompt.coordinates, prompt.coordinate_type))?;
    let labels = ArrayD::from_shape_vec(shape(&prompt.label_shape), labels).ok();
    let labels = labels.and_then(|labels| match prompt.label_type {
        ElementType::Float32 => Some(Tensor::F32(labels.mapv(f32::from))),
        ElementType::Int32 => Some(Tensor::I32(labels.mapv(i32::from))),
        ElementType::Int64 => Some(Tensor::I64(labels.mapv(i64::from))),
        _ => None,
    });
    let labels = labels.ok_or_else(|| unsupported(&prompt.labels, prompt.label_type))?;
    Ok(BTreeMap::from([(Value::Coordinates, Tensor::F32(coordinates)), (Value::Labels, labels)]))
}
