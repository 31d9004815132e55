//! Attributes of nodes by name.

use crate::proto::{AttributeProto, NodeProto};

pub(crate) fn find<'n>(node: &'n NodeProto, name: &str) -> Option<&'n AttributeProto> {
    node.attribute.iter().find(|a| a.name.as_deref() == Some(name))
}

pub(crate) fn int(node: &NodeProto, name: &str) -> Option<i64> {
    find(node, name)?.i
}
