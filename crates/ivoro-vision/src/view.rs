//! Views of an image: its rotations and mirror images.

use std::borrow::Cow;

use ivoro::View;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::shape::Shape;

/// Bytes that one core has turned before another would have woken.
const FEW: usize = 1 << 20;

/// Every image (NHWC, each of `shape`) mirrored and turned as the view says; upright ones are not
/// copied.
pub fn turned(pixels: &[u8], shape: Shape, view: View) -> Result<Cow<'_, [u8]>> {
    if view == View::UPRIGHT {
        return Ok(Cow::Borrowed(pixels));
    }
    if view.quarter_turns % 2 == 1 && shape.height != shape.width {
        return Err(Error::NotSquare { found: shape });
    }
    let mut turned = vec![0; pixels.len()];
    let size = shape.len().max(1);
    let one = |(target, source): (&mut [u8], &[u8])| {
        turn(source, shape, view, target, |pixel, target| target.copy_from_slice(pixel));
    };
    if pixels.len() <= FEW {
        turned.chunks_mut(size).zip(pixels.chunks(size)).for_each(one);
    } else {
        turned.par_chunks_mut(size).zip(pixels.par_chunks(size)).for_each(one);
    }
    Ok(Cow::Owned(turned))
}

/// Mirrors and turns one image: `put` writes each of its pixels where it belongs in `target`.
/// Counter-clockwise: what was right comes to the top. Quarter turns are for square images.
pub(crate) fn turn<T>(
    source: &[u8],
    shape: Shape,
    view: View,
    target: &mut [T],
    put: impl Fn(&[u8], &mut [T]),
) {
    let Shape { height, width, channels } = shape;
    for y in 0..height {
        for x in 0..width {
            // Where the pixel that comes to (y, x) was before the turn.
            let (from_y, from_x) = match view.quarter_turns {
                0 => (y, x),
                1 => (x, width - 1 - y),
                2 => (height - 1 - y, width - 1 - x),
                _ => (height - 1 - x, y),
            };
            let from_x = if view.mirrored { width - 1 - from_x } else { from_x };
            let (to, from) = ((y * width + x) * channels, (from_y * width + from_x) * channels);
            put(&source[from..from + channels], &mut target[to..to + channels]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_like_numpy() {
        // numpy.rot90([[1, 2], [3, 4]], k) for k = 0..4.
        let shape = Shape { height: 2, width: 2, channels: 1 };
        let turns =
            View::ROTATIONS.map(|view| turned(&[1, 2, 3, 4], shape, view).unwrap().into_owned());
        assert_eq!(turns, [[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1], [3, 1, 4, 2]]);
        assert!(matches!(turned(&[1, 2, 3, 4], shape, View::UPRIGHT), Ok(Cow::Borrowed(_))));
        // numpy.rot90(numpy.fliplr([[1, 2], [3, 4]])).
        let view = View { quarter_turns: 1, mirrored: true };
        assert_eq!(*turned(&[1, 2, 3, 4], shape, view).unwrap(), [1, 3, 2, 4]);
    }

    #[test]
    fn non_square_images_turn_by_half_turns_only() {
        let shape = Shape { height: 1, width: 3, channels: 2 };
        let half = View { quarter_turns: 2, mirrored: false };
        assert_eq!(*turned(&[1, 2, 3, 4, 5, 6], shape, half).unwrap(), [5, 6, 3, 4, 1, 2]);
        let quarter = View { quarter_turns: 1, mirrored: false };
        let error = turned(&[1, 2, 3, 4, 5, 6], shape, quarter).unwrap_err();
        assert!(error.to_string().contains("can't be turned"), "{error}");
    }
}
