//! What makes a value of another one: the operations of a graph.

use ivoro::vectors::vectorised;

use super::attention::Attention;
use super::conv_geometry::ConvGeometry;
use super::dense::{Dense, Way};
use super::depthwise::Depthwise;
use super::gemm::Store;
use super::layer_norm::LayerNorm;
use super::tokens::{Around, Meeting, Part};
use super::window::Window;
use super::winograd::{Packed, convolve_here, convolve_shared};
use crate::shape::Shape;

/// What makes a value of another one.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A convolution, or a linear map of each pixel.
    Dense(Dense),
    /// A convolution of 3×3 pixels in fewer multiplications.
    Winograd { geometry: ConvGeometry, kernel: Packed, bias: Vec<f32> },
    /// A convolution of each channel by itself.
    Depthwise(Depthwise),
    /// The value itself, for what it is added to or what becomes of each number.
    Copy,
    /// The largest number of each channel in a window.
    Maximum(Window),
    /// The mean of each channel in a window, with or without the zeros around the image.
    Average { window: Window, padded: bool },
    /// Each channel of an image times a number of the second value.
    Scale,
    /// The mean over all pixels.
    Mean,
    /// The channels of each pixel brought to one mean and variance.
    LayerNorm(LayerNorm),
    /// What each pixel takes from all others; keys and values are the second and third value.
    Attention(Attention),
    /// Some of the pixels.
    Part(Part),
    /// Pixels that never change put around those of an image.
    Around(Around),
    /// Numbers that never change added to or multiplied with those of each image.
    Meet(Meeting, Vec<f32>),
}

impl Work {
    /// Whether it can add its result to what is there.
    pub(super) fn adds(&self) -> bool {
        matches!(self, Self::Dense(_) | Self::Winograd { .. })
    }

    /// Whether it can apply an activation to its result.
    pub(super) fn activates(&self) -> bool {
        self.adds() || matches!(self, Self::Depthwise(_) | Self::Copy)
    }

    /// The size of what is made of a value of `shape`.
    pub(super) fn made(&self, shape: Shape) -> Shape {
        match self {
            Self::Dense(dense) => dense.made(shape),
            Self::Winograd { bias, .. } => Shape { channels: bias.len(), ..shape },
            Self::Depthwise(depthwise) => depthwise.made(shape),
            Self::Copy | Self::Scale | Self::LayerNorm(_) | Self::Meet(..) => shape,
            Self::Maximum(window) | Self::Average { window, .. } => {
                window.made(shape, shape.channels)
            }
            Self::Mean => Shape { height: 1, width: 1, ..shape },
            Self::Attention(attention) => attention.made(shape),
            Self::Part(part) => part.made(shape),
            Self::Around(around) => around.made(shape),
        }
    }

