//! The world outside the cluster: documents, databases and registries.
//!
//! Nothing here knows plugins or Kubernetes: callers say what was granted, and
//! no function reaches further than that.
