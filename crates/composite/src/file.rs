//! A composite as one small JSON file: what was found once is written down, and read again without looking for it.

use std::{
    fs,
    io::Write,
    path::{Component, Path, PathBuf},
};

use onnx_graph::ElementType;
use serde::{Deserialize, Serialize};

use crate::{
    ChannelOrder, Composite, CoordinateSpace, Error, GraphFile, Pair, Preprocessing, ResizeRule, Result,
    SettledBy, Wire, Wiring,
    error::{causes, one_line},
    files::{self, folder_of, sha256},
    metadata::MAX_SIDE,
    select,
};

/// The form that is written; a file of another one is refused.
const SCHEMA: u32 = 1;
/// Files of this form have a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    image_encoder: Graph,
    mask_decoder: Graph,
    /// The encoder's image input.
    image: String,
    prompt: Prompt,
    wires: Vec<WireEntry>,
    masks: String,
    scores: String,
    preprocessing: Image,
}

/// What every form begins with.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    /// Below the folder of this file, parts joined by `/`.
    file: String,
    /// Of the graph itself; its sidecars are held against it as at every opening.
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    coordinates: String,
    labels: String,
    space: CoordinateSpace,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEntry {
    input: String,
    output: String,
    settled_by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Name,
    Contract,
    Application,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    width: u32,
    height: u32,
    resize: ResizeRule,
    channels: ChannelOrder,
    range: [f32; 2],
    mean: [f32; 3],
    std: [f32; 3],
    element_type: Element,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Element {
    Float32,
    Float16,
    Uint8,
}

impl Composite {
    /// The name that a composite's file has by convention.
    pub const FILE_NAME: &'static str = "composite.json";

    /// Writes the composite to a JSON file in a folder that its graphs are in or below: which graphs, by name and SHA-256, how
    /// they are joined and what says so, and how pictures are prepared. The file is whole or not there; one that has the
    /// name is replaced.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let Pair { encoder, decoder, prompt, image, wires, masks, scores, .. } = &self.pair;
        let document = Document {
            schema: SCHEMA,
            image_encoder: Graph::of(encoder, path)?,
            mask_decoder: Graph::of(decoder, path)?,
            image: image.clone(),
            prompt: Prompt {
                coordinates: prompt.coordinates.clone(),
                labels: prompt.labels.clone(),
                space: prompt.space,
            },
            wires: wires.iter().map(WireEntry::of).collect(),
            masks: masks.clone(),
            scores: scores.clone(),
            preprocessing: Image::of(&self.preprocessing, path)?,
        };
        let text = serde_json::to_string_pretty(&document)
            .map_err(|e| wrong(path, format!("it cannot be written: {e}")))?;
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(io)?;
        writeln!(file, "{text}").and_then(|()| file.as_file().sync_all()).map_err(io)?;
        file.persist(path).map_err(|e| io(e.error))?;
        Ok(())
    }

    /// Reads a composite that [`write`](Self::write) has written, or a person in its form. No metadata is needed.
    ///
    /// The graphs have to be those of the file, bit for bit, and everything that it says is held against them by the rules of
    /// pairing. Fails with [`Error::CompositeFile`] where it does not hold.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let document = parse(path)?;
        let fail = |reason: String| wrong(path, reason);
        let encoder = document.image_encoder.read(path)?;
        let decoder = document.mask_decoder.read(path)?;
        let mut wiring = Wiring::new();
        for wire in &document.wires {
            wiring = wiring.wire(&wire.input, &wire.output);
        }
        let precisions = [encoder.precision];
        let graphs = [encoder, decoder];
        let mut pair = select(folder_of(path), &graphs, Vec::new(), &precisions, &wiring)
            .map_err(|e| fail(format!("its graphs make no composite: {}", causes(&e))))?;
        document.check(&pair).map_err(fail)?;
        for wire in &mut pair.wires {
            if let Some(entry) = document.wires.iter().find(|entry| entry.input == wire.input) {
                wire.settled_by = entry.settled_by().map_err(fail)?;
            }
        }
        let preprocessing = document.preprocessing.check(&pair).map_err(fail)?;
        let folder = folder_of(path).to_owned();
        Ok(Self { folder, pair, preprocessing, unused: Vec::new(), skipped: Vec::new() })
    }
}

fn wrong(path: &Path, reason: impl AsRef<str>) -> Error {
    Error::CompositeFile { path: path.to_owned(), reason: one_line(reason.as_ref()) }
}

fn parse(path: &Path) -> Result<Document> {
    let text = files::read(path, MAX_BYTES)
        .map_err(|why| why.of_document(path, MAX_BYTES, |reason| wrong(path, reason)))?;
    // The schema first: what another one holds is not this one's mistake.
    let version: Version = serde_json::from_slice(&text).map_err(|e| wrong(path, e.to_string()))?;
    if version.schema != SCHEMA {
        let reason = format!("it has the schema {}, and {SCHEMA} is read here", version.schema);
        return Err(wrong(path, reason));
    }
    serde_json::from_slice(&text).map_err(|e| wrong(path, e.to_string()))
}

impl Graph {
    /// The graph as a file at `path` names it.
    fn of(graph: &GraphFile, path: &Path) -> Result<Self> {
        let real = |path: &Path| {
            fs::canonicalize(path).map_err(|source| Error::Io { path: path.to_owned(), source })
        };
        let (file, folder) = (real(&graph.path)?, real(folder_of(path))?);
        let outside = || {
            wrong(
                path,
                format!("{} is not below its folder, where alone it can name it", graph.path.display()),
            )
        };
        let below = file.strip_prefix(&folder).map_err(|_| outside())?;
        let parts: Option<Vec<&str>> = below.components().map(|part| part.as_os_str().to_str()).collect();
        let parts = parts.ok_or_else(|| wrong(path, format!("{} is not UTF-8", graph.path.display())))?;
        Ok(Self { file: parts.join("/"), sha256: sha256(&file)? })
    }

