//! The crate against the in-process API server, on a paused clock.

#[cfg(test)]
mod lease;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod write;
