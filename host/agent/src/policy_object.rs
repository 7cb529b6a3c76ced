//! The `Plugin` object as it is read: a part that cannot be read is said to be so, and
//! taken for nothing else.
//!
//! Another version of the agent or of the CRD may have put something there that this
//! one does not know. A policy that was taken for none would switch off what it asks
//! for: that nothing is written without a person's word, for one.

use crate::problem::Problem;
use k8s_openapi::serde::Deserialize as _;
use k8s_openapi::serde::de::DeserializeOwned;
use reeve_api::{PluginSpec, PluginStatus, Reason};
use reeve_cluster::Object;
use serde_json::{Map, Value};

/// What a `Plugin` object says.
#[derive(Debug)]
pub(crate) struct PolicyObject {
    /// Its policy, or what of it cannot be read.
    pub(crate) spec: Result<PluginSpec, Problem>,
    pub(crate) generation: Option<i64>,
    /// What of its status can be read; none where it has none.
    pub(crate) status: Option<PluginStatus>,
    annotations: Map<String, Value>,
}

impl PolicyObject {
    pub(crate) fn read(object: &Object) -> Self {
        Self::of(object.name(), object.value())
    }

    fn of(name: &str, mut object: Value) -> Self {
        let mut take = |pointer: &str| object.pointer_mut(pointer).map(Value::take);
        let annotations = match take("/metadata/annotations") {
            Some(Value::Object(annotations)) => annotations,
            _ => Map::new(),
        };
        let generation = take("/metadata/generation").and_then(|number| number.as_i64());
        let spec = take("/spec").unwrap_or_else(|| Value::Object(Map::new()));
        let status = take("/status").filter(|status| !status.is_null());
        Self {
            spec: spec_of(name, &spec),
            generation,
            status: status.map(|status| status_of(name, status)),
            annotations,
        }
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        self.annotations.get(key)?.as_str().map(str::to_owned)
    }
}

fn spec_of(name: &str, spec: &Value) -> Result<PluginSpec, Problem> {
    PluginSpec::deserialize(spec).map_err(|whole: serde_json::Error| {
        let of_field = |(field, value): (&String, &Value)| {
            let error = alone::<PluginSpec>(field, value).err()?;
            Some(format!("spec.{field}: {error}"))
        };
        let fields = spec.as_object().into_iter().flatten();
        let mut fields: Vec<String> = fields.filter_map(of_field).collect();
        if fields.is_empty() {
            fields.push(format!("spec: {whole}"));
        }
        Problem::lasting(
            Reason::PolicyInvalid,
            format!(
                "Plugin {name} cannot be read: {}; mend it, or run a version of reeve that knows \
                 it. Until then nothing else is loaded, and what runs goes on under the policy \
                 before",
                fields.join("; ")
            ),
        )
    })
}

/// What of a status can be read. It is the agent's own memory, so that one odd field
/// must not cost the others.
fn status_of(name: &str, status: Value) -> PluginStatus {
    if let Ok(status) = PluginStatus::deserialize(&status) {
        return status;
    }
    let mut kept = status;
    if let Some(fields) = kept.as_object_mut() {
        fields.retain(|field, value| {
            let error = alone::<PluginStatus>(field, value).err();
            if let Some(error) = &error {
                tracing::warn!(plugin = name, field, %error, "field of the status cannot be read");
            }
            error.is_none()
        });
    }
    serde_json::from_value(kept).unwrap_or_default()
}

/// Reads one field, as if there were no others.
fn alone<T: DeserializeOwned>(field: &str, value: &Value) -> serde_json::Result<T> {
    let object = Map::from_iter([(field.to_owned(), value.clone())]);
    serde_json::from_value(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::SyncMode;
    use serde_json::json;

    fn read(object: &Value) -> PolicyObject {
        PolicyObject::of("quotas", object.clone())
    }

    #[test]
    fn what_can_be_read_is_read() {
        let object = read(&json!({
            "metadata": {"generation": 3, "annotations": {"a": "b"}},
            "spec": {"mode": "OnRequest"},
            "status": {"digest": "sha256:1"},
        }));
        assert_eq!(object.spec.unwrap().mode, Some(SyncMode::OnRequest));
        assert_eq!(object.generation, Some(3));
        assert_eq!(object.status.unwrap().digest.unwrap(), "sha256:1");
        let bare = read(&json!({"metadata": {}}));
        assert_eq!(bare.spec.as_ref().unwrap(), &PluginSpec::default());
        assert_eq!((bare.annotation("a"), bare.status), (None, None));
    }

    #[test]
    fn an_odd_field_of_the_policy_is_named() {
        for (spec, says) in [
            (
                json!({"suspend": true, "mode": "Sometimes"}),
                "Plugin quotas cannot be read: spec.mode: unknown variant `Sometimes`",
            ),
            (json!({"suspend": "yes"}), "spec.suspend: invalid type"),
            (json!({"mode": 1, "suspend": 2}), "spec.suspend: "),
            (json!([1]), "spec: "),
        ] {
            let problem = read(&json!({"spec": spec})).spec.unwrap_err();
            assert_eq!(problem.reason, Reason::PolicyInvalid);
            assert!(problem.message.contains(says), "{says}: {problem}");
        }
    }

    #[test]
    fn an_odd_field_of_the_status_costs_no_other() {
        let object = read(&json!({
            "spec": {"suspend": true},
            "status": {"asks": ["write ConfigMap"], "units": "many", "new": 1},
        }));
        assert!(object.spec.unwrap().suspend);
        let status = object.status.unwrap();
        assert_eq!(status.asks.unwrap(), ["write ConfigMap"]);
        assert_eq!(status.units, None);
    }
}
