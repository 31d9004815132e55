//! Case MT1 and K1: equal, disjoint, half and empty masks have the figures that the definitions give, or none.
#![allow(clippy::unwrap_used)]

use mask_metrics::{area, bounding_box, compare};
use ndarray::Array2;
use proptest::prelude::*;

fn rectangle(size: (usize, usize), y: std::ops::Range<usize>, x: std::ops::Range<usize>) -> Array2<bool> {
    Array2::from_shape_fn(size, |(py, px)| y.contains(&py) && x.contains(&px))
}

#[test]
fn equal_masks_agree_fully() {
    let mask = rectangle((6, 8), 1..4, 2..7);
    let found = compare(mask.view(), mask.view()).unwrap();
    assert_eq!((found.iou(), found.dice(), found.differing()), (Some(1.0), Some(1.0), 0));
}

#[test]
fn disjoint_masks_agree_not_at_all() {
    let found = compare(rectangle((4, 8), 0..4, 0..4).view(), rectangle((4, 8), 0..4, 4..8).view()).unwrap();
    assert_eq!((found.iou(), found.dice(), found.differing()), (Some(0.0), Some(0.0), 32));
}

#[test]
fn half_overlap_is_a_third_by_iou_and_a_half_by_dice() {
    let found = compare(rectangle((4, 8), 0..4, 0..4).view(), rectangle((4, 8), 0..4, 2..6).view()).unwrap();
    assert_eq!((found.iou(), found.dice()), (Some(1.0 / 3.0), Some(0.5)));
}

#[test]
fn two_empty_masks_have_no_figure_and_one_empty_mask_has_zero() {
    let empty = Array2::from_elem((3, 3), false);
    let found = compare(empty.view(), empty.view()).unwrap();
    assert_eq!((found.iou(), found.dice()), (None, None));
    let found = compare(empty.view(), rectangle((3, 3), 0..1, 0..1).view()).unwrap();
    assert_eq!((found.iou(), found.dice()), (Some(0.0), Some(0.0)));
}

#[test]
fn masks_of_different_sizes_are_an_error() {
    let error =
        compare(rectangle((3, 4), 0..1, 0..1).view(), rectangle((4, 3), 0..1, 0..1).view()).unwrap_err();
    assert_eq!(error.to_string(), "masks of 4x3 and 3x4 pixels cannot be compared");
}

#[test]
fn an_empty_mask_has_no_bounding_box() {
    assert_eq!(bounding_box(Array2::from_elem((5, 5), false).view()), None);
    assert_eq!(bounding_box(Array2::from_elem((0, 5), false).view()), None);
}

proptest! {
    /// The box is tight: every pixel is inside, and each side touches one.
    #[test]
    fn the_bounding_box_is_the_tightest(
        height in 1_usize..12, width in 1_usize..12, points in prop::collection::vec((0_usize..12, 0_usize..12), 1..6),
    ) {
        let mut mask = Array2::from_elem((height, width), false);
        for (y, x) in &points {
            mask[[y % height, x % width]] = true;
        }
        let b = bounding_box(mask.view()).unwrap();
        let inside: Vec<_> = mask.indexed_iter().filter(|(_, m)| **m).map(|(i, _)| i).collect();
        prop_assert_eq!(b.x, inside.iter().map(|i| i.1).min().unwrap());
        prop_assert_eq!(b.y, inside.iter().map(|i| i.0).min().unwrap());
        prop_assert_eq!(b.x + b.width - 1, inside.iter().map(|i| i.1).max().unwrap());
        prop_assert_eq!(b.y + b.height - 1, inside.iter().map(|i| i.0).max().unwrap());
        prop_assert_eq!(area(mask.view()), inside.len());
    }

    /// IoU and Dice do not depend on the order of the masks, and Dice = 2 IoU / (1 + IoU).
    #[test]
    fn figures_are_symmetric(bits in prop::collection::vec((any::<bool>(), any::<bool>()), 12)) {
        let a = Array2::from_shape_fn((3, 4), |(y, x)| bits[y * 4 + x].0);
        let b = Array2::from_shape_fn((3, 4), |(y, x)| bits[y * 4 + x].1);
        let (ab, ba) = (compare(a.view(), b.view()).unwrap(), compare(b.view(), a.view()).unwrap());
        prop_assert_eq!(ab.iou(), ba.iou());
        if let (Some(iou), Some(dice)) = (ab.iou(), ab.dice()) {
            prop_assert!((dice - 2.0 * iou / (1.0 + iou)).abs() < 1e-12);
        }
    }
}
