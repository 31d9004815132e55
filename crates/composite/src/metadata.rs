use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use onnx_graph::{ElementType, Port};
use serde::{Deserialize, Serialize};

use crate::{
    Error, GraphFile, MetadataRule, Result,
    error::{one_line, type_of},
    files::{self, NotRead},
    select::Pair,
};

/// The publisher's document; releases carry it in one form or the other.
const FILE_NAMES: [&str; 2] = ["metadata.json", "metadata.yaml"];
/// The publisher's files have a few kilobytes.
const MAX_BYTES: u64 = 16 << 20;

/// A longer side is no encoder's; it would be an absurd allocation later.
pub(crate) const MAX_SIDE: u32 = 16384;

/// How a picture is brought to a graph's input size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResizeRule {
    /// Width and height each on its own, without padding: what SAM 2 does.
    Stretch,
}

/// Which colour comes first in the image input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChannelOrder {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
}

impl fmt::Display for ChannelOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rgb => "RGB",
            Self::Bgr => "BGR",
        })
    }
}

/// How a picture becomes the image input, `[1, 3, height, width]`: resized as 8-bit samples; 0 to 255 scaled to `range`; then
/// `(x - mean) / std` per colour; as `element_type`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Preprocessing {
    /// Height of the image input in pixels.
    pub height: u32,
    /// Width of the image input in pixels.
    pub width: u32,
    /// How the picture gets that size.
    pub resize: ResizeRule,
    /// The order of the channels.
    pub channels: ChannelOrder,
    /// What samples of 0 and of 255 become before mean and deviation.
    pub range: [f32; 2],
    /// Subtracted from each colour (red, green, blue, whatever the order of the channels) after scaling.
    pub mean: [f32; 3],
    /// Divides each colour after the subtraction.
    pub std: [f32; 3],
    /// The input's element type: float32, float16 or uint8. As uint8 the samples are fed as they are.
    pub element_type: ElementType,
}

impl Preprocessing {
    /// Stretched to this size, red first, scaled to `[0, 1]`, without normalisation, as float32.
    pub fn stretch(width: u32, height: u32) -> Self {
        Self {
            height,
            width,
            resize: ResizeRule::Stretch,
            channels: ChannelOrder::Rgb,
            range: [0.0, 1.0],
            mean: [0.0; 3],
            std: [1.0; 3],
            element_type: ElementType::Float32,
        }
    }

    /// The same with `(x - mean) / std` per colour after the scaling.
    #[must_use]
    pub fn normalized(self, mean: [f32; 3], std: [f32; 3]) -> Self {
        Self { mean, std, ..self }
    }

    /// The same with the channels in this order.
    #[must_use]
    pub fn channels(self, channels: ChannelOrder) -> Self {
        Self { channels, ..self }
    }

    /// The same with samples of 0 and 255 scaled to these two values.
    #[must_use]
    pub fn range(self, range: [f32; 2]) -> Self {
        Self { range, ..self }
    }

    /// The same as another element type.
    #[must_use]
    pub fn element_type(self, element_type: ElementType) -> Self {
        Self { element_type, ..self }
    }
}

impl fmt::Display for Preprocessing {
    /// What differs from the plain form is said, the rest is not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { height, width, resize: ResizeRule::Stretch, channels, range, mean, std, element_type } =
            self;
        write!(f, "stretched to {width}x{height}, {channels}, [{},{}]", range[0], range[1])?;
        if (mean, std) != (&[0.0; 3], &[1.0; 3]) {
            write!(f, ", mean {mean:?}, deviation {std:?}")?;
        }
        write!(f, ", {element_type}")
    }
}