    fn read(&self, path: &Path) -> Result<GraphFile> {
        let plain = Path::new(&self.file).components().all(|part| matches!(part, Component::Normal(_)));
        if self.file.is_empty() || !plain || self.file.contains(['\\', ':', '\0']) {
            return Err(wrong(path, format!("`{}` is no path below its folder", self.file)));
        }
        let folder = folder_of(path);
        let file: PathBuf = folder.join(&self.file);
        if !file.is_file() {
            return Err(wrong(path, format!("`{}`, which it names, is not there", self.file)));
        }
        if sha256(&file)? != self.sha256 {
            return Err(wrong(path, format!("`{}` is not the graph that it was written for", self.file)));
        }
        GraphFile::read(&file, folder)
    }
}

impl WireEntry {
    fn of(wire: &Wire) -> Self {
        let (settled_by, rule) = match &wire.settled_by {
            SettledBy::Name => (By::Name, None),
            SettledBy::Contract(rule) => (By::Contract, Some(rule.clone())),
            SettledBy::Caller => (By::Application, None),
        };
        Self { input: wire.input.clone(), output: wire.output.clone(), settled_by, rule }
    }

    fn settled_by(&self) -> Result<SettledBy, String> {
        match (self.settled_by, &self.rule) {
            (By::Contract, Some(rule)) => Ok(SettledBy::Contract(rule.clone())),
            (By::Contract, None) => Err(format!("the wire to `{}` names no rule", self.input)),
            (_, Some(_)) => Err(format!("the wire to `{}` names a rule that did not settle it", self.input)),
            (By::Name, None) => Ok(SettledBy::Name),
            (By::Application, None) => Ok(SettledBy::Caller),
        }
    }
}

impl Document {
    /// What the graphs show has to be what the file says.
    fn check(&self, pair: &Pair) -> Result<(), String> {
        let encoder = &self.image_encoder.file;
        if !pair.encoder.path.ends_with(encoder) {
            return Err(format!("`{encoder}` is not the image encoder of the two"));
        }
        let found = [
            ("image", &self.image, &pair.image),
            ("coordinates", &self.prompt.coordinates, &pair.prompt.coordinates),
            ("labels", &self.prompt.labels, &pair.prompt.labels),
            ("masks", &self.masks, &pair.masks),
            ("scores", &self.scores, &pair.scores),
        ];
        if let Some((what, said, found)) = found.iter().find(|(_, said, found)| said != found) {
            return Err(format!("it calls the {what} `{said}`, and in the graphs they are `{found}`"));
        }
        let mut said: Vec<&str> = self.wires.iter().map(|wire| wire.input.as_str()).collect();
        said.sort_unstable();
        if !pair.wires.iter().map(|wire| wire.input.as_str()).eq(said.iter().copied()) {
            let inputs: Vec<&str> = pair.wires.iter().map(|wire| wire.input.as_str()).collect();
            return Err(format!(
                "it feeds {}, and the decoder's inputs are {}",
                said.join(", "),
                inputs.join(", ")
            ));
        }
        Ok(())
    }
}

impl Image {
    fn of(found: &Preprocessing, path: &Path) -> Result<Self> {
        let Preprocessing { height, width, resize, channels, range, mean, std, element_type } = *found;
        Ok(Self {
            width,
            height,
            resize,
            channels,
            range,
            mean,
            std,
            element_type: match element_type {
                ElementType::Float32 => Element::Float32,
                ElementType::Float16 => Element::Float16,
                ElementType::Uint8 => Element::Uint8,
                other => return Err(wrong(path, format!("an image of type {other} cannot be written down"))),
            },
        })
    }

    /// As the graph's image input can be fed.
    fn check(&self, pair: &Pair) -> Result<Preprocessing, String> {
        let element_type = match self.element_type {
            Element::Float32 => ElementType::Float32,
            Element::Float16 => ElementType::Float16,
            Element::Uint8 => ElementType::Uint8,
        };
        let image = pair.encoder.input(&pair.image).ok_or("the image encoder has no image")?;
        let sizes = [1, 3, u64::from(self.height), u64::from(self.width)];
        let fits = image.element_type == element_type
            && image.shape.as_ref().is_none_or(|shape| {
                shape.len() == 4
                    && shape.iter().zip(sizes).all(|(dim, size)| dim.size().is_none_or(|d| d == size))
            });
        if !fits {
            return Err(format!("a picture of {element_type}{sizes:?} does not fit the graph's {image}"));
        }
        if !(1..=MAX_SIDE).contains(&self.width) || !(1..=MAX_SIDE).contains(&self.height) {
            return Err(format!("{}x{} is no size of an image", self.width, self.height));
        }
        let plain = Preprocessing { resize: self.resize, ..Preprocessing::stretch(self.width, self.height) };
        let plain = plain.channels(self.channels);
        let found = plain.range(self.range).normalized(self.mean, self.std).element_type(element_type);
        let bytes = plain.range([0.0, 255.0]).element_type(ElementType::Uint8);
        let mut numbers = self.range.iter().chain(&self.mean).chain(&self.std);
        if numbers.any(|v| !v.is_finite())
            || self.std.contains(&0.0)
            || self.range[0] >= self.range[1]
            || (element_type == ElementType::Uint8 && found != bytes)
        {
            return Err("its range, mean and deviation cannot be computed with".to_owned());
        }
        Ok(found)
    }
}
