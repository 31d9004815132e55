use onnx_graph::Port;

/// The decoder's output that holds the masks: by the names in use, else the only one of rank 4 or more.
pub(crate) fn masks(outputs: &[Port]) -> Option<&Port> {
    identify(outputs, &["pred_masks", "masks"], |rank| rank >= 4)
}

/// The decoder's output that holds a score per mask: by the names in use, else the only one of rank 1 to 3.
pub(crate) fn scores(outputs: &[Port]) -> Option<&Port> {
    identify(outputs, &["iou_scores", "iou_predictions", "scores"], |rank| (1..=3).contains(&rank))
}

fn identify<'p>(outputs: &'p [Port], names: &[&str], fits: impl Fn(usize) -> bool) -> Option<&'p Port> {
    let fitting = outputs.iter().filter(|p| p.rank().is_some_and(&fits));
    let by_name = names.iter().find_map(|name| fitting.clone().find(|p| p.name == *name));
    by_name.or_else(|| only(fitting))
}

/// The one port there is; `None` for none and for several.
pub(crate) fn only<'p>(mut ports: impl Iterator<Item = &'p Port>) -> Option<&'p Port> {
    let first = ports.next()?;
    ports.next().is_none().then_some(first)
}
