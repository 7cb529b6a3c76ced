//! The checks on outside effects.

use super::error::DesiredError;
use crate::kind::ObjectReference;
use crate::manifest::{ActionRule, Manifest, Scope, is_data_key, is_dns_label, is_dns_subdomain};
use crate::outcome::{Action, GeneratedSecret, SecretPart};
use crate::printable::is_printable;
use std::collections::BTreeSet;
use std::time::Duration;

/// Effects for one primary. Each is a call now and then, for ever.
const MAX_ACTIONS: usize = 32;
/// Secrets that one effect has generated.
const MAX_SECRETS: usize = 8;
/// Bytes of one input: it is kept in an object of the cluster, beside the others.
const MAX_INPUT: usize = 16 << 10;
/// Bytes of what Secrets hold besides their values.
const MAX_TEXT: usize = 64 << 10;
/// Bytes of all inputs and texts for one primary: they are kept in one object, and a
/// store takes 1.5 MiB of one.
const MAX_TOTAL: usize = 512 << 10;
/// Characters of a key: those of a name.
const MAX_KEY: usize = 253;
/// Whether an effect is in place is not asked more often: it is outside, and each
/// question is a call.
pub const LEAST_VERIFY: Duration = Duration::from_secs(10);

pub(super) fn check_actions(
    actions: &[Action],
    manifest: &Manifest,
    primary: &ObjectReference,
) -> Result<(), DesiredError> {
    if actions.len() > MAX_ACTIONS {
        return Err(DesiredError::TooMany {
            list: "actions",
            got: actions.len(),
            limit: MAX_ACTIONS,
        });
    }
    let mut keys = BTreeSet::new();
    let mut places = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        let refuse = |(field, problem): Refusal| DesiredError::Action {
            index,
            key: action.key.chars().take(40).collect(),
            field,
            problem,
        };
        check(action, manifest, primary).map_err(refuse)?;
        if !keys.insert(&action.key) {
            let problem = "another action has it, too; give each its own";
            return Err(refuse(("key", problem.to_owned())));
        }
        for secret in &action.secrets {
            if !places.insert((&secret.namespace, &secret.secret)) {
                return Err(refuse((
                    "secrets",
                    format!(
                        "Secret {}/{} is asked for twice; generate each once",
                        secret.namespace, secret.secret
                    ),
                )));
            }
        }
    }
    let total = actions.iter().map(Action::bytes).sum();
    if total > MAX_TOTAL {
        return Err(DesiredError::ActionsTooLarge {
            got: total,
            limit: MAX_TOTAL,
        });
    }
    Ok(())
}

