//! What a manifest asks for, as verbs on resources in places.

use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope, secret_kind, storage_class_kind};
use std::collections::{BTreeMap, BTreeSet};

/// A kind as the cluster serves it, as far as a grant needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Name of the resource, such as `resourcequotas`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
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
    /// Name of the one object; none for all.
    pub name: Option<String>,
}

/// What writing needs: server-side apply is a `patch` that may `create`.
pub const WRITE_VERBS: [&str; 3] = ["create", "delete", "patch"];
/// What a generated Secret needs: it is looked for, made, and mended.
pub const SECRET_VERBS: [&str; 3] = ["create", "get", "patch"];
/// What writing Secrets needs. They are not watched, so each is read by its name: that
/// gives away nothing that an apply, which answers with the whole object, does not.
pub const WRITE_SECRET_VERBS: [&str; 4] = ["create", "delete", "get", "patch"];
/// What being shown objects needs.
pub(super) const READ_VERBS: [&str; 3] = ["get", "list", "watch"];

/// Rules of the plugin's own account.
///
/// `served` tells how the cluster serves a kind. A scope whose namespaces are not
/// known before primaries exist is granted in all namespaces: RBAC cannot say less,
/// and the host and the [policy](super::admission_policy) are the narrower layers.
/// Names are granted as names everywhere: the API server takes a list or watch with
/// `fieldSelector=metadata.name=x` for a request for that name.
pub fn account_rules(
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> BTreeSet<Rule> {
    let mut rules = Rules::reading(manifest, &served);
    for write in &manifest.writes {
        let verbs: &[_] = match write.kind.is_secret() {
            true => &WRITE_SECRET_VERBS,
            false => &WRITE_VERBS,
        };
        rules.add(&served(&write.kind), &write.kind, &write.scope, &[], verbs);
    }
    for scope in manifest.actions.iter().flat_map(|action| &action.secrets) {
        let kind = secret_kind();
        rules.add(&served(kind), kind, scope, &[], &SECRET_VERBS);
    }
    rules.minimal()
}

/// Rules of the agent's account: to watch what the plugin reads and owns, and the
/// StorageClasses that say how the claims of the latter are bound. Secrets that it owns
/// are read by its own account, one by one.
pub fn agent_rules(
    manifest: &Manifest,
    served: impl Fn(&GroupVersionKind) -> Served,
) -> BTreeSet<Rule> {
    let mut rules = Rules::reading(manifest, &served);
    for write in manifest.writes.iter().filter(|one| !one.kind.is_secret()) {
        rules.add(
            &served(&write.kind),
            &write.kind,
            &write.scope,
            &[],
            &READ_VERBS,
        );
    }
    if manifest.writes_claims() {
        let classes = Served {
            plural: "storageclasses".to_owned(),
            namespaced: false,
        };
        let kind = storage_class_kind();
        rules.add(&classes, kind, &Scope::Cluster, &[], &READ_VERBS);
    }
    rules.minimal()
}

struct Rules(BTreeSet<Rule>);

impl Rules {
    fn reading(manifest: &Manifest, served: &impl Fn(&GroupVersionKind) -> Served) -> Self {
        let mut rules = Self(BTreeSet::new());
        let primary = &manifest.primary().kind;
        rules.add(&served(primary), primary, &Scope::Cluster, &[], &READ_VERBS);
        for read in &manifest.reads {
            rules.add(
                &served(&read.kind),
                &read.kind,
                &read.scope,
                &read.names,
                &READ_VERBS,
            );
        }
        rules
    }

    fn add(
        &mut self,
        served: &Served,
        kind: &GroupVersionKind,
        scope: &Scope,
        names: &[String],
        verbs: &[&'static str],
    ) {
        let namespaces: Vec<Option<String>> = match scope {
            Scope::Namespaces(names) => names.iter().cloned().map(Some).collect(),
            Scope::PrimaryNamespace | Scope::NamespaceNamedLikePrimary | Scope::Cluster => {
                vec![None]
            }
        };
        for namespace in namespaces {
            let names: Vec<Option<String>> = match names {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for name in names {
                for verb in verbs {
                    self.0.insert(Rule {
                        group: kind.group.clone(),
                        resource: served.plural.clone(),
                        verb,
                        namespace: namespace.clone(),
                        name: name.clone(),
                    });
                }
            }
        }
    }

    /// Without what another rule grants already.
    fn minimal(mut self) -> BTreeSet<Rule> {
        let covered = |rule: &Rule| {
            // Nothing is wider, and most are such.
            if rule.namespace.is_none() && rule.name.is_none() {
                return false;
            }
            let everywhere = Rule {
                namespace: None,
                name: None,
                ..rule.clone()
            };
            let every_name = Rule {
                name: None,
                ..rule.clone()
            };
            let name_everywhere = Rule {
                namespace: None,
                ..rule.clone()
            };
            [everywhere, every_name, name_everywhere]
                .iter()
                .any(|wider| wider != rule && self.0.contains(wider))
        };
        let narrow: Vec<Rule> = self
            .0
            .iter()
            .filter(|rule| covered(rule))
            .cloned()
            .collect();
        for rule in &narrow {
            self.0.remove(rule);
        }
        self.0
    }
}

/// `create, patch resourcequotas in all namespaces`, one text a resource and place.
pub fn in_words(rules: &BTreeSet<Rule>) -> Vec<String> {
    /// Resource, namespace and name.
    type Place<'a> = (String, Option<&'a str>, Option<&'a str>);
    let mut by_place: BTreeMap<Place<'_>, Vec<&str>> = BTreeMap::new();
    for rule in rules {
        let mut resource = rule.resource.clone();
        if !rule.group.is_empty() {
            resource = format!("{resource}.{}", rule.group);
        }
        let place = (resource, rule.namespace.as_deref(), rule.name.as_deref());
        by_place.entry(place).or_default().push(rule.verb);
    }
    by_place
        .into_iter()
        .map(|((resource, namespace, name), verbs)| {
            let name = name.map(|name| format!("/{name}")).unwrap_or_default();
            let place = match namespace {
                Some(namespace) => format!("in namespace {namespace}"),
                None => "cluster-wide".to_owned(),
            };
            format!("{} {resource}{name} {place}", verbs.join(", "))
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::manifest::{RawManifest, RawPrimary, RawRead, WriteRule};

    /// A controller of Profiles that writes ResourceQuotas.
    pub(in crate::grant) fn manifest(scope: Scope) -> Manifest {
        reading(scope, vec![])
    }

    fn reading(scope: Scope, reads: Vec<RawRead>) -> Manifest {
        Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads,
            writes: vec![WriteRule {
                kind: GroupVersionKind::new("", "v1", "ResourceQuota"),
                scope,
            }],
            sources: vec![],
            actions: vec![],
        })
        .unwrap()
    }

    pub(in crate::grant) fn served(kind: &GroupVersionKind) -> Served {
        Served {
            plural: format!("{}s", kind.kind.to_lowercase()),
            namespaced: !matches!(kind.kind.as_str(), "Profile" | "Node"),
        }
    }

    fn read(kind: &str, scope: Scope, names: &[&str]) -> RawRead {
        RawRead {
            kind: GroupVersionKind::new("", "v1", kind),
            scope,
            names: names.iter().map(|&name| name.to_owned()).collect(),
            selector: String::new(),
        }
    }

    #[test]
    fn the_agent_may_watch_and_never_write() {
        let rules = agent_rules(&manifest(Scope::Cluster), served);
        assert!(rules.iter().all(|rule| READ_VERBS.contains(&rule.verb)));
    }

    #[test]
    fn storage_classes_are_seen_for_those_who_write_claims() {
        let mut manifest = manifest(Scope::Namespaces(vec!["a".into()]));
        let classes = "get, list, watch storageclasses.storage.k8s.io cluster-wide".to_owned();
        for (kind, seen) in [("ResourceQuota", false), ("PersistentVolumeClaim", true)] {
            manifest.writes[0].kind = GroupVersionKind::new("", "v1", kind);
            let agent = in_words(&agent_rules(&manifest, served));
            assert_eq!(agent.contains(&classes), seen, "{kind}: {agent:?}");
            let account = in_words(&account_rules(&manifest, served));
            assert!(!account.contains(&classes), "{kind}: {account:?}");
        }
    }

    #[test]
    fn rules_are_as_narrow_as_the_manifest() {
        let one = || Scope::Namespaces(vec!["a".into()]);
        let quotas = "create, delete, patch resourcequotas in namespace a";
        let profiles = "get, list, watch profiles.kubeflow.org cluster-wide";
        for (reads, expected) in [
            (
                vec![read("Secret", one(), &["x", "y"])],
                vec![
                    profiles,
                    quotas,
                    "get, list, watch secrets/x in namespace a",
                    "get, list, watch secrets/y in namespace a",
                ],
            ),
            (
                vec![read("Node", Scope::Cluster, &["n"])],
                vec!["get, list, watch nodes/n cluster-wide", profiles, quotas],
            ),
            // Where it is not known in which namespace, the name is granted in all.
            (
                vec![read("Secret", Scope::NamespaceNamedLikePrimary, &["x"])],
                vec![profiles, quotas, "get, list, watch secrets/x cluster-wide"],
            ),
            // What is granted everywhere is not granted again.
            (
                vec![
                    read("Secret", one(), &["x", "y"]),
                    read("Secret", Scope::Cluster, &["x"]),
                ],
                vec![
                    profiles,
                    quotas,
                    "get, list, watch secrets/x cluster-wide",
                    "get, list, watch secrets/y in namespace a",
                ],
            ),
            (
                vec![
                    read("Event", one(), &["x"]),
                    read("Event", Scope::Cluster, &[]),
                ],
                vec!["get, list, watch events cluster-wide", profiles, quotas],
            ),
        ] {
            let rules = account_rules(&reading(one(), reads), served);
            assert_eq!(in_words(&rules), expected);
        }
    }

    /// Whatever a plugin does with Secrets, nobody may list or watch more than names.
    #[test]
    fn nobody_may_list_secrets() {
        let scopes = [
            Scope::PrimaryNamespace,
            Scope::NamespaceNamedLikePrimary,
            Scope::Namespaces(vec!["a".into(), "b".into()]),
            Scope::Cluster,
        ];
        for scope in scopes {
            let mut manifest = reading(
                scope.clone(),
                vec![read("Secret", scope.clone(), &["x", "y"])],
            );
            manifest.writes.push(WriteRule {
                kind: GroupVersionKind::new("", "v1", "Secret"),
                scope: scope.clone(),
            });
            let of_secrets = |rules: BTreeSet<Rule>| -> Vec<Rule> {
                let secrets = rules.into_iter().filter(|rule| rule.resource == "secrets");
                secrets.collect()
            };
            let account = of_secrets(account_rules(&manifest, served));
            let unnamed = account.iter().filter(|rule| rule.name.is_none());
            let verbs: BTreeSet<_> = unnamed.map(|rule| rule.verb).collect();
            assert_eq!(verbs, WRITE_SECRET_VERBS.into(), "{scope:?}");
            let agent = of_secrets(agent_rules(&manifest, served));
            assert!(agent.iter().all(|rule| rule.name.is_some()), "{scope:?}");
            assert!(!agent.is_empty(), "what is read is watched by name");
        }
    }
}
