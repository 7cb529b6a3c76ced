//! The Helm charts: what they render, and that Reeve and its plugins work as they
//! install them.

mod definitions;
mod finalizers;
mod grants;
mod helm;
mod image;
mod install;
mod models;
mod names;
mod packs;
mod profiles;
mod render;
mod secrets;
mod stage;
