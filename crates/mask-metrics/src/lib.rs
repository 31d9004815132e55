#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::fmt;

pub use ndarray;
use ndarray::{ArrayView2, Zip};

/// Number of pixels that belong to the mask.
pub fn area(mask: ArrayView2<'_, bool>) -> usize {
    mask.iter().filter(|inside| **inside).count()
}

/// The smallest rectangle around a mask, in whole pixels of the mask's image: x to the right, y down, from the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BoundingBox {
    /// Leftmost column of the mask.
    pub x: usize,
    /// Topmost row of the mask.
    pub y: usize,
    /// Columns, at least 1.
    pub width: usize,
    /// Rows, at least 1.
    pub height: usize,
}

impl fmt::Display for BoundingBox {
    /// As `(x, y) width x height`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}) {} x {}", self.x, self.y, self.width, self.height)
    }
}

/// The mask's bounding box; `None` for an empty mask. Memory does not grow with the mask's area.
pub fn bounding_box(mask: ArrayView2<'_, bool>) -> Option<BoundingBox> {
    let (mut left, mut right) = (usize::MAX, 0);
    let (mut top, mut bottom) = (usize::MAX, 0);
    for (y, row) in mask.rows().into_iter().enumerate() {
        let mut inside = row.iter().enumerate().filter(|(_, inside)| **inside).map(|(x, _)| x);
        if let Some(first) = inside.next() {
            let last = inside.next_back().unwrap_or(first);
            (left, right) = (left.min(first), right.max(last));
            (top, bottom) = (top.min(y), y);
        }
    }
    (left != usize::MAX).then(|| BoundingBox {
        x: left,
        y: top,
        width: right - left + 1,
        height: bottom - top + 1,
    })
}

/// How many pixels two masks have alone and in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Agreement {
    /// Pixels of both masks.
    pub intersection: usize,
    /// Pixels of the first mask.
    pub first: usize,
    /// Pixels of the second mask.
    pub second: usize,
}

impl Agreement {
    /// Intersection over union, 0 to 1; `None` where both masks are empty.
    pub fn iou(&self) -> Option<f64> {
        let union = self.first + self.second - self.intersection;
        (union > 0).then(|| self.intersection as f64 / union as f64)
    }

    /// Dice coefficient, `2 |A and B| / (|A| + |B|)`, 0 to 1; `None` where both masks are empty.
    pub fn dice(&self) -> Option<f64> {
        let sum = self.first + self.second;
        (sum > 0).then(|| 2.0 * self.intersection as f64 / sum as f64)
    }

    /// Pixels that belong to exactly one of the masks.
    pub fn differing(&self) -> usize {
        self.first + self.second - 2 * self.intersection
    }
}

/// Two masks do not have the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("masks of {}x{} and {}x{} pixels cannot be compared", first.1, first.0, second.1, second.0)]
#[non_exhaustive]
pub struct SizeMismatch {
    /// Height and width of the first mask.
    pub first: (usize, usize),
    /// Height and width of the second mask.
    pub second: (usize, usize),
}

/// Counts the pixels of two masks of one size.
pub fn compare(first: ArrayView2<'_, bool>, second: ArrayView2<'_, bool>) -> Result<Agreement, SizeMismatch> {
    if first.dim() != second.dim() {
        return Err(SizeMismatch { first: first.dim(), second: second.dim() });
    }
    let mut found = Agreement { intersection: 0, first: 0, second: 0 };
    Zip::from(first).and(second).for_each(|&a, &b| {
        found.first += usize::from(a);
        found.second += usize::from(b);
        found.intersection += usize::from(a && b);
    });
    Ok(found)
}
