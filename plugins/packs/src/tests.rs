//! Documents and a cluster in, packs out.

mod applysets;
mod certificates;
mod configurations;
mod desired_states;
mod docs;
mod flux;
mod front_door;
mod golden;
mod keys;
mod leaving;
mod order;
mod patches;
mod sets;
mod settings;
mod world;
