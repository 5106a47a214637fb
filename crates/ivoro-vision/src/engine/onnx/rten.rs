//! Networks computed by rten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueView};

use super::Compute;
use super::operator::Files;
use super::to_features::Tensor;

/// Images of one input: few, so that there is one for every core.
const TOGETHER: usize = 4;

/// A network loaded by rten.
pub(super) struct Rten {
    model: Model,
    input: NodeId,
    outputs: Vec<NodeId>,
    /// All cores, for one input.
    all: Arc<ThreadPool>,
    /// A core each, for several: what is between the products is not shared otherwise.
    each: Vec<Arc<ThreadPool>>,
}

impl Rten {
    /// Loads the network, or says why not.
    pub(super) fn load(file: Vec<u8>, files: Files, input: &str) -> Result<Self, String> {
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        for (name, bytes) in files {
            options.external_data(&name, bytes);
        }
        let model = options.load(file).map_err(|error| error.to_string())?;
        let input = model.node_id(input).map_err(|error| error.to_string())?;
        let outputs = model.output_ids().to_vec();
        // Its own pool counts cores as the system lists them, not as the process may use them.
        let threads = rayon::current_num_threads();
        let pool = |threads| Arc::new(ThreadPool::with_num_threads(threads));
        let each = (0..threads).map(|_| pool(1)).collect();
        Ok(Self { model, input, outputs, all: pool(threads), each })
    }

    /// The outputs wanted for one input, on the cores of a pool.
    fn one(
        &self,
        (numbers, dimensions): &(Vec<f32>, [usize; 4]),
        wanted: &[usize],
        threads: &Arc<ThreadPool>,
    ) -> Result<Vec<Tensor>, String> {
        let view = ValueView::from_shape(dimensions, numbers).map_err(|error| error.to_string())?;
        let outputs: Vec<NodeId> = wanted.iter().map(|&index| self.outputs[index]).collect();
        let options = RunOptions::default().with_thread_pool(Some(threads.clone()));
        let values = self.model.run(vec![(self.input, view.into())], &outputs, Some(options));
        values.map_err(|error| error.to_string())?.into_iter().map(tensor).collect()
    }
}

impl Compute for Rten {
    fn name(&self) -> &'static str {
        "rten"
    }

    fn side_by_side(&self) -> usize {
        self.each.len()
    }

    fn images(&self, most: usize) -> usize {
        most.min(TOGETHER)
    }

    fn run(
        &self,
        inputs: Vec<(Vec<f32>, [usize; 4])>,
        wanted: &[usize],
    ) -> Result<Vec<Vec<Tensor>>, String> {
        if let [input] = &inputs[..] {
            return Ok(vec![self.one(input, wanted, &self.all)?]);
        }
        let next = AtomicUsize::new(0);
        let work = |threads: &Arc<ThreadPool>| {
            let mut found = Vec::new();
            while let Some((at, input)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                inputs.get(at).map(|input| (at, input))
            } {
                found.push((at, self.one(input, wanted, threads)));
            }
            found
        };
        let ended = std::thread::scope(|scope| {
            let work = &work;
            let running: Vec<_> =
                self.each.iter().map(|threads| scope.spawn(move || work(threads))).collect();
            running.into_iter().map(ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let mut found = Vec::with_capacity(inputs.len());
        for part in ended {
            found.extend(part.map_err(|_| "a thread of it ended early".to_owned())?);
        }
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, tensors)| tensors).collect()
    }
}

fn tensor(value: Value) -> Result<Tensor, String> {
    use rten_tensor::prelude::*;
    let kind = value.dtype();
    let tensor = value.into_tensor::<f32>().ok_or_else(|| format!("a result is of type {kind}"))?;
    Ok(Tensor { shape: tensor.shape().to_vec(), numbers: tensor.into_data() })
}
