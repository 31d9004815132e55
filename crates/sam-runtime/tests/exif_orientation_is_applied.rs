//! Case I1: all eight orientations of one picture are read as the upright one, in a PNG too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use sam_runtime::{read_image, read_upright};

#[test]
fn all_eight_orientations_read_as_the_upright_picture() {
    let folder = common::fixtures().join("images/orientation");
    let upright = read_image(folder.join("upright.png")).unwrap();
    for orientation in 1..=8 {
        let read = read_upright(folder.join(format!("orientation-{orientation}.jpg"))).unwrap();
        // What was applied is told, so that a mask can be led back to the stored pixels.
        assert_eq!(read.orientation.to_exif(), orientation);
        let image = read.image;
        assert_eq!(image.dimensions(), upright.dimensions(), "orientation {orientation}");
        let worst = image.iter().zip(upright.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        // 16 is what JPEG may cost; a wrong turn differs by more than 200 somewhere.
        assert!(worst <= 16, "orientation {orientation} is off by {worst}");
    }
}

#[test]
fn a_png_is_turned_as_well() {
    let folder = common::fixtures().join("images/orientation");
    let read = read_upright(folder.join("orientation-6.png")).unwrap();
    assert_eq!(read.orientation.to_exif(), 6);
    assert_eq!(read.image, read_image(folder.join("upright.png")).unwrap());
}
