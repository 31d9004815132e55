use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use composite::{Component, Composite, CompositeBuilder, Feed, Step, Value, Wiring};
use image::RgbImage;
use ndarray::{Array2, Axis};
use onnx_graph::PrecisionClass;
use release_assets::Cache;

use crate::{
    Click, Embeddings, Error, Label, ModelOrigin, PixelPoint, Prompt, Result, Segmentation, Tensor,
    engine::{self, Engine, EngineChoice, EngineInfo, EngineOptions, Session},
    preprocess::image_tensor,
};

/// How a [`Segmenter`] is opened. Made by [`Segmenter::builder`].
#[derive(Debug, Default)]
pub struct SegmenterBuilder {
    engine: EngineOptions,
    cache: Option<Cache>,
    composite: CompositeBuilder,
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

    /// The precisions of the graphs that may be used, best first; single precision alone where this is not called. Half precision
    /// needs ONNX Runtime.
    #[must_use]
    pub fn precisions(mut self, precisions: impl IntoIterator<Item = PrecisionClass>) -> Self {
        self.composite = self.composite.precisions(precisions);
        self
    }

    /// How encoder and decoder are joined, where neither the names of their ports nor a contract rule that comes with
    /// `composite` settle it.
    #[must_use]
    pub fn wiring(mut self, wiring: Wiring) -> Self {
        self.composite = self.composite.wiring(wiring);
        self
    }