/// The publisher's description of a release. Unknown fields are left alone.
#[derive(Debug, PartialEq, Deserialize)]
struct Document {
    model_files: BTreeMap<String, FileEntry>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct FileEntry {
    inputs: BTreeMap<String, Tensor>,
    #[serde(default)]
    outputs: BTreeMap<String, Tensor>,
}

/// One port; what is left out has the default of the publisher's schema.
#[derive(Debug, PartialEq, Deserialize)]
struct Tensor {
    shape: Vec<u64>,
    dtype: String,
    io_type: Option<String>,
    value_range: Option<[f64; 2]>,
    image_metadata: Option<ImageMetadata>,
    softmax_applied: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct ImageMetadata {
    color_format: Option<String>,
    /// Whatever else is said of the picture, which would have to be followed.
    #[serde(flatten)]
    other: BTreeMap<String, serde_json::Value>,
}

/// Reads the metadata beside the encoder and holds it against both graphs.
pub(crate) fn preprocessing(pair: &Pair) -> Result<Preprocessing> {
    let (path, document) = read(pair.encoder.folder())?;
    let fail = |rule| Error::Metadata { path: path.clone(), rule };
    let mut image = None;
    for graph in [&pair.encoder, &pair.decoder] {
        let entry = entry_of(&document, graph).map_err(fail)?;
        check_ports(&graph.inputs, &entry.inputs).map_err(fail)?;
        check_ports(&graph.outputs, &entry.outputs).map_err(fail)?;
        if graph.path == pair.encoder.path {
            check_coordinates(pair, entry).map_err(fail)?;
        } else {
            check_masks(pair, entry).map_err(fail)?;
        }
        let images: Vec<_> =
            entry.inputs.iter().filter(|(_, t)| t.io_type.as_deref() == Some("image")).collect();
        if graph.path == pair.encoder.path {
            match images.as_slice() {
                [(name, tensor)] if **name == pair.image => image = Some(*tensor),
                [(name, _)] => {
                    let (described, actual) = ((*name).clone(), pair.image.clone());
                    return Err(fail(MetadataRule::OtherImage { described, actual }));
                }
                _ => return Err(fail(MetadataRule::Images { found: images.len() })),
            }
        }
    }
    let tensor = image.ok_or_else(|| fail(MetadataRule::Images { found: 0 }))?;
    image_contract(&pair.image, tensor).map_err(fail)
}

/// The document beside the encoder. Where there are both forms of it, they have to say the same.
fn read(folder: &Path) -> Result<(PathBuf, Document)> {
    let mut found = Vec::new();
    for name in FILE_NAMES {
        let path = folder.join(name);
        if let Some(document) = read_file(&path)? {
            found.push((path, document));
        }
    }
    let mut found = found.into_iter();
    let Some((path, document)) = found.next() else {
        return Err(Error::Metadata { path: folder.to_owned(), rule: MetadataRule::Missing });
    };
    match found.next() {
        Some((other, differs)) if differs != document => {
            Err(Error::Metadata { path, rule: MetadataRule::Differs { other } })
        }
        _ => Ok((path, document)),
    }
}

fn read_file(path: &Path) -> Result<Option<Document>> {
    let fail = |rule| Error::Metadata { path: path.to_owned(), rule };
    let text = match files::read(path, MAX_BYTES) {
        Ok(text) => text,
        Err(NotRead::Absent(_)) => return Ok(None),
        Err(NotRead::NoFile) => {
            return Err(fail(MetadataRule::Malformed("it is no regular file".to_owned())));
        }
        Err(NotRead::TooLarge) => return Err(fail(MetadataRule::TooLarge { limit: MAX_BYTES })),
        Err(NotRead::Io(source)) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text);
    let document = if path.extension().is_some_and(|e| e == "yaml") {
        let text = std::str::from_utf8(text).map_err(|e| fail(MetadataRule::Malformed(e.to_string())))?;
        // Of its message, which draws the place, the first line tells it in words.
        let first = |e: serde_saphyr::Error| e.to_string().lines().next().unwrap_or_default().to_owned();
        serde_saphyr::from_str(text).map_err(first)
    } else {
        serde_json::from_slice(text).map_err(|e| e.to_string())
    };
    document.map(Some).map_err(|reason| fail(MetadataRule::Malformed(one_line(&reason))))
}

/// The one entry whose inputs have the names of the graph's; its key, a file name, may have been changed by a rename.
fn entry_of<'d>(document: &'d Document, graph: &GraphFile) -> Result<&'d FileEntry, MetadataRule> {
    let mut names: Vec<&str> = graph.inputs.iter().map(|p| p.name.as_str()).collect();
    names.sort_unstable();
    let fitting: Vec<_> = document
        .model_files
        .values()
        .filter(|e| e.inputs.keys().map(String::as_str).eq(names.iter().copied()))
        .collect();
    match fitting.as_slice() {
        [entry] => Ok(entry),
        _ => Err(MetadataRule::Entries { graph: graph.file_name(), found: fitting.len() }),
    }
}

/// Coordinates are fed as fractions of the image; a graph that wants another range must not get them.
fn check_coordinates(pair: &Pair, encoder: &FileEntry) -> Result<(), MetadataRule> {
    let name = &pair.prompt.coordinates;
    match encoder.inputs.get(name).and_then(|t| t.value_range) {
        None | Some([0.0, 1.0]) => Ok(()),
        Some(range) => Err(MetadataRule::Unsupported {
            port: name.clone(),
            what: format!("the value range {range:?}"),
            supported: "[0.0, 1.0]",
        }),
    }
}

