//! Server-side apply.

use serde_json::{Value, json};

use crate::conflict::Conflicts;
use crate::last_applied;
use crate::managed::{ManagedFields, ManagedFieldsError, ManagerId, Owned, keep_times, unmanaged};
use crate::ownership::{Failure, Scope, Version};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{Duplicates, TypeErrors, validate};
use crate::value;

/// The manager of what an object had before anything was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// An apply request.
///
/// What belongs to other parts of a server is not done here: decoding,
/// defaulting, admission, validation, `generation`, `resourceVersion`. A
/// server calls this first and does those to the answer.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The type of both objects.
    pub schema: &'a Schema,
    /// Other versions of the same resource.
    pub versions: &'a [Version<'a>],
    /// The object as it is stored, in the version of `config`; none when it
    /// is to be created.
    pub live: Option<&'a Value>,
    /// The body of the request.
    pub config: &'a Value,
    /// `fieldManager`.
    pub manager: &'a str,
    /// Whether to take fields that others own.
    pub force: bool,
    /// The subresource that the request goes to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request, RFC 3339 to the second, in UTC.
    pub now: &'a str,
    /// Fields that this request cannot set, such as `status` when it goes to
    /// an object that has the subresource. Nobody comes to own them by it.
    pub reset: &'a FieldSet,
}

/// The answer to an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object with its new `managedFields`.
    pub object: Value,
    /// Whether it differs from what is stored, in anything.
    pub changed: bool,
}

/// Why nothing was applied. Each prints as the server's message.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that would change (409, reason `Conflict`).
    #[error(transparent)]
    Conflict(Conflicts),
    /// The config has managed fields of its own (400, `BadRequest`).
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInConfig,
    /// The config does not fit its type (500, no reason).
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The stored object does not fit its type (500, no reason).
    #[error("failed to create typed live object ({object}): {errors}")]
    Live {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The same, when nobody tracked the stored object so far (500, no
    /// reason).
    #[error(
        "failed to create manager for existing fields: \
         failed to convert new object ({object}) to smd typed: {errors}"
    )]
    Untracked {
        /// Namespace, name and kind, as the server prints them.
        object: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// The two cannot be merged (500, no reason).
    #[error("failed to merge config: {0}")]
    Merge(TypeErrors),
    /// The live object does not fit another version, in which somebody owns fields
    /// (500, no reason).
    #[error("{0}")]
    Reconcile(TypeErrors),
    /// The result does not fit another version, in which somebody owns fields (500,
    /// no reason).
    #[error("failed to convert new object: {0}")]
    Convert(TypeErrors),
    /// The result does not fit another version, in which the manager applied last time
    /// or somebody owns fields (500, no reason).
    #[error("failed to prune fields: {step}{errors}")]
    Prune {
        /// What was being done, as the server says it.
        step: String,
        /// What does not fit.
        errors: TypeErrors,
    },
    /// An object could not be had in another version, in which the manager applied last
    /// time or somebody owns fields (500, no reason).
    #[error("{0}")]
    Unconverted(String),
    /// The stored managed fields are malformed (500, no reason).
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[from] ManagedFieldsError),
}

