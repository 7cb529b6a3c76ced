//! What tests share: finding built components, waiting, sample objects.

mod components;
mod eventually;
pub mod platform;
pub mod samples;
pub mod workloads;

pub use components::{component, guest};
pub use eventually::{Pending, eventually};
