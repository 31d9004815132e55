use std::collections::BTreeMap;

use composite::{CoordinateSpace, PromptPorts, Value};
use half::f16;
use ndarray::{ArrayD, IxDyn};
use onnx_graph::{ElementType, Port};

use crate::{Error, Result, Tensor};

/// A point in pixels of the image that the caller gave, x to the right and y down: (0, 0) is the top left pixel, (1, 0) the
/// one right of it. Fractions lie between pixels.
///
/// That is how SAM 2's own predictor counts. A model gets x / width and y / height, and adds half a pixel of its own grid
/// inside of the graph (reference 4.5), so that the point is in the middle of a pixel.
///
/// Whether it lies inside of an image can only be said together with one, so that is checked when it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelPoint {
    /// Pixels from the left edge.
    pub x: f32,
    /// Pixels from the top edge.
    pub y: f32,
}

impl PixelPoint {
    /// A point x pixels from the left and y pixels from the top. x comes first, everywhere.
    pub fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }

    /// A point given as fractions of an image's width and height, 0 to 1, in that image's pixels.
    pub fn from_unit(x: f32, y: f32, width: u32, height: u32) -> Self {
        Self::new((f64::from(x) * f64::from(width)) as f32, (f64::from(y) * f64::from(height)) as f32)
    }

    /// The point over an image of this size as fractions of its width and height; an error where it is not finite or
    /// not inside (`0 <= x < width`, `0 <= y < height`).
    pub(crate) fn to_unit(self, width: u32, height: u32) -> Result<(f32, f32)> {
        let Self { x, y } = self;
        // f64 holds every u32, so the bound is exact.
        let inside = |v: f32, size: u32| v.is_finite() && v >= 0.0 && f64::from(v) < f64::from(size);
        if !inside(x, width) || !inside(y, height) {
            return Err(Error::PointOutside { x, y, width, height });
        }
        Ok(((f64::from(x) / f64::from(width)) as f32, (f64::from(y) / f64::from(height)) as f32))
    }
}

impl From<(f32, f32)> for PixelPoint {
    fn from((x, y): (f32, f32)) -> Self {
        Self::new(x, y)
    }
}

/// What a click says of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Label {
    /// It belongs to the object.
    Positive,
    /// It does not belong to the object.
    Negative,
}

/// A point with what it says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Click {
    /// Where.
    pub point: PixelPoint,
    /// What.
    pub label: Label,
}

impl Click {
    /// "This belongs to the object", in pixels of the image: x first.
    pub fn positive(x: f32, y: f32) -> Self {
        Self { point: PixelPoint::new(x, y), label: Label::Positive }
    }

    /// "This does not belong to the object", in pixels of the image: x first.
    pub fn negative(x: f32, y: f32) -> Self {
        Self { point: PixelPoint::new(x, y), label: Label::Negative }
    }
}

/// What is asked of a model: clicks that all speak of one object. Made from one click or from any list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    clicks: Vec<Click>,
}

impl Prompt {
    /// The clicks, in the order in which they were given.
    pub fn clicks(&self) -> &[Click] {
        &self.clicks
    }

    pub(crate) fn has(&self, label: Label) -> bool {
        self.clicks.iter().any(|c| c.label == label)
    }

    /// Fills the model's point slots for an image of this size: the clicks first, then padding with label -1 at (0, 0).
    pub(crate) fn tensors(
        &self,
        ports: &PromptPorts,
        width: u32,
        height: u32,
    ) -> Result<BTreeMap<Value, Tensor>> {
        if self.clicks.len() > ports.slots {
            return Err(Error::TooManyClicks { slots: ports.slots, found: self.clicks.len() });
        }
        let mut coordinates = vec![0.0_f32; ports.slots * 2];
        let mut labels = vec![-1_i8; ports.slots];
        for ((click, xy), label) in self.clicks.iter().zip(coordinates.chunks_exact_mut(2)).zip(&mut labels) {
            let (x, y) = match ports.space {
                CoordinateSpace::Unit => click.point.to_unit(width, height)?,
                space => return Err(Error::CoordinateSpace { space }),
            };
            xy.copy_from_slice(&[x, y]);
            *label = match click.label {
                Label::Positive => 1,
                Label::Negative => 0,
            };
        }
        let shape = |dims: &[u64]| IxDyn(&dims.iter().map(|&d| d as usize).collect::<Vec<_>>());
        let unsupported = |port: &str, element_type: ElementType| Error::PortMismatch {
            graph: "prompt encoder".to_owned(),
            port: Port { name: port.to_owned(), element_type, shape: None },
            found: "float32 or float16 coordinates with float32, float16, int32 or int64 labels".to_owned(),
        };
        let coordinates = ArrayD::from_shape_vec(shape(&ports.coordinate_shape), coordinates).ok();
        let coordinates = coordinates.and_then(|coordinates| match ports.coordinate_type {
            ElementType::Float32 => Some(Tensor::F32(coordinates)),
            ElementType::Float16 => Some(Tensor::F16(coordinates.mapv(f16::from_f32))),
            _ => None,
        });
        let coordinates =
            coordinates.ok_or_else(|| unsupported(&ports.coordinates, ports.coordinate_type))?;
        let labels = ArrayD::from_shape_vec(shape(&ports.label_shape), labels).ok();
        let labels = labels.and_then(|labels| match ports.label_type {
            ElementType::Float32 => Some(Tensor::F32(labels.mapv(f32::from))),
            ElementType::Float16 => Some(Tensor::F16(labels.mapv(f16::from))),
            ElementType::Int32 => Some(Tensor::I32(labels.mapv(i32::from))),
            ElementType::Int64 => Some(Tensor::I64(labels.mapv(i64::from))),
            _ => None,
        });
        let labels = labels.ok_or_else(|| unsupported(&ports.labels, ports.label_type))?;
        Ok(BTreeMap::from([(Value::Coordinates, coordinates), (Value::Labels, labels)]))
    }
}

impl From<Click> for Prompt {
    fn from(click: Click) -> Self {
        Self { clicks: vec![click] }
    }
}

impl From<Vec<Click>> for Prompt {
    fn from(clicks: Vec<Click>) -> Self {
        Self { clicks }
    }
}

impl From<&[Click]> for Prompt {
    fn from(clicks: &[Click]) -> Self {
        Self { clicks: clicks.to_vec() }
    }
}

impl From<&Vec<Click>> for Prompt {
    fn from(clicks: &Vec<Click>) -> Self {
        Self { clicks: clicks.clone() }
    }
}

impl<const N: usize> From<[Click; N]> for Prompt {
    fn from(clicks: [Click; N]) -> Self {
        Self { clicks: clicks.to_vec() }
    }
}

impl<const N: usize> From<&[Click; N]> for Prompt {
    fn from(clicks: &[Click; N]) -> Self {
        Self { clicks: clicks.to_vec() }
    }
}
