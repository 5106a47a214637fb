//! `ivoro-bench onnx`: a network in an ONNX file, from pixels to features. `ivoro-bench photos`: from
//! the files of a folder to features.

use std::path::Path;

use ivoro::Error;
use ivoro_vision::dataset::{Broken, Fit, How, Photos, Shape, decode};
use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{OnnxNetwork, OnnxOptions, Runtime};
use rayon::prelude::*;
use serde_json::{Value, json};

/// The length that the shorter side of a photo is scaled to.
const RESIZE: usize = 256;

/// Loads the network and times it on the images of a file, pixels in the order of rows.
pub(crate) fn measure(
    network: &Path,
    pixels: &Path,
    batch: usize,
    runtime: &str,
) -> Result<Value, Error> {
    let runtime = match runtime {
        "default" => without_onnxruntime(network, batch),
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

/// What a build without ONNX Runtime takes: the CPU engine, or rten where that lacks an operator.
fn without_onnxruntime(network: &Path, batch: usize) -> Runtime {
    let options = OnnxOptions { batch, runtime: Runtime::Builtin, ..OnnxOptions::default() };
    match OnnxNetwork::open(network, &options) {
        Ok(_) => Runtime::Builtin,
        Err(_) => Runtime::Rten,
    }
}

/// Times the way from the photos of a folder to their features.
pub(crate) fn photos(
    network: &Path,
    folder: &Path,
    most: usize,
    batch: usize,
) -> Result<Value, Error> {
    let run = || -> ivoro_vision::Result<Value> {
        let runtime = without_onnxruntime(network, batch);
        let options = OnnxOptions { batch, runtime, ..OnnxOptions::default() };
        let network = OnnxNetwork::open(network, &options)?;
        let shape = network.shape().unwrap_or(Shape { height: 224, width: 224, channels: 3 });
        let fit = Fit { shape, how: How::ResizeThenCentreCrop { resize: RESIZE } };
        let found = Photos::find(&[folder.to_owned()], Broken::Fail)?;
        let mut files: Vec<_> = found.photos.iter().map(|photo| photo.name().to_owned()).collect();
        files.truncate(most);
        let started = std::time::Instant::now();
        let mut photos = 0;
        for files in files.chunks(4 * batch) {
            let pixels: Vec<Vec<u8>> =
                files.par_iter().map(|file| decode(file, fit)).collect::<Result<_, _>>()?;
            photos += network.features(&pixels.concat(), shape, &[0])?[0].rows();
        }
        let seconds = started.elapsed().as_secs_f64();
        Ok(json!({"seconds": seconds, "photos": photos, "runtime": network.runtime()}))
    };
    // The program prints the sentence; which kind of error it was does not matter here.
    run().map_err(|error| Error::from(std::io::Error::other(error)))
}
