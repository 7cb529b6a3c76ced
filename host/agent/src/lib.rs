//! The agent: plugin lifecycle, scheduling, reconcile loop, admin HTTP.
