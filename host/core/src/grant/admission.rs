//! The policy that is narrower than RBAC can be.
//!
//! RBAC names namespaces that exist or may exist; it cannot say "where a primary
//! is" or "all but this one". A ValidatingAdmissionPolicy can, for the requests of
//! one account. It is the second layer behind the host's own check of a manifest,
//! and holds where that one fails.

use super::Grantee;
use super::rules::Served;
use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope};
use crate::ownership::{PLUGIN_LABEL, plugin_label};
use crate::selector::Selector;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How the policy treats one resource that RBAC lets the account write everywhere.
#[derive(Default)]
struct Place {
    /// Whether the manifest says: everywhere.
    everywhere: bool,
    /// Namespaces that the manifest names.
    named: Vec<String>,
}

/// The ValidatingAdmissionPolicy and its binding for what a manifest writes in
/// namespaces that RBAC cannot name; none when RBAC can name them all.
///
/// The policy concerns requests of the plugin's account alone. It refuses what the
/// account writes in the agent's namespace; what it writes in namespaces whose
/// names begin with `kube-` (which Kubernetes keeps for itself) or that `tenants`
/// does not select, unless the manifest names them or asks for all; objects made
/// without the plugin's label; changes to another plugin's objects; and giving
/// objects another plugin's label. A namespace that is selected and has no primary
/// remains the host's to refuse.
///
/// It needs Kubernetes 1.30 or newer, where the kind is stable.
pub fn admission_policy(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
    tenants: &Selector,
) -> Vec<Value> {
    let mut places: BTreeMap<(String, String), Place> = BTreeMap::new();
    for write in &manifest.writes {
        let resource = served(&write.kind);
        if !resource.namespaced {
            continue;
        }
        let key = (write.kind.group.clone(), resource.plural);
        let place = places.entry(key).or_default();
        match &write.scope {
            Scope::Cluster => place.everywhere = true,
            Scope::Namespaces(names) => place.named.extend(names.iter().cloned()),
            Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary => {}
        }
    }
    // Where every namespace is named, RBAC is as narrow as the manifest.
    places.retain(|(group, plural), _| {
        manifest.writes.iter().any(|write| {
            !matches!(write.scope, Scope::Namespaces(_))
                && write.kind.group == *group
                && served(&write.kind).plural == *plural
        })
    });
    if places.is_empty() {
        return Vec::new();
    }
    let rules: Vec<Value> = places
        .keys()
        .map(|(group, plural)| {
            json!({
                "apiGroups": [group],
                // A restriction is to miss nothing: a version that the cluster
                // serves later is restricted too.
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": [plural],
                "scope": "Namespaced",
            })
        })
        .collect();
    let validations = validations(grantee, &places, tenants);
    policy_and_binding(grantee, &grantee.role_name(), &rules, &validations)
}

