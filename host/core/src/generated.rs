//! Generated Secrets: how they say what they are for, and what proves it.
//!
//! They carry no label of ours and are no part of what a unit owns: that a plugin is
//! mistaken about its objects must not rotate a password. Two annotations say for whom
//! they were made, and can be written by anyone who may write the Secret; the field
//! manager proves it, as of objects that are owned.

use crate::ownership::{
    GENERATED_BY_ANNOTATION, GENERATED_FOR_ANNOTATION, PLUGIN_LABEL, field_manager,
};
use crate::unit::UnitKey;
use reeve_ssa::{ManagedFields, Path};
use serde_json::{Value, json};

/// What a generated Secret is for: one value of one action of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purpose {
    plugin: String,
    /// Unit, action and value. The plugin is not in it: what was generated before the
    /// other annotation was written is found by this one.
    text: String,
}

/// Why a Secret is not the one that was generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGenerated {
    /// It does not say that it is.
    #[error("exists and was not generated for this action")]
    Other,
    /// It says so, and the plugin's field manager did not write that.
    #[error("says that it was generated for this action, and {manager} did not write that")]
    Marked {
        /// The plugin's field manager.
        manager: String,
    },
    /// It is, and somebody else wrote a value into it.
    #[error("was generated for this action, and {manager} did not write its entry {entry}")]
    Entry {
        /// The plugin's field manager.
        manager: String,
        /// Key of the entry.
        entry: String,
    },
}

impl Purpose {
    /// The purpose of the value `secret` of the action with this key.
    pub fn new(unit: &UnitKey, action: &str, secret: &str) -> Self {
        Self {
            plugin: unit.plugin.to_string(),
            text: format!("{} {action} {secret}", unit.id()),
        }
    }

    /// The annotations that say it.
    pub fn annotations(&self) -> Value {
        json!({
            GENERATED_FOR_ANNOTATION: self.text,
            GENERATED_BY_ANNOTATION: self.plugin,
        })
    }

    /// Checks that a Secret, with its `managedFields`, was generated for this. One that
    /// names no plugin is from before that was written, and its field manager says it.
    ///
    /// # Errors
    ///
    /// When it says something else, or is owned by a plugin, or says this without having
    /// it from the plugin's field manager.
    pub fn check(&self, found: &Value) -> Result<(), NotGenerated> {
        let metadata = &found["metadata"];
        let annotations = &metadata["annotations"];
        let by = &annotations[GENERATED_BY_ANNOTATION];
        let is_ours = annotations[GENERATED_FOR_ANNOTATION] == *self.text
            && (by.is_null() || *by == *self.plugin)
            && metadata["labels"][PLUGIN_LABEL].is_null();
        if !is_ours {
            return Err(NotGenerated::Other);
        }
        let mark = ["metadata", "annotations", GENERATED_FOR_ANNOTATION];
        match self.wrote(found, mark) {
            true => Ok(()),
            false => Err(NotGenerated::Marked {
                manager: self.manager(),
            }),
        }
    }

