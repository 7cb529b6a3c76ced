//! Benchmarks, each figure beside its limit.

fn main() {}
