//! What tests share: finding built components, waiting, chance, sample objects.

mod chance;
mod components;
pub mod definitions;
mod eventually;
#[cfg(feature = "http")]
pub mod http;
pub mod platform;
pub mod samples;
mod skipped;
pub mod workloads;

pub use chance::Chance;
pub use components::{component, guest};
pub use eventually::{Pending, eventually};
pub use skipped::skipped;
