//! What a graph input stands for, told from its type.

use std::ops::{BitOr, BitOrAssign};

use crate::Types;

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Roles(u8);

/// Pixels: four dims, three channels.
pub(super) const IMAGE: Roles = Roles(1);
/// Clicks, boxes, labels.
pub(super) const PROMPT: Roles = Roles(2);
/// One channel over the picture.
pub(super) const MASK: Roles = Roles(4);
/// Many channels over the picture: what an image encoder gave.
pub(super) const FEATURE: Roles = Roles(8);
/// Tokens, what a prompt encoder gave, and whatever else.
pub(super) const OTHER: Roles = Roles(16);

impl Roles {
    /// True where this set has no role that the other has not.
    pub(super) fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// True where the sets have a role in common.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Roles {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Roles {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The role of an input. Dims that the graph leaves open stand in no way: pictures are told by their channels, prompts by
/// their coordinates.
pub(super) fn of(types: &Types, input: &str) -> Roles {
    let Some(value) = types.get(input) else { return OTHER };
    let Some(dims) = &value.shape else { return OTHER };
    let sizes: Vec<Option<u64>> = dims.iter().map(crate::Dim::size).collect();
    let per_point = value.element_type.is_integer() && sizes.len() == 3;
    match sizes[..] {
        // Coordinates of points, corners of boxes; labels, one number for each point.
        [_, _, .., Some(2)] | [_, _, Some(4)] | [_, _] => PROMPT,
        _ if per_point => PROMPT,
        // The batch is followed by the channels, or, in a few exports, they come last.
        [_, Some(3), _, _] | [_, _, _, Some(3)] => IMAGE,
        [_, Some(1), _, _] => MASK,
        [_, Some(_), _, _] => FEATURE,
        _ => OTHER,
    }
}
