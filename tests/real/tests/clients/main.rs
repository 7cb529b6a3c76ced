//! Clients that people use, unchanged, against the embedded API server. Whatever
//! is expected of it is what a kube-apiserver answers to the same client at the
//! same time.

mod caches;
mod controllers;
mod dev;
mod helm;
mod import;
mod kube_rs;
mod kubectl;
mod long_urls;
mod restarts;
mod rollouts;
mod steps;
