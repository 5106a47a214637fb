//! A training step on a GPU without automatic differentiation: each batch norm, what is added to
//! it and its ReLU are one kernel on the way in, and two on the backward pass.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null_mut;

use ivoro_vision::network::Convolution;
use libloading::os::unix::Symbol;
use tch::{Device, Kind, Tensor};

use super::Arithmetic;
use super::error::{Error, Result};
use super::forward::{Named, Network, mean_over_pixels, stride_and_padding, weight};
use super::kernels::{Argument, Kernels};
use super::libtorch_ffi::{cuda, symbol};

/// `aoti_torch_cuda_convolution_backward` of libtorch's C interface.
type Backward = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *const *const i64,
    i64,
    *const i64,
    i64,
    *const i64,
    i64,
    *const i64,
    i64,
    i32,
    *const i64,
    i64,
    i64,
    *const i32,
    i64,
    *mut *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

/// What computes a network and its gradient on a GPU.
pub(super) struct Fused {
    kernels: Kernels,
    backward: Symbol<Backward>,
}

/// A convolution that was passed: all that its backward pass needs.
struct Passed {
    input: Tensor,
    /// The convolution's output, before batch norm.
    raw: Tensor,
    /// Mean, 1 / deviation, factor and shift of the batch norm.
    kept: Tensor,
}

struct PassedBlock {
    first: Passed,
    second: Passed,
    around: Option<Passed>,
    output: Tensor,
}

/// The way from images to points.
pub(super) struct Tape {
    stem: Passed,
    blocks: Vec<PassedBlock>,
}

impl Tape {
    /// The last stage's output.
    pub(super) fn last_stage(&self) -> Option<&Tensor> {
        self.blocks.last().map(|block| &block.output)
    }
}

/// Rows (pixels) and channels of a tensor whose channels lie side by side.
struct Extent {
    rows: i64,
    channels: i64,
}

impl Extent {
    fn of(tensor: &Tensor) -> Result<Self> {
        let size = tensor.size();
        if let [images, channels, height, width] = size[..] {
            let strides = [channels * height * width, 1, width * channels, channels];
            // Along an axis of one place there is no step to take.
            let mut axes = size.iter().zip(tensor.stride()).zip(strides);
            if axes.all(|((&size, found), expected)| size == 1 || found == expected)
                && tensor.kind() == Kind::BFloat16
            {
                return Ok(Self { rows: images * height * width, channels });
            }
        }
        let what = format!("channels side by side expected, got strides {:?}", tensor.stride());
        Err(Error::Engine { what })
    }

    fn eights(&self) -> i64 {
        self.rows * self.channels / 8
    }

    fn width(&self) -> i64 {
        self.channels / 8
    }
}

impl Fused {
    /// The kernels for this network, if they fit it and the device.
    pub(super) fn find(
        network: &Network,
        device: Device,
        arithmetic: Arithmetic,
    ) -> Option<Result<Self>> {
        let Device::Cuda(index) = device else { return None };
        let mut convolutions = network.stages.iter().flatten().flat_map(|block| {
            [Some(&block.first), Some(&block.second), block.shortcut.as_ref()].into_iter().flatten()
        });
        let fits = Kernels::supports_channels(network.stem.outputs)
            && convolutions.all(|convolution| Kernels::supports_channels(convolution.outputs));
        if arithmetic != Arithmetic::Mixed || network.pooled_stem || !fits {
            return None;
        }
        let find = || {
            let backward = symbol(&cuda()?.1, "aoti_torch_cuda_convolution_backward")?;
            Ok(Self { kernels: Kernels::compile(index)?, backward })
        };
        Some(find())
    }

