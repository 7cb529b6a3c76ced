//! The custom resources of Reeve and their conditions.
//!
//! Types here are the API that users see; each field's doc comment is its
//! description in the CRD.

mod artifact;
mod canary;
mod capabilities;
mod condition;
mod journal;
mod plan;
mod plugin;
mod unit;
mod upgrade;

pub use artifact::{ArtifactSource, ArtifactStatus, SignaturePolicy};
pub use canary::{CanaryPolicy, CanaryStatus};
pub use capabilities::{Capabilities, HttpGrant, KeyGrant, KeyType, SecretReference, SqlGrant};
pub use condition::{
    ConditionType, MAX_MESSAGE, Reason, condition, remove_condition, set_condition, truncate,
    with_list,
};
pub use journal::{JournalEntry, JournalEntrySpec, Operation};
pub use plan::{PlanEffect, PlanStatus, PlanStep, SyncMode};
pub use plugin::{
    AdoptionPolicy, DeletionPolicy, GoodVersion, IgnoreRule, LimitOverrides, Plugin, PluginSource,
    PluginSpec, PluginStatus, UnitCounts, WrittenKind,
};
pub use unit::{
    ActionStatus, BlockedBy, HookStatus, KeptSecret, PrimaryReference, SyncStatus, Unit, UnitSpec,
    UnitStatus,
};
pub use upgrade::{ShadowMode, ShadowStatus, UpgradePolicy};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;
use serde_json::json;

/// API group of all our kinds.
pub const GROUP: &str = "reeve.dev";
/// Version of all our kinds.
pub const VERSION: &str = "v1alpha1";

/// Label on a ConfigMap: `"true"` makes it a plugin.
pub const PLUGIN_CONFIG_MAP_LABEL: &str = "reeve.dev/plugin";

/// Annotation on a `Plugin`, set by a person: tokens of held deletions that may
/// go, separated by commas.
pub const APPROVE_DELETION_ANNOTATION: &str = "reeve.dev/approve-deletion";
/// Annotation on a `Unit`, set by a person: the id of the plan in its status that may
/// be carried out, where the mode of the plugin is `OnRequest`.
pub const APPROVE_PLAN_ANNOTATION: &str = "reeve.dev/approve-plan";
/// Annotation on a `Unit`, set by a person: tokens of outside effects that are to be taken
/// away, have been by hand, and may be forgotten, separated by commas.
pub const FORGET_EFFECTS_ANNOTATION: &str = "reeve.dev/forget-effects";
/// Annotation on a `Plugin`, set by a person: the token of what a held version asks
/// for, which it then may.
pub const APPROVE_ASKS_ANNOTATION: &str = "reeve.dev/approve-asks";
/// Annotation on a `Plugin`, set by a person: the token of a version that was held
/// for what it would do, and may do it.
pub const APPROVE_UPGRADE_ANNOTATION: &str = "reeve.dev/approve-upgrade";
/// Annotation on a `Plugin`, set by a person: the token of a version that is not to
/// run; while it is the newest, the one before it runs. A newer one has another token.
pub const ROLL_BACK_ANNOTATION: &str = "reeve.dev/roll-back";
/// Annotation on a `Plugin` or a primary, set by a person: any change of its value
/// runs the plugin's units, or that unit, at once. On a `Plugin` the first word,
/// usually the time, may be followed by the id of one unit, as it stands in the
/// annotation `reeve.dev/primary`.
pub const RECONCILE_ANNOTATION: &str = "reeve.dev/reconcile-at";

/// Annotation on a `Plugin` or a primary, set by a person: any change of its value
/// begins a new attempt of that unit, or of all units of the plugin that are not ready,
/// or of one, named as in [`RECONCILE_ANNOTATION`]. Back-off is forgotten, a wave that
/// has taken too long gets its time anew, and a sync that a hook has ended begins again,
/// hooks included. A plugin that does not run is loaded again.
pub const RETRY_ANNOTATION: &str = "reeve.dev/retry-at";
/// Annotation on a `Plugin` or a primary, set by a person: any change of its value
/// begins the sync of that unit anew, though it be complete, or of all units of the
/// plugin, or of one, named as in [`RECONCILE_ANNOTATION`]: its hooks run again, and its
/// waves wait for one another again. What is as wanted is not written.
pub const SYNC_ANNOTATION: &str = "reeve.dev/sync-at";
/// Annotation on a primary, set by a person: while it is `"true"`, nothing is
/// written for this primary.
pub const SUSPEND_ANNOTATION: &str = "reeve.dev/suspend";

/// Annotation on a primary, set by a person: `"true"` lets one that is being deleted
/// go although its unit has not come to its end. Hooks that have not run do not run;
/// what is left of its objects is deleted when it is gone.
pub const RELEASE_ANNOTATION: &str = "reeve.dev/release";

/// The CustomResourceDefinitions of Reeve, ready to be applied.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut plugin = Plugin::crd();
    with_default_spec(&mut plugin);
    let mut crds = vec![plugin, Unit::crd(), JournalEntry::crd()];
    let versions = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions);
    let schemas =
        versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(without_unsigned);
    crds
}

/// Lets a spec that says nothing be as good as an empty one. To apply an empty object in the
/// place of one that had fields leaves null (server-side apply takes away the fields, and
/// then what held them), which is refused where there is no default.
fn with_default_spec(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut();
        let schema = schema.and_then(|schema| schema.open_api_v3_schema.as_mut());
        let properties = schema.and_then(|schema| schema.properties.as_mut());
        if let Some(spec) = properties.and_then(|all| all.get_mut("spec")) {
            spec.default = Some(JSON(json!({})));
        }
    }
}

/// Takes the formats of unsigned numbers out of a schema. Kubernetes knows none of them,
/// and would warn of each when the kinds are installed; that they are not negative is
/// said by `minimum`.
fn without_unsigned(schema: &mut JSONSchemaProps) {
    let format = schema.format.take();
    schema.format = format.filter(|format| !format.starts_with("uint"));
    let properties = schema.properties.iter_mut();
    properties
        .flat_map(|all| all.values_mut())
        .for_each(without_unsigned);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        without_unsigned(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        without_unsigned(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn crds_name_what_users_type() {
        let names: Vec<_> = crds().into_iter().map(|crd| crd.metadata.name).collect();
        assert_eq!(
            names,
            [
                Some("plugins.reeve.dev".to_owned()),
                Some("units.reeve.dev".to_owned()),
                Some("journalentries.reeve.dev".to_owned())
            ]
        );
    }

    #[test]
    fn formats_are_those_that_kubernetes_knows() {
        let text = serde_json::to_string(&crds()).unwrap();
        let parts = text.split("\"format\":\"").skip(1);
        let formats: BTreeSet<_> = parts.filter_map(|part| part.split('"').next()).collect();
        assert_eq!(formats, BTreeSet::from(["date-time", "int64"]));
    }

    #[test]
    fn every_field_is_described() {
        fn check(path: &str, schema: &serde_json::Value, missing: &mut Vec<String>) {
            let Some(properties) = schema["properties"].as_object() else {
                if schema["items"].is_object() {
                    check(path, &schema["items"], missing);
                }
                return;
            };
            for (name, property) in properties {
                let path = format!("{path}.{name}");
                if property["description"].as_str().is_none_or(str::is_empty) {
                    missing.push(path.clone());
                }
                check(&path, property, missing);
            }
        }
        let mut missing = Vec::new();
        for crd in crds() {
            let value = serde_json::to_value(&crd).unwrap();
            let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            check(&crd.spec.names.kind, schema, &mut missing);
        }
        assert_eq!(missing, Vec::<String>::new());
    }
}
