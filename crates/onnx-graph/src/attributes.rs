//! Attributes of nodes: read as the specification has them, and written.

use crate::proto::{AttributeProto, NodeProto, TensorProto};

/// Numbers of `AttributeProto.AttributeType`.
const INT: i32 = 2;
const INTS: i32 = 7;

pub(crate) fn find<'n>(node: &'n NodeProto, name: &str) -> Option<&'n AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
}

pub(crate) fn int(node: &NodeProto, name: &str) -> Option<i64> {
    find(node, name)?.i
}

pub(crate) fn ints<'n>(node: &'n NodeProto, name: &str) -> Option<&'n [i64]> {
    find(node, name).map(|attribute| attribute.ints.as_slice())
}

pub(crate) fn tensor<'n>(node: &'n NodeProto, name: &str) -> Option<&'n TensorProto> {
    find(node, name)?.t.as_option()
}

pub(crate) fn from_int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(INT), i: Some(value), ..Default::default() }
}

pub(crate) fn from_ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(INTS),
        ints: values.to_vec(),
        ..Default::default()
    }
}

/// A transposition's axes; without the attribute they are reversed, so that the rank is needed.
pub(crate) fn perm(node: &NodeProto, rank: Option<usize>) -> Option<Vec<usize>> {
    let axes: Vec<usize> = match ints(node, "perm") {
        Some(axes) => axes.iter().map(|&axis| usize::try_from(axis).ok()).collect::<Option<_>>()?,
        None => (0..rank?).rev().collect(),
    };
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    // A file may have anything here.
    sorted.iter().enumerate().all(|(at, &axis)| at == axis).then_some(axes)
}

/// The axis as a place among `rank` dims, from the front.
pub(crate) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let signed = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis.checked_add(signed)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}
