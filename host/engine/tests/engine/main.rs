//! The engine from outside: real components, real limits.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which clippy takes for ordinary functions"
)]

mod cache;
mod calls;
mod compiler;
mod guests;
mod kept;
mod limits;
mod load;
mod replay;
mod sharing;
mod wasi;
