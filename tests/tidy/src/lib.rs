//! Checks the direction of the crates and the state of the tree.
