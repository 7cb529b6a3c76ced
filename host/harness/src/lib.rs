//! Offline scenarios for plugin authors: the whole agent on an embedded cluster,
//! in this process, without a network and on a virtual clock.
//!
//! ```yaml
//! name: a label overrides the default, and removing it restores the default
//! given:
//!   files: [shared/profile-crd.yaml]
//!   config: {}
//!   objects:
//!     - {apiVersion: v1, kind: Namespace, metadata: {name: alice}}
//!     - {apiVersion: kubeflow.org/v1, kind: Profile, metadata: {name: alice}}
//! steps:
//!   - label: {object: Profile alice, labels: {quotas.statcan.gc.ca/pods: "7"}}
//!     expect:
//!       objects:
//!         - apiVersion: v1
//!           kind: ResourceQuota
//!           metadata: {name: quotas, namespace: alice}
//!           spec: {hard: {pods: "7"}}
//!   - advance: 1h
//!     expect: {writes: 0}
//! ```
//!
//! `docs/testing.md` describes the form. Each scenario has a cluster and an agent
//! of its own; the agent has the rights of its ServiceAccount and nothing more,
//! and the plugin what its manifest asks for, so that a missing right shows here
//! too.
//!
//! ```text
//! suite ─▶ Case ─▶ play ─▶ world (cluster, plugin, agent, clock)
//!                    └───▶ check ─▶ matching, difference, update
//! run ─▶ Report ─▶ Printer, junit
//! ```

mod check;
mod component;
mod difference;
mod error;
mod junit;
mod kinds;
mod log;
mod matching;
mod outside;
mod play;
mod print;
mod recorded;
mod reference;
mod report;
mod run;
mod scenario;
mod source;
mod suite;
mod tester;
mod time;
mod update;
mod watchdog;
mod world;
mod yaml;

pub use component::component_path;
pub use error::Error;
pub use junit::junit;
pub use print::Printer;
pub use recorded::scenario;
pub use report::{Counts, Failure, Report, ScenarioReport, Verdict};
pub use run::{Options, run};
