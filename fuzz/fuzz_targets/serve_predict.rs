#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ivoro_fuzz::request(
    "POST",
    "/predict",
    "application/json",
    bytes
));
