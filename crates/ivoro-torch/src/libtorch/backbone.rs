//! Features on libtorch: batch norms worked into the kernels, one fused operation a convolution.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ivoro::Matrix;
use ivoro_vision::network::{Block, Convolution, Weights, fold};
use ivoro_vision::shape::Shape;
use tch::{Device, Kind, Tensor};

use super::Arithmetic;
use super::error::Result;
use super::forward::{Network, pixel_by_pixel, stride_and_padding};
use super::libtorch_ffi::sent;
use super::trainer::matrix;

/// Pixels computed at once: 1,024 images of 32×32.
const PIXELS: usize = 1 << 20;

/// A frozen network on libtorch.
pub(super) struct TorchNetwork {
    pub(super) layers: Vec<(String, usize)>,
    /// A tensor may go from thread to thread, but one thread at a time may hold it.
    loaded: Mutex<Loaded>,
}

/// What lies on the device.
struct Loaded {
    network: Network,
    /// Kernel and bias of each convolution, by the kernel's name.
    kernels: BTreeMap<String, (Tensor, Tensor)>,
    embedding: Option<(Tensor, Tensor)>,
    affine: (Tensor, Tensor),
    channels: usize,
    device: Device,
    kind: Kind,
}

impl TorchNetwork {
    /// Puts the weights on the device.
    pub(super) fn new(weights: &Weights, device: Device, arithmetic: Arithmetic) -> Result<Self> {
        let loaded = Mutex::new(Loaded::new(weights, device, arithmetic)?);
        Ok(Self { layers: weights.architecture.layers(), loaded })
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loaded {
    fn new(weights: &Weights, device: Device, arithmetic: Arithmetic) -> Result<Self> {
        let kind = arithmetic.kind();
        let on_device = |values: &[f32]| Tensor::f_from_slice(values)?.f_to_device(device);
        let upload = |values: &[f32], size: &[i64]| -> Result<Tensor> {
            Ok(on_device(values)?.f_view(size)?.f_to_kind(kind)?)
        };
        let folded = fold(weights);
        let mut kernels = BTreeMap::new();
        for one in weights.architecture.convolutions() {
            let values = &folded[&one.kernel];
            let side = one.size as i64;
            let size = [one.outputs as i64, one.inputs as i64, side, side];
            let kernel = upload(&values.kernel, &size)?;
            // Channels last in memory.
            let kernel = kernel.f_permute([0, 2, 3, 1])?.f_contiguous()?.f_permute([0, 3, 1, 2])?;
            kernels.insert(one.kernel, (kernel, upload(&values.bias, &[size[0]])?));
        }
        let linear = |layer: &str, outputs: usize| -> Result<(Tensor, Tensor)> {
            let of = |kind: &str| weights.get(&format!("{layer}.{kind}")).unwrap_or_default();
            let (rows, values) = (outputs as i64, of("weight"));
            let inputs = (values.len() / outputs.max(1)) as i64;
            let matrix = on_device(values)?.f_view([rows, inputs])?;
            Ok((matrix, on_device(of("bias"))?))
        };
        let architecture = &weights.architecture;
        let embedding = architecture.embedding.map(|size| linear("embedding", size)).transpose()?;
        let (factors, shifts): (Vec<f32>, Vec<f32>) =
            weights.normalisation.affine().into_iter().unzip();
        Ok(Self {
            network: Network::new(architecture),
            affine: (on_device(&factors)?, on_device(&shifts)?),
            channels: architecture.channels,
            kernels,
            embedding,
            device,
            kind,
        })
    }

    /// Features of the layers asked for, left on the device, and the last stage's output.
    fn features(
        &self,
        pixels: &[u8],
        shape: Shape,
        layers: &[usize],
    ) -> Result<(Vec<Tensor>, Tensor)> {
        let size = shape.len();
        if size == 0 || shape.channels != self.channels || !pixels.len().is_multiple_of(size) {
            let expected = self.channels;
            return Err(ivoro_vision::Error::Channels { expected, found: shape }.into());
        }
        tch::no_grad(|| {
            let images = (pixels.len() / size) as i64;
            let size = [images, shape.height as i64, shape.width as i64, shape.channels as i64];
            let raw = sent(pixels, self.device)?.f_view(size)?;
            let scaled =
                raw.f_to_kind(Kind::Float)?.f_mul(&self.affine.0)?.f_add(&self.affine.1)?;
            self.run(&scaled.f_to_kind(self.kind)?.f_permute([0, 3, 1, 2])?, layers)
        })
    }

    /// Points and maps, left on the device.
    fn points_and_maps(&self, pixels: &[u8], shape: Shape) -> Result<Vec<Tensor>> {
        let (mut found, stage) = self.features(pixels, shape, &[0])?;
        let matrix = self.embedding.as_ref().map(|(matrix, _)| matrix);
        found.push(tch::no_grad(|| pixel_by_pixel(&stage, matrix))?);
        Ok(found)
    }

    fn run(&self, images: &Tensor, layers: &[usize]) -> Result<(Vec<Tensor>, Tensor)> {
        let mut x = self.convolve(&self.network.stem, images, None, true)?;
        if self.network.pooled_stem {
            x = x.f_max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)?;
        }
        let stages = self.network.stages.len();
        // Layer 0 is the last one; without an embedding that is the last stage itself.
        let inner = usize::from(self.embedding.is_some());
        let mut points: Vec<Option<Tensor>> = layers.iter().map(|_| None).collect();
        let mut last = x.shallow_clone();
        for (index, blocks) in self.network.stages.iter().enumerate() {
            for block in blocks {
                x = self.block(block, &x)?;
            }
            let layer = stages - 1 - index + inner;
            let needed = layers.contains(&layer) || index + 1 == stages;
            if needed {
                last = x.f_mean_dim([2i64, 3].as_slice(), false, Kind::Float)?;
                for (point, _) in points.iter_mut().zip(layers).filter(|(_, at)| **at == layer) {
                    *point = Some(last.shallow_clone());
                }
            }
        }
        if let Some((matrix, bias)) = &self.embedding {
            last = last.f_linear(matrix, Some(bias))?;
        }
        for (point, _) in points.iter_mut().zip(layers).filter(|(_, at)| **at == 0) {
            *point = Some(last.shallow_clone());
        }
        let missing = || ivoro_vision::Error::Layer { found: stages + inner }.into();
        let points = points.into_iter().map(|point| point.ok_or_else(missing));
        Ok((points.collect::<Result<_>>()?, x))
    }

    fn block(&self, block: &Block, x: &Tensor) -> Result<Tensor> {
        let around = match &block.shortcut {
            Some(convolution) => self.convolve(convolution, x, None, false)?,
            None => x.shallow_clone(),
        };
        let inner = self.convolve(&block.first, x, None, true)?;
        self.convolve(&block.second, &inner, Some(&around), true)
    }

    /// Convolution, bias, what is added, and the ReLU: one kernel where cuDNN has it.
    fn convolve(
        &self,
        convolution: &Convolution,
        x: &Tensor,
        added: Option<&Tensor>,
        rectified: bool,
    ) -> Result<Tensor> {
        let (kernel, bias) = &self.kernels[&convolution.kernel];
        let (stride, padding) = stride_and_padding(convolution);
        if self.device.is_cuda() && rectified {
            return Ok(match added {
                Some(z) => x.f_cudnn_convolution_add_relu(
                    kernel,
                    z,
                    1.0,
                    Some(bias),
                    stride,
                    padding,
                    [1, 1],
                    1,
                )?,
                None => {
                    x.f_cudnn_convolution_relu(kernel, Some(bias), stride, padding, [1, 1], 1)?
                }
            });
        }
        let mut y = x.f_conv2d(kernel, Some(bias), stride, padding, [1, 1], 1)?;
        if let Some(z) = added {
            let _ = y.f_add_(z)?;
        }
        if rectified {
            let _ = y.f_relu_()?;
        }
        Ok(y)
    }
}

impl TorchNetwork {
    /// Features of images, a matrix for each layer asked for.
    pub(super) fn features(
        &self,
        pixels: &[u8],
        shape: Shape,
        layers: &[usize],
    ) -> Result<Vec<Matrix>> {
        self.in_parts(pixels, shape, layers.len(), |loaded, part| {
            Ok(loaded.features(part, shape, layers)?.0)
        })
    }

