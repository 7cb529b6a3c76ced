//! What a manifest asks for that amounts to more than it seems.

use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope, is_wildcard};
use std::collections::BTreeSet;

/// Kinds whose writing gives more than the kind itself: group, kind, and why.
/// An empty kind stands for every kind of the group.
const WRITES: &[(&str, &str, &str)] = &[
    (
        "rbac.authorization.k8s.io",
        "",
        "hands on to others every right that its account has",
    ),
    (
        "admissionregistration.k8s.io",
        "",
        "sees and decides on requests of everybody",
    ),
    (
        "apiregistration.k8s.io",
        "",
        "answers for the API server itself",
    ),
    ("apiextensions.k8s.io", "", "changes what other kinds are"),
    (
        "reeve.dev",
        "",
        "decides what agents in other namespaces run, and as whom",
    ),
    (
        "certificates.k8s.io",
        "",
        "may ask for certificates in other names",
    ),
    (
        "",
        "ServiceAccount",
        "makes accounts, and with workloads beside them acts as them",
    ),
    (
        "",
        "Namespace",
        "sets the labels by which policies tell namespaces apart",
    ),
    ("", "Node", "sets where workloads of others run"),
    ("", "Pod", WORKLOAD),
    ("", "ReplicationController", WORKLOAD),
    ("apps", "", WORKLOAD),
    ("batch", "", WORKLOAD),
    ("", "Endpoints", REROUTE),
    ("discovery.k8s.io", "EndpointSlice", REROUTE),
    ("", "Service", REROUTE),
    ("networking.k8s.io", "", REROUTE),
    (
        "",
        "PersistentVolume",
        "reaches the disks of nodes through hostPath",
    ),
];

/// Which of them no wildcard for namespaces stands for.
const IN_NO_NAMESPACE: [&str; 3] = ["Namespace", "Node", "PersistentVolume"];

const WORKLOAD: &str =
    "runs containers as any ServiceAccount of their namespace, with every Secret in it";
const REROUTE: &str = "decides where traffic of others goes";

/// What a reader of a manifest should know before granting it, one sentence each.
pub fn cautions(manifest: &Manifest) -> Vec<String> {
    let mut cautions = Vec::new();
    for write in &manifest.writes {
        let any = is_wildcard(&write.kind);
        let everywhere = write.scope == Scope::Cluster;
        let rows = WRITES.iter().filter(|(group, kind, _)| {
            let is_it = kind.is_empty() || *kind == write.kind.kind;
            let is_of_it = any && (everywhere || !IN_NO_NAMESPACE.contains(kind));
            *group == write.kind.group && (is_it || is_of_it)
        });
        for (_, kind, why) in rows {
            let mut written = write.kind.clone();
            if any && !kind.is_empty() {
                (*kind).clone_into(&mut written.kind);
            }
            cautions.push(format!("whoever writes {written} {why}"));
        }
    }
    // One that stands for every kind stands for these as well.
    let is = |kind: &GroupVersionKind, one: &str| {
        kind.group.is_empty() && (kind.kind == one || is_wildcard(kind))
    };
    let secrets = manifest.written().filter(|(kind, _)| is(kind, "Secret"));
    let places: BTreeSet<String> = secrets.map(|(_, scope)| place(scope)).collect();
    let everywhere = place(&Scope::Cluster);
    let places = match places.contains(&everywhere) {
        true => BTreeSet::from([everywhere]),
        false => places,
    };
    for place in places {
        let what = match manifest.generates_secrets() {
            true => "has Secrets generated",
            false => "writes Secrets",
        };
        cautions.push(format!(
            "whoever {what} may get and overwrite any of which it knows the name{place}: RBAC cannot name what is yet to be made, and a policy can refuse to overwrite them, but not to get them"
        ));
    }
    let everywhere = manifest.reads.iter().any(|read| {
        let named = matches!(read.scope, Scope::Namespaces(_));
        is(&read.kind, "ConfigMap") && read.names.is_empty() && !named
    });
    if everywhere || is(&manifest.primary().kind, "ConfigMap") {
        cautions.push(
            "its account may read the ConfigMaps of all namespaces: in the agent's, these are the \
             components and configurations of all plugins"
                .to_owned(),
        );
    }
    for read in &manifest.reads {
        if read.kind.is_secret() && !matches!(read.scope, Scope::Namespaces(_)) {
            cautions.push(format!(
                "it reads the Secrets {}{}, wherever there is one of that name",
                read.names.join(", "),
                place(&read.scope)
            ));
        }
    }
    cautions
}

