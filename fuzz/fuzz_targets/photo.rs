#![no_main]

use std::path::Path;

use ivoro_vision::dataset::{Fit, How, Shape, decode_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let shape = Shape { height: 8, width: 8, channels: 3 };
    let fit = Fit { shape, how: How::ResizeThenCentreCrop { resize: 9 } };
    let _ = decode_bytes(bytes, Path::new("photo"), fit);
});
