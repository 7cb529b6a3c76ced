//! How a kind will be served that is not yet, as far as its name tells.

use super::rules::Served;
use crate::kind::GroupVersionKind;
use crate::manifest::{Manifest, Scope};

/// How a kind of a manifest will in all likelihood be served when its definition is
/// there: as the plural of its name, in namespaces where the manifest has it there.
///
/// A grant has to be there before the plugin runs that brings the definition, and
/// RBAC takes names of resources that nobody serves. A definition that calls its
/// resource otherwise takes another grant, once it is there.
pub fn expected(manifest: &Manifest, kind: &GroupVersionKind) -> Served {
    let reads = manifest.reads.iter().map(|rule| (&rule.kind, &rule.scope));
    let writes = manifest.writes.iter().map(|rule| (&rule.kind, &rule.scope));
    let mut of_kind = reads.chain(writes).filter(|(other, _)| *other == kind);
    Served {
        plural: plural(&kind.kind),
        namespaced: of_kind.any(|(_, scope)| *scope != Scope::Cluster),
    }
}

/// The plural of an English word, by the rules that need no dictionary.
fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_most_definitions() {
        for (kind, expected) in [
            ("Widget", "widgets"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("IngressClass", "ingressclasses"),
            ("Mailbox", "mailboxes"),
            ("Patch", "patches"),
        ] {
            assert_eq!(plural(kind), expected, "{kind}");
        }
    }

    #[test]
    fn a_kind_lives_where_the_manifest_has_it() {
        for (scope, namespaced) in [
            (Scope::Cluster, false),
            (Scope::Namespaces(vec!["a".into()]), true),
            (Scope::NamespaceNamedLikePrimary, true),
        ] {
            let manifest = super::super::rules::tests::manifest(scope.clone());
            let kind = &manifest.writes[0].kind;
            assert_eq!(
                expected(&manifest, kind).namespaced,
                namespaced,
                "{scope:?}"
            );
        }
    }
}
