//! libFuzzer's program for `reeve_fuzz::documents`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reeve_fuzz::documents(input));