    /// Points of images, and what each pixel of the last stage adds to them.
    pub(super) fn points_and_maps(&self, pixels: &[u8], shape: Shape) -> Result<(Matrix, Matrix)> {
        let mut found =
            self.in_parts(pixels, shape, 2, |loaded, part| loaded.points_and_maps(part, shape))?;
        let maps = found.pop().unwrap_or_default();
        Ok((found.pop().unwrap_or_default(), maps))
    }

    /// So many kinds of rows of images, computed part by part.
    fn in_parts(
        &self,
        pixels: &[u8],
        shape: Shape,
        kinds: usize,
        compute: impl Fn(&Loaded, &[u8]) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Matrix>> {
        // A GPU is told of all parts before the first is fetched: it never waits for the next one.
        let images = (PIXELS / (shape.height * shape.width).max(1)).max(1);
        let mut by_kind: Vec<Vec<Tensor>> = (0..kinds).map(|_| Vec::new()).collect();
        let mut parts: Vec<&[u8]> = pixels.chunks((images * shape.len()).max(1)).collect();
        if parts.is_empty() {
            parts.push(pixels);
        }
        let loaded = self.loaded();
        for part in parts {
            let found = compute(&loaded, part)?;
            by_kind.iter_mut().zip(found).for_each(|(parts, rows)| parts.push(rows));
        }
        by_kind.iter().map(|parts| matrix(&Tensor::f_cat(parts, 0)?)).collect()
    }
}
