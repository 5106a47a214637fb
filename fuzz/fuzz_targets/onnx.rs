#![no_main]

use std::path::Path;

use ivoro_vision::engine::onnx::{OnnxNetwork, OnnxOptions};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = OnnxNetwork::from_bytes(Path::new("fuzz.onnx"), bytes, &OnnxOptions::default());
});
