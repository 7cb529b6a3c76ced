//! Offline scenarios for plugin authors.
