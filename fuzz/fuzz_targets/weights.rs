#![no_main]

use std::path::Path;

use ivoro_vision::network::Weights;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = Weights::from_bytes(Path::new("fuzz.safetensors"), bytes);
});
