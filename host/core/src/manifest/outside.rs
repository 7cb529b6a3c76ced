//! What of the outside a manifest declares: documents to read, effects to have.

use super::{
    ManifestError, ReadRule, Scope, check_scope, check_shown, is_dns_label, is_dns_subdomain,
};
use crate::kind::GroupVersionKind;
use crate::selector::Selector;
use serde::Serialize;
use std::time::Duration;

/// A source as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSource {
    /// Name by which the guest reads it.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Where it is.
    pub origin: Origin,
    /// Seconds between two looks.
    pub interval_seconds: u32,
}

/// An outside document that a plugin may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceRule {
    /// Name by which the guest reads it.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Where it is.
    pub origin: Origin,
    /// Time between two looks.
    pub interval: Duration,
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Origin {
    /// A URL that is polled.
    Url(String),
    /// A file on the agent's machine.
    File(String),
    /// An entry of a ConfigMap.
    ConfigMap(ConfigMapEntry),
}

/// An entry of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ConfigMapEntry {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Key of the entry.
    pub key: String,
}

/// An outside effect that a plugin may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionRule {
    /// Name of the effect.
    pub name: String,
    /// What it does, for people.
    pub description: String,
    /// URLs below which requests may be sent.
    pub http: Vec<String>,
    /// Names of SQL connections.
    pub sql: Vec<String>,
    /// Where generated Secrets may be.
    pub secrets: Vec<Scope>,
}

/// Sources, actions, and URLs, connections or scopes of Secrets of one action: an operator
/// looks at each before granting it.
const MAX_ENTRIES: usize = 32;

/// Looking more often than each second is watching, which polling is no means for;
/// a document that is looked at less than once a day is no input.
const INTERVAL: (u32, u32) = (1, 86_400);

impl SourceRule {
    /// What a ConfigMap's entry needs to be read: just that ConfigMap.
    pub(super) fn read_rule(&self) -> Option<ReadRule> {
        let Origin::ConfigMap(entry) = &self.origin else {
            return None;
        };
        Some(ReadRule {
            kind: ConfigMapEntry::kind(),
            scope: Scope::Namespaces(vec![entry.namespace.clone()]),
            names: vec![entry.name.clone()],
            selector: Selector::default(),
        })
    }
}

impl ConfigMapEntry {
    /// The kind of a ConfigMap.
    pub fn kind() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "ConfigMap")
    }
}

pub(super) fn check_sources(raw: Vec<RawSource>) -> Result<Vec<SourceRule>, ManifestError> {
    check_names("sources", raw.iter().map(|source| &*source.name))?;
    raw.into_iter()
        .enumerate()
        .map(|(index, source)| {
            let field = format!("sources[{index}]");
            check_origin(&field, &source.origin)?;
            let (least, most) = INTERVAL;
            if !(least..=most).contains(&source.interval_seconds) {
                return Err(ManifestError::Range {
                    field: format!("{field}.interval-seconds"),
                    value: source.interval_seconds,
                    least,
                    most,
                });
            }
            Ok(SourceRule {
                name: source.name,
                description: source.description,
                origin: source.origin,
                interval: Duration::from_secs(source.interval_seconds.into()),
            })
        })
        .collect()
}

