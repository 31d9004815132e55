//! Build recipes: the JSON that says what is made of one component (reference 3.9).

mod fields;
mod quant;

use std::{fmt, path::Path};

use onnx_graph::Fp16Options;
use serde_json::{Map, Value};

use self::fields::{Fields, nearest};
pub use self::quant::{QuantMode, Quantization};
use crate::{Composite, Error, GraphFile, Result, error::one_line, files};

/// Recipes have a kilobyte or two.
const MAX_BYTES: u64 = 1 << 20;

/// What is made of one component: how its graph is exported, optimised, quantised and compiled.
///
/// Read strictly: a key that is not known is an error that names the nearest one, since a setting that is passed over builds
/// something else than was asked for. Written in the reference's order, with two blanks to a level and no line break at the end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recipe {
    /// Whether what is left out is chosen by device and precision.
    pub auto: bool,
    /// Whether the graph is left as it is before quantisation.
    pub skip_optimize: bool,
    /// How a graph is made of a checkpoint.
    pub export: Export,
    /// Settings of optimisers, which are not looked at here.
    pub optim: Map<String, Value>,
    /// How the graph is brought to another precision; `None` leaves it.
    pub quant: Option<Quantization>,
    /// Settings of a compiler, which are not looked at here; `None` compiles nothing.
    pub compile: Option<Map<String, Value>>,
    /// Which model and component the recipe is for.
    pub loader: Loader,
    /// Settings of an evaluation, which are not looked at here.
    pub eval: Option<Map<String, Value>>,
}

/// How a graph is made of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Export {
    /// Not at all: it is published as ONNX (`null`).
    AlreadyOnnx,
    /// With the exporter's defaults (the key is left out).
    Defaults,
    /// With these settings, which are not looked at here.
    Settings(Map<String, Value>),
}

/// Which model and component a recipe is for. What is `None` is not written.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Loader {
    /// The task, such as `mask-generation`.
    pub task: Option<String>,
    /// The class that loads the model.
    pub model_class: Option<String>,
    /// The model's type, such as `sam2`.
    pub model_type: Option<String>,
    /// A module with code of the user's.
    pub module_path: Option<String>,
    /// The component.
    pub component: Option<ComponentName>,
    /// A script of the user's.
    pub user_script: Option<String>,
    /// Whether code that comes with the model may be run.
    pub trust_remote_code: Option<bool>,
}

/// The components of a mask-generation composite, in their order (reference 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ComponentName {
    /// `image-encoder`, of the task `image-feature-extraction`.
    ImageEncoder,
    /// `prompt-decoder`, of the task `mask-generation`.
    PromptDecoder,
}

impl ComponentName {
    /// All components, in their order.
    pub const ALL: [Self; 2] = [Self::ImageEncoder, Self::PromptDecoder];

    /// The name, as recipes have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ImageEncoder => "image-encoder",
            Self::PromptDecoder => "prompt-decoder",
        }
    }

    /// The component's own task.
    pub fn task(self) -> &'static str {
        match self {
            Self::ImageEncoder => "image-feature-extraction",
            Self::PromptDecoder => "mask-generation",
        }
    }

    /// The component of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }

    pub(crate) fn graph(self, composite: &Composite) -> &GraphFile {
        match self {
            Self::ImageEncoder => &composite.pair().encoder,
            Self::PromptDecoder => &composite.pair().decoder,
        }
    }
}

impl fmt::Display for ComponentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The precision that a recipe is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecipePrecision {
    /// What the publisher has: single precision on processors and GPUs.
    Auto,
    /// Single precision.
    Fp32,
    /// Half precision, with ports in single.
    Fp16,
}

const KEYS: [&str; 8] = ["auto", "skip_optimize", "export", "optim", "quant", "compile", "loader", "eval"];
const LOADER_KEYS: [&str; 7] = [
    "task",
    "model_class",
    "model_type",
    "module_path",
    "component_name",
    "user_script",
    "trust_remote_code",
];

impl Recipe {
    /// The recipe for a component that is published as ONNX.
    pub fn new(component: ComponentName, precision: RecipePrecision) -> Self {
        let quant = match precision {
            RecipePrecision::Auto | RecipePrecision::Fp32 => None,
            RecipePrecision::Fp16 => Some(Quantization::fp16()),
        };
        let loader = Loader {
            task: Some(component.task().to_owned()),
            component: Some(component),
            ..Loader::default()
        };
        Self {
            auto: true,
            skip_optimize: false,
            export: Export::AlreadyOnnx,
            optim: Map::new(),
            quant,
            compile: None,
            loader,
            eval: None,
        }
    }

