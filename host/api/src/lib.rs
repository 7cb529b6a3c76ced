//! The custom resources of Reeve and their conditions.
