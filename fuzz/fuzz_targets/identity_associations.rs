#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(sealog_fuzz::identity::associations(data)));
