//! The policy of a `Plugin` in the form in which it is followed.

use crate::problem::{Problem, chain};
use reeve_api::{AdoptionPolicy, IgnoreRule, PluginSpec, Reason};
use reeve_core::ignore::{Rule, RuleText};
use reeve_core::plan::{Adoption, Policy};

/// Reads a policy. What it says about objects must be understood before anything is
/// applied under it.
pub(crate) fn read(spec: &PluginSpec) -> Result<Policy, Problem> {
    let mut ignore = Vec::with_capacity(spec.ignore.len());
    for (index, rule) in spec.ignore.iter().enumerate() {
        let rule = Rule::try_from(text(rule)).map_err(|error| {
            let message = format!("spec.ignore[{index}] of the Plugin: {}", chain(&error));
            Problem::lasting(Reason::PolicyInvalid, message)
        })?;
        ignore.push(rule);
    }
    Ok(Policy {
        adoption: match spec.adoption.unwrap_or_default() {
            AdoptionPolicy::Never => Adoption::Never,
            AdoptionPolicy::IfUnowned => Adoption::IfUnowned,
            AdoptionPolicy::Always => Adoption::Always,
        },
        adopt_from: spec.adopt_from.clone(),
        recreate: spec.recreate,
        ignore,
    })
}

fn text(rule: &IgnoreRule) -> RuleText {
    RuleText {
        group: rule.group.clone(),
        kind: rule.kind.clone(),
        name: rule.name.clone(),
        namespace: rule.namespace.clone(),
        json_pointers: rule.json_pointers.clone(),
        jq_path_expressions: rule.jq_path_expressions.clone(),
        managed_fields_managers: rule.managed_fields_managers.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: Value, expected: Result<(&str, usize), &str>) {
        let spec: PluginSpec = serde_json::from_value(spec).unwrap();
        let read = read(&spec)
            .map(|policy| (policy.adoption.to_string(), policy.ignore.len()))
            .map_err(|problem| problem.to_string());
        let expected = expected.map(|(adoption, rules)| (adoption.to_owned(), rules));
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn policies_are_read() {
        check(json!({}), Ok(("Never", 0)));
        check(
            json!({"adoption": "IfUnowned", "ignore": [
                {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]},
                {"kind": "*", "group": "*", "managedFieldsManagers": ["hpa"]},
            ]}),
            Ok(("IfUnowned", 2)),
        );
        check(
            json!({"ignore": [{"kind": "A", "jsonPointers": ["/a"]}, {"kind": "B"}]}),
            Err(
                "PolicyInvalid: spec.ignore[1] of the Plugin: ignore rule for B: nothing is \
                 ignored; give jsonPointers, jqPathExpressions or managedFieldsManagers",
            ),
        );
        check(
            json!({"ignore": [{"kind": "A", "jsonPointers": ["a"]}]}),
            Err(
                "PolicyInvalid: spec.ignore[0] of the Plugin: ignore rule for A: `a` is no JSON \
                 Pointer: expected text such as `/spec/replicas`, with `~1` for a slash in a name",
            ),
        );
    }
}