    /// Makes it of images of `shape`, and of other values where there are some.
    pub(super) fn run(
        &self,
        (input, shape): (&[f32], Shape),
        others: &[&[f32]],
        out: &mut [f32],
        way: Way,
    ) {
        match self {
            Self::Dense(dense) => dense.run(input, shape, out, way),
            Self::Winograd { geometry, kernel, bias } => {
                let Shape { height, width, .. } = shape;
                let geometry = ConvGeometry { height, width, ..*geometry };
                let finish = |tile: &mut [f32]| way.activation.apply_with_bias(tile, bias);
                if way.shared {
                    convolve_shared(&geometry, input, kernel, out, way.store, finish);
                } else {
                    convolve_here(&geometry, input, kernel, out, way.store, finish);
                }
            }
            Self::Depthwise(depthwise) => depthwise.run(input, shape, out, way),
            Self::Copy => {
                if way.store == Store::Add {
                    out.iter_mut().zip(input).for_each(|(out, value)| *out += value);
                } else {
                    out.copy_from_slice(input);
                }
                way.activation.apply(out);
            }
            Self::Maximum(window) => {
                let images = out.chunks_exact_mut(window.made(shape, shape.channels).len());
                let images = images.zip(input.chunks_exact(shape.len()));
                images.for_each(|(out, image)| maximum(window, shape, image, out));
            }
            Self::Average { window, padded } => {
                let images = out.chunks_exact_mut(window.made(shape, shape.channels).len());
                let images = images.zip(input.chunks_exact(shape.len()));
                images.for_each(|(out, image)| average(window, *padded, shape, image, out));
            }
            Self::Scale => {
                let images = out.chunks_exact_mut(shape.len()).zip(input.chunks_exact(shape.len()));
                let factors = others.iter().flat_map(|other| other.chunks_exact(shape.channels));
                images.zip(factors).for_each(|((out, image), factors)| scale(image, factors, out));
            }
            Self::Mean => out.copy_from_slice(&means(input, shape)),
            Self::LayerNorm(norm) => norm.run(input, out, way.shared),
            Self::Attention(attention) => {
                if let &[keys, values] = others {
                    let count = input.len() / shape.len();
                    attention.run([input, keys, values], count, out, way.shared);
                }
            }
            Self::Part(part) => part.run(input, shape, out),
            Self::Around(around) => around.run(input, shape, out),
            Self::Meet(meeting, numbers) => meeting.run(input, numbers, out),
        }
    }
}

/// The mean of each channel over the pixels of images of `shape`, a row for each, summed in 64 bits.
pub(crate) fn means(images: &[f32], shape: Shape) -> Vec<f32> {
    let channels = shape.channels;
    let mut means = Vec::with_capacity(images.len() / shape.len() * channels);
    let mut sums = vec![0f64; channels];
    for image in images.chunks_exact(shape.len()) {
        sums.fill(0.0);
        for pixel in image.chunks_exact(channels) {
            sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let pixels = (shape.height * shape.width) as f64;
        means.extend(sums.iter().map(|sum| (sum / pixels) as f32));
    }
    means
}

/// The largest values of each channel in the windows over an image.
fn maximum(window: &Window, shape: Shape, image: &[f32], out: &mut [f32]) {
    let (_, across) = window.positions(shape);
    for (at, out) in out.chunks_exact_mut(shape.channels).enumerate() {
        out.fill(f32::NEG_INFINITY);
        for row in window.rows(at / across, shape) {
            let line = row * shape.width;
            let columns = window.columns(at % across, shape);
            let pixels = line + columns.start..line + columns.end;
            let pixels = &image[pixels.start * shape.channels..pixels.end * shape.channels];
            vectorised(
                #[inline(always)]
                || {
                    for pixel in pixels.chunks_exact(shape.channels) {
                        out.iter_mut().zip(pixel).for_each(|(out, &value)| {
                            // a value that is no number stays so
                            let take = (value > *out) | value.is_nan();
                            *out = if take { value } else { *out };
                        });
                    }
                },
            );
        }
    }
}

/// The means of each channel in the windows over an image.
fn average(window: &Window, padded: bool, shape: Shape, image: &[f32], out: &mut [f32]) {
    let (_, across) = window.positions(shape);
    for (at, out) in out.chunks_exact_mut(shape.channels).enumerate() {
        out.fill(0.0);
        let (rows, columns) = (window.rows(at / across, shape), window.columns(at % across, shape));
        let count = if padded { window.taps() } else { rows.len() * columns.len() };
        for row in rows {
            for column in columns.clone() {
                let pixel = &image[(row * shape.width + column) * shape.channels..];
                out.iter_mut().zip(pixel).for_each(|(out, &value)| *out += value);
            }
        }
        out.iter_mut().for_each(|out| *out /= count as f32);
    }
}

/// The pixels of an image times a factor for each channel.
fn scale(image: &[f32], factors: &[f32], out: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            let channels = factors.len();
            for (out, pixel) in out.chunks_exact_mut(channels).zip(image.chunks_exact(channels)) {
                let values = out.iter_mut().zip(pixel).zip(factors);
                values.for_each(|((out, value), factor)| *out = value * factor);
            }
        },
    );
}
