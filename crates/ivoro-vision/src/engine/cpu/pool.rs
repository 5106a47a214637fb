//! Pools: the mean over all pixels, and the maximum of 3 by 3 pixels at every second position.

use rayon::prelude::*;

/// The mean of each channel over the pixels of an image, a row for each image.
pub(super) fn mean(images: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
    let mut means = vec![0.0; images.len() / pixels];
    for (mean, image) in
        means.chunks_exact_mut(channels).zip(images.chunks_exact(pixels * channels))
    {
        for pixel in image.chunks_exact(channels) {
            mean.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
        }
        mean.iter_mut().for_each(|sum| *sum /= pixels as f32);
    }
    means
}

/// The gradient of the images from that of their means.
pub(super) fn mean_backward(means: &[f32], pixels: usize, channels: usize, images: &mut [f32]) {
    let rows = means.par_chunks_exact(channels);
    images.par_chunks_exact_mut(pixels * channels).zip(rows).for_each(|(image, mean)| {
        for pixel in image.chunks_exact_mut(channels) {
            pixel.iter_mut().zip(mean).for_each(|(out, mean)| *out = mean / pixels as f32);
        }
    });
}

/// The maximum of 3×3 pixels at stride 2, one pixel of padding, over images of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maximum {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl Maximum {
    pub(super) fn out_height(&self) -> usize {
        self.height.div_ceil(2)
    }

    pub(super) fn out_width(&self) -> usize {
        self.width.div_ceil(2)
    }

    /// Input values of an image.
    pub(super) fn in_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Output values of an image.
    pub(super) fn out_len(&self) -> usize {
        self.out_height() * self.out_width() * self.channels
    }

    /// Calls `each` with (first output value, position 0 to 9, first input value) of every pair of
    /// pixels that meet, row by row.
    fn meetings(&self, mut each: impl FnMut(usize, u8, usize)) {
        for (y, x) in
            (0..self.out_height()).flat_map(|y| (0..self.out_width()).map(move |x| (y, x)))
        {
            let out = (y * self.out_width() + x) * self.channels;
            for position in 0..9 {
                let (row, column) = (2 * y + position / 3, 2 * x + position % 3);
                if (1..=self.height).contains(&row) && (1..=self.width).contains(&column) {
                    let source = ((row - 1) * self.width + column - 1) * self.channels;
                    each(out, position as u8, source);
                }
            }
        }
    }

    /// Writes the largest values, and where each was found.
    pub(super) fn forward(&self, images: &[f32], out: &mut [f32], found: &mut [u8]) {
        let results = out.par_chunks_exact_mut(self.out_len());
        let results = results.zip(found.par_chunks_exact_mut(self.out_len()));
        results.zip(images.par_chunks_exact(self.in_len())).for_each(|((out, found), image)| {
            out.fill(f32::NEG_INFINITY);
            self.meetings(|target, position, source| {
                let out = out[target..].iter_mut().zip(&mut found[target..]);
                let values = &image[source..source + self.channels];
                out.zip(values).for_each(|((out, found), value)| {
                    if *value > *out || value.is_nan() {
                        (*out, *found) = (*value, position);
                    }
                });
            });
        });
    }

    /// The gradient of the images: each output's goes to where the largest value was found.
    pub(super) fn backward(&self, gradient: &[f32], found: &[u8], images: &mut [f32]) {
        let given = gradient.par_chunks_exact(self.out_len());
        let given = given.zip(found.par_chunks_exact(self.out_len()));
        images.par_chunks_exact_mut(self.in_len()).zip(given).for_each(
            |(image, (gradient, found))| {
                image.fill(0.0);
                self.meetings(|from, position, target| {
                    let given = gradient[from..].iter().zip(&found[from..]);
                    let targets = &mut image[target..target + self.channels];
                    targets.iter_mut().zip(given).for_each(|(target, (gradient, found))| {
                        *target += if *found == position { *gradient } else { 0.0 };
                    });
                });
            },
        );
    }
}
