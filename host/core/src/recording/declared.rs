//! Whether a plugin may ask what another version of it has asked.

use super::Question;
use crate::kind::ObjectReference;
use crate::manifest::Manifest;
use crate::selector::Selector;

/// Whether a manifest declares a question, as the agent holds it against the manifest
/// of what runs.
pub fn declares(manifest: &Manifest, primary: &ObjectReference, question: &Question) -> bool {
    match question {
        Question::Object { object, .. } => manifest.reads.iter().any(|rule| {
            rule.kind == object.kind
                && (rule.names.is_empty() || rule.names.contains(&object.name))
                // Behind a selector, absent and not selected look the same.
                && rule.selector.is_empty()
                && rule.covers(primary, object.namespace.as_deref())
        }),
        Question::List {
            kind,
            namespace,
            selector,
            ..
        }
        | Question::Keys {
            kind,
            namespace,
            selector,
        } => {
            let Ok(selector) = selector.parse::<Selector>() else {
                return false;
            };
            manifest.reads.iter().any(|rule| {
                rule.kind == *kind
                    && rule.names.is_empty()
                    && selector.is_within(&rule.selector)
                    && rule.covers(primary, namespace.as_deref())
            })
        }
        Question::Source(name) | Question::SourceAge(name) => manifest.source(name).is_some(),
        Question::Time => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::manifest::Origin;
    use crate::manifest::{RawManifest, RawPrimary, RawRead, RawSource, Scope};

    fn kind() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "Event")
    }

    fn read(scope: Scope, names: &[&str], selector: &str) -> RawRead {
        RawRead {
            kind: kind(),
            scope,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            selector: selector.to_owned(),
        }
    }

    fn get(namespace: &str, name: &str) -> Question {
        Question::object(
            &ObjectReference::new(kind(), Some(namespace.to_owned()), name),
            &[],
        )
    }

    fn list(namespace: Option<&str>, selector: &str) -> Question {
        Question::list(&kind(), namespace, selector, &[])
    }

    #[test]
    fn a_question_is_held_against_each_part_of_a_rule() {
        let primary = ObjectReference::new(kind(), Some("alice".to_owned()), "bob");
        let own = || Scope::PrimaryNamespace;
        for (rule, question, expected) in [
            (read(Scope::Cluster, &[], ""), get("x", "a"), true),
            (read(own(), &[], ""), get("alice", "a"), true),
            (read(own(), &[], ""), get("bob", "a"), false),
            (read(own(), &["a"], ""), get("alice", "a"), true),
            (read(own(), &["a"], ""), get("alice", "b"), false),
            (read(own(), &[], "a=b"), get("alice", "a"), false),
            (read(own(), &[], ""), list(Some("alice"), "a=b"), true),
            (read(own(), &[], ""), list(None, ""), false),
            (read(own(), &["a"], ""), list(Some("alice"), ""), false),
            (read(own(), &[], "a=b"), list(Some("alice"), "a = b"), true),
            (read(own(), &[], "a=b"), list(Some("alice"), ""), false),
            (read(own(), &[], "a"), list(Some("alice"), "c,a=b"), true),
            (read(own(), &[], "a=b"), list(Some("alice"), "a"), false),
            (read(own(), &[], "a"), list(Some("alice"), "a=="), true),
            (read(own(), &[], "a"), list(Some("alice"), "(a"), false),
            (
                read(Scope::Cluster, &[], ""),
                Question::keys(&kind(), None, ""),
                true,
            ),
            (read(own(), &[], ""), Question::Time, true),
            (read(own(), &[], ""), Question::Source("s".into()), true),
            (read(own(), &[], ""), Question::SourceAge("t".into()), false),
        ] {
            let manifest = Manifest::try_from(RawManifest {
                primary: Some(RawPrimary {
                    kind: kind(),
                    selector: String::new(),
                    projection: vec![],
                }),
                reads: vec![rule.clone()],
                writes: vec![],
                sources: vec![RawSource {
                    name: "s".to_owned(),
                    description: "one".to_owned(),
                    origin: Origin::Url("https://example.com/".to_owned()),
                    interval_seconds: 60,
                }],
                actions: vec![],
            })
            .unwrap();
            let found = declares(&manifest, &primary, &question);
            assert_eq!(found, expected, "{rule:?} {question}");
        }
    }
}
