//! libFuzzer's program for `reeve_fuzz::state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reeve_fuzz::state(input));
