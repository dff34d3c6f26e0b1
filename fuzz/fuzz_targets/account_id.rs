#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealog_fuzz::chain::account_id(data));
