//! Networks computed by rten.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueView};

use super::pool::Tensor;
use super::{Compute, Source};

/// A network loaded by rten.
pub(super) struct Rten {
    model: Model,
    input: NodeId,
    outputs: Vec<NodeId>,
    threads: Arc<ThreadPool>,
}

impl Rten {
    /// Loads the network, or says why not.
    pub(super) fn load(source: &Source, input: &str) -> Result<Self, String> {
        let mut options = ModelOptions::with_all_ops();
        options.prepack_weights(true);
        for (name, path) in &source.external {
            options.external_data(name, read(path)?);
        }
        let model = options.load(source.file.clone()).map_err(|error| error.to_string())?;
        let input = model.node_id(input).map_err(|error| error.to_string())?;
        let outputs = model.output_ids().to_vec();
        // Its own pool counts cores as the system lists them, not as the process may use them.
        let threads = Arc::new(ThreadPool::with_num_threads(rayon::current_num_threads()));
        Ok(Self { model, input, outputs, threads })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs_err::read(path).map_err(|error| error.to_string())
}

impl Compute for Rten {
    fn name(&self) -> &'static str {
        "rten"
    }

    fn run(
        &mut self,
        numbers: Vec<f32>,
        dimensions: [usize; 4],
        wanted: &[usize],
    ) -> Result<Vec<Tensor>, String> {
        let view =
            ValueView::from_shape(&dimensions, &numbers).map_err(|error| error.to_string())?;
        let outputs: Vec<NodeId> = wanted.iter().map(|&index| self.outputs[index]).collect();
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let values = self
            .model
            .run(vec![(self.input, view.into())], &outputs, Some(options))
            .map_err(|error| error.to_string())?;
        values.into_iter().map(tensor).collect()
    }
}

fn tensor(value: Value) -> Result<Tensor, String> {
    use rten_tensor::prelude::*;
    let kind = value.dtype();
    let tensor = value.into_tensor::<f32>().ok_or_else(|| format!("a result is of type {kind}"))?;
    Ok(Tensor { shape: tensor.shape().to_vec(), numbers: tensor.into_data() })
}
