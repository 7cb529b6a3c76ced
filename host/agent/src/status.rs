//! What the agent says of itself to the process that runs it.

use reeve_api::UnitCounts;
use reeve_cluster::Role;
use reeve_core::{Digest, ObjectReference};

/// How the agent is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentStatus {
    /// Whether the agent has seen all plugins. It then is ready.
    pub synced: bool,
    /// The agent's own kinds of which not all objects have been seen yet. That is
    /// nothing wrong, unless it lasts.
    pub syncing: Vec<String>,
    /// What is wrong with the watches of its own objects.
    pub own_watches: Vec<String>,
    /// Whether nothing is left to do until something changes. Units and plugins
    /// that wait for a retry do not count.
    pub idle: bool,
    /// Every plugin, by name.
    pub plugins: Vec<PluginReport>,
    /// Units that are ready to run.
    pub queued: usize,
    /// Units that run now.
    pub running: usize,
    /// Runs that have ended since the start.
    pub runs: u64,
    /// Whether it has seen everything that is installed, and has once loaded it or
    /// found out why not.
    pub started: bool,
    /// What the agent is among its replicas.
    pub role: Role,
    /// Whether it runs units: it leads, and has taken over.
    pub leading: bool,
}

/// How a plugin is.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginReport {
    /// Its name.
    pub name: String,
    /// Digest of the component that runs; none when none does.
    pub digest: Option<Digest>,
    /// Why its newest version does not run, as `Reason: message`.
    pub problem: Option<String>,
    /// Counts of its units.
    pub units: UnitCounts,
}

/// How a unit is.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitSummary {
    /// Name of the plugin.
    pub plugin: String,
    /// The primary.
    pub primary: ObjectReference,
    /// The objects that the plugin wants for it.
    pub objects: Vec<ObjectReference>,
    /// Whether they are in place.
    pub ready: bool,
    /// What keeps it from being ready, as `Reason: message`.
    pub problem: Option<String>,
}