    /// What the network's stages make of images, and the way there. Running statistics move on.
    pub(super) fn forward(
        &self,
        network: &Network,
        weights: &Named,
        images: &Tensor,
    ) -> Result<(Tensor, Tape)> {
        let stem = self.pass(&network.stem, weights, images)?;
        let mut x = self.rectify(&stem, None)?;
        let mut blocks = Vec::new();
        for block in network.stages.iter().flatten() {
            let around = match &block.shortcut {
                Some(convolution) => Some(self.pass(convolution, weights, &x)?),
                None => None,
            };
            let first = self.pass(&block.first, weights, &x)?;
            let inner = self.rectify(&first, None)?;
            let second = self.pass(&block.second, weights, &inner)?;
            let added = match &around {
                Some(around) => (&around.raw, Some(&around.kept)),
                None => (&x, None),
            };
            x = self.rectify(&second, Some(added))?;
            blocks.push(PassedBlock { first, second, around, output: x.shallow_clone() });
        }
        Ok((mean_over_pixels(&x)?, Tape { stem, blocks }))
    }

    /// The gradient of every weight on the way, by name, from that of the points and, where there is
    /// one, that of the last stage's pixels.
    pub(super) fn backward(
        &self,
        network: &Network,
        weights: &Named,
        tape: Tape,
        (points, stage): (&Tensor, Option<&Tensor>),
    ) -> Result<BTreeMap<String, Tensor>> {
        let Some(last) = tape.blocks.last() else {
            return Err(Error::Engine { what: "a network without blocks".to_owned() });
        };
        let mut found = BTreeMap::new();
        let stage = stage.map(|stage| channels_side_by_side(stage, last.output.kind()));
        let (mut gradient, mut more) = (everywhere(points, &last.output)?, stage.transpose()?);
        let architecture: Vec<_> = network.stages.iter().flatten().collect();
        for (block, passed) in architecture.into_iter().zip(tape.blocks).rev() {
            let PassedBlock { first, second, around, output } = passed;
            let gated = output.f_empty_like()?;
            let sums = self.gather(
                (&gradient, more.as_ref()),
                Some(&output),
                &second,
                around.as_ref(),
                Some(&gated),
            )?;
            drop(output);
            let mut step = |convolution: &Convolution, passed: &Passed, way: Way<'_>| {
                self.step_back(convolution, weights, passed, way, &mut found)
            };
            let way =
                |gradient, gate, sums, which| Way { gradient, further: true, gate, sums, which };
            let inner = step(&block.second, &second, way(&gated, false, &sums, 1))?;
            let inner = inner.ok_or_else(no_gradient)?;
            let sums_first = self.gather((&inner, None), None, &first, None, None)?;
            let through = step(&block.first, &first, way(&inner, true, &sums_first, 1))?;
            more = match (&block.shortcut, &around) {
                (Some(convolution), Some(passed)) => {
                    step(convolution, passed, way(&gated, false, &sums, 2))?
                }
                _ => Some(gated),
            };
            gradient = through.ok_or_else(no_gradient)?;
        }
        let gated = tape.stem.raw.f_empty_like()?;
        let pair = (&gradient, more.as_ref());
        let sums = self.gather(pair, None, &tape.stem, None, Some(&gated))?;
        let way = Way { gradient: &gated, further: false, gate: false, sums: &sums, which: 1 };
        self.step_back(&network.stem, weights, &tape.stem, way, &mut found)?;
        Ok(found)
    }

    /// A convolution, and the statistics of what comes out.
    fn pass(&self, convolution: &Convolution, weights: &Named, input: &Tensor) -> Result<Passed> {
        let (stride, padding) = stride_and_padding(convolution);
        let kernel = weight(weights, &convolution.kernel, "weight")?;
        let raw = input.f_conv2d(kernel, None::<&Tensor>, stride, padding, [1, 1], 1)?;
        let extent = Extent::of(&raw)?;
        if extent.rows == 0 {
            return Err(Error::Engine { what: "a batch without images".to_owned() });
        }
        let blocks = self.kernels.blocks(extent.eights());
        let numbers = (Kind::Float, raw.device());
        let partial = Tensor::f_empty([blocks, 2, extent.channels], numbers)?;
        let kept = Tensor::f_empty([4, extent.channels], numbers)?;
        let (eights, width) = (Argument::Size(extent.eights()), Argument::Size(extent.width()));
        let of = |kind| weight(weights, &convolution.normalisation, kind).map(Argument::Tensor);
        let (x, sums) = (Argument::Tensor(&raw), Argument::Tensor(&partial));
        self.kernels.start("measure", blocks, &[x, sums, eights, width])?;
        self.kernels.start(
            "measured",
            extent.channels,
            &[
                x,
                sums,
                Argument::Size(blocks),
                width,
                Argument::Size(extent.rows),
                of("weight")?,
                of("bias")?,
                of("running_mean")?,
                of("running_var")?,
                Argument::Tensor(&kept),
            ],
        )?;
        Ok(Passed { input: input.shallow_clone(), raw, kept })
    }

    /// The normalised output, plus what is added (normalised, too, with the numbers given), with
    /// negative numbers set to 0.
    fn rectify(
        &self,
        passed: &Passed,
        added: Option<(&Tensor, Option<&Tensor>)>,
    ) -> Result<Tensor> {
        let extent = Extent::of(&passed.raw)?;
        let (added, kept_added) = match added {
            Some((added, kept)) => {
                Extent::of(added)?;
                (Some(added), kept)
            }
            None => (None, None),
        };
        let output = passed.raw.f_empty_like()?;
        self.kernels.start(
            "apply",
            self.kernels.blocks(extent.eights()),
            &[
                Argument::Tensor(&passed.raw),
                Argument::Tensor(&passed.kept),
                Argument::Maybe(added),
                Argument::Maybe(kept_added),
                Argument::Tensor(&output),
                Argument::Size(extent.eights()),
                Argument::Size(extent.width()),
            ],
        )?;
        Ok(output)
    }

    /// Sums over pixels that the gradients of a batch norm need, one part a block.
    fn gather(
        &self,
        (gradient, more): (&Tensor, Option<&Tensor>),
        output: Option<&Tensor>,
        passed: &Passed,
        around: Option<&Passed>,
        gated: Option<&Tensor>,
    ) -> Result<Tensor> {
        let extent = Extent::of(&passed.raw)?;
        for tensor in [Some(gradient), more].into_iter().flatten() {
            Extent::of(tensor)?;
        }
        let blocks = self.kernels.blocks(extent.eights());
        let sums = 2 + i64::from(around.is_some());
        let numbers = (Kind::Float, gradient.device());
        let partial = Tensor::f_empty([blocks, sums, extent.channels], numbers)?;
        let mut arguments = vec![
            Argument::Tensor(gradient),
            Argument::Maybe(more),
            Argument::Maybe(output),
            Argument::Tensor(&passed.raw),
            Argument::Tensor(&passed.kept),
        ];
        if let Some(around) = around {
            arguments.extend([Argument::Tensor(&around.raw), Argument::Tensor(&around.kept)]);
        }
        arguments.extend([
            Argument::Maybe(gated),
            Argument::Tensor(&partial),
            Argument::Size(extent.eights()),
            Argument::Size(extent.width()),
        ]);
        let name = if around.is_some() { "gather_around" } else { "gather" };
        self.kernels.start(name, blocks, &arguments)?;
        Ok(partial)
    }

    /// Back through a batch norm and its convolution, to the convolution's input if asked for.
    fn step_back(
        &self,
        convolution: &Convolution,
        weights: &Named,
        passed: &Passed,
        way: Way<'_>,
        found: &mut BTreeMap<String, Tensor>,
    ) -> Result<Option<Tensor>> {
        let extent = Extent::of(&passed.raw)?;
        let numbers = (Kind::Float, passed.raw.device());
        let learned = Tensor::f_empty([2, extent.channels], numbers)?;
        let factors = Tensor::f_empty([3, extent.channels], numbers)?;
        let [parts, sums, _] = way.sums.size()[..] else { return Err(no_gradient()) };
        let width = Argument::Size(extent.width());
        self.kernels.start(
            "gathered",
            extent.channels,
            &[
                Argument::Tensor(way.sums),
                Argument::Size(parts),
                Argument::Size(sums * 8),
                Argument::Size(way.which),
                width,
                Argument::Size(extent.rows),
                Argument::Tensor(&passed.kept),
                Argument::Tensor(&learned),
                Argument::Tensor(&factors),
            ],
        )?;
        let gradient = passed.raw.f_empty_like()?;
        self.kernels.start(
            "spread",
            self.kernels.blocks(extent.eights()),
            &[
                Argument::Tensor(way.gradient),
                Argument::Tensor(&passed.raw),
                Argument::Maybe(way.gate.then_some(&passed.kept)),
                Argument::Tensor(&factors),
                Argument::Tensor(&gradient),
                Argument::Size(extent.eights()),
                width,
            ],
        )?;
        for (row, kind) in [(0, "weight"), (1, "bias")] {
            let name = format!("{}.{kind}", convolution.normalisation);
            found.insert(name, learned.f_select(0, row)?);
        }
        let kernel = weight(weights, &convolution.kernel, "weight")?;
        let (input, kernel) =
            self.convolution_back(convolution, &gradient, &passed.input, kernel, way.further)?;
        found.insert(format!("{}.weight", convolution.kernel), kernel);
        Ok(input)
    }

    /// Gradients of a convolution's input (where asked for) and kernel.
    fn convolution_back(
        &self,
        convolution: &Convolution,
        gradient: &Tensor,
        input: &Tensor,
        kernel: &Tensor,
        with_input: bool,
    ) -> Result<(Option<Tensor>, Tensor)> {
        let (stride, padding) = stride_and_padding(convolution);
        let (ones, zeros) = ([1i64, 1], [0i64, 0]);
        let mask = [i32::from(with_input), 1, 0];
        let mut results = [null_mut::<c_void>(); 3];
        let [first, second, third] = &mut results;
        // SAFETY: the type is the one in libtorch's header c_shim_cuda.h; a `tch` tensor points to
        // an `at::Tensor`, as that interface wants and returns it; all lists live through the call.
        let status = unsafe {
            (self.backward)(
                gradient.as_ptr().cast_mut().cast(),
                input.as_ptr().cast_mut().cast(),
                kernel.as_ptr().cast_mut().cast(),
                std::ptr::null(),
                0,
                stride.as_ptr(),
                2,
                padding.as_ptr(),
                2,
                ones.as_ptr(),
                2,
                0,
                zeros.as_ptr(),
                2,
                1,
                mask.as_ptr(),
                3,
                first,
                second,
                third,
            )
        };
        if status != 0 {
            return Err(no_gradient());
        }
        // SAFETY: each non-null result is a new `at::Tensor` that is ours to free.
        let mut taken = results
            .map(|result| (!result.is_null()).then(|| unsafe { Tensor::from_ptr(result.cast()) }));
        let kernel = taken[1].take().ok_or_else(no_gradient)?;
        Ok((taken[0].take().filter(|_| with_input), kernel))
    }
}

