//! What a plugin declares about itself, and the checks on it.

use crate::kind::{GroupVersionKind, ObjectReference};
use crate::printable::{is_printable, printable};
use crate::projection::{Projection, ProjectionError};
use crate::selector::{Selector, SelectorError};
use outside::{check_actions, check_sources};
use serde::Serialize;

mod brought;
mod claims;
mod outside;
mod places;
mod scopes;
mod sizes;
mod wildcards;

pub use brought::is_definition;
pub use claims::{is_claim, storage_class_kind};
pub(crate) use outside::is_data_key;
pub use outside::{ActionRule, ConfigMapEntry, Origin, RawSource, SourceRule, without_query};
pub use wildcards::{ANY_KIND, ServedKind, is_wildcard};

/// Who a plugin is, as the component says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the component.
    pub name: String,
    /// Its version, for people.
    pub version: String,
    /// JSON Schema of the configuration, one JSON text.
    pub config_schema: Vec<u8>,
}

/// A manifest as it came from the guest, before anything in it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawManifest {
    /// The primary's kind, selector and projection; none for a pack.
    pub primary: Option<RawPrimary>,
    /// Declared reads.
    pub reads: Vec<RawRead>,
    /// Declared writes.
    pub writes: Vec<WriteRule>,
    /// Declared sources.
    pub sources: Vec<RawSource>,
    /// Declared actions.
    pub actions: Vec<ActionRule>,
}

/// The primary rule as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPrimary {
    /// Kind of the primary.
    pub kind: GroupVersionKind,
    /// Label selector.
    pub selector: String,
    /// JSON Pointers.
    pub projection: Vec<String>,
}

/// A read rule as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRead {
    /// Kind that is read.
    pub kind: GroupVersionKind,
    /// Where.
    pub scope: Scope,
    /// Names; empty stands for any.
    pub names: Vec<String>,
    /// Label selector.
    pub selector: String,
}

/// A checked manifest: all names are well formed, all selectors parse.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// When the plugin runs.
    pub role: Role,
    /// What it may read besides the primary.
    pub reads: Vec<ReadRule>,
    /// What it may write.
    pub writes: Vec<WriteRule>,
    /// Outside documents that it may read.
    pub sources: Vec<SourceRule>,
    /// Outside effects that it may ask for.
    pub actions: Vec<ActionRule>,
}

/// When a plugin runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Role {
    /// Once for each object of a kind.
    Controller(PrimaryRule),
}

/// The objects for which a controller runs, and what it sees of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrimaryRule {
    /// Kind of the primary.
    pub kind: GroupVersionKind,
    /// Which of them.
    pub selector: Selector,
    /// What the plugin sees of them.
    pub projection: Projection,
}

/// A kind that a plugin may read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadRule {
    /// Kind that is read.
    pub kind: GroupVersionKind,
    /// Where.
    pub scope: Scope,
    /// Names; empty stands for any.
    pub names: Vec<String>,
    /// Which of them.
    pub selector: Selector,
}

/// A kind that a plugin may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteRule {
    /// Kind that is written.
    pub kind: GroupVersionKind,
    /// Where.
    pub scope: Scope,
}

/// Where objects of a rule live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Scope {
    /// The namespace of the primary.
    PrimaryNamespace,
    /// The namespace that has the primary's name.
    NamespaceNamedLikePrimary,
    /// Just these namespaces.
    Namespaces(Vec<String>),
    /// All namespaces, or no namespace for a cluster-scoped kind.
    Cluster,
}

impl ReadRule {
    /// Whether a namespace may be read for a primary; none stands for all of them.
    pub fn covers(&self, primary: &ObjectReference, namespace: Option<&str>) -> bool {
        let names = self
            .scope
            .namespaces(primary.namespace.as_deref(), &primary.name);
        match (names, namespace) {
            (None, _) => true,
            (Some(names), Some(namespace)) => names.contains(&namespace),
            (Some(_), None) => false,
        }
    }
}

impl Scope {
    /// The namespaces that this scope names for a primary; none when it is all.
    pub fn namespaces<'a>(
        &'a self,
        primary_namespace: Option<&'a str>,
        primary_name: &'a str,
    ) -> Option<Vec<&'a str>> {
        match self {
            Self::PrimaryNamespace => Some(primary_namespace.into_iter().collect()),
            Self::NamespaceNamedLikePrimary => Some(vec![primary_name]),
            Self::Namespaces(names) => Some(names.iter().map(String::as_str).collect()),
            Self::Cluster => None,
        }
    }
}

