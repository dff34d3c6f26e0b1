#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealog_fuzz::session::client_bytes(data));
