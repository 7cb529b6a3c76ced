//! libFuzzer's program for `reeve_fuzz::host_calls`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reeve_fuzz::host_calls(input));
