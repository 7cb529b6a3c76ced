//! The way to Kubernetes: watches, object store, apply, access reviews, events.