/// Applies a config to an object, or creates the object from it.
///
/// Everything in the config becomes owned by the manager. What it owned before
/// and leaves out now is given up, and removed when nobody else owns it.
/// Fields that others own are shared when the value is the same, and conflict
/// when it is not.
pub fn apply(request: Apply<'_>) -> Result<Applied, ApplyError> {
    let Apply { schema, config, .. } = request;
    let mut live = match request.live {
        Some(live) => unmanaged(live),
        None => json!({ "apiVersion": config["apiVersion"], "kind": config["kind"] }),
    };
    let mut managers = match request.live {
        Some(live) => ManagedFields::of(live)?,
        None => ManagedFields::default(),
    };
    schema.normalize(&mut live);
    let live_fits = validate(schema, &live, Duplicates::Allowed);

    let scope = Scope {
        schema,
        versions: request.versions,
        api_version: config["apiVersion"].as_str().unwrap_or_default(),
        reset: request.reset,
    };
    if managers.is_empty() {
        live_fits.clone().map_err(|errors| ApplyError::Untracked {
            object: describe(&live),
            errors,
        })?;
        track_existing(&scope, &live, &mut managers, &request);
    }
    if config
        .pointer("/metadata/managedFields")
        .is_some_and(|entries| !entries.is_null())
    {
        return Err(ApplyError::ManagedFieldsInConfig);
    }
    validate(schema, config, Duplicates::Refused).map_err(|errors| ApplyError::Config {
        object: describe(config),
        errors,
    })?;
    live_fits.map_err(|errors| ApplyError::Live {
        object: describe(&live),
        errors,
    })?;

    let id = ManagerId::apply(request.manager, request.subresource);
    let attempt = |mut owners, force| {
        let object = scope.apply(&live, config, &mut owners, &id, force)?;
        Ok((object, owners))
    };
    let again = last_applied::manages(request.manager).then(|| managers.clone());
    let mut applied = attempt(managers, request.force);
    if let Err(Failure::Conflict(conflicts)) = &applied
        && let Some(managers) = again
        && let Some(allowed) = last_applied::unchanged_fields(schema, &live, scope.api_version)
    {
        applied = match conflicts.outside(&allowed) {
            Some(left) => Err(Failure::Conflict(left)),
            None => attempt(managers, true),
        };
    }
    let (mut object, mut owners) = applied.map_err(|failure| match failure {
        Failure::Conflict(conflicts) => ApplyError::Conflict(conflicts),
        Failure::Type(errors) => ApplyError::Merge(errors),
        Failure::Reconcile(errors) => ApplyError::Reconcile(errors),
        Failure::Convert(errors) => ApplyError::Convert(errors),
        Failure::Prune { step, errors } => ApplyError::Prune { step, errors },
        Failure::Unconverted(why) => ApplyError::Unconverted(why),
    })?;

    // An apply that changes no value is not a change of its entry's time,
    // even when it comes to share ownership.
    if !value::equal(&live, &object)
        && let Some(owned) = owners.0.get_mut(&id)
    {
        owned.time = Some(request.now.to_owned());
    }
    if last_applied::manages(request.manager) {
        last_applied::refresh(&mut object, config);
    }
    schema.normalize(&mut object);
    owners.write_to(&mut object);
    let changed = match request.live {
        Some(live) => {
            keep_times(live, &mut object);
            !value::equal(live, &object)
        }
        None => true,
    };
    Ok(Applied { object, changed })
}