    /// Opens a model: a folder of ONNX graphs with their metadata, a release archive, a folder that holds a release archive
    /// beside its `release_assets.json`, or a composite's JSON file ([`Composite::write`]), for which
    /// [`precisions`](Self::precisions) and [`wiring`](Self::wiring) are settled.
    ///
    /// An archive is verified and unpacked into the cache. The graphs are paired by contract, split into what an image
    /// needs once and what each click needs, and loaded.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Segmenter> {
        let (origin, composite) = self.find(path.as_ref())?;
        let engine = engine::open(&self.engine)?;
        Segmenter::load(origin, composite, engine.as_ref())
    }

    /// [`open`](Self::open) with an engine of the application's own; the engine settings of this builder are not looked at.
    pub fn open_with(self, engine: &dyn Engine, path: impl AsRef<Path>) -> Result<Segmenter> {
        let (origin, composite) = self.find(path.as_ref())?;
        Segmenter::load(origin, composite, engine)
    }

    fn find(&self, path: &Path) -> Result<(ModelOrigin, Composite)> {
        let origin = ModelOrigin::resolve(path, self.cache.as_ref())?;
        if let ModelOrigin::Composite { file, .. } = &origin {
            // It says itself how its graphs are joined, and which they are.
            let composite = Composite::read(file)?;
            return Ok((origin, composite));
        }
        let composite = self.composite.clone().open(origin.root())?;
        Ok((origin, composite))
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

    /// Plans the composite and loads its parts.
    fn load(origin: ModelOrigin, composite: Composite, engine: &dyn Engine) -> Result<Self> {
        let plan = composite.plan()?;
        let load = |steps: &[Step]| -> Result<Vec<LoadedStep>> {
            let load = |step: &Step| {
                let name = step.component.to_string();
                let session = engine.load(&step.model, &step.folder, &name)?;
                Ok(LoadedStep { session, name, component: step.component, feeds: step.feeds.clone() })
            };
            steps.iter().map(load).collect()
        };
        Ok(Self {
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
        let values = self.encode_tensor(tensor)?;
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
    /// The first negative click [probes](Self::honours_negative_clicks) the model: one that cannot honour it is refused
    /// with [`Error::NegativeClicksInert`], since its mask would be wrong without an error.
    pub fn segment(&self, embeddings: &Embeddings, prompt: impl Into<Prompt>) -> Result<Segmentation> {
        if embeddings.made_by != self.identity {
            return Err(Error::ForeignEmbeddings);
        }
        let prompt = prompt.into();
        if !prompt.has(Label::Positive) {
            return Err(Error::NoPositiveClick);
        }
        let (width, height) = (embeddings.width, embeddings.height);
        let mut values = prompt.tensors(self.composite.prompt(), width, height)?;
        if prompt.has(Label::Negative) && !self.honours_negative_clicks()? {
            return Err(Error::NegativeClicksInert);
        }
        for step in &self.per_prompt {
            step.run(&embeddings.values, &mut values)?;
        }
        let (logits, score) = self.single_mask(&mut values)?;
        Ok(Segmentation::new(logits, score, width, height))
    }

    /// Whether the model tells a negative click from a positive one and from none at all.
    ///
    /// Found by running its prompt part on one point with each of the three labels, after a positive click where there is
    /// a slot for it, and comparing what reaches the decoder (models whose prompt part takes the image are given a black
    /// one). Some published graphs embed a negative click as a positive one. The answer is kept.
    pub fn honours_negative_clicks(&self) -> Result<bool> {
        if let Some(&known) = self.negative_clicks.get() {
            return Ok(known);
        }
        let point = |label| Click { point: PixelPoint::new(0.5, 0.25), label };
        let first = Click::positive(0.75, 0.625);
        let before = if self.slots() > 1 { vec![first] } else { Vec::new() };
        let with = |label| -> Vec<Click> { before.iter().copied().chain([point(label)]).collect() };
        let negative = self.probe(&with(Label::Negative).into())?;
        let positive = self.probe(&with(Label::Positive).into())?;
        let absent = self.probe(&before.into())?;
        let honours = differ(&negative, &positive) && differ(&negative, &absent);
        Ok(*self.negative_clicks.get_or_init(|| honours))
    }

    /// What reaches the decoder of a prompt alone.
    fn probe(&self, prompt: &Prompt) -> Result<BTreeMap<Value, Tensor>> {
        let profile = self.composite.preprocessing();
        let mut kept = BTreeMap::new();
        if self.kept.contains(&Value::Image) {
            let black = image_tensor(&RgbImage::new(profile.width, profile.height), profile)?;
            kept.insert(Value::Image, black);
        }
        let mut values = prompt.tensors(self.composite.prompt(), 1, 1)?;
        // All steps before the decoder, which is the last.
        if let Some((_, before)) = self.per_prompt.split_last() {
            for step in before {
                step.run(&kept, &mut values)?;
            }
        }
        values.retain(|value, _| matches!(value, Value::Port(..)));
        Ok(values)
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
        let (Some(masks), Some(scores)) = (masks.floats(), scores.floats()) else { return Err(wrong) };
        let mut masks = masks.into_owned();
        let (Some(&score), 1) = (scores.iter().next(), scores.len()) else { return Err(wrong) };
        // [1, 1, h, w], or with an object axis of one before it.
        while masks.ndim() > 2 {
            if masks.shape()[0] != 1 {
                return Err(wrong);
            }
            masks.index_axis_inplace(Axis(0), 0);
        }
        if masks.is_empty() {
            return Err(wrong);
        }
        let logits: Array2<f32> = masks.into_dimensionality().map_err(|_| wrong)?;
        let ends = (f32::INFINITY, f32::NEG_INFINITY);
        let (least, most) = logits.iter().fold(ends, |(least, most), &v| (least.min(v), most.max(v)));
        // Probabilities are all inside: no logits of a mask lie between 0 and 1 throughout.
        if least >= 0.0 && least < most && most <= 1.0 {
            return Err(Error::Probabilities { port: pair.masks.clone(), least, most });
        }
        Ok((logits, score))
    }
}

/// Whether some value differs by more than the noise of threads that add in another order.
fn differ(a: &BTreeMap<Value, Tensor>, b: &BTreeMap<Value, Tensor>) -> bool {
    a.iter().any(|(value, a)| match (a.floats(), b.get(value).and_then(Tensor::floats)) {
        (Some(a), Some(b)) => {
            let largest = a.iter().map(|v| v.abs()).fold(0.0, f32::max);
            a.iter().zip(b.iter()).any(|(a, b)| (a - b).abs() > largest * 1e-4)
        }
        _ => Some(a) != b.get(value),
    })
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
