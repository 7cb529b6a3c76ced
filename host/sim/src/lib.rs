//! An in-process Kubernetes API server.
