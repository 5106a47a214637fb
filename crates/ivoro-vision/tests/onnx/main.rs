//! Networks in ONNX files: features, settings, and files that are not what they say.

mod builtin;
mod features;
mod fixtures;
mod hostile;
#[path = "../mutated/mod.rs"]
mod mutated;
mod transformer;

use std::path::Path;

use ivoro_vision::engine::Normalisation;
use ivoro_vision::engine::onnx::{OnnxError, OnnxNetwork, OnnxOptions, Runtime};
use ivoro_vision::{Error, Result};

/// A network of 5 × 7 colour images, for any number of images at once; see data/make_onnx.py.
const TINY: &[u8] = include_bytes!("../data/tiny.onnx");
/// The same, for one image at once.
const TINY_ONE: &[u8] = include_bytes!("../data/tiny-one.onnx");

/// Settings of the tests: rten, which every machine has.
fn options(outputs: &[&str]) -> OnnxOptions {
    OnnxOptions {
        outputs: outputs.iter().map(ToString::to_string).collect(),
        normalisation: Some(Normalisation {
            mean: vec![0.4, 0.5, 0.6],
            deviation: vec![0.2, 0.25, 0.3],
        }),
        runtime: Runtime::Rten,
        ..OnnxOptions::default()
    }
}

fn open(bytes: &[u8], options: &OnnxOptions) -> Result<OnnxNetwork> {
    OnnxNetwork::from_bytes(Path::new("net.onnx"), bytes, options)
}

fn refusal(bytes: &[u8], options: &OnnxOptions) -> OnnxError {
    match open(bytes, options) {
        Err(Error::Onnx(error)) => error,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("loaded"),
    }
}
