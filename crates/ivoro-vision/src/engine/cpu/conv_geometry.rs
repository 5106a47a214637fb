//! Which input values an output value of a convolution sees.
//!
//! Images lie in NHWC order, kernels as `[tap, input, output]`, a tap being a position in the
//! kernel. Output pixels are numbered through all images.

use std::ops::Range;

/// Columns of a gathered matrix: with [`ROWS`](super::ROWS) rows it stays in the second-level cache.
const COLUMNS: usize = 768;

/// A convolution over images of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConvGeometry {
    /// Height of the input images.
    pub(super) height: usize,
    /// Width of the input images.
    pub(super) width: usize,
    /// Input channels.
    pub(super) inputs: usize,
    /// Output channels.
    pub(super) outputs: usize,
    /// Height and width of the kernel.
    pub(super) size: usize,
    /// Step between two positions.
    pub(super) stride: usize,
    /// Rows and columns of zeros around the images.
    pub(super) padding: usize,
}

impl ConvGeometry {
    pub(super) fn out_height(&self) -> usize {
        (self.height + 2 * self.padding - self.size) / self.stride + 1
    }

    pub(super) fn out_width(&self) -> usize {
        (self.width + 2 * self.padding - self.size) / self.stride + 1
    }

    /// Output pixels of an image.
    pub(super) fn out_pixels(&self) -> usize {
        self.out_height() * self.out_width()
    }

    /// Input values of an image.
    pub(super) fn in_len(&self) -> usize {
        self.height * self.width * self.inputs
    }

    /// Output values of an image.
    pub(super) fn out_len(&self) -> usize {
        self.out_pixels() * self.outputs
    }

    /// Positions in the kernel.
    pub(super) fn taps(&self) -> usize {
        self.size * self.size
    }

    /// Values of the kernel.
    pub(super) fn kernel_len(&self) -> usize {
        self.taps() * self.inputs * self.outputs
    }

    /// How many taps are gathered at once.
    pub(super) fn taps_at_once(&self) -> usize {
        let most = (COLUMNS / self.inputs).clamp(1, self.taps());
        // Taps of one kernel row lie next to each other in the image: they are one copy.
        if most >= self.size { most - most % self.size } else { most }
    }

    /// The convolution that carries gradients of the outputs back to the inputs, at stride 1.
    pub(super) fn backward(&self) -> Self {
        Self {
            height: self.out_height(),
            width: self.out_width(),
            inputs: self.outputs,
            outputs: self.inputs,
            padding: self.size - 1 - self.padding,
            ..*self
        }
    }

    /// Calls `each` with (column, offset into the images, length) for every run of values that
    /// output pixel `pixel` sees through `taps`. What lies outside the image is left out.
    fn runs(&self, pixel: usize, taps: Range<usize>, mut each: impl FnMut(usize, usize, usize)) {
        let (image, within) = (pixel / self.out_pixels(), pixel % self.out_pixels());
        let top = (within / self.out_width()) * self.stride;
        let left = (within % self.out_width()) * self.stride;
        let mut tap = taps.start;
        while tap < taps.end {
            let (kernel_row, first) = (tap / self.size, tap % self.size);
            let count = (self.size - first).min(taps.end - tap);
            let row = top + kernel_row;
            if (self.padding..self.height + self.padding).contains(&row) {
                let begin = (left + first).max(self.padding);
                let end = (left + first + count).min(self.width + self.padding);
                if begin < end {
                    let skipped = tap - taps.start + begin - (left + first);
                    let source = (image * self.height + row - self.padding) * self.width + begin
                        - self.padding;
                    let length = (end - begin) * self.inputs;
                    each(skipped * self.inputs, source * self.inputs, length);
                }
            }
            tap += count;
        }
    }

    /// Writes what output pixels from `start` on see through `taps`, a row for each pixel.
    pub(super) fn gather(
        &self,
        images: &[f32],
        start: usize,
        taps: &Range<usize>,
        out: &mut [f32],
    ) {
        let columns = taps.len() * self.inputs;
        for (at, row) in out.chunks_exact_mut(columns).enumerate() {
            let mut filled = 0;
            self.runs(start + at, taps.clone(), |column, source, length| {
                // Runs come in order; what lies between two of them is outside the image.
                row[filled..column].fill(0.0);
                row[column..column + length].copy_from_slice(&images[source..source + length]);
                filled = column + length;
            });
            row[filled..].fill(0.0);
        }
    }

    /// The opposite of [`gather`](Self::gather): adds each row to the places it was read from.
    pub(super) fn scatter(
        &self,
        rows: &[f32],
        start: usize,
        taps: &Range<usize>,
        images: &mut [f32],
    ) {
        let columns = taps.len() * self.inputs;
        for (at, row) in rows.chunks_exact(columns).enumerate() {
            self.runs(start + at, taps.clone(), |column, target, length| {
                let target = &mut images[target..target + length];
                let values = &row[column..column + length];
                target.iter_mut().zip(values).for_each(|(target, value)| *target += value);
            });
        }
    }
}

/// A kernel as the engine has it, `[height, width, in, out]`, from `[out, in, height, width]`.
pub(super) fn kernel_to_engine(geometry: &ConvGeometry, kernel: &[f32]) -> Vec<f32> {
    let (taps, inner) = (geometry.taps(), geometry.taps() * geometry.inputs);
    let value = |at: usize| {
        let (output, rest) = (at % geometry.outputs, at / geometry.outputs);
        let (input, tap) = (rest % geometry.inputs, rest / geometry.inputs);
        kernel[output * inner + input * taps + tap]
    };
    (0..geometry.kernel_len()).map(value).collect()
}