/// Why a manifest cannot be used. Each names the entry and what would be right.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A part of a kind is malformed.
    #[error("{field}: `{value}` is not {expected}")]
    Name {
        /// Which entry of the manifest.
        field: String,
        /// What stands there.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// Every kind of a group and version, where nobody has allowed that.
    #[error(
        "{field}: `*` stands for every kind of its group and version, which is refused unless the operator allows it; declare each kind by its name, or allow it with --allow-wildcards, on the agent and on `reeve plugin grant`"
    )]
    Wildcard {
        /// Which entry of the manifest.
        field: String,
    },
    /// A label selector does not parse.
    #[error("{field}")]
    Selector {
        /// Which entry of the manifest.
        field: String,
        /// Why.
        source: SelectorError,
    },
    /// A projection is malformed.
    #[error("{field}")]
    Projection {
        /// Which entry of the manifest.
        field: String,
        /// Why.
        source: ProjectionError,
    },
    /// Something that this version of the host does not do.
    #[error(
        "{field}: this version of reeve does not serve {what} yet; remove them from the manifest"
    )]
    Unsupported {
        /// Which entry of the manifest.
        field: &'static str,
        /// What is not served.
        what: &'static str,
    },
    /// More than the agent would ask the API server for.
    #[error("{field}: {got} {what}, more than {limit}; use a wider scope or a selector")]
    TooWide {
        /// Which entry of the manifest.
        field: String,
        /// How many there are.
        got: usize,
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A number is out of its range.
    #[error("{field}: {value} is not from {least} to {most}")]
    Range {
        /// Which entry of the manifest.
        field: String,
        /// What stands there.
        value: u32,
        /// The least that may stand there.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The same name is declared twice.
    #[error("{field}: `{name}` is declared twice; give each its own name")]
    SameName {
        /// Which entry of the manifest.
        field: String,
        /// The name.
        name: String,
    },
    /// More entries than anybody would grant.
    #[error("{field}: {got} entries, more than {limit}; declare fewer")]
    TooMany {
        /// Which list of the manifest.
        field: &'static str,
        /// How many there are.
        got: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Secrets that are not named.
    #[error(
        "{field}: Secrets are shown one by one, and no plugin may watch those that it does not name; {advice}"
    )]
    Secrets {
        /// Which entry of the manifest.
        field: String,
        /// What to do.
        advice: &'static str,
    },
    /// The same kind and scope is declared twice.
    #[error("{field}: {kind} is declared twice for one scope; remove one of the entries")]
    Duplicate {
        /// Which entry of the manifest.
        field: String,
        /// The kind.
        kind: GroupVersionKind,
    },
}

impl TryFrom<RawManifest> for Manifest {
    type Error = ManifestError;

    fn try_from(raw: RawManifest) -> Result<Self, Self::Error> {
        Self::checked(raw, false)
    }
}

impl Manifest {
    /// What a component declares, wildcards included: to be shown, and nothing else.
    ///
    /// # Errors
    ///
    /// As for a manifest that is used, but for wildcards.
    pub fn as_declared(raw: RawManifest) -> Result<Self, ManifestError> {
        Self::checked(raw, true)
    }

    fn checked(raw: RawManifest, wildcards: bool) -> Result<Self, ManifestError> {
        let check_kind_or_any = |field: &str, kind: &GroupVersionKind| match is_wildcard(kind) {
            // The API server is asked for them, by these names.
            true => match wildcards {
                true => check_group_version(&format!("{field}.kind"), kind),
                false => Err(ManifestError::Wildcard {
                    field: format!("{field}.kind"),
                }),
            },
            false => check_kind(&format!("{field}.kind"), kind),
        };
        let Some(primary) = raw.primary else {
            return Err(unsupported("role", "packs"));
        };
        sizes::check(&raw.reads, &raw.writes, &raw.actions)?;
        for pointer in &primary.projection {
            check_shown("role.controller.projection", pointer)?;
        }
        check_kind("role.controller.kind", &primary.kind)?;
        if primary.kind.is_secret() {
            return Err(ManifestError::Secrets {
                field: "role.controller.kind".to_owned(),
                advice: "run for objects of another kind that say which Secrets they mean",
            });
        }
        let role = Role::Controller(PrimaryRule {
            kind: primary.kind,
            selector: parse_selector("role.controller.selector", &primary.selector)?,
            projection: Projection::new(primary.projection).map_err(|source| {
                ManifestError::Projection {
                    field: "role.controller.projection".to_owned(),
                    source,
                }
            })?,
        });
        let mut reads = Vec::with_capacity(raw.reads.len());
        for (index, read) in raw.reads.into_iter().enumerate() {
            let field = format!("reads[{index}]");
            check_kind_or_any(&field, &read.kind)?;
            check_scope(&field, &read.scope)?;
            check_names(&field, &read.names)?;
            if read.kind.is_secret() && read.names.is_empty() {
                return Err(ManifestError::Secrets {
                    field,
                    advice: "list the names of those that are read in `names`, for example from the configuration",
                });
            }
            reads.push(ReadRule {
                selector: parse_selector(&format!("{field}.selector"), &read.selector)?,
                kind: read.kind,
                scope: read.scope,
                names: read.names,
            });
        }
        for (index, write) in raw.writes.iter().enumerate() {
            let field = format!("writes[{index}]");
            check_kind_or_any(&field, &write.kind)?;
            check_scope(&field, &write.scope)?;
            if raw.writes[..index].contains(write) {
                return Err(ManifestError::Duplicate {
                    field,
                    kind: write.kind.clone(),
                });
            }
        }
        let sources = check_sources(raw.sources)?;
        check_actions(&raw.actions)?;
        reads.extend(sources.iter().filter_map(SourceRule::read_rule));
        Ok(Self {
            role,
            reads,
            writes: raw.writes,
            sources,
            actions: raw.actions,
        })
    }
}

