//! The macro line of a Reeve plugin.
