//! `Plugin`: status and policy of one plugin.

use crate::artifact::{ArtifactSource, ArtifactStatus, SignaturePolicy};
use crate::canary::CanaryStatus;
use crate::capabilities::Capabilities;
use crate::plan::SyncMode;
use crate::upgrade::{ShadowStatus, UpgradePolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status and policy of one plugin. The agent makes it, under the name of the
/// ConfigMap that carries the component, and keeps it when that ConfigMap goes,
/// so that policy survives a reinstall. Or a person makes it, and it names the
/// artifact that is the component.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "reeve.dev",
    version = "v1alpha1",
    kind = "Plugin",
    namespaced,
    status = "PluginStatus",
    category = "reeve",
    doc = "Status and policy of one plugin of Reeve.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Loaded","type":"string","jsonPath":".status.conditions[?(@.type==\"Loaded\")].status"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","jsonPath":".status.primaryKind"}"#,
    printcolumn = r#"{"name":"Units","type":"integer","jsonPath":".status.units.total"}"#,
    printcolumn = r#"{"name":"Failing","type":"integer","jsonPath":".status.units.failing"}"#,
    printcolumn = r#"{"name":"Waiting","type":"integer","jsonPath":".status.units.waiting","priority":1}"#,
    printcolumn = r#"{"name":"Canary","type":"string","jsonPath":".status.canary.phase","priority":1}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.mode","priority":1}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// Name of the ServiceAccount, in the same namespace, as which the plugin
    /// writes. It must carry the annotation `reeve.dev/plugin` with the plugin's
    /// name. Defaults to the plugin's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Digest of the one component that may run, unpacked: `sha256:` and 64
    /// hexadecimal digits. Another that is delivered is not loaded. Without it,
    /// whoever may write the ConfigMap decides what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// An artifact in an OCI registry that is the component, instead of one in the
    /// ConfigMap of the plugin's name. That ConfigMap may hold `config.yaml` then, and
    /// need not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactSource>,
    /// Whose signature a component must bear, wherever it comes from. Any component is
    /// loaded without it, unless the agent itself demands a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<SignaturePolicy>,
    /// Limits of each call and on what is deleted, where they differ from the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitOverrides>,
    /// Pauses the plugin: it stays loaded, but no unit runs and nothing of it is
    /// written until this is false again. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// When what the plugin wants is written: `Auto` (the default) at once,
    /// `OnRequest` when a person has approved the plan that the `Unit` shows, the
    /// repair of drift included, `PlanOnly` never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SyncMode>,
    /// Which objects that somebody else made the plugin may take over when it wants
    /// objects of their names. Default `Never`: such an object is left alone, and
    /// the unit says whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<AdoptionPolicy>,
    /// Field managers whose fields become the plugin's when it takes an object over,
    /// such as `kubectl-client-side-apply`: what they set (by anything but
    /// server-side apply) and the plugin does not return is removed then. The fields
    /// of all others stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub adopt_from: Vec<String>,
    /// Whether an object is deleted and made anew when the API server refuses to
    /// change a field of it. Default false; a single object says so with
    /// `reeve.dev/sync-options: Force=true`. Kinds whose deletion loses data of
    /// others need the annotation `reeve.dev/prune: allow` besides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
    /// What becomes of the plugin's objects when its ConfigMap has been gone for half a
    /// minute. Default `Retain`: they stay. With `Delete` they are deleted in the
    /// reverse of their order, and its contributions are given up; kinds whose deletion
    /// loses data of others need the annotation `reeve.dev/prune: allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Fields that the plugin does not get to set, whatever it returns: they are left
    /// out of what is applied, and keep the values that they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub ignore: Vec<IgnoreRule>,
    /// What the plugin may reach outside of the cluster. Nothing by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// What a new version must not do, if it is to take over without a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradePolicy>,
}

/// What becomes of a plugin's objects when it is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They stay.
    #[default]
    Retain,
    /// They are deleted in order, and its contributions are given up.
    Delete,
}

/// Which objects a plugin may take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// None.
    #[default]
    Never,
    /// Those that nobody applies, no controller owns, and no label or annotation
    /// shows to be a tool's.
    IfUnowned,
    /// All but those that another unit or plugin of Reeve has.
    Always,
}

/// Fields of some objects that are left to others. The names are those of Argo CD's
/// `ignoreDifferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreRule {
    /// Group of the objects, a glob; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Their kind, a glob. Both are case-sensitive.
    pub kind: String,
    /// Their name; any if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their namespace; any if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON Pointers (RFC 6901) to fields, such as `/spec/replicas`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// jq path expressions of fields, such as `.spec.containers[].image`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
    /// Field managers whose fields are left to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_fields_managers: Vec<String>,
}

