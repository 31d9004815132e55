use std::{
    fs::{self, File},
    io::{Cursor, Read},
    path::Path,
};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage, metadata::Orientation};

use crate::ImageError;

/// Bytes that a file's metadata may unpack to; a colour profile has a few megabytes at most.
const MAX_METADATA: u64 = 64 << 20;

/// How large an image file may be; starts from `ImageLimits::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageLimits {
    /// Width and height each. Default 65535, JPEG's own limit.
    pub max_side: u32,
    /// Width times height. Default 2^27 (134 million), 384 MiB as 8-bit RGB; decoding takes up to 11 bytes for each
    /// pixel at its worst (8 of 16 bits with alpha beside 3 of the result).
    pub max_pixels: u64,
    /// Bytes of the file. Default 1 GiB.
    pub max_bytes: u64,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self { max_side: 65_535, max_pixels: 1 << 27, max_bytes: 1 << 30 }
    }
}

/// A picture as people see it, with what was done to get there.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UprightImage {
    /// The upright picture: clicks and masks are in its pixels.
    pub image: RgbImage,
    /// The orientation that the file named and that was applied; its inverse leads back to the stored pixels.
    pub orientation: Orientation,
}

/// Reads an image file as 8-bit RGB, upright, within the default [`ImageLimits`].
///
/// The rules, the same for every format that is compiled in:
/// - The orientation that the file's EXIF data names is applied, as viewers do. Points are pixels of this upright image.
/// - Grey becomes equal red, green and blue; palettes and bit depths below 8 are expanded; 16-bit samples are scaled to 8.
/// - Alpha is dropped and the colour beneath it kept, however transparent.
/// - Colour profiles are not applied.
/// - A JPEG whose end is missing is refused. Damage within a JPEG's coded data cannot be told from a picture.
pub fn read_image(path: impl AsRef<Path>) -> Result<RgbImage, ImageError> {
    Ok(read_upright(path)?.image)
}

/// [`read_image`] with the orientation that was applied.
pub fn read_upright(path: impl AsRef<Path>) -> Result<UprightImage, ImageError> {
    let path = path.as_ref();
    let limits = ImageLimits::default();
    let io = |source| ImageError::Io { path: path.to_owned(), source };
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(ImageError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(limits.max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    decode(&bytes, &path.display().to_string(), limits)
}

/// Decodes an image file in memory by the rules of [`read_image`].
pub fn decode_image(bytes: &[u8], limits: ImageLimits) -> Result<UprightImage, ImageError> {
    decode(bytes, "the given buffer", limits)
}

fn decode(bytes: &[u8], origin: &str, limits: ImageLimits) -> Result<UprightImage, ImageError> {
    let fail = |source| ImageError::Decode { origin: origin.to_owned(), source };
    if bytes.len() as u64 > limits.max_bytes {
        return Err(ImageError::FileTooLarge { origin: origin.to_owned(), max_bytes: limits.max_bytes });
    }
    // The decoder fills what is missing of a JPEG with grey, which would pass as a picture.
    if bytes.starts_with(JPEG_START) && !jpeg_ends(bytes) {
        return Err(ImageError::Truncated { origin: origin.to_owned() });
    }
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.map_err(|e| fail(e.into()))?;
    // PNG's compressed profiles and texts are unpacked while the header is read: this bounds them. Pixels are bounded
    // below; other decoders would take the bound for theirs.
    let mut metadata = Limits::no_limits();
    if reader.format() == Some(ImageFormat::Png) {
        metadata.max_alloc = Some(MAX_METADATA);
    }
    reader.limits(metadata);
    let mut decoder = reader.into_decoder().map_err(fail)?;
    let (width, height) = decoder.dimensions();
    let ImageLimits { max_side, max_pixels, .. } = limits;
    if width.max(height) > max_side || u64::from(width) * u64::from(height) > max_pixels {
        let origin = origin.to_owned();
        return Err(ImageError::TooLarge { origin, width, height, max_side, max_pixels });
    }
    if width == 0 || height == 0 {
        return Err(ImageError::Empty { width, height });
    }
    let orientation = decoder.orientation().map_err(fail)?;
    // Made small first: turning holds the picture twice.
    let mut image = DynamicImage::ImageRgb8(DynamicImage::from_decoder(decoder).map_err(fail)?.into_rgb8());
    image.apply_orientation(orientation);
    Ok(UprightImage { image: image.into_rgb8(), orientation })
}

const JPEG_START: &[u8] = &[0xFF, 0xD8];

/// Whether a JPEG's segments and scans lead to its end marker. Bytes after it, which cameras append, do not matter; a
/// thumbnail's end marker inside of a segment does not count.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let mut at = JPEG_START.len();
    // Each turn goes to a marker: 0xFF, any number of fill bytes 0xFF, a code. Some cameras leave other bytes before it.
    while let Some(start) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| *b == 0xFF)) {
        let start = at + start;
        let Some(fill) = bytes[start..].iter().position(|b| *b != 0xFF) else { return false };
        let (code, body) = (bytes[start + fill], start + fill + 1);
        at = match code {
            0xD9 => return true,
            // Markers without a body, and a stray byte that is no marker.
            0x00 | 0x01 | 0xD0..=0xD8 => body,
            _ => {
                let Some(length) = bytes.get(body..body + 2) else { return false };
                body + usize::from(u16::from_be_bytes([length[0], length[1]]))
            }
        };
        if code == 0xDA {
            // Coded data up to the next marker: 0xFF is followed by 0 there, or by a restart marker.
            let data = bytes.get(at..).unwrap_or_default();
            let marker =
                data.windows(2).position(|w| w[0] == 0xFF && !matches!(w[1], 0 | 0xD0..=0xD7 | 0xFF));
            let Some(marker) = marker else { return false };
            at += marker;
        }
    }
    false
}