fn check_origin(field: &str, origin: &Origin) -> Result<(), ManifestError> {
    let error = |part: &str, value: &str, expected| ManifestError::Name {
        field: format!("{field}.origin.{part}"),
        value: value.to_owned(),
        expected,
    };
    match origin {
        Origin::Url(text) | Origin::File(text) => {
            check_shown(&format!("{field}.origin"), text)?;
        }
        Origin::ConfigMap(_) => {}
    }
    match origin {
        // What it leads to is looked at by whoever fetches it.
        Origin::Url(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(
            error("url", url, "a URL that begins with http:// or https://"),
        ),
        Origin::File(path) if !path.starts_with('/') || path.contains('\0') => {
            Err(error("file", path, "an absolute path"))
        }
        Origin::ConfigMap(entry) if !is_dns_label(&entry.namespace) => Err(error(
            "config-map.namespace",
            &entry.namespace,
            "the name of a namespace (a DNS-1123 label)",
        )),
        Origin::ConfigMap(entry) if !is_dns_subdomain(&entry.name) => Err(error(
            "config-map.name",
            &entry.name,
            "the name of a ConfigMap (a DNS-1123 subdomain)",
        )),
        Origin::ConfigMap(entry) if !is_data_key(&entry.key) => Err(error(
            "config-map.key",
            &entry.key,
            "a key of a ConfigMap (letters, digits, `-`, `_` and `.`, at most 253)",
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_actions(actions: &[ActionRule]) -> Result<(), ManifestError> {
    check_names("actions", actions.iter().map(|action| &*action.name))?;
    for (index, action) in actions.iter().enumerate() {
        let field = format!("actions[{index}]");
        let too_many = |field, got| ManifestError::TooMany {
            field,
            got,
            limit: MAX_ENTRIES,
        };
        if action.http.len() > MAX_ENTRIES {
            return Err(too_many("actions.http", action.http.len()));
        }
        if action.sql.len() > MAX_ENTRIES {
            return Err(too_many("actions.sql", action.sql.len()));
        }
        if action.secrets.len() > MAX_ENTRIES {
            return Err(too_many("actions.secrets", action.secrets.len()));
        }
        for url in &action.http {
            check_shown(&format!("{field}.http"), url)?;
        }
        if let Some(name) = action.sql.iter().find(|name| !is_dns_label(name)) {
            return Err(ManifestError::Name {
                field: format!("{field}.sql"),
                value: name.clone(),
                expected: "the name of a connection (a DNS-1123 label)",
            });
        }
        for scope in &action.secrets {
            check_scope(&format!("{field}.secrets"), scope)?;
        }
    }
    Ok(())
}

fn check_names<'a>(
    list: &'static str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(), ManifestError> {
    if names.len() > MAX_ENTRIES {
        return Err(ManifestError::TooMany {
            field: list,
            got: names.len(),
            limit: MAX_ENTRIES,
        });
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, name) in names.enumerate() {
        let field = format!("{list}[{index}].name");
        if !is_dns_label(name) {
            return Err(ManifestError::Name {
                field,
                value: name.to_owned(),
                expected: "a DNS-1123 label such as `database`",
            });
        }
        if seen.contains(&name) {
            return Err(ManifestError::SameName {
                field,
                name: name.to_owned(),
            });
        }
        seen.push(name);
    }
    Ok(())
}

/// A key of a ConfigMap or Secret, as the API server checks it.
pub(crate) fn is_data_key(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(fits) && text != "." && text != ".."
}

/// What of a URL is granted and may be shown: a query may hold a credential.
pub fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, origin: Origin) -> RawSource {
        RawSource {
            name: name.into(),
            description: String::new(),
            origin,
            interval_seconds: 60,
        }
    }

    fn url(text: &str) -> Origin {
        Origin::Url(text.into())
    }

    fn entry(namespace: &str, name: &str, key: &str) -> Origin {
        Origin::ConfigMap(ConfigMapEntry {
            namespace: namespace.into(),
            name: name.into(),
            key: key.into(),
        })
    }

    #[test]
    fn each_bad_source_is_named() {
        let slow = RawSource {
            interval_seconds: 0,
            ..source("a", url("http://a"))
        };
        for (sources, expected) in [
            (
                vec![source("A", url("http://a"))],
                "sources[0].name: `A` is not a DNS-1123",
            ),
            (
                vec![source("a", url("http://a")), source("a", url("http://b"))],
                "sources[1].name: `a` is declared twice",
            ),
            (
                vec![source("a", url("file:///x"))],
                "sources[0].origin.url: `file:///x`",
            ),
            (
                vec![source("a", Origin::File("x".into()))],
                "sources[0].origin.file: `x` is not an absolute path",
            ),
            (
                vec![source("a", url("http://a/\u{202e}b"))],
                r"sources[0].origin: `http://a/\u{202e}b` is not text of printable characters",
            ),
            (
                vec![source("a", Origin::File("/a\nb".into()))],
                r"sources[0].origin: `/a\nb` is not text of printable characters",
            ),
            (
                vec![source("a", entry("N", "m", "k"))],
                "sources[0].origin.config-map.namespace",
            ),
            (
                vec![source("a", entry("n", "M", "k"))],
                "sources[0].origin.config-map.name",
            ),
            (
                vec![source("a", entry("n", "m", "k/"))],
                "sources[0].origin.config-map.key",
            ),
            (
                vec![slow],
                "sources[0].interval-seconds: 0 is not from 1 to 86400",
            ),
            (
                (0..33)
                    .map(|n| source(&format!("a{n}"), url("http://a")))
                    .collect(),
                "sources: 33 entries, more than 32",
            ),
        ] {
            let text = check_sources(sources).unwrap_err().to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn each_bad_action_is_named() {
        let action = |name: &str| ActionRule {
            name: name.into(),
            description: String::new(),
            http: vec![],
            sql: vec![],
            secrets: vec![],
        };
        let mut odd = action("a");
        odd.sql = vec!["Main".into()];
        let mut empty = action("a");
        empty.secrets = vec![Scope::Namespaces(vec![])];
        let mut many = action("a");
        many.http = vec![String::new(); 33];
        for (actions, expected) in [
            (vec![action("")], "actions[0].name: `` is not"),
            (
                vec![action("a"), action("a")],
                "actions[1].name: `a` is declared twice",
            ),
            (
                vec![odd],
                "actions[0].sql: `Main` is not the name of a connection",
            ),
            (vec![empty], "actions[0].secrets.scope.namespaces"),
            (vec![many], "actions.http: 33 entries"),
        ] {
            let text = check_actions(&actions).unwrap_err().to_string();
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn an_entry_of_a_config_map_is_read_as_that_config_map() {
        let sources = check_sources(vec![
            source("a", url("http://a")),
            source("b", entry("n", "m", "k")),
        ]);
        let sources = sources.unwrap();
        assert_eq!(sources[0].read_rule(), None);
        let rule = sources[1].read_rule().unwrap();
        assert_eq!(rule.scope, Scope::Namespaces(vec!["n".into()]));
        assert_eq!(rule.names, ["m"]);
    }
}
