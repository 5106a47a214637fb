//! From bytes to the network's input: normalised and, in training, rotated.

use ivoro::View;
use rayon::prelude::*;

use crate::engine::Normalisation;
use crate::error::Result;
use crate::shape::Shape;
use crate::view::turn;

use super::check_size;

/// What a byte becomes, for each channel.
#[derive(Clone, Debug)]
pub(super) struct Lookup(Vec<[f32; 256]>);

impl Lookup {
    /// The table of a normalisation for images of `channels` channels.
    pub(super) fn new(normalisation: &Normalisation, channels: usize) -> Result<Self> {
        check_size("means of the normalisation", channels, normalisation.mean.len())?;
        check_size("deviations of the normalisation", channels, normalisation.deviation.len())?;
        let table = |(factor, shift): (f32, f32)| {
            std::array::from_fn(|value| value as f32 * factor + shift)
        };
        Ok(Self(normalisation.affine().into_iter().map(table).collect()))
    }

    /// Normalises pixels on this thread.
    pub(super) fn apply(&self, pixels: &[u8], out: &mut [f32]) {
        let channels = self.0.len();
        for (out, pixel) in out.chunks_exact_mut(channels).zip(pixels.chunks_exact(channels)) {
            for ((out, value), table) in out.iter_mut().zip(pixel).zip(&self.0) {
                *out = table[usize::from(*value)];
            }
        }
    }

    /// Fills `out` with normalised images and their rotations by 90°, counter-clockwise: all
    /// images as they are, then all images rotated once, and so on. Rotated images are square.
    pub(super) fn views(&self, pixels: &[u8], shape: Shape, out: &mut [f32]) {
        let images = pixels.len() / shape.len();
        out.par_chunks_exact_mut(shape.len()).enumerate().for_each(|(view, out)| {
            let (rotation, image) = (View::ROTATIONS[view / images], view % images);
            let image = &pixels[image * shape.len()..(image + 1) * shape.len()];
            if rotation == View::UPRIGHT {
                self.apply(image, out);
            } else {
                turn(image, shape, rotation, out, |pixel, out| self.apply(pixel, out));
            }
        });
    }
}
