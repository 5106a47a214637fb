//! The engine that needs nothing but a CPU: residual networks in `f32`, on all cores.
//!
//! Images lie in NHWC order; convolutions are products of matrices, computed by faer. Results do
//! not depend on how many threads there are.

pub(crate) mod activation;
mod aligned;
pub(crate) mod attention;
mod batch_norm;
mod conv_geometry;
mod convolution;
mod dense;
mod depthwise;
mod engine;
mod gemm;
pub(crate) mod graph;
mod input;
pub(crate) mod layer_norm;
mod loss;
pub(crate) mod memory;
mod network;
mod operations;
mod optimiser;
mod panels;
mod plan;
mod pool;
pub(crate) mod record;
mod tape;
pub(crate) mod tokens;
mod trainer;
pub(crate) mod window;
mod winograd;
mod winograd_tiles;
mod work;

#[cfg(test)]
mod tests;

pub use engine::CpuEngine;
pub use network::Network;
pub(crate) use optimiser::change;
pub use trainer::CpuTrainer;

use super::check_size;
use crate::error::Result;
use crate::shape::Shape;

/// Rows of a tile, the unit that is multiplied at once.
const ROWS: usize = 256;

/// The number of images of `shape` in `pixels`.
fn count_images(pixels: &[u8], shape: Shape) -> Result<usize> {
    let length = shape.len().max(1);
    let images = pixels.len().div_ceil(length);
    check_size(
        &format!("pixel values of {images} images of {shape}"),
        images * length,
        pixels.len(),
    )?;
    Ok(images)
}