/// Probabilities, or a softmax, would make a mask of the whole image: all of it is above 0.
fn check_masks(pair: &Pair, decoder: &FileEntry) -> Result<(), MetadataRule> {
    let Some(tensor) = decoder.outputs.get(&pair.masks) else { return Ok(()) };
    let what = match tensor.value_range {
        Some(range) if range[0] >= 0.0 => format!("the value range {range:?}"),
        _ if tensor.softmax_applied == Some(true) => "softmax applied".to_owned(),
        _ => return Ok(()),
    };
    let supported = "logits, which are negative outside of the object";
    Err(MetadataRule::Unsupported { port: pair.masks.clone(), what, supported })
}

/// Every port that the metadata describes must be the graph's in type and in each dim that the graph fixes.
fn check_ports(ports: &[Port], described: &BTreeMap<String, Tensor>) -> Result<(), MetadataRule> {
    for (name, tensor) in described {
        let port = ports.iter().find(|p| p.name == *name);
        let fits = port.is_some_and(|p| {
            let dims = p.shape.as_ref().is_none_or(|shape| {
                shape.len() == tensor.shape.len()
                    && shape
                        .iter()
                        .zip(&tensor.shape)
                        .all(|(dim, size)| dim.size().is_none_or(|d| d == *size))
            });
            dims && p.element_type.to_string() == tensor.dtype
        });
        if !fits {
            let actual = port.map_or_else(|| "missing".to_owned(), type_of);
            let described = format!(
                "{}[{}]",
                tensor.dtype,
                tensor.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
            );
            return Err(MetadataRule::PortDiffers { port: name.clone(), described, actual });
        }
    }
    Ok(())
}

/// The image input as the publisher describes it: `[1, 3, height, width]`, RGB or BGR, in a range that is said. The publisher's
/// graphs normalise inside, so mean and deviation are those of the identity.
fn image_contract(name: &str, tensor: &Tensor) -> Result<Preprocessing, MetadataRule> {
    let unsupported =
        |what: String, supported| MetadataRule::Unsupported { port: name.to_owned(), what, supported };
    let element_type = match tensor.dtype.as_str() {
        "float32" => ElementType::Float32,
        "float16" => ElementType::Float16,
        "uint8" => ElementType::Uint8,
        other => return Err(unsupported(format!("dtype {other}"), "float32, float16 and uint8")),
    };
    let range = match (element_type, tensor.value_range) {
        // The samples themselves, which have no other range.
        (ElementType::Uint8, None | Some([0.0, 255.0])) => [0.0, 255.0],
        (ElementType::Uint8, Some(range)) => {
            return Err(unsupported(format!("the value range {range:?}"), "[0.0, 255.0] as uint8"));
        }
        (_, None) => return Err(unsupported("no value range".to_owned(), "two numbers, such as [0.0, 1.0]")),
        // No half is larger.
        (_, Some([low, high])) if low < high && low.abs().max(high.abs()) <= 65504.0 => {
            [low as f32, high as f32]
        }
        (_, Some(range)) => {
            let supported = "two numbers up to 65504, the lower one first";
            return Err(unsupported(format!("the value range {range:?}"), supported));
        }
    };
    let color = tensor.image_metadata.as_ref().and_then(|m| m.color_format.as_deref()).unwrap_or("rgb");
    if let Some(key) = tensor.image_metadata.as_ref().and_then(|m| m.other.keys().next()) {
        return Err(unsupported(format!("`{key}` in its image_metadata"), "color_format alone"));
    }
    let channels = match color {
        "rgb" => ChannelOrder::Rgb,
        "bgr" => ChannelOrder::Bgr,
        other => return Err(unsupported(format!("the color format {other}"), "rgb and bgr")),
    };
    let side = |size: u64| u32::try_from(size).ok().filter(|s| (1..=MAX_SIDE).contains(s));
    match *tensor.shape.as_slice() {
        [1, 3, height, width] if side(height).is_some() && side(width).is_some() => {
            let plain = Preprocessing::stretch(width as u32, height as u32);
            Ok(plain.channels(channels).range(range).element_type(element_type))
        }
        _ => Err(unsupported(format!("the shape {:?}", tensor.shape), "[1, 3, height, width]")),
    }
}
