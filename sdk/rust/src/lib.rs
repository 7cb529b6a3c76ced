//! Write Reeve plugins in Rust.