/// A field, and what is wrong with it.
type Refusal = (&'static str, String);

fn check(action: &Action, manifest: &Manifest, primary: &ObjectReference) -> Result<(), Refusal> {
    if action.key.is_empty() || action.key.len() > MAX_KEY || !is_printable(&action.key) {
        let problem = format!("it must have 1 to {MAX_KEY} characters, all of which can be seen");
        return Err(("key", problem));
    }
    let Some(rule) = manifest.action(&action.name) else {
        return Err((
            "name",
            format!(
                "the manifest declares no action `{}`; declare it in `actions`",
                action.name
            ),
        ));
    };
    if action.input.len() > MAX_INPUT {
        let problem = format!(
            "{} bytes, more than {MAX_INPUT}; pass less",
            action.input.len()
        );
        return Err(("input", problem));
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&action.input) {
        return Err(("input", format!("no JSON: {error}")));
    }
    if action.verify.is_some_and(|time| time < LEAST_VERIFY) {
        let least = LEAST_VERIFY.as_secs();
        return Err((
            "verify-seconds",
            format!("less than {least}; zero leaves it to the host"),
        ));
    }
    check_secrets(action, rule, primary).map_err(|problem| ("secrets", problem))
}

fn check_secrets(
    action: &Action,
    rule: &ActionRule,
    primary: &ObjectReference,
) -> Result<(), String> {
    if action.secrets.len() > MAX_SECRETS {
        return Err(format!(
            "{} entries, more than {MAX_SECRETS}",
            action.secrets.len()
        ));
    }
    let mut names = BTreeSet::new();
    let mut text = 0;
    for secret in &action.secrets {
        let GeneratedSecret {
            name,
            namespace,
            secret: object,
            entries,
        } = secret;
        if !is_dns_label(name) || !names.insert(name) {
            return Err(format!("`{name}` is no DNS-1123 label of its own"));
        }
        if !is_dns_label(namespace) || !is_dns_subdomain(object) {
            return Err(format!("`{namespace}/{object}` is no name of a Secret"));
        }
        let within = |scope: &Scope| {
            let namespaces = scope.namespaces(primary.namespace.as_deref(), &primary.name);
            namespaces.is_none_or(|names| names.contains(&&**namespace))
        };
        if !rule.secrets.iter().any(within) {
            return Err(format!(
                "Secret {namespace}/{object} is outside of what the manifest declares in `secrets` of action `{}`",
                rule.name
            ));
        }
        let mut keys = BTreeSet::new();
        for entry in entries {
            if !is_data_key(&entry.key) || !keys.insert(&entry.key) {
                return Err(format!(
                    "Secret {namespace}/{object}: `{}` is no key of a Secret of its own",
                    entry.key
                ));
            }
            text += entry.parts.iter().map(size).sum::<usize>();
        }
        let mut parts = entries.iter().flat_map(|entry| &entry.parts);
        if !parts.any(|part| *part == SecretPart::Generated) {
            return Err(format!(
                "Secret {namespace}/{object} holds nothing that is generated; return it as an object"
            ));
        }
    }
    if text > MAX_TEXT {
        return Err(format!("{text} bytes of text, more than {MAX_TEXT}"));
    }
    Ok(())
}

fn size(part: &SecretPart) -> usize {
    match part {
        SecretPart::Text(text) => text.len(),
        SecretPart::Generated => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use crate::manifest::{RawManifest, RawPrimary};
    use crate::outcome::SecretEntry;

    fn manifest() -> Manifest {
        let rule = ActionRule {
            name: "database".into(),
            description: String::new(),
            http: vec![],
            sql: vec![],
            secrets: vec![Scope::NamespaceNamedLikePrimary],
        };
        Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: vec![],
            writes: vec![],
            sources: vec![],
            actions: vec![rule],
        })
        .unwrap()
    }

    fn action() -> Action {
        Action {
            key: "db".into(),
            name: "database".into(),
            input: "{}".into(),
            secrets: vec![GeneratedSecret {
                name: "password".into(),
                namespace: "alice".into(),
                secret: "login".into(),
                entries: vec![SecretEntry {
                    key: "password".into(),
                    parts: vec![SecretPart::Generated],
                }],
            }],
            verify: None,
            retire: false,
        }
    }

    fn found(actions: &[Action]) -> Result<(), String> {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let primary = ObjectReference::new(kind, None, "alice");
        check_actions(actions, &manifest(), &primary).map_err(|error| error.to_string())
    }

    #[test]
    fn declared_effects_pass() {
        assert_eq!(found(&[action()]), Ok(()));
    }

    #[test]
    fn each_refusal_names_action_and_field() {
        type Spoil = fn(&mut Action);
        let cases: [(Spoil, &str); 14] = [
            (|a| a.key.clear(), "actions[0] (): key: it must have"),
            (
                |a| a.key = "a\nb".into(),
                "actions[0] (a\nb): key: it must have",
            ),
            (
                |a| a.name = "other".into(),
                "actions[0] (db): name: the manifest declares no",
            ),
            (|a| a.input = "{".into(), "actions[0] (db): input: no JSON"),
            (
                |a| a.input = "1".repeat(20_000),
                "actions[0] (db): input: 20000 bytes",
            ),
            (
                |a| a.verify = Some(Duration::from_secs(1)),
                "actions[0] (db): verify-seconds: less than 10",
            ),
            (
                |a| a.secrets[0].name = "A".into(),
                "actions[0] (db): secrets: `A` is no DNS",
            ),
            (
                |a| a.secrets.push(a.secrets[0].clone()),
                "actions[0] (db): secrets: `password` is no DNS",
            ),
            (
                |a| a.secrets[0].namespace = "bob".into(),
                "actions[0] (db): secrets: Secret bob/login is outside",
            ),
            (
                |a| a.secrets[0].secret = "a/b".into(),
                "actions[0] (db): secrets: `alice/a/b` is no name",
            ),
            (
                |a| a.secrets[0].entries[0].key = "a/b".into(),
                "actions[0] (db): secrets: Secret alice/login: `a/b` is no key",
            ),
            (
                |a| a.secrets[0].entries[0].parts.clear(),
                "actions[0] (db): secrets: Secret alice/login holds nothing",
            ),
            (
                |a| {
                    let text = SecretPart::Text("x".repeat(70_000));
                    a.secrets[0].entries[0].parts.push(text);
                },
                "actions[0] (db): secrets: 70000 bytes of text",
            ),
            (
                |a| {
                    let mut second = a.secrets[0].clone();
                    second.name = "second".into();
                    a.secrets.push(second);
                },
                "actions[0] (db): secrets: Secret alice/login is asked for twice",
            ),
        ];
        for (spoil, expected) in cases {
            let mut action = action();
            spoil(&mut action);
            let text = found(&[action]).unwrap_err();
            assert!(
                text.starts_with(expected),
                "{text}\nshould start with\n{expected}"
            );
        }
        let mut second = action();
        second.secrets.clear();
        let text = found(&[action(), second]).unwrap_err();
        assert!(text.starts_with("actions[1] (db): key: another"), "{text}");
        let many = vec![action(); 33];
        assert!(found(&many).unwrap_err().starts_with("actions: 33 entries"));
        // Each is small enough, all of them are not.
        let large = (0..9).map(|number| {
            let mut action = action();
            action.key = format!("db-{number}");
            action.secrets[0].secret = format!("login-{number}");
            let text = SecretPart::Text("x".repeat(60_000));
            action.secrets[0].entries[0].parts.push(text);
            action
        });
        let large: Vec<Action> = large.collect();
        assert_eq!(found(&large[..8]), Ok(()));
        let text = found(&large).unwrap_err();
        assert!(text.starts_with("actions: "), "{text}");
        assert!(text.contains("bytes of inputs"), "{text}");
    }
}
