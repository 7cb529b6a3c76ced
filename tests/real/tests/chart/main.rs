//! The Helm charts: what they render, and that Reeve and its plugins work as they
//! install them.

mod helm;
mod install;
mod profiles;
mod render;
mod stage;
