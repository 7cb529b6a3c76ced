//! The quotas controller as a plugin.
