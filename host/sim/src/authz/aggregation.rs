//! Aggregated ClusterRoles: their rules are those of the roles they select.

use serde_json::Value;

use crate::kinds::edit::{items, text_at};
use crate::selector::LabelSelector;

/// The rules that an aggregated ClusterRole should have, given all ClusterRoles.
/// None when the role does not aggregate, or has those rules already.
pub fn aggregate<'a>(role: &Value, all: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Value>> {
    role.get("aggregationRule")?;
    let selectors: Vec<LabelSelector> = gathered(role).collect();
    let name = text_at(role, "/metadata/name");
    let mut sources: Vec<&Value> = all
        .into_iter()
        .filter(|source| text_at(source, "/metadata/name") != name)
        .collect();
    sources.sort_by_key(|source| text_at(source, "/metadata/name").to_owned());
    let mut rules: Vec<Value> = Vec::new();
    for selector in &selectors {
        for source in sources
            .iter()
            .filter(|source| selector.matches_object(source))
        {
            for rule in items(source, "rules") {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let present: Vec<&Value> = items(role, "rules").collect();
    let same = present.len() == rules.len() && present.iter().zip(&rules).all(|(a, b)| *a == b);
    (!same).then_some(rules)
}

/// The roles that an aggregated ClusterRole is made of.
pub fn gathered(role: &Value) -> impl Iterator<Item = LabelSelector> {
    let rule = role.get("aggregationRule").unwrap_or(&Value::Null);
    items(rule, "clusterRoleSelectors")
        .filter_map(|selector| LabelSelector::from_object(selector).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_gathered_by_label() {
        let role = |name: &str, label: &str, verb: &str| {
            json!({"metadata": {"name": name, "labels": {label: "true"}},
                "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
        };
        let all = [
            role("b", "to-view", "list"),
            role("a", "to-view", "get"),
            role("c", "to-view", "get"),
            role("d", "other", "delete"),
        ];
        let mut view = json!({"metadata": {"name": "view"}, "rules": null, "aggregationRule": {
            "clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]}});
        let rules = aggregate(&view, &all).unwrap();
        let verbs: Vec<&Value> = rules.iter().map(|rule| &rule["verbs"][0]).collect();
        assert_eq!(verbs, [&json!("get"), &json!("list")]);
        view["rules"] = json!(rules);
        assert_eq!(aggregate(&view, &all), None);
        assert_eq!(aggregate(&all[0], &all), None);
    }
}
