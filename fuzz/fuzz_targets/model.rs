#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = std::path::Path::new("fuzz.ivoro");
    let _ = ivoro::codec::decode(name, bytes);
    let _ = ivoro::codec::decode_receipt(name, bytes);
});
