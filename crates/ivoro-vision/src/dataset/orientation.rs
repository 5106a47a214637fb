//! Which side of a photo is up, as the camera noted it.

use image::metadata::Orientation;

use crate::shape::Shape;

/// Whether rows of the stored pixels are columns of the photo.
pub(super) fn is_transposed(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// The shape of the photo, where stored pixels have this one.
pub(super) fn upright_shape(shape: Shape, orientation: Orientation) -> Shape {
    let Shape { height, width, channels } = shape;
    if is_transposed(orientation) {
        Shape { height: width, width: height, channels }
    } else {
        shape
    }
}

/// The pixels of the photo, from those that are stored.
pub(super) fn upright(pixels: &[u8], shape: Shape, orientation: Orientation) -> Vec<u8> {
    let Shape { height, width, channels } = upright_shape(shape, orientation);
    let (bottom, right) = (height.saturating_sub(1), width.saturating_sub(1));
    let mut out = Vec::with_capacity(pixels.len());
    for y in 0..height {
        for x in 0..width {
            // where the pixel that is seen at (y, x) is stored
            let (row, column) = match orientation {
                Orientation::NoTransforms => (y, x),
                Orientation::FlipHorizontal => (y, right - x),
                Orientation::Rotate180 => (bottom - y, right - x),
                Orientation::FlipVertical => (bottom - y, x),
                Orientation::Rotate90FlipH => (x, y),
                Orientation::Rotate90 => (right - x, y),
                Orientation::Rotate270FlipH => (right - x, bottom - y),
                Orientation::Rotate270 => (x, bottom - y),
            };
            let at = (row * shape.width + column) * channels;
            out.extend_from_slice(&pixels[at..at + channels]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, RgbImage};

    use super::*;

    #[test]
    fn all_eight_agree_with_the_image_crate() {
        let shape = Shape { height: 3, width: 5, channels: 3 };
        let pixels: Vec<u8> = (0..45).collect();
        for number in 1..=8 {
            let orientation = Orientation::from_exif(number).unwrap();
            let stored = RgbImage::from_raw(5, 3, pixels.clone()).unwrap();
            let mut expected = DynamicImage::from(stored);
            expected.apply_orientation(orientation);
            let found = upright_shape(shape, orientation);
            let size = (found.width as u32, found.height as u32);
            assert_eq!(size, (expected.width(), expected.height()), "{number}");
            assert_eq!(upright(&pixels, shape, orientation), expected.into_bytes(), "{number}");
        }
    }
}
