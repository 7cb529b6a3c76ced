//! libFuzzer's program for `reeve_fuzz::lists`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reeve_fuzz::lists(input));
