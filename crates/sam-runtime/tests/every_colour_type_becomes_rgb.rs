//! Case I2: grey, alpha, palettes, 1 and 16 bits and CMYK become the 8-bit RGB that the fixtures' README states.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use sam_runtime::read_image;

#[test]
fn each_mode_gives_the_expected_picture() {
    let folder = common::fixtures().join("images/modes");
    for (file, expected, tolerance) in [
        ("rgb.png", "rgb.png", 0),
        ("rgba.png", "rgb.png", 0),
        ("grey.png", "grey.png", 0),
        ("grey_alpha.png", "grey.png", 0),
        ("palette.png", "palette.png", 0),
        ("palette_transparent.png", "palette.png", 0),
        ("bilevel.png", "bilevel.png", 0),
        ("grey16.png", "grey16.png", 1),
        ("cmyk.jpg", "cmyk.png", 12),
        ("cmyk_black.jpg", "cmyk_black.png", 12),
    ] {
        let image = read_image(folder.join(file))
            .unwrap_or_else(|e| panic!("{file}: {}", sam_runtime::error_chain(&e)));
        let expected = read_image(folder.join("expected").join(expected)).unwrap();
        assert_eq!(image.dimensions(), expected.dimensions(), "{file}");
        let worst = image.iter().zip(expected.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= tolerance, "{file} is off by {worst}");
    }
}