/// A policy for the requests of the plugin's account, and its binding.
pub(super) fn policy_and_binding(
    grantee: &Grantee<'_>,
    name: &str,
    rules: &[Value],
    validations: &[Value],
) -> Vec<Value> {
    let api_version = "admissionregistration.k8s.io/v1";
    let metadata = json!({"name": name, "labels": grantee.labels()});
    vec![
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{
                    "name": "account",
                    "expression": format!("request.userInfo.username == {}", quoted(&grantee.user())),
                }],
                "validations": validations,
            },
        }),
        json!({
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

fn validations(
    grantee: &Grantee<'_>,
    places: &BTreeMap<(String, String), Place>,
    tenants: &Selector,
) -> Vec<Value> {
    let validation = |expression: String, message: String| {
        json!({
            "expression": expression,
            "message": format!("plugin {}: {message}", grantee.plugin),
            "reason": "Forbidden",
        })
    };
    let agent = grantee.namespace;
    let mut validations = vec![validation(
        format!("request.namespace != {}", quoted(agent)),
        format!(
            "its account may not write in namespace {agent}, which decides what the agent runs"
        ),
    )];
    for ((group, plural), place) in places {
        if place.everywhere {
            continue;
        }
        let mut allowed = String::from("!request.namespace.startsWith('kube-')");
        if !tenants.is_empty() {
            allowed.push_str(" && ");
            allowed.push_str(&tenants.to_cel("namespaceObject.metadata.labels"));
        }
        if !place.named.is_empty() {
            let named: Vec<String> = place.named.iter().map(|name| quoted(name)).collect();
            allowed = format!("request.namespace in [{}] || ({allowed})", named.join(", "));
        }
        let selected = if tenants.is_empty() {
            "no namespace whose name begins with `kube-`".to_owned()
        } else {
            format!(
                "only namespaces that `{tenants}` selects, and none whose name begins with `kube-`"
            )
        };
        validations.push(validation(
            format!(
                "request.resource.group != {} || request.resource.resource != {} || ({allowed})",
                quoted(group),
                quoted(plural)
            ),
            format!("its account may write {plural} in {selected}"),
        ));
    }
    let label = quoted(PLUGIN_LABEL);
    let ours = quoted(&plugin_label(grantee.plugin));
    let labelled = |object: &str| {
        format!("has({object}.metadata.labels) && {label} in {object}.metadata.labels")
    };
    let is_ours = |object: &str| format!("{object}.metadata.labels[{label}] == {ours}");
    validations.push(validation(
        format!(
            "request.operation != 'CREATE' || ({} && {})",
            labelled("object"),
            is_ours("object")
        ),
        format!("what its account makes carries the label {PLUGIN_LABEL} with its name"),
    ));
    validations.push(validation(
        format!(
            "request.operation == 'CREATE' || !({}) || {}",
            labelled("oldObject"),
            is_ours("oldObject")
        ),
        "its account may not change or delete another plugin's objects".to_owned(),
    ));
    // A foreign object may be contributed to, and is not thereby another plugin's.
    validations.push(validation(
        format!(
            "request.operation != 'UPDATE' || !({}) || {}",
            labelled("object"),
            is_ours("object")
        ),
        format!("its account may not give objects the label {PLUGIN_LABEL} of another plugin"),
    ));
    validations
}

/// Text as a literal of CEL. Names of Kubernetes hold neither quotes nor
/// backslashes; a plugin's name might.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::super::rules::tests::{manifest, served};
    use super::*;

    fn policy(scope: Scope, tenants: &str) -> Vec<Value> {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        admission_policy(
            &grantee,
            &manifest(scope),
            served,
            &tenants.parse().unwrap(),
        )
    }

    #[test]
    fn where_rbac_names_the_namespaces_no_policy_is_needed() {
        let named = Scope::Namespaces(vec!["a".into()]);
        assert_eq!(policy(named, ""), Vec::<Value>::new());
    }

    #[test]
    fn namespaces_are_narrowed_only_where_they_follow_from_primaries() {
        let narrowed = "request.resource.group != '' || \
            request.resource.resource != 'resourcequotas' || \
            (!request.namespace.startsWith('kube-')";
        for (scope, tenants, expected) in [
            (Scope::Cluster, "team=a", None),
            (Scope::PrimaryNamespace, "", Some(format!("{narrowed})"))),
            (
                Scope::NamespaceNamedLikePrimary,
                "team=a",
                Some(format!(
                    "{narrowed} && ('team' in namespaceObject.metadata.labels && \
                     namespaceObject.metadata.labels['team'] in ['a']))"
                )),
            ),
        ] {
            let objects = policy(scope, tenants);
            let found: Vec<&str> = objects[0]["spec"]["validations"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|validation| validation["expression"].as_str())
                .collect();
            assert_eq!(found[0], "request.namespace != 'reeve-system'");
            let narrowed = found.iter().find(|e| e.contains("kube-"));
            assert_eq!(narrowed.copied(), expected.as_deref());
            assert_eq!(
                objects[1]["spec"]["policyName"],
                objects[0]["metadata"]["name"]
            );
        }
    }

    #[test]
    fn text_stays_text_in_an_expression() {
        assert_eq!(quoted(r"a'b\c"), r"'a\'b\\c'");
    }
}
