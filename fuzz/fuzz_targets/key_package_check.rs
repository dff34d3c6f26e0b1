#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealog_fuzz::admission::key_package_check(data));
