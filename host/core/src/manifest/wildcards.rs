//! `*` in the place of a kind: every kind of a group and version.
//!
//! No rule keeps it. Where an operator allows it, it stands for the kinds that the API
//! server serves when the plugin is loaded, and nothing after that knows of wildcards: what
//! is asked for, granted, watched and written are these kinds.

use super::{Manifest, ManifestError, RawManifest, RawRead, Scope, WriteRule};
use crate::kind::GroupVersionKind;
use std::collections::BTreeSet;

/// What stands for every kind of a group and version.
pub const ANY_KIND: &str = "*";

/// One kind of a group and version, as far as wildcards look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedKind {
    /// Its name.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it can be listed and watched.
    pub readable: bool,
    /// Whether its objects can be made and patched.
    pub writable: bool,
}

/// Whether it stands for every kind of its group and version.
pub fn is_wildcard(kind: &GroupVersionKind) -> bool {
    kind.kind == ANY_KIND
}

impl RawManifest {
    /// The groups and versions of which it declares every kind, each once.
    ///
    /// # Errors
    ///
    /// When there are some, and there is anything else for which the manifest cannot be
    /// used: nobody is asked about what it says before that has been looked at.
    pub fn wildcards(&self) -> Result<BTreeSet<GroupVersionKind>, ManifestError> {
        let reads = self.reads.iter().map(|read| &read.kind);
        let writes = self.writes.iter().map(|write| &write.kind);
        let all = reads.chain(writes).filter(|kind| is_wildcard(kind));
        let all: BTreeSet<_> = all.cloned().collect();
        if !all.is_empty() {
            Manifest::as_declared(self.clone())?;
        }
        Ok(all)
    }

    /// Puts kinds in the place of wildcards, of which `served` says what is served.
    ///
    /// An entry for namespaces is for kinds that are in namespaces. What can be neither
    /// listed nor watched is not read, and what can be neither made nor patched is not
    /// written. Secrets are never read by a wildcard: they are named, or not shown. What is
    /// declared for the same scope by name is not declared once more.
    pub fn expand(&mut self, served: impl Fn(&GroupVersionKind) -> Vec<ServedKind>) {
        let kinds = |any: &GroupVersionKind, scope: &Scope| {
            let everywhere = *scope == Scope::Cluster;
            let mut kinds = served(any);
            kinds.retain(|found| everywhere || found.namespaced);
            let of = |found: ServedKind| {
                let kind = GroupVersionKind::new(&*any.group, &*any.version, &*found.kind);
                (kind, found)
            };
            kinds.into_iter().map(of).collect::<Vec<_>>()
        };
        let named: Vec<WriteRule> = self.writes.clone();
        let mut writes: Vec<WriteRule> = Vec::new();
        for write in self.writes.drain(..) {
            if !is_wildcard(&write.kind) {
                writes.push(write);
                continue;
            }
            for (kind, found) in kinds(&write.kind, &write.scope) {
                let scope = write.scope.clone();
                let rule = WriteRule { kind, scope };
                if found.writable && !named.contains(&rule) && !writes.contains(&rule) {
                    writes.push(rule);
                }
            }
        }
        self.writes = writes;
        let mut reads = Vec::new();
        for read in self.reads.drain(..) {
            if !is_wildcard(&read.kind) {
                reads.push(read);
                continue;
            }
            for (kind, found) in kinds(&read.kind, &read.scope) {
                if found.readable && !kind.is_secret() {
                    reads.push(RawRead {
                        kind,
                        ..read.clone()
                    });
                }
            }
        }
        self.reads = reads;
    }
}

#[cfg(test)]
mod tests {
    use super::super::RawPrimary;
    use super::*;

    fn any(group: &str) -> GroupVersionKind {
        GroupVersionKind::new(group, "v1", ANY_KIND)
    }

    fn served(kind: &GroupVersionKind) -> Vec<ServedKind> {
        let of = |kind: &str, namespaced, readable, writable| ServedKind {
            kind: kind.to_owned(),
            namespaced,
            readable,
            writable,
        };
        match &*kind.group {
            "" => vec![
                of("ConfigMap", true, true, true),
                of("Secret", true, true, true),
                of("Binding", true, false, false),
                of("Namespace", false, true, true),
            ],
            "apps" => vec![of("Deployment", true, true, true)],
            _ => vec![],
        }
    }

