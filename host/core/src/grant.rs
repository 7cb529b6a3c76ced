//! The Kubernetes RBAC that a manifest asks for: nothing wider, nothing hidden.
//!
//! A grant has two halves. The plugin's ServiceAccount gets what the plugin may
//! write, and what it may be shown; the agent's account gets the right to watch
//! just that, and to impersonate that one ServiceAccount.

use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope};
use crate::ownership::plugin_label;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Annotation by which a ServiceAccount agrees to be used for a plugin.
pub const ACCOUNT_ANNOTATION: &str = "reeve.dev/plugin";

/// Name of the Lease that replicas of an agent share, unless it is told another.
pub const LEASE: &str = "reeve";

/// Whom a grant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grantee<'a> {
    /// Name of the plugin.
    pub plugin: &'a str,
    /// Namespace of the agent, of the plugin and of its ServiceAccount.
    pub namespace: &'a str,
    /// The ServiceAccount as which the plugin writes.
    pub service_account: &'a str,
    /// RBAC subject of the agent.
    pub agent: Subject<'a>,
}

/// Who the agent is for RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A ServiceAccount in the agent's namespace.
    ServiceAccount(&'a str),
    /// A user.
    User(&'a str),
}

impl Subject<'_> {
    /// The subject as a binding names it.
    fn value(self, namespace: &str) -> Value {
        match self {
            Self::ServiceAccount(name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
            Self::User(name) => {
                json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
            }
        }
    }
}

/// One verb on one resource in one place: what a missing grant is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// API group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Verb.
    pub verb: &'static str,
    /// Namespace; none for all, or for cluster-scoped resources.
    pub namespace: Option<String>,
}

/// What writing needs: server-side apply is a `patch` that may `create`.
pub const WRITE_VERBS: [&str; 3] = ["create", "delete", "patch"];
/// What being shown objects needs.
const READ_VERBS: [&str; 3] = ["get", "list", "watch"];

/// Rules of the plugin's own account.
///
/// `plural` gives the resource of a kind. A scope whose namespaces are not known
/// before primaries exist is granted in all namespaces: RBAC cannot say less, and
/// the host is the narrower layer.
pub fn account_rules(
    manifest: &Manifest,
    plural: impl Fn(&GroupVersionKind) -> String,
) -> BTreeSet<Rule> {
    let mut rules = read_rules(manifest, &plural);
    for write in &manifest.writes {
        add(&mut rules, &write.kind, &write.scope, &WRITE_VERBS, &plural);
    }
    rules
}

/// Rules of the agent's account: to watch what the plugin reads and owns.
pub fn agent_rules(
    manifest: &Manifest,
    plural: impl Fn(&GroupVersionKind) -> String,
) -> BTreeSet<Rule> {
    let mut rules = read_rules(manifest, &plural);
    for write in &manifest.writes {
        add(&mut rules, &write.kind, &write.scope, &READ_VERBS, &plural);
    }
    rules
}

fn read_rules(
    manifest: &Manifest,
    plural: &impl Fn(&GroupVersionKind) -> String,
) -> BTreeSet<Rule> {
    let mut rules = BTreeSet::new();
    let primary = manifest.primary();
    add(
        &mut rules,
        &primary.kind,
        &Scope::Cluster,
        &READ_VERBS,
        plural,
    );
    for read in &manifest.reads {
        add(&mut rules, &read.kind, &read.scope, &READ_VERBS, plural);
    }
    rules
}

fn add(
    rules: &mut BTreeSet<Rule>,
    kind: &GroupVersionKind,
    scope: &Scope,
    verbs: &[&'static str],
    plural: &impl Fn(&GroupVersionKind) -> String,
) {
    let namespaces: Vec<Option<String>> = match scope {
        Scope::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary | Scope::Cluster => vec![None],
    };
    for namespace in namespaces {
        for verb in verbs {
            rules.insert(Rule {
                group: kind.group.clone(),
                resource: plural(kind),
                verb,
                namespace: namespace.clone(),
            });
        }
    }
}

/// The objects that grant a manifest: the ServiceAccount, and Roles and bindings
/// for it and for the agent.
pub fn objects(
    grantee: &Grantee<'_>,
    manifest: &Manifest,
    plural: impl Fn(&GroupVersionKind) -> String,
) -> Vec<Value> {
    let account = json!({
        "kind": "ServiceAccount",
        "name": grantee.service_account,
        "namespace": grantee.namespace,
    });
    let agent = grantee.agent.value(grantee.namespace);
    let name = role_name(grantee);
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
    objects.extend(role_and_binding(
        &impersonator,
        Some(grantee.namespace),
        &impersonate,
        &agent,
    ));
    for (suffix, rules, subject) in [
        ("account", account_rules(manifest, &plural), &account),
        ("agent", agent_rules(manifest, &plural), &agent),
    ] {
        for (namespace, rules) in by_namespace(rules) {
            let name = format!("{name}-{suffix}");
            objects.extend(role_and_binding(
                &name,
                namespace.as_deref(),
                &rules,
                subject,
            ));
        }
    }
    objects
}

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

/// Cluster-wide roles of agents in different namespaces must not meet.
fn role_name(grantee: &Grantee<'_>) -> String {
    let plugin = plugin_label(grantee.plugin).to_lowercase();
    format!("reeve-plugin-{}-{plugin}", grantee.namespace)
}

/// Verbs by API group and resource.
type Verbs<'a> = BTreeMap<(String, String), Vec<&'a str>>;

/// Rules as RBAC writes them: one per resource, with all of its verbs.
fn by_namespace(rules: BTreeSet<Rule>) -> BTreeMap<Option<String>, Value> {
    let mut grouped: BTreeMap<Option<String>, Verbs<'_>> = BTreeMap::new();
    for rule in rules {
        let resources = grouped.entry(rule.namespace).or_default();
        let verbs = resources.entry((rule.group, rule.resource)).or_default();
        verbs.push(rule.verb);
    }
    let to_value = |resources: Verbs<'_>| {
        resources
            .into_iter()
            .map(|((group, resource), verbs)| {
                json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
            })
            .collect()
    };
    grouped
        .into_iter()
        .map(|(namespace, resources)| (namespace, to_value(resources)))
        .collect()
}

fn role_and_binding(
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
    use super::*;
    use crate::manifest::{RawManifest, RawPrimary, WriteRule};

    fn manifest(scope: Scope) -> Manifest {
        Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![WriteRule {
                kind: GroupVersionKind::new("", "v1", "ResourceQuota"),
                scope,
            }],
            sources: vec![],
            actions: vec![],
        })
        .unwrap()
    }

    fn plural(kind: &GroupVersionKind) -> String {
        format!("{}s", kind.kind.to_lowercase())
    }

    fn grant(scope: Scope) -> Vec<Value> {
        let grantee = Grantee {
            plugin: "quotas",
            namespace: "reeve-system",
            service_account: "quotas",
            agent: Subject::ServiceAccount("reeve"),
        };
        objects(&grantee, &manifest(scope), plural)
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
                        && o["metadata"]["name"] == "reeve-plugin-reeve-system-quotas-account"
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
    fn the_agent_may_watch_and_never_write() {
        let rules = agent_rules(&manifest(Scope::Cluster), plural);
        assert!(rules.iter().all(|rule| READ_VERBS.contains(&rule.verb)));
    }

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
