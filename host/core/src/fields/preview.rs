//! What an apply would make of an object, without asking the server.

use crate::kind::GroupVersionKind;
use reeve_ssa::{Apply, ApplyError, Prediction, Schema, SchemaError, apply, predict, reset};
use serde_json::Value;
use std::borrow::Cow;

/// An apply that is thought of.
#[derive(Clone, Copy, Debug)]
pub struct Preview<'a> {
    /// Kind of the object.
    pub kind: &'a GroupVersionKind,
    /// For a custom kind, the entry of `spec.versions` of its definition; without
    /// it, lists are taken to be replaced as a whole.
    pub version: Option<&'a Value>,
    /// The object as the server gave it out, with its `managedFields`; none when it
    /// would be created.
    pub live: Option<&'a Value>,
    /// What would be applied.
    pub config: &'a Value,
    /// Field manager.
    pub manager: &'a str,
    /// Whether to take fields that others own.
    pub force: bool,
}

/// What would come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Previewed {
    /// The object before, in the form in which a server keeps it.
    pub before: Option<Value>,
    /// The object after, as far as it follows from the two: without what the
    /// server adds by defaulting and admission. Quantities that mean the same as
    /// before are written as before.
    pub after: Value,
    /// Other managers that would lose fields.
    pub taken_from: Vec<String>,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The definition of the kind cannot be used.
    #[error("the schema of {kind} cannot be used")]
    Schema {
        /// The kind.
        kind: GroupVersionKind,
        /// Why.
        source: SchemaError,
    },
    /// A server would refuse the apply.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// What an apply would make of an object.
///
/// # Errors
///
/// When a server would refuse it, or the kind's definition cannot be used.
pub fn preview(request: &Preview<'_>) -> Result<Previewed, PreviewError> {
    let kind = request.kind;
    let (schema, reset) = match reeve_ssa::builtin::schema(&kind.group, &kind.version, &kind.kind) {
        Some(schema) => {
            let reset = reset::built_in(&kind.group, &kind.kind, "");
            (Cow::Borrowed(schema), reset)
        }
        None => {
            let version = request.version;
            let open_api = version.and_then(|version| version.pointer("/schema/openAPIV3Schema"));
            let schema = open_api.map_or_else(|| Ok(Schema::untyped()), Schema::from_crd);
            let schema = schema.map_err(|source| PreviewError::Schema {
                kind: kind.clone(),
                source,
            })?;
            let status = version.and_then(|version| version.pointer("/subresources/status"));
            (Cow::Owned(schema), reset::custom(status.is_some(), ""))
        }
    };
    let apply_request = Apply {
        schema: &schema,
        versions: &[],
        live: request.live,
        config: request.config,
        manager: request.manager,
        force: request.force,
        subresource: "",
        // It would stand in managedFields, which nobody sees.
        now: "1970-01-01T00:00:00Z",
        reset: &reset,
    };
    let mut after = apply(apply_request)?.object;
    let mut before = request.live.cloned();
    let taken_from = match predict(apply_request)? {
        Prediction::Change(change) => {
            let mut names: Vec<String> = change.taken.into_keys().map(|id| id.manager).collect();
            names.dedup();
            names
        }
        Prediction::NoChange | Prediction::Settled(_) => Vec::new(),
    };
    schema.normalize(&mut after);
    if let Some(before) = &mut before {
        schema.normalize(before);
        let (mut old, mut new) = (before.clone(), after.clone());
        schema.amounts(&mut old);
        schema.amounts(&mut new);
        keep_notation(before, &old, &mut after, &new);
    }
    Ok(Previewed {
        before,
        after,
        taken_from,
    })
}

