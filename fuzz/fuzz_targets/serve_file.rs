#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ivoro_fuzz::request(
    "PUT",
    "/api/v1/models/fuzz/file",
    "application/octet-stream",
    bytes
));
