//! The Roles and bindings of a grant.

use super::rules::{Rule, Served, account_rules, agent_rules};
use super::{ACCOUNT_ANNOTATION, Grantee};
use crate::kind::GroupVersionKind;
use crate::manifest::Manifest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The objects that grant a manifest: the ServiceAccount, and Roles and bindings
/// for it and for the agent.
pub fn objects(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> Vec<Value> {
    let account = json!({
        "kind": "ServiceAccount",
        "name": grantee.service_account,
        "namespace": grantee.namespace,
    });
    let agent = grantee.agent.value(grantee.namespace);
    let name = grantee.role_name();
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": grantee.service_account,
            "namespace": grantee.namespace,
            "annotations": {ACCOUNT_ANNOTATION: grantee.plugin},
        },
    })];
    let impersonate = json!([{
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": [grantee.service_account],
    }]);
    let impersonator = format!("{name}-impersonate");
    let namespace = Some(grantee.namespace);
    objects.extend(role_and_binding(
        &impersonator,
        namespace,
        &impersonate,
        &agent,
    ));
    for (suffix, rules, subject) in [
        ("account", account_rules(manifest, &served), &account),
        ("agent", agent_rules(manifest, &served), &agent),
    ] {
        for (namespace, rules) in by_namespace(rules) {
            let name = format!("{name}-{suffix}");
            let pair = role_and_binding(&name, namespace.as_deref(), &rules, subject);
            objects.extend(pair);
        }
    }
    for object in objects.iter_mut().skip(1) {
        object["metadata"]["labels"] = grantee.labels();
    }
    objects
}

/// The objects that let the agent read these Secrets, as namespace and name, which
/// reach outside for the plugin: each by its name, and none to the plugin's account.
pub fn secrets(grantee: &Grantee<'_>, secrets: &BTreeSet<(String, String)>) -> Vec<Value> {
    let rules = secrets.iter().map(|(namespace, name)| Rule {
        group: String::new(),
        resource: "secrets".to_owned(),
        verb: "get",
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
    });
    let name = format!("{}-outside", grantee.role_name());
    let agent = grantee.agent.value(grantee.namespace);
    let mut objects = Vec::new();
    for (namespace, rules) in by_namespace(rules.collect()) {
        objects.extend(role_and_binding(
            &name,
            namespace.as_deref(),
            &rules,
            &agent,
        ));
    }
    for object in &mut objects {
        object["metadata"]["labels"] = grantee.labels();
    }
    objects
}

/// Verbs by API group, resource and name.
type Verbs<'a> = BTreeMap<(String, String, Option<String>), Vec<&'a str>>;

/// Rules as RBAC writes them: one per resource, with all of its verbs and names.
fn by_namespace(rules: BTreeSet<Rule>) -> BTreeMap<Option<String>, Value> {
    let mut grouped: BTreeMap<Option<String>, Verbs<'_>> = BTreeMap::new();
    for rule in rules {
        let resources = grouped.entry(rule.namespace).or_default();
        let key = (rule.group, rule.resource, rule.name);
        resources.entry(key).or_default().push(rule.verb);
    }
    grouped
        .into_iter()
        .map(|(namespace, resources)| (namespace, to_value(resources)))
        .collect()
}

fn to_value(resources: Verbs<'_>) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    for ((group, resource, name), verbs) in resources {
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let Some(name) = name else {
            rules.push(rule);
            continue;
        };
        let alike = rules.last_mut().filter(|last| {
            last["resourceNames"].is_array()
                && ["apiGroups", "resources", "verbs"]
                    .iter()
                    .all(|field| last[*field] == rule[*field])
        });
        match alike.and_then(|last| last["resourceNames"].as_array_mut()) {
            Some(names) => names.push(json!(name)),
            None => {
                rule["resourceNames"] = json!([name]);
                rules.push(rule);
            }
        }
    }
    Value::from(rules)
}

/// Rules for one place as RBAC writes them.
pub(super) fn rules_of_one_place(rules: BTreeSet<Rule>) -> Value {
    by_namespace(rules)
        .into_values()
        .next()
        .unwrap_or_else(|| json!([]))
}

