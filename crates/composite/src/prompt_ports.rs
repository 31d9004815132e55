use std::fmt;

use onnx_graph::{Dim, ElementType, Port};
use serde::{Deserialize, Serialize};

use crate::outputs::only;

/// In which unit a graph wants its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoordinateSpace {
    /// From 0 to 1 over the image's width and height, whatever the port is called (the publisher's is
    /// `unnorm_coords`).
    Unit,
}

impl fmt::Display for CoordinateSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unit => "0 to 1 over the picture",
        })
    }
}

/// The two inputs through which a graph takes points.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptPorts {
    /// Name of the coordinates' port, `[1, slots, 2]`, x before y.
    pub coordinates: String,
    /// Name of the labels' port, `[1, slots]`.
    pub labels: String,
    /// Element type of the coordinates.
    pub coordinate_type: ElementType,
    /// Element type of the labels: float32, int32 and int64 are all in use, float16 in converted graphs.
    pub label_type: ElementType,
    /// Unit of the coordinates.
    pub space: CoordinateSpace,
    /// Dims of the coordinates.
    pub coordinate_shape: Vec<u64>,
    /// Dims of the labels.
    pub label_shape: Vec<u64>,
    /// Number of points that one prompt can hold.
    pub slots: usize,
}

/// The two ports of a point prompt, as found in a graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointPrompt<'p> {
    coordinates: &'p Port,
    labels: &'p Port,
}

/// Whether a port can hold the coordinates of points: floats, rank 3 or 4, two to a point.
pub(crate) fn holds_coordinates(port: &Port) -> bool {
    port.element_type.is_float()
        && matches!(port.rank(), Some(3 | 4))
        && port.shape.as_ref().and_then(|s| s.last()) == Some(&Dim::Static(2))
}

/// The one detector of point prompts: among a graph's inputs, one port that holds coordinates, and one that holds a number
/// for each point. `None` where that does not hold for exactly one such couple.
pub(crate) fn detect(inputs: &[Port]) -> Option<PointPrompt<'_>> {
    let coordinates = only(inputs.iter().filter(|p| holds_coordinates(p)))?;
    let (_, points) = coordinates.shape.as_ref()?.split_last()?;
    let is_labels = |p: &&Port| {
        (p.element_type.is_float() || p.element_type.is_integer())
            && p.shape
                .as_ref()
                .is_some_and(|s| s.len() == points.len() && s.iter().zip(points).all(may_be_equal))
    };
    let labels = only(inputs.iter().filter(is_labels))?;
    Some(PointPrompt { coordinates, labels })
}

/// Two dims of one graph: equal symbols are equal sizes, an unknown one may be any.
fn may_be_equal((a, b): (&Dim, &Dim)) -> bool {
    a == b || !matches!((a, b), (Dim::Static(_), Dim::Static(_)))
}

impl PointPrompt<'_> {
    /// The first of the two ports whose element type cannot be fed: coordinates are float32, labels float32, int32 or
    /// int64 in every publication read, and halves where a graph was converted whole.
    pub(crate) fn unfeedable(&self) -> Option<&Port> {
        use ElementType::{Float16, Float32, Int32, Int64};
        let wrong = |port: &&Port, types: &[ElementType]| !types.contains(&port.element_type);
        Some(self.coordinates)
            .filter(|port| wrong(port, &[Float32, Float16]))
            .or_else(|| Some(self.labels).filter(|port| wrong(port, &[Float32, Float16, Int32, Int64])))
    }

    /// The ports with their fixed dims; `None` where a dim is open, there is no slot, or there is more than one object.
    pub(crate) fn fixed(&self) -> Option<PromptPorts> {
        let Self { coordinates, labels } = self;
        let coordinate_shape = coordinates.static_shape()?;
        let label_shape = labels.static_shape()?;
        let (slots, leading) = label_shape.split_last()?;
        if *slots == 0 || leading.iter().any(|&d| d != 1) {
            return None;
        }
        Some(PromptPorts {
            coordinates: coordinates.name.clone(),
            labels: labels.name.clone(),
            coordinate_type: coordinates.element_type,
            label_type: labels.element_type,
            // The contract of graphs that carry the prompt beside the image (reference release, all versions read).
            space: CoordinateSpace::Unit,
            slots: usize::try_from(*slots).ok()?,
            coordinate_shape,
            label_shape,
        })
    }
}
