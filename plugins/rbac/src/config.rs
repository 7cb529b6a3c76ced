//! The configuration.

use reeve_sdk::names::check_dns_subdomain;
use reeve_sdk::prelude::*;

/// Who gets which rights in the namespaces of Profiles.
#[config]
#[derive(Default)]
pub(crate) struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// Groups that are bound to the ClusterRole profile-support.
    pub(crate) support_groups: Vec<String>,
    /// Whether the owner of a Profile is bound to the ClusterRole ml-pipeline.
    /// The preset readme does so, main does not.
    ml_pipeline: Option<bool>,
    /// A Role in each namespace.
    pub(crate) role: Role,
    /// Whether a binding named profile-support is deleted, whoever made it, when
    /// there are no groups. The preset main does so, readme does not.
    remove_support_binding: Option<bool>,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default, PartialEq)]
enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

/// A Role. Without rules there is none.
#[config]
pub(crate) struct Role {
    /// Its name, profile unless set.
    pub(crate) name: String,
    /// What it allows.
    pub(crate) rules: Vec<Rule>,
}

/// What a Role allows, in the words of RBAC.
#[config]
#[derive(Default)]
pub(crate) struct Rule {
    /// API groups; the empty text is the core group.
    pub(crate) api_groups: Vec<String>,
    /// Resources.
    pub(crate) resources: Vec<String>,
    /// Names of objects; empty for all.
    pub(crate) resource_names: Vec<String>,
    /// Verbs.
    pub(crate) verbs: Vec<String>,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            name: "profile".to_owned(),
            rules: Vec::new(),
        }
    }
}

impl Config {
    pub(crate) fn ml_pipeline(&self) -> bool {
        self.ml_pipeline.unwrap_or(self.preset == Preset::Readme)
    }

    /// Whether a binding for support that nobody should have is deleted.
    pub(crate) fn removes_support_binding(&self) -> bool {
        let wanted = self.remove_support_binding;
        self.support_groups.is_empty() && wanted.unwrap_or(self.preset == Preset::Main)
    }

    /// The groups, sorted and each once.
    pub(crate) fn groups(&self) -> impl Iterator<Item = String> {
        let mut groups = self.support_groups.clone();
        groups.sort();
        groups.dedup();
        groups.into_iter()
    }

    /// What the API server would refuse is refused here, where it has a path.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let empty = |path: String, what: &str| Err(ConfigError::new(path, what));
        if let Some(index) = self.support_groups.iter().position(String::is_empty) {
            return empty(
                format!("/supportGroups/{index}"),
                "empty; name a group or remove it",
            );
        }
        check_dns_subdomain(&self.role.name)
            .map_err(|error| ConfigError::new("/role/name", error.to_string()))?;
        for (index, rule) in self.role.rules.iter().enumerate() {
            for (field, values, what) in [
                (
                    "apiGroups",
                    &rule.api_groups,
                    "empty; name an API group, \"\" for the core group",
                ),
                ("resources", &rule.resources, "empty; name a resource"),
                ("verbs", &rule.verbs, "empty; name a verb"),
            ] {
                if values.is_empty() {
                    return empty(format!("/role/rules/{index}/{field}"), what);
                }
            }
        }
        Ok(())
    }
}