/// A gradient on its way back through a batch norm.
#[derive(Clone, Copy)]
struct Way<'a> {
    gradient: &'a Tensor,
    /// Whether the gradient of the convolution's input is asked for.
    further: bool,
    /// Whether the ReLU is still to be passed.
    gate: bool,
    sums: &'a Tensor,
    /// Which of the sums is the one of products with this batch norm's output.
    which: i64,
}

/// The gradient of a mean over all pixels, at each pixel.
fn everywhere(points: &Tensor, output: &Tensor) -> Result<Tensor> {
    let [images, channels, height, width] = output.size()[..] else { return Err(no_gradient()) };
    let each = points.f_div_scalar(height * width)?.f_to_kind(output.kind())?;
    let each = each.f_view([images, 1, 1, channels])?;
    let all = each.f_expand([images, height, width, channels], false)?.f_contiguous()?;
    Ok(all.f_permute([0, 3, 1, 2])?)
}

/// Images as the kernels take them.
fn channels_side_by_side(images: &Tensor, kind: Kind) -> Result<Tensor> {
    let pixels = images.f_to_kind(kind)?.f_permute([0, 2, 3, 1])?.f_contiguous()?;
    Ok(pixels.f_permute([0, 3, 1, 2])?)
}

fn no_gradient() -> Error {
    Error::Engine { what: "no gradient of a convolution".to_owned() }
}
