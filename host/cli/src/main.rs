//! The reeve binary: parses, wires, runs.

fn main() {}
