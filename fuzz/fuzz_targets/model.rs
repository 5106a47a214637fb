#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = ivoro_io::load_bytes(std::path::Path::new("fuzz.ivoro"), bytes);
});
