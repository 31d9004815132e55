use crate::{Error, Result};

/// A point in pixels of the image that the caller gave: x to the right, y down, from the image's top left corner.
/// The centre of the top left pixel is (0.5, 0.5).
///
/// Whether it lies inside of an image can only be said together with one, so that is checked when it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelPoint {
    /// Pixels from the left edge.
    pub x: f32,
    /// Pixels from the top edge.
    pub y: f32,
}

impl PixelPoint {
    /// A point x pixels from the left and y pixels from the top. x comes first, everywhere.
    pub fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }

    /// The point over an image of this size as fractions of its width and height; an error where it is not finite or
    /// not inside (`0 <= x < width`, `0 <= y < height`).
    pub(crate) fn to_unit(self, width: u32, height: u32) -> Result<(f32, f32)> {
        let Self { x, y } = self;
        // f64 holds every u32, so the bound is exact.
        let inside = |v: f32, size: u32| v.is_finite() && v >= 0.0 && f64::from(v) < f64::from(size);
        if !inside(x, width) || !inside(y, height) {
            return Err(Error::PointOutside { x, y, width, height });
        }
        Ok(((f64::from(x) / f64::from(width)) as f32, (f64::from(y) / f64::from(height)) as f32))
    }
}

impl From<(f32, f32)> for PixelPoint {
    fn from((x, y): (f32, f32)) -> Self {
        Self::new(x, y)
    }
}

/// What a click says of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Label {
    /// It belongs to the object.
    Positive,
    /// It does not belong to the object.
    Negative,
}

/// A point with what it says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Click {
    /// Where.
    pub point: PixelPoint,
    /// What.
    pub label: Label,
}

impl Click {
    /// "This belongs to the object", in pixels of the image: x first.
    pub fn positive(x: f32, y: f32) -> Self {
        Self { point: PixelPoint::new(x, y), label: Label::Positive }
    }

    /// "This does not belong to the object", in pixels of the image: x first.
    pub fn negative(x: f32, y: f32) -> Self {
        Self { point: PixelPoint::new(x, y), label: Label::Negative }
    }
}
