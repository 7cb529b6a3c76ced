//! The agent's own rights, before there is any plugin.

use super::objects::role_and_binding;
use super::rules::READ_VERBS;
use super::{LEASE, Subject};
use serde_json::{Value, json};

/// What the agent needs before there is any plugin: to see what is installed, to
/// say how it is, to ask what is granted, and to agree with its replicas on who
/// leads, by the Lease [`LEASE`]. No write in the name of a plugin.
pub fn agent_base(namespace: &str, agent: Subject<'_>) -> Vec<Value> {
    let subject = agent.value(namespace);
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let local = json!([
        rule("", "configmaps", &READ_VERBS),
        rule("", "serviceaccounts", &["get"]),
        rule("reeve.dev", "plugins", &["get", "list", "watch", "create"]),
        rule("reeve.dev", "plugins/status", &["patch"]),
        rule(
            "reeve.dev",
            "units",
            &["get", "list", "watch", "create", "patch", "delete"]
        ),
        rule("reeve.dev", "units/status", &["patch"]),
        // RBAC knows no names of objects that are yet to be made.
        rule("coordination.k8s.io", "leases", &["create"]),
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [LEASE],
            "verbs": ["get", "update"],
        },
        rule("reeve.dev", "journalentries", &["list", "create", "delete"]),
    ]);
    let wide = json!([
        rule("", "events", &["create"]),
        rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
    ]);
    let mut objects = role_and_binding("reeve-agent", Some(namespace), &local, &subject).to_vec();
    objects.extend(role_and_binding(
        &format!("reeve-agent-{namespace}"),
        None,
        &wide,
        &subject,
    ));
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_plugins_the_agent_writes_only_its_own_kinds() {
        let objects = agent_base("reeve-system", Subject::User("reeve"));
        let rules = objects
            .iter()
            .filter_map(|o| o["rules"].as_array())
            .flatten();
        for rule in rules {
            let writes = rule["verbs"]
                .as_array()
                .unwrap()
                .iter()
                .any(|verb| !READ_VERBS.contains(&verb.as_str().unwrap()));
            let own = rule["apiGroups"] == json!(["reeve.dev"])
                || rule["resources"] == json!(["events"])
                || rule["resources"] == json!(["leases"])
                || rule["resources"] == json!(["subjectaccessreviews"]);
            assert!(!writes || own, "{rule}");
        }
    }
}
