//! `ivoro-bench onnx`: a network in an ONNX file, from pixels to features.

use std::path::Path;

use ivoro::Error;
use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{OnnxNetwork, OnnxOptions, Runtime};
use serde_json::{Value, json};

/// Loads the network and times it on the images of a file, pixels in the order of rows.
pub(crate) fn measure(
    network: &Path,
    pixels: &Path,
    batch: usize,
    runtime: &str,
) -> Result<Value, Error> {
    let runtime = match runtime {
        "builtin" => Runtime::Builtin,
        "rten" => Runtime::Rten,
        _ => Runtime::OnnxRuntime,
    };
    let options = OnnxOptions { batch, runtime, ..OnnxOptions::default() };
    let run = || -> ivoro_vision::Result<Value> {
        let started = std::time::Instant::now();
        let network = OnnxNetwork::open(network, &options)?;
        let load = started.elapsed().as_secs_f64();
        let pixels = std::fs::read(pixels)?;
        let Some(shape) = network.shape() else {
            return Ok(json!({"error": "the network takes images of any size"}));
        };
        let mut features = network.features(&pixels, shape, &[0])?;
        let mut failure = None;
        let mut time = |pixels: &[u8]| {
            super::best(|| match network.features(pixels, shape, &[0]) {
                Ok(found) => features = found,
                Err(error) => failure = Some(error),
            })
        };
        let alone = time(&pixels[..shape.len()]);
        let seconds = time(&pixels);
        failure.map_or(Ok(()), Err)?;
        Ok(json!({"seconds": seconds, "alone_seconds": alone, "load_seconds": load,
            "runtime": network.runtime(), "features": features[0].as_slice()}))
    };
    // The program prints the sentence; which kind of error it was does not matter here.
    run().map_err(|error| Error::from(std::io::Error::other(error)))
}
