//! The same story against real servers.
