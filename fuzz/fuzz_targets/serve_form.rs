#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ivoro_fuzz::request(
    "POST",
    "/api/v1/models/fuzz/samples?class=x",
    "multipart/form-data; boundary=b",
    bytes
));
