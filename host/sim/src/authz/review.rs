//! The answer of a SelfSubjectRulesReview.

use serde_json::{Value, json};

use super::policy::RoleStore;
use super::rbac::rules_for;
use crate::identity::Identity;

/// The `status` of a SelfSubjectRulesReview: what a user may do in a namespace.
pub fn rules_review(store: &impl RoleStore, user: &Identity, namespace: &str) -> Value {
    let mut resources = Vec::new();
    let mut paths = Vec::new();
    for rule in rules_for(store, user, namespace) {
        let both = rule.to_value();
        if !rule.resources.is_empty() {
            resources.push(without(&both, &["nonResourceURLs"]));
        }
        if !rule.paths.is_empty() {
            paths.push(without(&both, &["apiGroups", "resources", "resourceNames"]));
        }
    }
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn without(rule: &Value, fields: &[&str]) -> Value {
    let mut rule = rule.clone();
    if let Some(rule) = rule.as_object_mut() {
        for field in fields {
            rule.remove(*field);
        }
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::*;

    #[test]
    fn an_administrator_may_do_everything() {
        assert_eq!(
            rules_review(&Policy::default(), &Identity::admin(), "n"),
            json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            })
        );
    }
}
