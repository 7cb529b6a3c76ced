//! The limitranges controller as a plugin.