pub(super) fn role_and_binding(
    name: &str,
    namespace: Option<&str>,
    rules: &Value,
    subject: &Value,
) -> [Value; 2] {
    let (role, binding) = match namespace {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api_version = "rbac.authorization.k8s.io/v1";
    [
        json!({"apiVersion": api_version, "kind": role, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": api_version,
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
            "subjects": [subject],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::super::rules::tests::{manifest, served};
    use super::*;
    use crate::manifest::{ReadRule, Scope};
    use crate::selector::Selector;

    fn granted(manifest: &Manifest) -> Vec<Value> {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        objects(&grantee, manifest, served)
    }

    fn grant(scope: Scope) -> Vec<Value> {
        granted(&manifest(scope))
    }

    #[test]
    fn named_namespaces_get_roles_there_and_nothing_wider() {
        let objects = grant(Scope::Namespaces(vec!["a".into(), "b".into()]));
        let wide: Vec<_> = objects
            .iter()
            .filter(|o| o["kind"] == "ClusterRole")
            .flat_map(|o| o["rules"].as_array().unwrap())
            .filter(|rule| rule["resources"][0] != "profiles")
            .collect();
        assert_eq!(wide, Vec::<&Value>::new());
        for namespace in ["a", "b"] {
            let role = objects
                .iter()
                .find(|o| {
                    o["kind"] == "Role"
                        && o["metadata"]["namespace"] == namespace
                        && o["metadata"]["name"] == "reeve-plugin-reeve-system.quotas-account"
                })
                .unwrap();
            assert_eq!(
                role["rules"][0]["verbs"],
                json!(["create", "delete", "patch"])
            );
        }
    }

    #[test]
    fn impersonation_is_of_one_account_by_name() {
        let objects = grant(Scope::Cluster);
        let rules: Vec<_> = objects
            .iter()
            .filter_map(|o| o["rules"].as_array())
            .flatten()
            .filter(|rule| rule["verbs"] == json!(["impersonate"]))
            .collect();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0]["resourceNames"], json!(["quotas"]));
    }

    #[test]
    fn no_grant_has_a_wildcard() {
        for scope in [Scope::Cluster, Scope::NamespaceNamedLikePrimary] {
            assert!(!json!(grant(scope)).to_string().contains('*'));
        }
    }

    #[test]
    fn secrets_for_the_outside_are_read_by_name_and_by_the_agent_alone() {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let wanted = [pair("a", "x"), pair("a", "y"), pair("b", "x")];
        let objects = secrets(&grantee, &wanted.into());
        let rule = |names: &[&str]| {
            json!([{
                "apiGroups": [""], "resources": ["secrets"], "resourceNames": names,
                "verbs": ["get"],
            }])
        };
        let roles: Vec<&Value> = objects.iter().filter(|o| o["kind"] == "Role").collect();
        let rules: Vec<&Value> = roles.iter().map(|role| &role["rules"]).collect();
        assert_eq!(rules, [&rule(&["x", "y"]), &rule(&["x"])]);
        for binding in objects.iter().filter(|o| o["kind"] == "RoleBinding") {
            assert_eq!(binding["subjects"][0]["name"], "reeve");
        }
        assert_eq!(objects.len(), 4);
        assert!(secrets(&grantee, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn names_become_resource_names() {
        let mut manifest = manifest(Scope::Cluster);
        manifest.reads.push(ReadRule {
            kind: GroupVersionKind::new("", "v1", "Secret"),
            scope: Scope::Namespaces(vec!["a".into()]),
            names: vec!["x".into(), "y".into()],
            selector: Selector::default(),
        });
        let roles: Vec<Value> = granted(&manifest)
            .into_iter()
            .filter(|o| o["kind"] == "Role" && o["metadata"]["namespace"] == "a")
            .map(|o| o["rules"].clone())
            .collect();
        let rule = json!([{
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["x", "y"],
            "verbs": ["get", "list", "watch"],
        }]);
        assert_eq!(roles, [rule.clone(), rule], "for the account and the agent");
    }
}
