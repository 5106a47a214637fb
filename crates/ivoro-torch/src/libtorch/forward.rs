//! The network as a sequence of libtorch's operations, in training.

use std::collections::BTreeMap;

use ivoro_vision::network::{Architecture, Block, Convolution, Stem};
use tch::{Kind, Tensor};

use super::error::{Error, Result};

/// Weights by name: parts of flat tensors.
pub(super) type Named = BTreeMap<String, Tensor>;

/// A network whose batch norms measure the batch.
pub(super) struct Network {
    pub(super) stem: Convolution,
    pub(super) stages: Vec<Vec<Block>>,
    pub(super) pooled_stem: bool,
    embedded: bool,
}

impl Network {
    pub(super) fn new(architecture: &Architecture) -> Self {
        Self {
            stem: architecture.stem_convolution(),
            stages: architecture.stages(),
            pooled_stem: architecture.stem == Stem::Large,
            embedded: architecture.embedding.is_some(),
        }
    }

    /// The classifier's outputs for `images` in `[n, channels, height, width]`.
    pub(super) fn outputs(
        &self,
        weights: &Named,
        images: &Tensor,
        training: bool,
    ) -> Result<Tensor> {
        let trunk = self.trunk(weights, images, training)?;
        linear(weights, "fc", &self.points(weights, &trunk)?)
    }

    /// What the classifier sees of what the stages made of images.
    pub(super) fn points(&self, weights: &Named, trunk: &Tensor) -> Result<Tensor> {
        if self.embedded {
            return linear(weights, "embedding", trunk);
        }
        Ok(trunk.shallow_clone())
    }

    /// What each pixel of the last stage adds to the points, pixel after pixel in a row for each image.
    pub(super) fn maps(&self, weights: &Named, stage: &Tensor) -> Result<Tensor> {
        let embedding =
            self.embedded.then(|| weight(weights, "embedding", "weight")).transpose()?;
        pixel_by_pixel(stage, embedding)
    }

    /// What the stages make of images: means over all pixels of the last one's output.
    pub(super) fn trunk(&self, weights: &Named, images: &Tensor, training: bool) -> Result<Tensor> {
        mean_over_pixels(&self.last_stage(weights, images, training)?)
    }

    /// The last stage's output.
    pub(super) fn last_stage(
        &self,
        weights: &Named,
        images: &Tensor,
        training: bool,
    ) -> Result<Tensor> {
        let mut x = convolve(&self.stem, weights, images, training)?.f_relu_()?;
        if self.pooled_stem {
            x = x.f_max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)?;
        }
        for block in self.stages.iter().flatten() {
            let around = match &block.shortcut {
                Some(convolution) => convolve(convolution, weights, &x, training)?,
                None => x.shallow_clone(),
            };
            let inner = convolve(&block.first, weights, &x, training)?.f_relu_()?;
            let mut outer = convolve(&block.second, weights, &inner, training)?;
            x = outer.f_add_(&around)?.f_relu_()?;
        }
        Ok(x)
    }
}

pub(super) fn mean_over_pixels(stage: &Tensor) -> Result<Tensor> {
    Ok(stage.f_mean_dim([2i64, 3].as_slice(), false, Kind::Float)?)
}

/// The pixels of a stage one after another in a row for each image, through a matrix if there is one.
pub(super) fn pixel_by_pixel(stage: &Tensor, matrix: Option<&Tensor>) -> Result<Tensor> {
    let mut pixels = stage.f_permute([0, 2, 3, 1])?.f_to_kind(Kind::Float)?;
    if let Some(matrix) = matrix {
        pixels = pixels.f_linear(matrix, None::<&Tensor>)?;
    }
    let images = stage.size().first().copied().unwrap_or(0);
    Ok(pixels.f_reshape([images, -1])?)
}

/// The weight called `layer.kind`.
pub(super) fn weight<'a>(weights: &'a Named, layer: &str, kind: &str) -> Result<&'a Tensor> {
    let name = format!("{layer}.{kind}");
    weights.get(&name).ok_or_else(|| Error::Engine { what: format!("no weight called {name}") })
}

pub(super) fn linear(weights: &Named, layer: &str, points: &Tensor) -> Result<Tensor> {
    let bias = weight(weights, layer, "bias")?;
    Ok(points.f_linear(weight(weights, layer, "weight")?, Some(bias))?)
}

/// Stride and padding of a convolution, as libtorch wants them.
pub(super) fn stride_and_padding(convolution: &Convolution) -> ([i64; 2], [i64; 2]) {
    let (stride, padding) = (convolution.stride as i64, convolution.size as i64 / 2);
    ([stride, stride], [padding, padding])
}

fn convolve(
    convolution: &Convolution,
    weights: &Named,
    x: &Tensor,
    training: bool,
) -> Result<Tensor> {
    let (stride, padding) = stride_and_padding(convolution);
    let kernel = weight(weights, &convolution.kernel, "weight")?;
    let y = x.f_conv2d(kernel, None::<&Tensor>, stride, padding, [1, 1], 1)?;
    let of = |kind| weight(weights, &convolution.normalisation, kind).map(Some);
    Ok(y.f_batch_norm(
        of("weight")?,
        of("bias")?,
        of("running_mean")?,
        of("running_var")?,
        training,
        0.1,
        1e-5,
        true,
    )?)
}