    /// Checks that nobody else wrote these entries of a Secret.
    ///
    /// # Errors
    ///
    /// When somebody did.
    pub fn check_entries<'a>(
        &self,
        found: &Value,
        entries: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), NotGenerated> {
        let mut entries = entries.into_iter();
        match entries.find(|entry| !self.wrote(found, ["data", entry])) {
            None => Ok(()),
            Some(entry) => Err(NotGenerated::Entry {
                manager: self.manager(),
                entry: entry.to_owned(),
            }),
        }
    }

    fn manager(&self) -> String {
        field_manager(&self.plugin)
    }

    /// Whether a field has its value from the plugin's manager, which makes a Secret by
    /// creating it and mends it by an apply.
    fn wrote<const N: usize>(&self, found: &Value, field: [&str; N]) -> bool {
        // Malformed entries prove nothing.
        let managers = ManagedFields::of(found).unwrap_or_default();
        let (manager, field) = (self.manager(), Path::fields(field));
        managers.iter().any(|(id, owned)| {
            id.manager == manager && id.subresource.is_empty() && owned.set.has(&field)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersionKind, ObjectReference};

    fn purpose(plugin: &str) -> Purpose {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let unit = UnitKey::new(plugin, ObjectReference::new(kind, None, "alice"));
        Purpose::new(&unit, "database", "password")
    }

    /// A Secret as the API server has it when a manager wrote all of it.
    fn secret(annotations: &Value, manager: &str, operation: &str) -> Value {
        let fields = |of: &Value| -> Value {
            let keys = of.as_object().unwrap().keys();
            keys.map(|key| (format!("f:{key}"), json!({}))).collect()
        };
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "login", "namespace": "alice", "annotations": annotations,
                "managedFields": [{
                    "manager": manager, "operation": operation, "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:data": {".": {}, "f:password": {}},
                        "f:metadata": {"f:annotations": fields(annotations)},
                    },
                }],
            },
            "data": {"password": "eA=="},
        })
    }

    fn former() -> Value {
        json!({GENERATED_FOR_ANNOTATION: "Profile.kubeflow.org//alice database password"})
    }

    #[test]
    fn what_was_generated_is_found_again() {
        let ours = purpose("gitea");
        for annotations in [ours.annotations(), former()] {
            for operation in ["Update", "Apply"] {
                let found = secret(&annotations, "reeve/gitea", operation);
                assert_eq!(ours.check(&found), Ok(()), "{found}");
                assert_eq!(ours.check_entries(&found, ["password"]), Ok(()), "{found}");
            }
        }
    }

    #[test]
    fn a_mark_is_nothing_that_the_manager_did_not_write() {
        let ours = purpose("gitea");
        let marked = Err(NotGenerated::Marked {
            manager: "reeve/gitea".into(),
        });
        for annotations in [ours.annotations(), former()] {
            for manager in ["reeve/other", "reeve/gitea2", "kubectl-edit"] {
                let found = secret(&annotations, manager, "Apply");
                assert_eq!(ours.check(&found), marked, "{found}");
            }
        }
        let mut found = secret(&ours.annotations(), "reeve/gitea", "Update");
        found["metadata"]["managedFields"][0]["subresource"] = json!("status");
        assert_eq!(ours.check(&found), marked);
        found["metadata"]["managedFields"] = json!("none");
        assert_eq!(ours.check(&found), marked);
    }

    #[test]
    fn another_purpose_plugin_or_owner_is_another_secret() {
        let ours = purpose("gitea");
        let mut theirs = purpose("other");
        theirs.text.clone_from(&ours.text);
        let mut other = ours.clone();
        other.text.push('x');
        for annotations in [json!({}), other.annotations(), theirs.annotations()] {
            let found = secret(&annotations, "reeve/gitea", "Update");
            assert_eq!(ours.check(&found), Err(NotGenerated::Other), "{found}");
        }
        let mut owned = secret(&ours.annotations(), "reeve/gitea", "Update");
        owned["metadata"]["labels"] = json!({PLUGIN_LABEL: "other"});
        assert_eq!(ours.check(&owned), Err(NotGenerated::Other));
    }

    #[test]
    fn a_value_of_somebody_else_is_named() {
        let ours = purpose("gitea");
        let mut found = secret(&ours.annotations(), "reeve/gitea", "Update");
        found["metadata"]["managedFields"][0]["fieldsV1"]["f:data"] = json!({".": {}});
        assert_eq!(ours.check(&found), Ok(()));
        let refused = ours.check_entries(&found, ["password"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "was generated for this action, and reeve/gitea did not write its entry password"
        );
    }

    #[test]
    fn the_plugin_is_part_of_it() {
        assert_ne!(
            purpose("gitea").annotations(),
            purpose("other").annotations()
        );
    }
}
