//! The Helm chart: what it renders, and that Reeve works as it installs it.

mod helm;
mod install;
mod render;
mod stage;
