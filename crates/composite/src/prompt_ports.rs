use onnx_graph::{ElementType, Port};

/// In which unit a graph wants its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoordinateSpace {
    /// From 0 to 1 over the image's width and height, whatever the port is called (the publisher's is
    /// `unnorm_coords`).
    Unit,
}

/// The two inputs through which a graph takes points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPorts {
    /// Name of the coordinates' port, `[1, slots, 2]`, x before y.
    pub coordinates: String,
    /// Name of the labels' port, `[1, slots]`.
    pub labels: String,
    /// Element type of the coordinates.
    pub coordinate_type: ElementType,
    /// Element type of the labels: float32, int32 and int64 are all in use.
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

/// The one detector of point prompts: among a graph's inputs, one float port of rank 3 or 4 whose last dim is 2, and
/// one port of its leading dims that holds a number for each point. `None` where that does not hold for exactly one
/// such couple, or where its dims are not all static with a single object.
pub(crate) fn detect(inputs: &[Port]) -> Option<PromptPorts> {
    let is_coordinates = |p: &&Port| {
        p.element_type.is_float()
            && matches!(p.rank(), Some(3 | 4))
            && p.static_shape().is_some_and(|s| s.last() == Some(&2))
    };
    let coordinates = only(inputs.iter().filter(is_coordinates))?;
    let coordinate_shape = coordinates.static_shape()?;
    let (slots, leading) = match coordinate_shape.as_slice() {
        [leading @ .., slots, _] => (*slots, leading),
        _ => return None,
    };
    let label_shape = coordinate_shape[..coordinate_shape.len() - 1].to_vec();
    let is_labels = |p: &&Port| {
        (p.element_type.is_float() || p.element_type.is_integer())
            && p.static_shape().as_ref() == Some(&label_shape)
    };
    let labels = only(inputs.iter().filter(is_labels))?;
    if slots == 0 || leading.iter().any(|&d| d != 1) {
        return None;
    }
    Some(PromptPorts {
        coordinates: coordinates.name.clone(),
        labels: labels.name.clone(),
        coordinate_type: coordinates.element_type,
        label_type: labels.element_type,
        // The contract of graphs that carry the prompt beside the image (reference release, all versions read).
        space: CoordinateSpace::Unit,
        slots: usize::try_from(slots).ok()?,
        coordinate_shape,
        label_shape,
    })
}

fn only<'p>(mut ports: impl Iterator<Item = &'p Port>) -> Option<&'p Port> {
    let first = ports.next()?;
    ports.next().is_none().then_some(first)
}
