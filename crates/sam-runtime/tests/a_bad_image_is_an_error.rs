//! Cases I5, I6: truncated, empty, foreign and absurdly large files are errors that name the file, never a picture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use sam_runtime::{ImageError, ImageLimits, decode_image, read_image};

#[test]
fn truncated_files_are_refused() {
    let folder = common::fixtures().join("images/modes");
    for file in ["truncated.png", "truncated.jpg", "empty.png", "not-an-image.png"] {
        let path = folder.join(file);
        let error = read_image(&path).err().unwrap_or_else(|| panic!("{file} gave a picture"));
        assert!(
            matches!(error, ImageError::Decode { .. } | ImageError::Truncated { .. }),
            "{file}: {error:?}"
        );
        assert!(
            sam_runtime::error_chain(&error).contains(file),
            "{file}: {}",
            sam_runtime::error_chain(&error)
        );
    }
}

/// Some cameras leave bytes between segments; the decoder takes such a picture, and so does the search for its end.
#[test]
fn stray_bytes_between_the_segments_of_a_jpeg_are_passed_over() {
    let whole = std::fs::read(common::fixtures().join("images/modes/cmyk.jpg")).unwrap();
    let plain = decode_image(&whole, ImageLimits::default()).unwrap();
    let tables = whole.windows(2).position(|pair| pair == [0xFF, 0xDB]).unwrap();
    let stray = [&whole[..tables], &[0, 0, 0x12], &whole[tables..]].concat();
    assert_eq!(decode_image(&stray, ImageLimits::default()).unwrap(), plain);
    for length in [tables + 2, stray.len() / 2, stray.len() - 2] {
        let error = decode_image(&stray[..length], ImageLimits::default()).unwrap_err();
        assert!(matches!(error, ImageError::Truncated { .. }), "{length}: {error:?}");
    }
}

#[test]
fn every_truncation_of_a_png_is_refused() {
    let whole = std::fs::read(common::fixtures().join("images/modes/rgba.png")).unwrap();
    for length in (0..whole.len() - 13).step_by(7) {
        assert!(
            decode_image(&whole[..length], ImageLimits::default()).is_err(),
            "{length} of {}",
            whole.len()
        );
    }
}

#[test]
fn a_declared_size_beyond_the_limit_is_refused_before_any_allocation() {
    // A PNG header that declares 100,000 x 100,000 pixels, 30 GB as RGB.
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = b"IHDR".to_vec();
    header.extend(100_000_u32.to_be_bytes());
    header.extend(100_000_u32.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    png.extend(13_u32.to_be_bytes());
    png.extend(&header);
    png.extend(crc32(&header).to_be_bytes());
    png.extend(0_u32.to_be_bytes());
    png.extend(b"IDAT");
    png.extend(crc32(b"IDAT").to_be_bytes());
    let error = decode_image(&png, ImageLimits::default()).unwrap_err();
    assert!(matches!(error, ImageError::TooLarge { width: 100_000, height: 100_000, .. }), "{error:?}");
}

#[test]
fn limits_are_the_callers() {
    let png = std::fs::read(common::fixtures().join("images/modes/rgb.png")).unwrap();
    let mut limits = ImageLimits::default();
    (limits.max_side, limits.max_pixels, limits.max_bytes) = (48, 48 * 32, png.len() as u64);
    assert!(decode_image(&png, limits).is_ok());
    let less = |change: fn(&mut ImageLimits)| {
        let mut limits = limits;
        change(&mut limits);
        decode_image(&png, limits).unwrap_err()
    };
    assert!(matches!(less(|l| l.max_side -= 1), ImageError::TooLarge { max_side: 47, .. }));
    assert!(matches!(less(|l| l.max_pixels -= 1), ImageError::TooLarge { max_pixels: 1535, .. }));
    assert!(matches!(less(|l| l.max_bytes -= 1), ImageError::FileTooLarge { .. }));
}

#[test]
fn a_missing_file_and_a_folder_are_errors_with_their_path() {
    for path in ["no/such/file.png", env!("CARGO_MANIFEST_DIR")] {
        let error = read_image(path).unwrap_err();
        assert!(matches!(error, ImageError::Io { .. } | ImageError::NotAFile { .. }), "{error:?}");
        assert!(error.to_string().contains(path));
    }
}

/// A pipe without a writer must not be waited for.
#[cfg(unix)]
#[test]
fn a_pipe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.png");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(read_image(&pipe), Err(ImageError::NotAFile { .. })));
}

/// PNG's checksum, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