/// Writes what means the same as before as it was written before.
fn keep_notation(before: &Value, old: &Value, after: &mut Value, new: &Value) {
    if old == new {
        *after = before.clone();
        return;
    }
    match (before, old, after, new) {
        (Value::Object(before), Value::Object(old), Value::Object(after), Value::Object(new)) => {
            for (name, after) in after.iter_mut() {
                if let (Some(before), Some(old), Some(new)) =
                    (before.get(name), old.get(name), new.get(name))
                {
                    keep_notation(before, old, after, new);
                }
            }
        }
        (Value::Array(before), Value::Array(old), Value::Array(after), Value::Array(new)) => {
            for (index, after) in after.iter_mut().enumerate() {
                if let (Some(before), Some(old), Some(new)) =
                    (before.get(index), old.get(index), new.get(index))
                {
                    keep_notation(before, old, after, new);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Shown, changes};
    use serde_json::json;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a literal wherever it is called"
    )]
    fn quota(hard: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "a"},
            "spec": {"hard": hard},
        })
    }

    fn applied(manager: &str, config: &Value, live: Option<&Value>) -> Value {
        let kind = GroupVersionKind::new("", "v1", "ResourceQuota");
        let schema = reeve_ssa::builtin::schema("", "v1", &kind.kind).unwrap();
        let reset = reset::built_in("", &kind.kind, "");
        let request = Apply {
            schema,
            versions: &[],
            live,
            config,
            manager,
            force: true,
            subresource: "",
            now: "2026-01-01T00:00:00Z",
            reset: &reset,
        };
        apply(request).unwrap().object
    }

    fn paths(previewed: &Previewed) -> Vec<String> {
        let all = changes(previewed.before.as_ref(), Some(&previewed.after));
        all.into_iter()
            .map(|change| match (change.old, change.new) {
                (Shown::Value(old), Shown::Value(new)) => {
                    format!("{} {old} {new}", change.path)
                }
                (Shown::Absent, _) => format!("+{}", change.path),
                _ => format!("-{}", change.path),
            })
            .collect()
    }

    #[test]
    fn the_change_is_what_a_server_would_make() {
        let ours = applied("ours", &quota(json!({"pods": "1", "services": "2"})), None);
        let live = applied("edit", &quota(json!({"pods": "9"})), Some(&ours));
        let kind = GroupVersionKind::new("", "v1", "ResourceQuota");
        let preview_of = |config: &Value, live: Option<&Value>, force| {
            preview(&Preview {
                kind: &kind,
                version: None,
                live,
                config,
                manager: "ours",
                force,
            })
        };
        let wanted = quota(json!({"pods": "1000m", "configmaps": "3"}));
        let previewed = preview_of(&wanted, Some(&live), true).unwrap();
        assert_eq!(
            paths(&previewed),
            [
                "+spec.hard.configmaps",
                "spec.hard.pods \"9\" \"1000m\"",
                "-spec.hard.services"
            ]
        );
        assert_eq!(previewed.taken_from, ["edit"]);
        let error = preview_of(&wanted, Some(&live), false).unwrap_err();
        assert!(
            error.to_string().contains("conflict with \"edit\""),
            "{error}"
        );

        let same = preview_of(
            &quota(json!({"pods": "1000m", "services": "2"})),
            Some(&ours),
            true,
        );
        assert_eq!(
            paths(&same.unwrap()),
            Vec::<String>::new(),
            "the same amounts"
        );

        let created = preview_of(&wanted, None, false).unwrap();
        assert_eq!(
            paths(&created),
            ["+spec.hard.configmaps", "+spec.hard.pods"]
        );
    }

    #[test]
    fn custom_kinds_go_by_their_definition() {
        let kind = GroupVersionKind::new("example.com", "v1", "Widget");
        let version = json!({
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"tags": {
                    "type": "array", "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                }}},
                "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}},
            }}},
        });
        let widget = |tags: Value| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "w"}, "spec": {"tags": tags}, "status": {"seen": true},
            })
        };
        let live = {
            let mut live = widget(json!(["theirs"]));
            live["metadata"]["managedFields"] = json!([{
                "manager": "edit", "operation": "Update", "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:tags": {".": {}, "v:\"theirs\"": {}}}},
            }]);
            live
        };
        for (version, tags) in [
            (Some(&version), json!(["theirs", "ours"])),
            (None, json!(["ours"])),
        ] {
            let previewed = preview(&Preview {
                kind: &kind,
                version,
                live: Some(&live),
                config: &widget(json!(["ours"])),
                manager: "ours",
                force: true,
            });
            assert_eq!(previewed.unwrap().after["spec"]["tags"], tags);
        }
        let broken = json!({"schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {
                "type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "odd",
            }},
        }}});
        let error = preview(&Preview {
            kind: &kind,
            version: Some(&broken),
            live: None,
            config: &widget(json!([])),
            manager: "ours",
            force: false,
        });
        assert_eq!(
            error.unwrap_err().to_string(),
            "the schema of Widget.v1.example.com cannot be used"
        );
    }
}
