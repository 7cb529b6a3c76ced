//! Kinds that a plugin may bring itself, with a CustomResourceDefinition.

use super::Manifest;
use crate::kind::GroupVersionKind;

impl Manifest {
    /// Whether a kind that is not served may come to be while the plugin runs, by its
    /// own doing: it writes CustomResourceDefinitions, and this may be the kind of one.
    /// Nothing of it is then missing before the plugin has had its say.
    ///
    /// Never so for the primary: without that, no unit would ever run that could
    /// define it.
    pub fn may_bring(&self, kind: &GroupVersionKind) -> bool {
        let defines = self.writes.iter().any(|rule| is_definition(&rule.kind));
        // The API server takes no definition of a group without a dot.
        defines
            && kind.group.contains('.')
            && !is_definition(kind)
            && !kind.same_kind(&self.primary().kind)
    }
}

/// Whether this is the kind of a CustomResourceDefinition.
pub fn is_definition(kind: &GroupVersionKind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{RawManifest, RawPrimary, Scope, WriteRule};

    #[test]
    fn only_who_writes_definitions_brings_kinds() {
        let kind = |text: &str| {
            let mut parts = text.splitn(3, '.');
            let mut next = || parts.next().unwrap_or_default().to_owned();
            let (kind, version) = (next(), next());
            GroupVersionKind::new(next(), version, kind)
        };
        let definition = "CustomResourceDefinition.v1.apiextensions.k8s.io";
        let manifest = |writes: &[&str]| {
            let writes = writes.iter().map(|text| WriteRule {
                kind: kind(text),
                scope: Scope::Cluster,
            });
            let manifest = RawManifest {
                primary: Some(RawPrimary {
                    kind: kind("Bundle.v1.example.com"),
                    selector: String::new(),
                    projection: vec![],
                }),
                reads: vec![],
                writes: writes.collect(),
                sources: vec![],
                actions: vec![],
            };
            Manifest::try_from(manifest).unwrap()
        };
        let widget = "Widget.v1.example.com";
        for (writes, asked, brings) in [
            (&[definition, widget][..], widget, true),
            (&[widget], widget, false),
            (&[definition], "Bundle.v1.example.com", false),
            (&[definition], "Bundle.v2.example.com", false),
            (&[definition], definition, false),
            (&[definition, "Job.v1.batch"], "Job.v1.batch", false),
            (&[definition, "ConfigMap.v1"], "ConfigMap.v1", false),
        ] {
            let found = manifest(writes).may_bring(&kind(asked));
            assert_eq!(found, brings, "{writes:?} {asked}");
        }
    }
}
