//! A training step's way through the network and back.
//!
//! All that the backward pass needs is kept: what each convolution gave, before and after its
//! batch norm. The memory is used again in the next step.

use super::batch_norm::{self, Moments, Shortcut, Statistics, Sums};
use super::convolution::{self, backward_inputs, backward_kernel, convolve};
use super::gemm::{Store, multiply, multiply_by_transposed, multiply_transposed};
use super::plan::{BlockPlan, Layer, Linear, Plan};
use super::pool;

/// What a convolution gave.
#[derive(Debug, Default)]
struct Trace {
    raw: Vec<f32>,
    statistics: Statistics,
    /// After batch norm, with the shortcut added, negative values as 0.
    out: Vec<f32>,
}

#[derive(Debug, Default)]
struct BlockTrace {
    first: Trace,
    second: Trace,
    shortcut: Trace,
}

/// Memory that gradients pass through.
#[derive(Debug, Default)]
struct Memory {
    /// Gradient of what the backward pass last reached.
    current: Vec<f32>,
    outer: Vec<f32>,
    inner: Vec<f32>,
    kernels: convolution::Memory,
}

/// What the way forward uses besides its input.
struct Forward<'a> {
    learned: &'a [f32],
    measured: &'a mut [f32],
    /// Memory for a kernel.
    prepared: &'a mut Vec<f32>,
}

/// A step's values.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// The views, normalised.
    pub(super) input: Vec<f32>,
    /// What the classifier gave; for the backward pass, the loss's gradient of it.
    pub(super) outputs: Vec<f32>,
    stem: Trace,
    pooled: Vec<f32>,
    found: Vec<u8>,
    blocks: Vec<BlockTrace>,
    features: Vec<f32>,
    embedded: Vec<f32>,
    memory: Memory,
}

impl Tape {
    /// From `input` to `outputs`, with the batch's own statistics; the running ones in `measured`
    /// follow them.
    pub(super) fn forward(&mut self, plan: &Plan, learned: &[f32], measured: &mut [f32]) {
        let views = self.input.len() / plan.stem.geometry.in_len();
        let prepared = &mut self.memory.kernels.prepared;
        let mut forward = Forward { learned, measured, prepared };
        self.stem.convolve(&plan.stem, &self.input, &mut forward);
        self.stem.finish(Shortcut::None);
        if let Some(pool) = &plan.pool {
            self.pooled.resize(views * pool.out_len(), 0.0);
            self.found.resize(views * pool.out_len(), 0);
            pool.forward(&self.stem.out, &mut self.pooled, &mut self.found);
        }
        self.blocks.resize_with(plan.blocks.len(), BlockTrace::default);
        for (index, block) in plan.blocks.iter().enumerate() {
            let (before, rest) = self.blocks.split_at_mut(index);
            let first = if plan.pool.is_some() { &self.pooled } else { &self.stem.out };
            let input = before.last().map_or(first, |block| &block.second.out);
            rest[0].forward(block, input, &mut forward);
        }
        let last = plan.last_geometry();
        self.features = pool::mean(self.last_stage(), last.out_pixels(), last.outputs);
        let features = match &plan.embedding {
            Some(embedding) => {
                embedding.forward(&self.features, learned, &mut self.embedded);
                &self.embedded
            }
            None => &self.features,
        };
        plan.classifier.forward(features, learned, &mut self.outputs);
    }

    /// What the last stage gave, pixel after pixel.
    fn last_stage(&self) -> &[f32] {
        self.blocks.last().map_or(&self.stem.out, |block| &block.second.out)
    }

    /// What each pixel of the last stage adds to the points.
    pub(super) fn maps(&self, plan: &Plan, learned: &[f32]) -> Vec<f32> {
        let stage = self.last_stage();
        let Some(embedding) = &plan.embedding else { return stage.to_vec() };
        let mut maps = vec![0.0; stage.len() / embedding.inputs * embedding.outputs];
        let matrix = &learned[embedding.matrix.clone()];
        multiply_by_transposed(&mut maps, Store::Replace, stage, matrix, embedding.inputs);
        maps
    }

    /// What the classifier sees.
    pub(super) fn points(&self, plan: &Plan) -> &[f32] {
        if plan.embedding.is_some() { &self.embedded } else { &self.features }
    }

