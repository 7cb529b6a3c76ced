//! How much a manifest may ask for.

use super::{ActionRule, ManifestError, RawRead, Scope, WriteRule};
use crate::selector::MAX_BYTES;

/// Entries of `reads`, of `writes`, and names or namespaces in one entry. More than anybody
/// writes by hand; whoever needs more means a scope.
const MAX_ENTRIES: usize = 100;

/// Namespaces and names of all entries together. Each is a rule to ask the API server
/// about, several times over, and a watch that it has to serve.
const MAX_PLACES: usize = 1_000;

fn at_most(
    field: impl Into<String>,
    got: usize,
    what: &'static str,
    limit: usize,
) -> Result<(), ManifestError> {
    match got <= limit {
        true => Ok(()),
        false => Err(ManifestError::TooWide {
            field: field.into(),
            got,
            what,
            limit,
        }),
    }
}

/// Checks how much a manifest asks for: all of it is asked of the API server, by the
/// agent, before anything is granted.
pub(super) fn check(
    reads: &[RawRead],
    writes: &[WriteRule],
    actions: &[ActionRule],
) -> Result<(), ManifestError> {
    at_most("reads", reads.len(), "entries", MAX_ENTRIES)?;
    at_most("writes", writes.len(), "entries", MAX_ENTRIES)?;
    let namespaces = |scope: &Scope| match scope {
        Scope::Namespaces(names) => names.len(),
        _ => 1,
    };
    let mut places: usize = 0;
    for (index, read) in reads.iter().enumerate() {
        let (field, inner) = (format!("reads[{index}]"), namespaces(&read.scope));
        at_most(
            format!("{field}.scope.namespaces"),
            inner,
            "namespaces",
            MAX_ENTRIES,
        )?;
        at_most(
            format!("{field}.names"),
            read.names.len(),
            "names",
            MAX_ENTRIES,
        )?;
        places = places.saturating_add(inner.saturating_mul(read.names.len().max(1)));
    }
    for (index, write) in writes.iter().enumerate() {
        let inner = namespaces(&write.scope);
        let field = format!("writes[{index}].scope.namespaces");
        at_most(field, inner, "namespaces", MAX_ENTRIES)?;
        places = places.saturating_add(inner);
    }
    for (index, action) in actions.iter().enumerate() {
        for scope in &action.secrets {
            let inner = namespaces(scope);
            let field = format!("actions[{index}].secrets.scope.namespaces");
            at_most(field, inner, "namespaces", MAX_ENTRIES)?;
            places = places.saturating_add(inner);
        }
    }
    let what = "namespaces and names in all entries together";
    at_most("reads, writes and actions", places, what, MAX_PLACES)
}

/// Checks the length of a label selector.
pub(super) fn check_selector(field: &str, text: &str) -> Result<(), ManifestError> {
    at_most(field, text.len(), "bytes", MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::manifest::{Manifest, RawManifest, RawPrimary};

    fn raw() -> RawManifest {
        RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![WriteRule {
                kind: GroupVersionKind::new("", "v1", "ResourceQuota"),
                scope: Scope::NamespaceNamedLikePrimary,
            }],
            sources: vec![],
            actions: vec![],
        }
    }

    fn namespaces(count: usize) -> Scope {
        Scope::Namespaces((0..count).map(|n| format!("n{n}")).collect())
    }

    fn read(in_namespaces: usize, names: usize) -> RawRead {
        RawRead {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            scope: namespaces(in_namespaces),
            names: (0..names).map(|n| format!("n{n}")).collect(),
            selector: String::new(),
        }
    }

    fn action(secrets: Vec<Scope>) -> ActionRule {
        ActionRule {
            name: "database".into(),
            description: String::new(),
            http: vec![],
            sql: vec![],
            secrets,
        }
    }

    #[test]
    fn as_much_as_may_be_passes() {
        let mut raw = raw();
        raw.reads = vec![read(10, 90), read(50, 0)];
        raw.actions = vec![action(vec![namespaces(49)])];
        let manifest = Manifest::try_from(raw).unwrap();
        assert_eq!(manifest.reads.len(), 2);
    }

    #[test]
    fn what_is_too_much_is_named() {
        type Spoil = fn(&mut RawManifest);
        let cases: [(Spoil, &str); 10] = [
            (
                |m| m.primary.as_mut().unwrap().selector = "a".repeat(5_000),
                "role.controller.selector: 5000 bytes, more than 4096",
            ),
            (
                |m| m.writes = vec![m.writes[0].clone(); 101],
                "writes: 101 entries, more than 100; use a wider scope",
            ),
            (
                |m| m.reads = vec![read(1, 0); 101],
                "reads: 101 entries, more than 100",
            ),
            (
                |m| m.reads = vec![read(1, 0), read(101, 0)],
                "reads[1].scope.namespaces: 101 namespaces, more than 100",
            ),
            (
                |m| m.reads = vec![read(1, 101)],
                "reads[0].names: 101 names, more than 100",
            ),
            (
                |m| m.writes[0].scope = namespaces(101),
                "writes[0].scope.namespaces: 101 namespaces",
            ),
            (
                |m| m.reads = vec![read(10, 90), read(100, 1)],
                "reads, writes and actions: 1001 namespaces and names in all entries together",
            ),
            (
                |m| m.actions = vec![action(vec![namespaces(1), namespaces(101)])],
                "actions[0].secrets.scope.namespaces: 101 namespaces, more than 100",
            ),
            (
                |m| m.actions = vec![action(vec![namespaces(100); 10])],
                "reads, writes and actions: 1001 namespaces and names in all entries together",
            ),
            (
                |m| m.actions = vec![action(vec![Scope::PrimaryNamespace; 33])],
                "actions.secrets: 33 entries, more than 32",
            ),
        ];
        for (spoil, expected) in cases {
            let mut raw = raw();
            spoil(&mut raw);
            let text = Manifest::try_from(raw).unwrap_err().to_string();
            assert!(
                text.starts_with(expected),
                "{text} should start with {expected}"
            );
        }
    }
}