    /// Reads a recipe's file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let fail = |reason: String| Error::Recipe { path: Some(path.to_owned()), reason: one_line(&reason) };
        let bytes = files::read(path, MAX_BYTES).map_err(|why| why.of_document(path, MAX_BYTES, fail))?;
        let text = String::from_utf8(bytes).map_err(|_| fail("it is not UTF-8".to_owned()))?;
        parse(&text).map_err(fail)
    }

    /// Reads a recipe from its JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        parse(text).map_err(|reason| Error::Recipe { path: None, reason: one_line(&reason) })
    }

    /// The recipe as JSON, in the reference's order.
    pub fn to_json(&self) -> String {
        // Printing a value of text and numbers cannot fail.
        serde_json::to_string_pretty(&self.to_value()).unwrap_or_default()
    }

    /// The same as a value.
    pub fn to_value(&self) -> Value {
        let mut found = Map::new();
        if !self.auto {
            found.insert("auto".to_owned(), false.into());
        }
        if self.skip_optimize {
            found.insert("skip_optimize".to_owned(), true.into());
        }
        match &self.export {
            Export::AlreadyOnnx => drop(found.insert("export".to_owned(), Value::Null)),
            Export::Defaults => {}
            Export::Settings(settings) => {
                found.insert("export".to_owned(), settings.clone().into());
            }
        }
        found.insert("optim".to_owned(), self.optim.clone().into());
        found.insert("quant".to_owned(), self.quant.as_ref().map_or(Value::Null, Quantization::to_value));
        found.insert("compile".to_owned(), self.compile.clone().map_or(Value::Null, Value::Object));
        let loader = self.loader.to_value();
        if !loader.is_empty() {
            found.insert("loader".to_owned(), loader.into());
        }
        if let Some(eval) = &self.eval {
            found.insert("eval".to_owned(), eval.clone().into());
        }
        found.into()
    }

    /// The graph of a composite that the recipe is for. Fails with [`Error::Recipe`] where it names no component, or a task that is
    /// not the component's.
    pub fn graph<'c>(&self, composite: &'c Composite) -> Result<&'c GraphFile> {
        let fail = |reason: String| Error::Recipe { path: None, reason };
        let component =
            self.loader.component.ok_or_else(|| fail("loader.component_name is left out".to_owned()))?;
        match &self.loader.task {
            Some(task) if task != component.task() => Err(fail(format!(
                "loader.task is `{task}`, and that of {component} is `{}`",
                component.task()
            ))),
            _ => Ok(component.graph(composite)),
        }
    }

    /// Fails with [`Error::Recipe`] where a graph of a composite is not the one that the recipe is for.
    pub fn check(&self, composite: &Composite, graph: &Path) -> Result<()> {
        let wanted = self.graph(composite)?;
        if wanted.path == graph {
            return Ok(());
        }
        let reason = format!("it is for {}, and {} is another graph", wanted.file_name(), graph.display());
        Err(Error::Recipe { path: None, reason })
    }

    /// How the graph is brought to half precision, where the recipe asks for it.
    pub fn fp16(&self) -> Option<Fp16Options> {
        let quant = self.quant.as_ref().filter(|quant| quant.mode == QuantMode::Fp16)?;
        let options = Fp16Options::compute().keep_io(quant.fp16_keep_io_types);
        Some(match &quant.fp16_op_block_list {
            Some(operators) => options.blocked_operators(operators.iter().map(String::as_str)),
            None => options,
        })
    }
}

fn parse(text: &str) -> Result<Recipe, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let mut fields = Fields::of(value, "", &KEYS)?;
    let export = match fields.take("export") {
        None => Export::Defaults,
        Some(Value::Null) => Export::AlreadyOnnx,
        Some(Value::Object(settings)) => Export::Settings(settings),
        Some(other) => return Err(fields.wrong("export", &other, "an object or null")),
    };
    let quant = fields.object("quant")?;
    let loader = fields.object("loader")?;
    Ok(Recipe {
        auto: fields.flag("auto")?.unwrap_or(true),
        skip_optimize: fields.flag("skip_optimize")?.unwrap_or(false),
        export,
        optim: fields.object("optim")?.unwrap_or_default(),
        quant: quant.map(Quantization::parse).transpose()?,
        compile: fields.object("compile")?,
        loader: loader.map(Loader::parse).transpose()?.unwrap_or_default(),
        eval: fields.object("eval")?,
    })
}

impl Loader {
    fn parse(found: Map<String, Value>) -> Result<Self, String> {
        let mut fields = Fields::of(found.into(), "loader", &LOADER_KEYS)?;
        let component = fields.text("component_name")?.map(|name| {
            ComponentName::named(&name).ok_or_else(|| {
                let known = ComponentName::ALL.map(ComponentName::name);
                format!("loader.component_name is `{name}`{}", nearest(&name, &known))
            })
        });
        Ok(Self {
            task: fields.text("task")?,
            model_class: fields.text("model_class")?,
            model_type: fields.text("model_type")?,
            module_path: fields.text("module_path")?,
            component: component.transpose()?,
            user_script: fields.text("user_script")?,
            trust_remote_code: fields.flag("trust_remote_code")?,
        })
    }

    fn to_value(&self) -> Map<String, Value> {
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let entries = [
            ("task", text(&self.task)),
            ("model_class", text(&self.model_class)),
            ("model_type", text(&self.model_type)),
            ("module_path", text(&self.module_path)),
            ("component_name", self.component.map(|component| component.name().into())),
            ("user_script", text(&self.user_script)),
            ("trust_remote_code", self.trust_remote_code.map(Value::from)),
        ];
        entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

pub(crate) fn recipe_text(path: Option<&Path>, reason: &str) -> String {
    match path {
        Some(path) => format!("{} is no recipe that can be used: {reason}", path.display()),
        None => format!("the recipe cannot be used: {reason}"),
    }
}
