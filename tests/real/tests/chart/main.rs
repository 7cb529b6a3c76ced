//! The Helm charts: what they render, and that Reeve and its plugins work as they
//! install them.

mod grants;
mod helm;
mod install;
mod models;
mod packs;
mod profiles;
mod render;
mod stage;
