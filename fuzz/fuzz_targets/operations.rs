#![no_main]

use std::path::Path;

use ivoro_vision::engine::cpu::Network;
use ivoro_vision::network::OperationNetwork;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz.safetensors");
    if let Ok(network) = OperationNetwork::from_bytes(path, bytes) {
        let _ = Network::of_operations(path, &network);
    }
});
