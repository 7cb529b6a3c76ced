//! libFuzzer's program for `reeve_fuzz::fields_v1`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reeve_fuzz::fields_v1(input));
