#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealog_fuzz::admission::commit_log_entry(data));
