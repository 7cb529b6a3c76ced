//! The right to have primaries wait for the end of their units.
//!
//! A finalizer of Reeve on a primary is written by the plugin's account, and RBAC knows
//! no right to write a finalizer: it is `patch` on the whole object. The policy here
//! keeps that account to the finalizers of its plugin.

use super::Grantee;
use super::admission::{policy_and_binding, quoted};
use super::objects::{role_and_binding, rules_of_one_place};
use super::rules::{Rule, Served, account_rules};
use crate::kind::GroupVersionKind;
use crate::manifest::Manifest;
use crate::ownership::finalizers;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the plugin's account needs so that its primaries can wait, beyond what its
/// manifest asks for: `patch` on them, wherever they are. Empty where it may do that
/// anyway.
pub fn holding_rules(
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> BTreeSet<Rule> {
    let kind = &manifest.primary().kind;
    let rule = Rule {
        group: kind.group.clone(),
        resource: served(kind).plural,
        verb: "patch",
        namespace: None,
        name: None,
    };
    let granted = account_rules(manifest, served).contains(&rule);
    let rules = (!granted).then_some(rule);
    rules.into_iter().collect()
}

/// The ClusterRole and its binding for the [rules](holding_rules); none where there are
/// no such rules.
pub fn holding(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> Vec<Value> {
    let rules = holding_rules(manifest, served);
    if rules.is_empty() {
        return Vec::new();
    }
    let account = json!({
        "kind": "ServiceAccount",
        "name": grantee.service_account,
        "namespace": grantee.namespace,
    });
    let rules = rules_of_one_place(rules);
    let mut objects = role_and_binding(&grantee.holding_name(), None, &rules, &account).to_vec();
    for object in &mut objects {
        object["metadata"]["labels"] = grantee.labels();
    }
    objects
}

/// The ValidatingAdmissionPolicy that keeps what [`holding`] grants to the finalizers of
/// the plugin, and its binding.
///
/// None where the manifest asks to write objects of the primary's kind somewhere: those
/// it may change in other ways too, and which of them are primaries no policy can tell.
/// None either where nothing more is granted.
///
/// It needs Kubernetes 1.30 or newer, where the kind is stable.
pub fn holding_policy(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> Vec<Value> {
    let Some(rule) = holding_rules(manifest, &served).into_iter().next() else {
        return Vec::new();
    };
    let writes = manifest
        .writes
        .iter()
        .any(|write| write.kind.group == rule.group && served(&write.kind).plural == rule.resource);
    if writes {
        return Vec::new();
    }
    let rules = vec![json!({
        "apiGroups": [rule.group],
        // A version that the cluster serves later is restricted too.
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [rule.resource],
        "scope": "*",
    })];
    let message = format!(
        "plugin {}: of its primaries, its account may change nothing but the finalizers {}",
        grantee.plugin,
        finalizers(grantee.plugin).join(" and ")
    );
    let ours = finalizers(grantee.plugin).map(|name| quoted(&name));
    let validations = expressions(&ours.join(", ")).into_iter().map(
        |expression| json!({"expression": expression, "message": message, "reason": "Forbidden"}),
    );
    let validations: Vec<Value> = validations.collect();
    policy_and_binding(grantee, &grantee.holding_name(), &rules, &validations)
}

/// What must hold of an update: only the finalizers differ, and of those only ours.
fn expressions(ours: &str) -> [String; 3] {
    // The server's own account of a write differs as well.
    const FREE: &str = "['finalizers', 'managedFields', 'resourceVersion']";
    let same = |path: &str, free: &str| {
        format!(
            "object{path}.all(key, {free} || \
             (key in oldObject{path} && object{path}[key] == oldObject{path}[key])) && \
             oldObject{path}.all(key, {free} || key in object{path})"
        )
    };
    let others = |object: &str| {
        let all = format!("{object}.metadata.finalizers");
        format!("(has({all}) ? {all}.filter(name, !(name in [{ours}])) : [])")
    };
    [
        same("", "key == 'metadata'"),
        same(".metadata", &format!("key in {FREE}")),
        format!("{} == {}", others("object"), others("oldObject")),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::super::rules::tests::{manifest, served};
    use super::*;
    use crate::manifest::{Scope, WriteRule};

    const GRANTEE: Grantee<'static> = Grantee {
        plugin: "quotas",
        namespace: "reeve-system",
        service_account: "account",
        agent: Subject::ServiceAccount("reeve"),
    };

    /// A controller of Profiles that writes ResourceQuotas, and Profiles where told.
    fn writing(profiles: Option<Scope>) -> Manifest {
        let mut manifest = manifest(Scope::NamespaceNamedLikePrimary);
        manifest.writes.extend(profiles.map(|scope| WriteRule {
            kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
            scope,
        }));
        manifest
    }

    #[test]
    fn primaries_may_be_patched_and_nothing_else_of_them_changed() {
        for (writes, granted, restricted) in [
            (None, true, true),
            // Nobody could say which of them are primaries.
            (Some(Scope::Namespaces(vec!["a".into()])), true, false),
            (Some(Scope::Cluster), false, false),
        ] {
            let manifest = writing(writes);
            let objects = holding(&GRANTEE, &manifest, served);
            let policy = holding_policy(&GRANTEE, &manifest, served);
            assert_eq!(
                (!objects.is_empty(), !policy.is_empty()),
                (granted, restricted)
            );
        }
        let manifest = writing(None);
        let [role, binding] = holding(&GRANTEE, &manifest, served).try_into().unwrap();
        let rules = json!([{
            "apiGroups": ["kubeflow.org"], "resources": ["profiles"], "verbs": ["patch"],
        }]);
        assert_eq!(
            (&role["kind"], &role["rules"]),
            (&json!("ClusterRole"), &rules)
        );
        assert_eq!(binding["subjects"][0]["name"], "account");
        let name = "reeve-primaries-reeve-system.quotas";
        let [policy, binding] = holding_policy(&GRANTEE, &manifest, served)
            .try_into()
            .unwrap();
        for object in [&role, &policy, &binding] {
            assert_eq!(object["metadata"]["name"], name);
            assert_eq!(object["metadata"]["labels"], GRANTEE.labels());
        }
        let finalizers = policy["spec"]["validations"][2]["expression"]
            .as_str()
            .unwrap();
        for part in ["'reeve.dev/quotas'", "'hooks.reeve.dev/quotas'"] {
            assert!(finalizers.contains(part), "{finalizers}");
        }
        let condition = &policy["spec"]["matchConditions"][0]["expression"];
        assert_eq!(
            condition,
            "request.userInfo.username == 'system:serviceaccount:reeve-system:account'"
        );
    }
}
