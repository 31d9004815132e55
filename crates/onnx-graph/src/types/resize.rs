//! Resizing of images.

use crate::{Dim, attributes::axis};

use super::{
    dims::size,
    op::{Item, Op, Value},
};

/// A size times a scale, rounded down in single precision, as engines compute it.
fn scaled(dim: &Dim, scale: f32) -> Dim {
    match dim {
        dim if scale.to_bits() == 1.0_f32.to_bits() => dim.clone(),
        Dim::Static(n) => {
            let scaled = (*n as f32 * scale).floor();
            // The largest bound below which every integer fits.
            if (0.0..9.0e18).contains(&scaled) { size(scaled as i128) } else { Dim::Unknown }
        }
        _ => Dim::Unknown,
    }
}

fn floats(op: &Op<'_, '_>, i: usize) -> Option<Vec<f32>> {
    let float = |item: &Item| if let Item::Float(f) = item { Some(*f) } else { None };
    op.items(i)?.iter().map(float).collect()
}

fn by_scales(op: &Op<'_, '_>, scales: Option<&[f32]>, axes: &[usize]) -> Value {
    let mut value = op.like(0);
    for (i, at) in axes.iter().enumerate() {
        if let Some(dim) = value.shape.as_mut().and_then(|dims| dims.get_mut(*at)) {
            *dim = scales.and_then(|s| s.get(i)).map_or(Dim::Unknown, |s| scaled(dim, *s));
        }
    }
    value
}

pub(super) fn upsample(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let scales = if op.opset < 9 { op.attribute("scales").map(|a| a.floats.clone()) } else { floats(op, 1) };
    let axes: Vec<usize> = (0..op.rank(0).unwrap_or(0)).collect();
    Some(vec![by_scales(op, scales.as_deref(), &axes)])
}

pub(super) fn resize(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let Some(rank) = op.rank(0) else { return Some(vec![op.like(0)]) };
    // Operator set 10 has the scales alone; 18 says which axes they are of.
    let (scales, sizes) = if op.opset < 11 { (1, 3) } else { (2, 3) };
    let axes: Vec<usize> = match op.ints("axes") {
        Some(axes) if op.opset >= 18 => axes.iter().map(|a| axis(*a, rank)).collect::<Option<_>>()?,
        _ => (0..rank).collect(),
    };
    if op.input(sizes).is_some() {
        return Some(vec![by_sizes(op, op.items(sizes), &axes)]);
    }
    // Then the region of interest changes the size as well.
    let cropped = op.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
    let scales = floats(op, scales).filter(|_| !cropped);
    Some(vec![by_scales(op, scales.as_deref(), &axes)])
}

fn by_sizes(op: &Op<'_, '_>, sizes: Option<&[Item]>, axes: &[usize]) -> Value {
    let mut value = op.like(0);
    let Some(dims) = &mut value.shape else { return value };
    let wanted: Vec<Dim> =
        (0..axes.len()).map(|i| sizes.and_then(|s| s.get(i)).map_or(Dim::Unknown, Item::dim)).collect();
    let policy = op.text("keep_aspect_ratio_policy").unwrap_or("stretch");
    if policy == "stretch" || op.opset < 18 {
        for (at, wanted) in axes.iter().zip(wanted) {
            dims[*at] = wanted;
        }
        return value;
    }
    // One scale for all axes: the smallest or the largest that any asks for.
    let scale = |(at, wanted): (&usize, &Dim)| {
        let (wanted, size) = (wanted.size()?, dims[*at].size()?);
        (size > 0).then(|| wanted as f32 / size as f32)
    };
    let scales: Option<Vec<f32>> = axes.iter().zip(&wanted).map(scale).collect();
    let scale = scales.and_then(|scales| match policy {
        "not_larger" => scales.into_iter().reduce(f32::min),
        "not_smaller" => scales.into_iter().reduce(f32::max),
        _ => None,
    });
    for at in axes {
        let rounded = scale.zip(dims[*at].size()).map(|(scale, size)| (scale * size as f32).round());
        let fits = rounded.filter(|r| (0.0..9.0e18).contains(r));
        dims[*at] = fits.map_or(Dim::Unknown, |r| size(r as i128));
    }
    value
}