impl Manifest {
    /// The rule for the primary.
    pub fn primary(&self) -> &PrimaryRule {
        let Role::Controller(rule) = &self.role;
        rule
    }

    /// Whether any action has Secrets generated.
    pub fn generates_secrets(&self) -> bool {
        self.actions.iter().any(|action| !action.secrets.is_empty())
    }

    /// The rule for a source.
    pub fn source(&self, name: &str) -> Option<&SourceRule> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// The rule for an action.
    pub fn action(&self, name: &str) -> Option<&ActionRule> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// All kinds that the manifest names, each once.
    pub fn kinds(&self) -> Vec<&GroupVersionKind> {
        let mut kinds = vec![&self.primary().kind];
        kinds.extend(self.reads.iter().map(|rule| &rule.kind));
        kinds.extend(self.writes.iter().map(|rule| &rule.kind));
        if self.generates_secrets() {
            kinds.push(secret_kind());
        }
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// The kind of a Secret.
pub fn secret_kind() -> &'static GroupVersionKind {
    static KIND: std::sync::LazyLock<GroupVersionKind> =
        std::sync::LazyLock::new(|| GroupVersionKind::new("", "v1", "Secret"));
    &KIND
}

fn unsupported(field: &'static str, what: &'static str) -> ManifestError {
    ManifestError::Unsupported { field, what }
}

/// Texts that a person reads before approving or granting what they stand for.
fn check_shown(field: &str, text: &str) -> Result<(), ManifestError> {
    match is_printable(text) {
        true => Ok(()),
        false => Err(ManifestError::Name {
            field: field.to_owned(),
            value: printable(text.to_owned()),
            expected: "text of printable characters",
        }),
    }
}

fn parse_selector(field: &str, text: &str) -> Result<Selector, ManifestError> {
    sizes::check_selector(field, text)?;
    text.parse().map_err(|source| ManifestError::Selector {
        field: field.to_owned(),
        source,
    })
}

/// Group, version and kind must be names that an API server could serve.
fn check_kind(field: &str, kind: &GroupVersionKind) -> Result<(), ManifestError> {
    check_group_version(field, kind)?;
    let mut chars = kind.kind.chars();
    let camel_case = chars.next().is_some_and(|first| first.is_ascii_uppercase())
        && chars.all(|c| c.is_ascii_alphanumeric())
        && kind.kind.len() <= 63;
    match camel_case {
        true => Ok(()),
        false => Err(ManifestError::Name {
            field: format!("{field}.kind"),
            value: kind.kind.clone(),
            expected: "a kind in CamelCase such as `ConfigMap`",
        }),
    }
}

fn check_group_version(field: &str, kind: &GroupVersionKind) -> Result<(), ManifestError> {
    let error = |part: &str, value: &str, expected| ManifestError::Name {
        field: format!("{field}.{part}"),
        value: value.to_owned(),
        expected,
    };
    if !kind.group.is_empty() && !is_dns_subdomain(&kind.group) {
        let expected =
            "an API group (a DNS-1123 subdomain such as `apps`, or empty for the core group)";
        return Err(error("group", &kind.group, expected));
    }
    if !is_dns_label(&kind.version) {
        return Err(error(
            "version",
            &kind.version,
            "an API version such as `v1`",
        ));
    }
    Ok(())
}

fn check_scope(field: &str, scope: &Scope) -> Result<(), ManifestError> {
    let Scope::Namespaces(names) = scope else {
        return Ok(());
    };
    if names.is_empty() {
        return Err(ManifestError::Name {
            field: format!("{field}.scope.namespaces"),
            value: String::new(),
            expected: "a list of at least one namespace",
        });
    }
    match names.iter().position(|name| !is_dns_label(name)) {
        None => Ok(()),
        Some(index) => Err(ManifestError::Name {
            field: format!("{field}.scope.namespaces[{index}]"),
            value: names[index].clone(),
            expected: "the name of a namespace (a DNS-1123 label)",
        }),
    }
}

/// Names that an object can have: what a path segment may hold, without what means
/// something in the field selector by which the host watches for a name.
fn check_names(field: &str, names: &[String]) -> Result<(), ManifestError> {
    let can_be = |name: &String| {
        let is_plain = |c: char| c.is_ascii_graphic() && !"/%,=!\\".contains(c);
        name.len() <= 253 && !matches!(name.as_str(), "" | "." | "..") && name.chars().all(is_plain)
    };
    match names.iter().position(|name| !can_be(name)) {
        None => Ok(()),
        Some(index) => Err(ManifestError::Name {
            field: format!("{field}.names[{index}]"),
            value: names[index].clone(),
            expected: "the name of one object",
        }),
    }
}

/// RFC 1123 label as Kubernetes checks it: lower-case alphanumerics and `-`, at
/// most 63 characters, alphanumeric at both ends.
pub fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.len() <= 63
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

/// RFC 1123 subdomain as Kubernetes checks it: labels joined by dots, at most
/// 253 characters. Unlike a DNS name's, a label here may be longer than 63.
pub fn is_dns_subdomain(text: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 253
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(alphanumeric)
                && bytes.last().is_some_and(alphanumeric)
                && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> RawManifest {
        RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec!["/metadata/labels".into()],
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

    #[test]
    fn a_good_manifest_passes() {
        let manifest = Manifest::try_from(raw()).unwrap();
        assert_eq!(manifest.kinds().len(), 2);
    }

    #[test]
    fn each_error_names_its_entry() {
        type Spoil = fn(&mut RawManifest);
        let cases: [(Spoil, &str); 13] = [
            (
                |m| {
                    let line = "/a\napproved".to_owned();
                    m.primary.as_mut().unwrap().projection.push(line);
                },
                r"role.controller.projection: `/a\napproved` is not text of printable characters",
            ),
            (
                |m| {
                    m.actions.push(ActionRule {
                        name: "call".into(),
                        description: String::new(),
                        http: vec!["https://a/\u{1b}[2K".into()],
                        sql: vec![],
                        secrets: vec![],
                    });
                },
                r"actions[0].http: `https://a/\u{1b}[2K` is not text of printable characters",
            ),
            (
                |m| {
                    m.reads.push(RawRead {
                        kind: GroupVersionKind::new("", "v1", "Secret"),
                        scope: Scope::Cluster,
                        names: vec!["system:ok".into(), "a,b".into()],
                        selector: String::new(),
                    });
                },
                "reads[0].names[1]: `a,b` is not the name of one object",
            ),
            (
                |m| {
                    m.reads.push(RawRead {
                        kind: GroupVersionKind::new("", "v1", "Secret"),
                        scope: Scope::Namespaces(vec!["a".into()]),
                        names: vec![],
                        selector: "a=b".into(),
                    });
                },
                "reads[0]: Secrets are shown one by one",
            ),
            (
                |m| m.primary.as_mut().unwrap().kind = secret_kind().clone(),
                "role.controller.kind: Secrets are shown one by one",
            ),
            (|m| m.primary = None, "role: this version"),
            (
                |m| m.writes[0].kind.kind = "*".into(),
                "writes[0].kind: `*` stands for every kind",
            ),
            (
                |m| m.writes[0].kind.version = String::new(),
                "writes[0].kind.version: `` is not an API version",
            ),
            (
                |m| m.writes[0].kind.group = "Apps".into(),
                "writes[0].kind.group: `Apps` is not an API group",
            ),
            (
                |m| m.writes[0].scope = Scope::Namespaces(vec!["ok".into(), "Not_ok".into()]),
                "writes[0].scope.namespaces[1]: `Not_ok`",
            ),
            (
                |m| m.writes[0].scope = Scope::Namespaces(vec![]),
                "writes[0].scope.namespaces: ``",
            ),
            (
                |m| m.writes.push(m.writes[0].clone()),
                "writes[1]: ResourceQuota.v1 is declared twice",
            ),
            (
                |m| m.primary.as_mut().unwrap().selector = "a in (".into(),
                "role.controller.selector",
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

    #[test]
    fn scopes_name_their_namespaces() {
        let named = Scope::Namespaces(vec!["a".into(), "b".into()]);
        for (scope, expected) in [
            (Scope::PrimaryNamespace, Some(vec!["ns"])),
            (Scope::NamespaceNamedLikePrimary, Some(vec!["alice"])),
            (named, Some(vec!["a", "b"])),
            (Scope::Cluster, None),
        ] {
            assert_eq!(scope.namespaces(Some("ns"), "alice"), expected);
        }
    }
}
