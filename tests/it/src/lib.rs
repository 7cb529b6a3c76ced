//! The whole agent with real components on the embedded cluster.
