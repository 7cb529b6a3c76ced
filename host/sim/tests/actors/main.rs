//! What actors make of workloads, through the API, on virtual time: one file per
//! actor, with tables of objects in and status out.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "bodies read better as values"
)]

mod applications;
mod cron_jobs;
mod custom;
mod daemon_sets;
mod deliverers;
mod deployments;
mod flux_failures;
mod flux_kustomizations;
mod flux_outages;
mod flux_releases;
mod flux_remedies;
mod flux_sources;
mod idle;
mod jobs;
mod leases;
mod pods;
mod services;
mod stateful_sets;
mod volumes;
mod world;