    fn raw(reads: Vec<RawRead>, writes: Vec<WriteRule>) -> RawManifest {
        RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("example.com", "v1", "Tenant"),
                selector: String::new(),
                projection: vec![],
            }),
            reads,
            writes,
            sources: vec![],
            actions: vec![],
        }
    }

    fn read(kind: GroupVersionKind, scope: Scope) -> RawRead {
        RawRead {
            kind,
            scope,
            names: vec![],
            selector: "a=b".to_owned(),
        }
    }

    #[test]
    fn a_wildcard_stands_for_what_is_served() {
        let named = WriteRule {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            scope: Scope::PrimaryNamespace,
        };
        let write = |group, scope| WriteRule {
            kind: any(group),
            scope,
        };
        let mut manifest = raw(
            vec![
                read(any(""), Scope::Cluster),
                read(any("apps"), Scope::PrimaryNamespace),
            ],
            vec![
                write("", Scope::PrimaryNamespace),
                named.clone(),
                write("", Scope::Cluster),
                write("nobody.example.com", Scope::Cluster),
            ],
        );
        let wildcards = manifest.wildcards().unwrap();
        let wildcards: Vec<_> = wildcards
            .into_iter()
            .map(|kind| kind.group.clone())
            .collect();
        assert_eq!(wildcards, ["", "apps", "nobody.example.com"]);
        manifest.expand(served);
        assert_eq!(manifest.wildcards(), Ok(BTreeSet::new()));
        let reads: Vec<_> = manifest.reads.iter().map(|read| &*read.kind.kind).collect();
        assert_eq!(reads, ["ConfigMap", "Namespace", "Deployment"]);
        assert!(manifest.reads.iter().all(|read| read.selector == "a=b"));
        let writes: Vec<_> = manifest
            .writes
            .iter()
            .map(|write| (&*write.kind.kind, write.scope == Scope::Cluster))
            .collect();
        assert_eq!(
            writes,
            [
                ("Secret", false),
                ("ConfigMap", false),
                ("ConfigMap", true),
                ("Secret", true),
                ("Namespace", true),
            ]
        );
        Manifest::try_from(manifest).unwrap();
    }

    #[test]
    fn without_anybodys_leave_a_wildcard_is_refused() {
        for (manifest, field) in [
            (
                raw(vec![read(any(""), Scope::Cluster)], vec![]),
                "reads[0].kind",
            ),
            (
                raw(
                    vec![],
                    vec![WriteRule {
                        kind: any("apps"),
                        scope: Scope::Cluster,
                    }],
                ),
                "writes[0].kind",
            ),
        ] {
            let declared = Manifest::as_declared(manifest.clone()).unwrap();
            assert!(declared.kinds().iter().any(|kind| is_wildcard(kind)));
            let text = Manifest::try_from(manifest).unwrap_err().to_string();
            let start = format!("{field}: `*` stands for every kind of its group and version");
            assert!(text.starts_with(&start), "{text}");
            assert!(text.contains("--allow-wildcards"), "{text}");
        }
        // Nobody is asked for what is no name.
        for (group, version, field) in [
            ("", "v1/pods?watch=1", "reads[0].kind.version"),
            ("a/../b", "v1", "reads[0].kind.group"),
        ] {
            let kind = GroupVersionKind::new(group, version, ANY_KIND);
            let manifest = raw(vec![read(kind, Scope::Cluster)], vec![]);
            let text = manifest.wildcards().unwrap_err().to_string();
            assert!(text.starts_with(field), "{text}");
        }
        // The kind that it runs for is one, whoever allows what.
        let mut manifest = raw(vec![], vec![]);
        manifest.primary.as_mut().unwrap().kind = any("apps");
        let text = Manifest::as_declared(manifest).unwrap_err().to_string();
        assert!(text.contains("`*` is not a kind"), "{text}");
    }
}
