use std::{collections::BTreeSet, fmt, path::PathBuf};

use onnx_graph::{Model, Port};

use crate::{Composite, Error, GraphFile, Result, select::Needs};

/// A part of a composite that is run as one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Component {
    /// The encoder's nodes that depend on the picture alone.
    ImageEncoder,
    /// The encoder's nodes that depend on the points alone.
    PromptEncoder,
    /// The encoder's nodes that depend on both: run per prompt, with the picture kept.
    FusedEncoder,
    /// The decoder.
    MaskDecoder,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ImageEncoder => "image encoder",
            Self::PromptEncoder => "prompt encoder",
            Self::FusedEncoder => "image and prompt encoder",
            Self::MaskDecoder => "mask decoder",
        })
    }
}

/// Something that flows through a composite.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Value {
    /// The prepared picture.
    Image,
    /// The points' coordinates.
    Coordinates,
    /// The points' labels.
    Labels,
    /// What an earlier step gave on one of its ports.
    Port(Component, String),
}

/// One input of a step and what it is fed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feed {
    /// The graph's input.
    pub port: String,
    /// What goes in.
    pub value: Value,
}

/// One graph to run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Step {
    /// Which part of the composite this is.
    pub component: Component,
    /// The graph; its sidecars are relative to [`folder`](Self::folder).
    pub model: Model,
    /// Where the graph's sidecars are.
    pub folder: PathBuf,
    /// What each input is fed.
    pub feeds: Vec<Feed>,
    /// The outputs that later steps or the caller need; each becomes [`Value::Port`].
    pub outputs: Vec<String>,
}

impl fmt::Display for Value {
    /// A port by its name and component, the rest in a word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image => f.write_str("image"),
            Self::Coordinates => f.write_str("coordinates"),
            Self::Labels => f.write_str("labels"),
            Self::Port(component, name) => write!(f, "{name} of the {component}"),
        }
    }
}

/// What to run, split into what a picture needs once and what each prompt needs.
///
/// The split follows from reachability in the graphs: what no point can reach is run once per picture.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// Steps whose outputs are kept with the picture.
    pub per_image: Vec<Step>,
    /// Steps for each prompt, in order; the last is the mask decoder.
    pub per_prompt: Vec<Step>,
}

impl Plan {
    pub(crate) fn of(composite: &Composite) -> Result<Self> {
        let pair = composite.pair();
        let (encoder, decoder) = (&pair.encoder, &pair.decoder);
        let encoder_model = encoder.model()?;

        let (mut of_image, mut of_prompt, mut of_both) = (Vec::new(), Vec::new(), Vec::new());
        let outputs: BTreeSet<&str> = pair.wires.iter().map(|wire| wire.output.as_str()).collect();
        for port in outputs {
            let Needs { image, points } = pair.needs(port);
            match (image, points) {
                (true, true) => of_both.push(port),
                (false, true) => of_prompt.push(port),
                // Constants of the encoder are kept with the picture as well.
                (_, false) => of_image.push(port),
            }
        }

        let encoder_step = |component, outputs: &[&str]| -> Result<Option<Step>> {
            if outputs.is_empty() {
                return Ok(None);
            }
            let needs: BTreeSet<&str> = outputs.iter().flat_map(|o| encoder.inputs_of(o)).collect();
            let needs: Vec<&str> = needs.into_iter().collect();
            step(component, encoder, &encoder_model, &needs, outputs, |port| composite.fed_to(port)).map(Some)
        };
        let per_image: Vec<Step> = encoder_step(Component::ImageEncoder, &of_image)?.into_iter().collect();
        let mut per_prompt: Vec<Step> =
            encoder_step(Component::PromptEncoder, &of_prompt)?.into_iter().collect();
        per_prompt.extend(encoder_step(Component::FusedEncoder, &of_both)?);

        let produced = |port: &str| {
            let mut steps = per_image.iter().chain(&per_prompt);
            steps.find(|s| s.outputs.iter().any(|o| o == port)).map(|s| s.component)
        };
        // Further outputs of the decoder would be computed, and checked, for nobody.
        let inputs: Vec<&str> = decoder.inputs.iter().map(|p| p.name.as_str()).collect();
        let outputs = [pair.masks.as_str(), &pair.scores];
        let made = |input: &str| {
            let wire = pair.wires.iter().find(|wire| wire.input == input)?;
            Some(Value::Port(produced(&wire.output)?, wire.output.clone()))
        };
        let decoder_step = step(Component::MaskDecoder, decoder, &decoder.model()?, &inputs, &outputs, made)?;
        per_prompt.push(decoder_step);
        Ok(Self { per_image, per_prompt })
    }

    /// The values that have to be kept with a picture: what the per-prompt steps take from outside of themselves.
    pub fn kept_per_image(&self) -> BTreeSet<&Value> {
        let made: BTreeSet<Component> = self.per_prompt.iter().map(|s| s.component).collect();
        let fed = self.per_prompt.iter().flat_map(|s| &s.feeds).map(|f| &f.value);
        fed.filter(|v| match v {
            Value::Image => true,
            Value::Port(component, _) => !made.contains(component),
            Value::Coordinates | Value::Labels => false,
        })
        .collect()
    }
}

/// The part of a graph that gives these outputs, each of its inputs fed with what `value` names.
fn step(
    component: Component,
    graph: &GraphFile,
    model: &Model,
    inputs: &[&str],
    outputs: &[&str],
    value: impl Fn(&str) -> Option<Value>,
) -> Result<Step> {
    let cut = model.cut(inputs, outputs);
    let model = cut.map_err(|source| Error::Graph { path: graph.path.clone(), source })?;
    let feed = |port: Port| Some(Feed { value: value(&port.name)?, port: port.name });
    Ok(Step {
        component,
        feeds: model.inputs().into_iter().filter_map(feed).collect(),
        model,
        folder: graph.folder().to_owned(),
        outputs: outputs.iter().map(|&o| o.to_owned()).collect(),
    })
}