/// Limits of one call and on what is deleted, where they differ from the defaults. The
/// operator may allow less than the maxima here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitOverrides {
    /// Run time of the guest in milliseconds, time waiting for the host not
    /// counted. Default 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 60_000))]
    pub run_milliseconds: Option<u32>,
    /// Time of a call in milliseconds, waiting included. Default 120000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 600_000))]
    pub wall_milliseconds: Option<u32>,
    /// Memory of the guest in bytes: all its memories and tables together. Default 67108864 (64 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 1_073_741_824))]
    pub memory_bytes: Option<u32>,
    /// Stack of the guest in bytes, rounded up to a power of two. Default 524288
    /// (512 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 8_388_608))]
    pub stack_bytes: Option<u32>,
    /// Bytes of all objects that one call returns. Default 4194304 (4 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub output_bytes: Option<u32>,
    /// Number of objects that one call returns. Default 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub output_objects: Option<u32>,
    /// Number of calls of host functions, WASI included. Default 100000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub host_calls: Option<u32>,
    /// Bytes that host functions return, added up. Default 268435456 (256 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub host_call_bytes: Option<u64>,
    /// Bytes of log lines that are kept; further ones are dropped. Default 65536
    /// (64 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_304))]
    pub log_bytes: Option<u32>,
    /// Time to compile the component in milliseconds. Default what the agent is told by
    /// `--compile-timeout`, 60000 unless it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 600_000))]
    pub compile_milliseconds: Option<u32>,
    /// Memory to compile the component in bytes, on top of the compiler's own. Default what
    /// the agent is told by `--compile-memory`, 536870912 (512 MiB) unless it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 33_554_432, max = 8_589_934_592_u64))]
    pub compile_memory_bytes: Option<u64>,
    /// Bytes of the component, unpacked. Default 33554432 (32 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 33_554_432))]
    pub component_bytes: Option<u32>,
    /// Interfaces and functions that the component imports. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub imports: Option<u32>,
    /// Interfaces and functions that the component exports. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub exports: Option<u32>,
    /// Types, functions, instances and so on that the component defines, those of nested
    /// components included. Default 100000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub definitions: Option<u32>,
    /// Objects that the plugin may withdraw within an hour, over all its units; what
    /// exceeds it waits until a person approves it. Default 100; with 0 all of it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 750))]
    pub deletions_per_hour: Option<u32>,
    /// Percentage of its objects that the plugin may withdraw within an hour, above 20
    /// objects. Default 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub deletion_percent: Option<u8>,
}

/// What the agent observed of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// Generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Digest of the running component, `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Name that the running component gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Version that the running component gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of the objects for which it runs, such as `Profile.v1.kubeflow.org`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_kind: Option<String>,
    /// What the last version that ran asked for, one thing a line. A version that
    /// asks for more waits until that is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Vec<String>>,
    /// Where the newest component was found, running or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PluginSource>,
    /// The last version that passed every gate. After a restart it runs again while
    /// the newest version is refused, if the agent's cache still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<GoodVersion>,
    /// The version that ran before that one: what `reeve plugin rollback` goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<GoodVersion>,
    /// The version that was gone back from, until the newest one runs, if only for some
    /// units. `reeve plugin rollback --undo` returns to it where the newest does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_from: Option<GoodVersion>,
    /// What the last version that was to take over would have done, or has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowStatus>,
    /// Where the last version is that a share of units got first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryStatus>,
    /// Kinds of which there may be objects of this plugin, those of earlier
    /// versions included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<WrittenKind>,
    /// Kinds to whose objects it contributes fields, such as `ConfigMap.v1`, or has
    /// contributed: what is left of that is looked for there after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contributes_to: Vec<String>,
    /// Counts of its units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitCounts>,
    /// The value of the annotation `reeve.dev/reconcile-at` for which all units that
    /// it asked for have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The value of the annotation `reeve.dev/retry-at` for which all units that it
    /// asked for have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_retry_at: Option<String>,
    /// The value of the annotation `reeve.dev/sync-at` for which all units that it
    /// asked for have begun their syncs anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_sync_at: Option<String>,
    /// `Ready`, `Loaded`, `Granted` and `Pruned`, and while they hold `Reconciling`,
    /// `Stalled`, `DeletionsHeld`, `SourcesStale`, `ArtifactStale` and `UnitsUnwritten`.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

impl PluginStatus {
    /// Says of all of it that it is about this generation of the spec.
    pub fn observe(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
        for condition in &mut self.conditions {
            condition.observed_generation = generation;
        }
    }
}

/// A component and a configuration that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoodVersion {
    /// Digest of the component.
    pub digest: String,
    /// Digest of the configuration, as JSON.
    pub config_digest: String,
}

/// A kind that versions of a plugin have written, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenKind {
    /// Its API version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; absent when it may be any, and for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Where a component was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSource {
    /// Name of the ConfigMap; none when an artifact is all there is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_map: String,
    /// The artifact, where the policy names one and it has been pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactStatus>,
    /// Digest of the component that was found, unpacked; none when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Counts of a plugin's units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitCounts {
    /// Primaries for which the plugin runs.
    pub total: u32,
    /// Those whose desired state is in place.
    pub ready: u32,
    /// Those in trouble; each has a `Unit` object that says why, unless it is one of `untold`.
    pub failing: u32,
    /// Those that wait, for objects to become healthy or for a person; each has a
    /// `Unit` object that says for what, unless it is one of `untold`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u32,
    /// Those with something to say that have no `Unit` object: a thousand of a plugin tell of
    /// others already, and each of those that is well again makes room for one of these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u32,
}
