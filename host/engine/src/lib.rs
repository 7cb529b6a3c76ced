//! Runs plugins: wasmtime, limits, capabilities, artifact cache.