    /// From the gradient in `outputs` to that of all learned weights.
    pub(super) fn backward(&mut self, plan: &Plan, learned: &[f32], gradient: &mut [f32]) {
        let mut points = Vec::new();
        let seen = self.points(plan);
        plan.classifier.backward(seen, &self.outputs, learned, gradient, &mut points);
        self.backward_points(plan, points, None, learned, gradient);
    }

    /// From the gradient of the points, and of the maps where there is one, to that of all learned
    /// weights but the classifier's.
    pub(super) fn backward_points(
        &mut self,
        plan: &Plan,
        points: Vec<f32>,
        maps: Option<&[f32]>,
        learned: &[f32],
        gradient: &mut [f32],
    ) {
        let mut features = points;
        if let Some(embedding) = &plan.embedding {
            let outputs = std::mem::take(&mut features);
            embedding.backward(&self.features, &outputs, learned, gradient, &mut features);
        }
        let last = plan.last_geometry();
        let current = &mut self.memory.current;
        current.resize(features.len() * last.out_pixels(), 0.0);
        pool::mean_backward(&features, last.out_pixels(), last.outputs, current);
        if let Some(maps) = maps {
            self.backward_maps(plan, maps, learned, gradient);
        }
        let memory = &mut self.memory;
        for (index, block) in plan.blocks.iter().enumerate().rev() {
            let (before, rest) = self.blocks.split_at(index);
            let first = if plan.pool.is_some() { &self.pooled } else { &self.stem.out };
            let input = before.last().map_or(first, |block| &block.second.out);
            rest[0].backward(block, input, learned, gradient, memory);
        }
        if let Some(pool) = &plan.pool {
            memory.outer.resize(self.stem.out.len(), 0.0);
            pool.backward(&memory.current, &self.found, &mut memory.outer);
            std::mem::swap(&mut memory.current, &mut memory.outer);
        }
        self.stem.backward(&plan.stem, gradient, &mut memory.current);
        let kernel = &mut gradient[plan.stem.kernel.clone()];
        let Memory { current, kernels, .. } = memory;
        backward_kernel(&plan.stem.geometry, &self.input, current, kernels, kernel);
    }

    /// Adds the gradient of the maps to that of the last stage, which is in memory already.
    fn backward_maps(&mut self, plan: &Plan, maps: &[f32], learned: &[f32], gradient: &mut [f32]) {
        let Some(Linear { matrix, inputs, outputs, .. }) = &plan.embedding else {
            self.memory.current.iter_mut().zip(maps).for_each(|(sum, value)| *sum += value);
            return;
        };
        let rows = maps.len() / outputs;
        let of_matrix = &mut gradient[matrix.clone()];
        multiply_transposed(of_matrix, Store::Add, maps, self.last_stage(), rows);
        debug_assert_eq!(self.memory.current.len(), rows * inputs);
        let current = &mut self.memory.current;
        multiply(current, Store::Add, maps, &learned[matrix.clone()], *outputs);
    }
}

impl Trace {
    /// Convolves and measures what comes out.
    fn convolve(&mut self, layer: &Layer, input: &[f32], forward: &mut Forward) {
        let Forward { learned, measured, prepared } = forward;
        let geometry = &layer.geometry;
        let images = input.len() / geometry.in_len();
        self.raw.resize(images * geometry.out_len(), 0.0);
        let kernel = &learned[layer.kernel.clone()];
        let measure = |tile: &mut [f32]| Moments::of(tile, geometry.outputs);
        let raw = &mut self.raw;
        let moments = convolve(geometry, input, kernel, prepared, raw, Store::Replace, measure);
        let running = &mut measured[layer.mean.start..layer.variance.end];
        let running = running.split_at_mut(geometry.outputs);
        let learned = (&learned[layer.scale.clone()], &learned[layer.shift.clone()]);
        self.statistics = Statistics::new(&moments, learned, running);
    }

    fn finish(&mut self, shortcut: Shortcut) {
        self.out.resize(self.raw.len(), 0.0);
        batch_norm::forward(&self.raw, &self.statistics, shortcut, &mut self.out);
    }

    /// Gradient of the raw values, in place of that of the outputs, and of the batch norm.
    fn backward(&self, layer: &Layer, gradient: &mut [f32], current: &mut [f32]) {
        let layers = [(&self.raw[..], &self.statistics)];
        let sums = batch_norm::mask_and_sum(current, &self.out, &layers);
        self.learned(layer, &sums[0], gradient);
        batch_norm::backward_here(current, &self.raw, &self.statistics, &sums[0]);
    }