/// An object that nobody tracked so far: all it has is owned by one manager.
fn track_existing(
    scope: &Scope<'_>,
    live: &Value,
    managers: &mut ManagedFields,
    request: &Apply<'_>,
) {
    let mut nothing = json!({ "apiVersion": live["apiVersion"], "kind": live["kind"] });
    scope.schema.normalize(&mut nothing);
    if let Ok(Some(set)) = scope.update(&nothing, live, managers) {
        managers.0.insert(
            ManagerId::update(BEFORE_FIRST_APPLY, scope.api_version, request.subresource),
            Owned {
                set,
                api_version: scope.api_version.to_owned(),
                time: Some(request.now.to_owned()),
            },
        );
    }
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let api_version = text("/apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{api_version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::ownership::Conversion;

    const NOW: &str = "2026-01-01T00:00:09Z";

    fn quota() -> &'static Schema {
        builtin::schema("", "v1", "ResourceQuota").unwrap()
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn config(spec: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "n"}, "spec": spec,
        })
    }

    fn request<'a>(
        live: Option<&'a Value>,
        config: &'a Value,
        manager: &'a str,
        reset: &'a FieldSet,
    ) -> Apply<'a> {
        Apply {
            schema: quota(),
            versions: &[],
            live,
            config,
            manager,
            force: false,
            subresource: "",
            now: NOW,
            reset,
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    /// A quota of two, one pod limit edited by hand.
    fn live() -> Value {
        let mut live = config(json!({"hard": {"pods": "3", "cpu": "1"}}));
        live["metadata"]["uid"] = "1".into();
        live["metadata"]["managedFields"] = json!([
            entry(
                "reeve/q",
                "Apply",
                json!({"f:spec": {"f:hard": {"f:cpu": {}}}})
            ),
            entry(
                "kubectl-edit",
                "Update",
                json!({"f:spec": {"f:hard": {"f:pods": {}}}})
            ),
        ]);
        live
    }

    #[test]
    fn an_absent_object_is_created() {
        let none = FieldSet::new();
        let config = config(json!({"hard": {"pods": "1"}}));
        let applied = apply(request(None, &config, "a", &none)).unwrap();
        assert!(applied.changed);
        let mut expected = config.clone();
        expected["status"] = json!({});
        expected["metadata"]["managedFields"] = json!([entry(
            "a",
            "Apply",
            json!({"f:spec": {"f:hard": {"f:pods": {}}}})
        )]);
        expected["metadata"]["managedFields"][0]["time"] = NOW.into();
        assert_eq!(applied.object, expected);
    }

    #[test]
    fn a_field_of_another_is_a_conflict_until_forced() {
        let none = FieldSet::new();
        let (live, config) = (live(), config(json!({"hard": {"pods": "10", "cpu": "1"}})));
        let gentle = request(Some(&live), &config, "reeve/q", &none);
        let error = apply(gentle).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .spec.hard.pods"
        );
        let forced = Apply {
            force: true,
            ..gentle
        };
        let object = apply(forced).unwrap().object;
        assert_eq!(object["spec"], config["spec"]);
        let owners = ManagedFields::of(&object).unwrap();
        assert_eq!(owners.iter().count(), 1, "nothing is left to the other");
    }

    #[test]
    fn what_is_no_longer_applied_goes_unless_it_is_shared() {
        let none = FieldSet::new();
        let both = config(json!({"hard": {"pods": "3", "cpu": "1"}}));
        let shared = apply(request(Some(&live()), &both, "reeve/q", &none)).unwrap();
        assert!(shared.changed, "ownership is a change");
        let nothing = config(json!({}));
        let left = apply(request(Some(&shared.object), &nothing, "reeve/q", &none)).unwrap();
        assert_eq!(left.object["spec"], json!({"hard": {"pods": "3"}}));
    }

    /// As the server's library does. What an API server then does with null is its own
    /// matter; where it stores it, the same apply changes the object once more.
    #[test]
    fn a_map_that_loses_its_last_item_is_null_until_it_is_applied_again() {
        let schema = Schema::from_crd(&json!({"type": "object", "properties": {"data": {
            "type": "object", "additionalProperties": {"type": "string"}, "nullable": true,
        }}}))
        .unwrap();
        let none = FieldSet::new();
        let mut live = None;
        let mut seen = Vec::new();
        for data in [json!({"a": "b"}), json!({}), json!({}), json!({})] {
            let config = json!({
                "apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": "x"}, "data": data,
            });
            let request = Apply {
                schema: &schema,
                ..request(live.as_ref(), &config, "a", &none)
            };
            let object = apply(request).unwrap().object;
            seen.push(object["data"].clone());
            live = Some(object);
        }
        assert_eq!(seen, [json!({"a": "b"}), json!(null), json!({}), json!({})]);
    }

    #[test]
    fn reset_fields_are_merged_but_not_owned() {
        let status = crate::reset::built_in("", "ResourceQuota", "");
        let mut config = config(json!({}));
        config["status"] = json!({"hard": {"pods": "9"}});
        let applied = apply(request(None, &config, "a", &status)).unwrap();
        let fields = ManagedFields::of(&applied.object).unwrap().union();
        assert_eq!(fields.to_fields_v1_json(), r#"{"f:spec":{}}"#);
    }

    #[test]
    fn an_unchanged_apply_keeps_everything() {
        let none = FieldSet::new();
        let config = config(json!({"hard": {"cpu": "1"}}));
        let mut live = live();
        live["status"] = json!({});
        let applied = apply(request(Some(&live), &config, "reeve/q", &none)).unwrap();
        assert!(!applied.changed);
        assert_eq!(applied.object, live);
    }

    #[test]
    fn refusals_name_the_object() {
        let none = FieldSet::new();
        let mut owned = config(json!({}));
        owned["metadata"]["managedFields"] = json!([]);
        let unknown = config(json!({"hart": {}}));
        let broken = config(json!({"hart": {}}));
        let fine = config(json!({}));
        let mut undecodable = live();
        undecodable["metadata"]["managedFields"][0]["operation"] = "Own".into();
        let mut tracked = broken.clone();
        tracked["metadata"]["managedFields"] = live()["metadata"]["managedFields"].clone();
        let object = "n/q; /v1, Kind=ResourceQuota";
        let reason = ".spec.hart: field not declared in schema";
        for (live, config, expected) in [
            (
                None,
                &owned,
                "metadata.managedFields must be nil".to_owned(),
            ),
            (
                None,
                &unknown,
                format!("failed to create typed patch object ({object}): {reason}"),
            ),
            (
                Some(&tracked),
                &fine,
                format!("failed to create typed live object ({object}): {reason}"),
            ),
            (
                Some(&broken),
                &fine,
                format!(
                    "failed to create manager for existing fields: failed to convert new object \
                     ({object}) to smd typed: {reason}"
                ),
            ),
            (
                Some(&undecodable),
                &fine,
                "failed to decode managed fields: operation must be `Apply` or `Update`".to_owned(),
            ),
        ] {
            let error = apply(request(live, config, "a", &none)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_the_version_applied_last_is_refused() {
        let schema = |list: &str| {
            Schema::from_crd(&json!({"type": "object", "properties": {"spec": {
                "type": "object",
                "properties": {"list": {
                    "type": "array", "x-kubernetes-list-type": list,
                    "items": {"type": "string", "nullable": true},
                }},
            }}}))
            .unwrap()
        };
        let (before, now) = (schema("set"), schema("atomic"));
        let thing = |list: Value| {
            json!({
                "apiVersion": "test/v2", "kind": "Thing", "metadata": {"name": "x"},
                "spec": {"list": list},
            })
        };
        let none = FieldSet::new();
        let versions = [Version {
            api_version: "test/v1",
            schema: &before,
            conversion: None,
        }];
        let fine = thing(json!(["a"]));
        let first = Apply {
            schema: &now,
            versions: &versions,
            ..request(None, &fine, "a", &none)
        };
        let mut live = apply(first).unwrap().object;
        live["metadata"]["managedFields"][0]["apiVersion"] = json!("test/v1");
        live["metadata"]["managedFields"][0]["fieldsV1"] =
            json!({"f:spec": {"f:list": {"v:\"a\"": {}}}});
        for (list, expected) in [
            (json!(["b", "a"]), Ok(())),
            (
                json!([null]),
                Err(
                    "failed to prune fields: failed to convert merged object to last applied \
                     version: .spec.list: element 0: associative list without keys has an \
                     element that's an explicit null",
                ),
            ),
        ] {
            let config = thing(list);
            let again = Apply {
                live: Some(&live),
                config: &config,
                ..first
            };
            let applied = apply(again).map(|applied| {
                assert_eq!(applied.object["spec"], config["spec"]);
            });
            let applied = applied.map_err(|error| error.to_string());
            assert_eq!(applied, expected.map_err(str::to_owned));
        }
    }

    /// Whoever owns fields in another version: the live object is converted to it before
    /// anything else is done.
    #[test]
    fn a_live_object_that_does_not_fit_a_version_of_its_owners_is_refused() {
        let schema = |list: &str| {
            Schema::from_crd(&json!({"type": "object", "properties": {"set": {
                "type": "array", "x-kubernetes-list-type": list,
                "items": {"type": "string", "nullable": true},
            }}}))
            .unwrap()
        };
        let (before, now) = (schema("set"), schema("atomic"));
        let thing = json!({"apiVersion": "test/v2", "kind": "Thing", "metadata": {"name": "x"}});
        let mut live = thing.clone();
        live["set"] = json!([null]);
        live["metadata"]["managedFields"] = json!([{
            "apiVersion": "test/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:set": {}},
            "manager": "b", "operation": "Update",
        }]);
        let none = FieldSet::new();
        let versions = [Version {
            api_version: "test/v1",
            schema: &before,
            conversion: None,
        }];
        let error = apply(Apply {
            schema: &now,
            versions: &versions,
            ..request(Some(&live), &thing, "a", &none)
        });
        assert_eq!(
            error.unwrap_err().to_string(),
            ".set: element 0: associative list without keys has an element that's an explicit null"
        );
    }

    /// Owners in a version with other fields lose what changes there, and what is given
    /// up is found there.
    #[test]
    fn owners_in_a_version_with_other_fields_are_understood() {
        fn renamed(object: &Value, from: &str, to: &str, version: &str) -> Value {
            let mut object = object.clone();
            let fields = object.as_object_mut().unwrap();
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
            object["apiVersion"] = version.into();
            object
        }
        let schema = |field: &str| {
            Schema::from_crd(&json!({"type": "object", "properties": {
                field: {"type": "integer"}, "other": {"type": "integer"},
            }}))
            .unwrap()
        };
        let (old, new) = (schema("old"), schema("new"));
        let none = FieldSet::new();
        let to_old = Version {
            api_version: "test/v1",
            schema: &old,
            conversion: Some(Conversion::Known {
                there: |object| renamed(object, "new", "old", "test/v1"),
                back: |object| renamed(object, "old", "new", "test/v2"),
            }),
        };
        let ask = |object: &Value, version: &str| {
            Ok(match version {
                "test/v1" => renamed(object, "new", "old", version),
                version => renamed(object, "old", "new", version),
            })
        };
        let asked = Version {
            conversion: Some(Conversion::Asked(&ask)),
            ..to_old
        };
        let silent = |_: &Value, _: &str| Err("nobody is there".to_owned());
        let unanswered = Version {
            conversion: Some(Conversion::Asked(&silent)),
            ..to_old
        };
        let thing = |version: &str, fields: Value| {
            let mut thing =
                json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "x"}});
            let all = thing.as_object_mut().unwrap();
            all.extend(fields.as_object().unwrap().clone());
            thing
        };
        let config = thing("test/v1", json!({"old": 1}));
        let first = apply(Apply {
            schema: &old,
            ..request(None, &config, "a", &none)
        });
        let live = renamed(&first.unwrap().object, "old", "new", "test/v2");
        let owners = |object: &Value| {
            let managers = ManagedFields::of(object).unwrap();
            let entries = managers.iter().map(|(id, owned)| {
                let (set, version) = (owned.set.to_fields_v1_json(), &owned.api_version);
                format!("{} {version} {set}", id.manager)
            });
            entries.collect::<Vec<_>>()
        };
        let with = |version: Version<'_>, config: &Value, manager: &str, force: bool| {
            let versions = [version];
            apply(Apply {
                schema: &new,
                versions: &versions,
                force,
                ..request(Some(&live), config, manager, &none)
            })
            .map(|applied| applied.object)
        };
        let again = |config: &Value, manager: &str, force: bool| {
            let known = with(to_old, config, manager, force);
            // Who is asked says the same.
            let by_asking = with(asked, config, manager, force);
            let told = |outcome: &Result<Value, ApplyError>| {
                outcome.as_ref().map_err(ToString::to_string).cloned()
            };
            assert_eq!(told(&known), told(&by_asking));
            known
        };

        let other = thing("test/v2", json!({"other": 1}));
        let error = with(unanswered, &other, "b", false).unwrap_err();
        assert_eq!(error.to_string(), "nobody is there");
        let kept = again(&other, "b", false).unwrap();
        assert_eq!((&kept["new"], &kept["other"]), (&json!(1), &json!(1)));
        assert_eq!(
            owners(&kept),
            [r#"a test/v1 {"f:old":{}}"#, r#"b test/v2 {"f:other":{}}"#]
        );
        let changed = thing("test/v2", json!({"new": 2}));
        let error = again(&changed, "b", false).unwrap_err().to_string();
        assert!(error.contains("conflict with \"a\": .old"), "{error}");
        let forced = again(&changed, "b", true).unwrap();
        assert_eq!(owners(&forced), [r#"b test/v2 {"f:new":{}}"#]);
        // What it applied in the other version and leaves out now goes.
        let left = again(&other, "a", false).unwrap();
        assert_eq!((left.get("new"), &left["other"]), (None, &json!(1)));
        assert_eq!(left["apiVersion"], "test/v2");
    }
}