fn place(scope: &Scope) -> String {
    match scope {
        Scope::Namespaces(names) => format!(" in {}", names.join(", ")),
        // Whatever the manifest says: that is what RBAC can grant.
        _ => " in all namespaces".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::manifest;
    use super::*;
    use crate::manifest::{ActionRule, ReadRule, Role, WriteRule, secret_kind};
    use crate::selector::Selector;

    #[test]
    fn each_caution_names_its_kind() {
        for (group, kind, expected) in [
            ("", "ConfigMap", None),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                Some("whoever writes RoleBinding.v1.rbac.authorization.k8s.io hands on"),
            ),
            (
                "reeve.dev",
                "Plugin",
                Some("whoever writes Plugin.v1.reeve.dev decides what agents"),
            ),
            (
                "apps",
                "Deployment",
                Some("whoever writes Deployment.v1.apps runs containers"),
            ),
            (
                "",
                "Secret",
                Some(
                    "whoever writes Secrets may get and overwrite any of which it knows the name in all namespaces",
                ),
            ),
        ] {
            let mut manifest = manifest(Scope::PrimaryNamespace);
            manifest.writes = vec![WriteRule {
                kind: GroupVersionKind::new(group, "v1", kind),
                scope: Scope::PrimaryNamespace,
            }];
            let found = cautions(&manifest);
            assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
            if let Some(expected) = expected {
                assert!(found[0].starts_with(expected), "{found:?}");
            }
        }
    }

    #[test]
    fn every_kind_is_each_of_them() {
        let of_scope = |group: &str, scope: Scope| {
            let mut manifest = manifest(Scope::PrimaryNamespace);
            let kind = GroupVersionKind::new(group, "v1", "*");
            manifest.writes = vec![WriteRule {
                kind: kind.clone(),
                scope: scope.clone(),
            }];
            manifest.reads = vec![ReadRule {
                kind,
                scope,
                names: vec![],
                selector: Selector::default(),
            }];
            cautions(&manifest)
        };
        let of = |group: &str| of_scope(group, Scope::PrimaryNamespace);
        let core = of("");
        for start in [
            "whoever writes ServiceAccount.v1 makes accounts",
            "whoever writes Pod.v1 runs containers",
            "whoever writes Secrets may get",
            "its account may read the ConfigMaps of all",
        ] {
            let found = core.iter().any(|one| one.starts_with(start));
            assert!(found, "{start}: {core:?}");
        }
        // A wildcard for namespaces stands for nothing that is in none.
        for kind in IN_NO_NAMESPACE {
            let start = format!("whoever writes {kind}.v1 ");
            let told = |all: &[String]| all.iter().any(|one| one.starts_with(&start));
            assert!(!told(&core), "{kind}: {core:?}");
            assert!(told(&of_scope("", Scope::Cluster)), "{kind}");
        }
        let apps = of("apps");
        assert_eq!(apps.len(), 1, "{apps:?}");
        assert!(apps[0].starts_with("whoever writes *.v1.apps runs containers"));
        assert_eq!(of("parts.example"), Vec::<String>::new());
    }

    #[test]
    fn generated_secrets_are_no_less_than_written_ones() {
        let named = || Scope::Namespaces(vec!["a".into()]);
        let derived = || Scope::NamespaceNamedLikePrimary;
        for (writes, generates, expected) in [
            (None, vec![derived()], &["in all namespaces"][..]),
            (None, vec![named()], &["in a"]),
            (Some(named()), vec![derived()], &["in all namespaces"]),
            (Some(derived()), vec![derived()], &["in all namespaces"]),
            (Some(derived()), vec![named()], &["in all namespaces"]),
        ] {
            let mut manifest = manifest(Scope::PrimaryNamespace);
            manifest.writes.extend(writes.map(|scope| WriteRule {
                kind: secret_kind().clone(),
                scope,
            }));
            manifest.actions = vec![ActionRule {
                name: "database".into(),
                description: String::new(),
                http: vec![],
                sql: vec![],
                secrets: generates,
            }];
            let found = cautions(&manifest);
            let start = "whoever has Secrets generated may get and overwrite any of which it knows the name";
            let expected: Vec<String> = expected
                .iter()
                .map(|place| format!("{start} {place}: "))
                .collect();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (one, expected) in found.iter().zip(&expected) {
                assert!(one.starts_with(expected), "{one}");
            }
        }
    }

    #[test]
    fn whoever_sees_all_config_maps_sees_those_of_plugins() {
        const WORDS: &str = "may read the ConfigMaps of all namespaces: in the agent's";
        let config_map = || GroupVersionKind::new("", "v1", "ConfigMap");
        let read = |names: &[&str], scope| {
            let mut manifest = manifest(Scope::Cluster);
            manifest.reads = vec![ReadRule {
                kind: config_map(),
                scope,
                names: names.iter().map(|&name| name.to_owned()).collect(),
                selector: Selector::default(),
            }];
            cautions(&manifest)
        };
        for scope in [
            Scope::Cluster,
            Scope::PrimaryNamespace,
            Scope::NamespaceNamedLikePrimary,
        ] {
            let found = read(&[], scope.clone());
            assert!(found.len() == 1 && found[0].contains(WORDS), "{found:?}");
            assert_eq!(read(&["x"], scope), Vec::<String>::new());
        }
        assert_eq!(
            read(&[], Scope::Namespaces(vec!["a".into()])),
            Vec::<String>::new()
        );
        let mut manifest = manifest(Scope::Cluster);
        let Role::Controller(rule) = &mut manifest.role;
        rule.kind = config_map();
        let found = cautions(&manifest);
        assert!(found.iter().any(|one| one.contains(WORDS)), "{found:?}");
    }

    #[test]
    fn secrets_by_name_are_no_surprise() {
        let read = |names: &[&str], scope| {
            let mut manifest = manifest(Scope::Cluster);
            manifest.reads = vec![ReadRule {
                kind: GroupVersionKind::new("", "v1", "Secret"),
                scope,
                names: names.iter().map(|&name| name.to_owned()).collect(),
                selector: Selector::default(),
            }];
            cautions(&manifest)
        };
        let here = || Scope::Namespaces(vec!["a".into()]);
        assert_eq!(read(&["x"], here()), Vec::<String>::new());
        assert_eq!(
            read(&["x", "y"], Scope::PrimaryNamespace),
            ["it reads the Secrets x, y in all namespaces, wherever there is one of that name"]
        );
        assert_eq!(read(&["x"], Scope::Cluster).len(), 1);
    }
}