    /// Gradient of the batch norm's learned weights.
    fn learned(&self, layer: &Layer, sums: &Sums, gradient: &mut [f32]) {
        let both = &mut gradient[layer.scale.start..layer.shift.end];
        let (scale, shift) = both.split_at_mut(layer.geometry.outputs);
        sums.learned(&self.statistics, scale, shift);
    }
}

impl BlockTrace {
    fn forward(&mut self, plan: &BlockPlan, input: &[f32], forward: &mut Forward) {
        self.first.convolve(&plan.first, input, forward);
        self.first.finish(Shortcut::None);
        self.second.convolve(&plan.second, &self.first.out, forward);
        let shortcut = match &plan.shortcut {
            Some(layer) => {
                self.shortcut.convolve(layer, input, forward);
                Shortcut::Convolved(&self.shortcut.raw, &self.shortcut.statistics)
            }
            None => Shortcut::Same(input),
        };
        self.second.finish(shortcut);
    }

    /// `memory.current` holds the gradient of the block's output, and then that of its input.
    fn backward(
        &self,
        plan: &BlockPlan,
        input: &[f32],
        learned: &[f32],
        gradient: &mut [f32],
        memory: &mut Memory,
    ) {
        let Memory { current, outer, inner, kernels } = memory;
        let mut layers = vec![(&self.second.raw[..], &self.second.statistics)];
        if plan.shortcut.is_some() {
            layers.push((&self.shortcut.raw, &self.shortcut.statistics));
        }
        let sums = batch_norm::mask_and_sum(current, &self.second.out, &layers);
        let second = &plan.second;
        self.second.learned(second, &sums[0], gradient);
        let Trace { raw, statistics, .. } = &self.second;
        outer.resize(raw.len(), 0.0);
        batch_norm::backward(current, raw, statistics, &sums[0], outer);
        let geometry = &second.geometry;
        let kernel = &mut gradient[second.kernel.clone()];
        backward_kernel(geometry, &self.first.out, outer, kernels, kernel);
        inner.resize(self.first.out.len(), 0.0);
        let kernel = &learned[second.kernel.clone()];
        backward_inputs(geometry, kernel, outer, kernels, inner, Store::Replace);

        let first = &plan.first;
        self.first.backward(first, gradient, inner);
        backward_kernel(
            &first.geometry,
            input,
            inner,
            kernels,
            &mut gradient[first.kernel.clone()],
        );
        if let Some(layer) = &plan.shortcut {
            self.shortcut.learned(layer, &sums[1], gradient);
            let Trace { raw, statistics, .. } = &self.shortcut;
            batch_norm::backward_here(current, raw, statistics, &sums[1]);
            let kernel = &mut gradient[layer.kernel.clone()];
            backward_kernel(&layer.geometry, input, current, kernels, kernel);
            outer.resize(input.len(), 0.0);
            let kernel = &learned[layer.kernel.clone()];
            backward_inputs(&layer.geometry, kernel, current, kernels, outer, Store::Replace);
            std::mem::swap(current, outer);
        }
        // What came by the shortcut is in `current` already: the gradient of the input without a
        // convolution is that of the output.
        let kernel = &learned[first.kernel.clone()];
        backward_inputs(&first.geometry, kernel, inner, kernels, current, Store::Add);
    }
}

impl Linear {
    /// `inputs · matrixᵀ + bias`, a row for each image.
    pub(super) fn forward(&self, inputs: &[f32], learned: &[f32], outputs: &mut Vec<f32>) {
        let rows = inputs.len() / self.inputs;
        let bias = &learned[self.bias.clone()];
        outputs.clear();
        (0..rows).for_each(|_| outputs.extend_from_slice(bias));
        let matrix = &learned[self.matrix.clone()];
        multiply_by_transposed(outputs, Store::Add, inputs, matrix, self.inputs);
    }

    fn backward(
        &self,
        inputs: &[f32],
        outputs: &[f32],
        learned: &[f32],
        gradient: &mut [f32],
        back: &mut Vec<f32>,
    ) {
        let rows = inputs.len() / self.inputs;
        let matrix = &mut gradient[self.matrix.clone()];
        multiply_transposed(matrix, Store::Replace, outputs, inputs, rows);
        let bias = &mut gradient[self.bias.clone()];
        bias.fill(0.0);
        for row in outputs.chunks_exact(self.outputs) {
            bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        back.resize(inputs.len(), 0.0);
        multiply(back, Store::Replace, outputs, &learned[self.matrix.clone()], self.outputs);
    }
}
