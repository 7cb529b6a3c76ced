//! What a manifest asks for, one thing a line, and what a new one asks for beyond
//! an old one.
//!
//! The lines are for people, and they are compared: each says what is asked for
//! and how it is restricted, so that a line is covered by the same line with less
//! of a restriction. Versions of a kind are left out: what one shows, another does.

use crate::digest::Digest;
use crate::kind::GroupVersionKind;
use crate::manifest::{
    Manifest, Origin, Scope, is_dns_label, is_dns_subdomain, is_wildcard, without_query,
};
use crate::projection::Projection;
use std::collections::BTreeSet;

/// The places of scopes, in words.
const IN_PRIMARY: &str = "in the primary's namespace";
const LIKE_PRIMARY: &str = "in the namespace named like the primary";
const IN_NAMESPACE: &str = "in namespace ";

/// What is asked for where Secrets are generated.
const GENERATE: &str = "generate Secrets";

/// Length of a token: 160 bits. Who delivers versions may look for two with one token, to
/// have one of them approved and run the other.
const TOKEN_LENGTH: usize = 40;

/// What a manifest asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks(BTreeSet<Ask>);

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ask {
    /// What, with its kind.
    what: String,
    /// Restrictions, each of which may be given up to ask for more; none says
    /// that there is none.
    restrictions: [Option<String>; 3],
    /// Texts in place of `what` that ask for more.
    wider: Vec<String>,
}

impl Ask {
    fn text(what: &str, restrictions: &[Option<&String>]) -> String {
        restrictions
            .iter()
            .flatten()
            .fold(what.to_owned(), |text, restriction| {
                format!("{text} {restriction}")
            })
    }

    /// Something that is not restricted, and for which there is nothing wider.
    fn plain(what: String) -> Self {
        Self {
            what,
            restrictions: [None, None, None],
            wider: Vec::new(),
        }
    }

    /// Its place among others: the more it can do, the earlier.
    fn rank(&self) -> usize {
        let verb = self.what.split(' ').next();
        let verbs = ["write", "generate", "use", "send", "fetch"];
        let place = verbs.iter().position(|known| Some(*known) == verb);
        place.unwrap_or(verbs.len())
    }

    /// The line for people.
    fn line(&self) -> String {
        let restrictions: Vec<_> = self.restrictions.iter().map(Option::as_ref).collect();
        Self::text(&self.what, &restrictions)
    }

    /// Whether one of these lines says as much, or more.
    fn is_covered(&self, lines: &BTreeSet<&str>) -> bool {
        let whats = std::iter::once(&self.what).chain(&self.wider);
        whats.into_iter().any(|what| {
            // Each restriction kept or given up.
            (0..1_u8 << self.restrictions.len()).any(|kept| {
                let restrictions: Vec<_> = self
                    .restrictions
                    .iter()
                    .enumerate()
                    .map(|(index, text)| text.as_ref().filter(|_| kept & (1 << index) != 0))
                    .collect();
                lines.contains(Self::text(what, &restrictions).as_str())
            })
        })
    }
}

impl Asks {
    /// What a manifest asks for.
    pub fn of(manifest: &Manifest) -> Self {
        let mut asks = BTreeSet::new();
        let primary = manifest.primary();
        let selector = |text: String| (!text.is_empty()).then(|| format!("where {text}"));
        let kind = name(&primary.kind);
        for (field, wider) in seen(&primary.projection) {
            let what = |field: &str| format!("see {field} of each {kind}");
            asks.insert(Ask {
                what: what(&field),
                restrictions: [selector(primary.selector.to_string()), None, None],
                wider: wider.iter().map(|field| what(field)).collect(),
            });
        }
        for read in &manifest.reads {
            let names: Vec<Option<String>> = match &read.names[..] {
                [] => vec![None],
                names => names.iter().map(|name| Some(named(name))).collect(),
            };
            for name_restriction in names {
                for place in places(&read.scope) {
                    asks.insert(Ask {
                        what: format!("read {}", name(&read.kind)),
                        restrictions: [
                            name_restriction.clone(),
                            place,
                            selector(read.selector.to_string()),
                        ],
                        wider: Vec::new(),
                    });
                }
            }
        }
        for write in &manifest.writes {
            for place in places(&write.scope) {
                asks.insert(Ask {
                    what: format!("write {}", name(&write.kind)),
                    restrictions: [place, None, None],
                    wider: Vec::new(),
                });
            }
        }
        for source in &manifest.sources {
            match &source.origin {
                Origin::Url(url) => {
                    asks.insert(Ask::plain(format!("fetch {}", without_query(url))))
                }
                Origin::File(path) => asks.insert(Ask::plain(format!("read file {path}"))),
                // Its ConfigMap is among the reads.
                Origin::ConfigMap(_) => false,
            };
        }
        for action in &manifest.actions {
            let urls = action.http.iter();
            asks.extend(urls.map(|url| Ask::plain(format!("send requests to {url}"))));
            let databases = action.sql.iter();
            asks.extend(databases.map(|name| Ask::plain(format!("use database {name}"))));
            for place in action.secrets.iter().flat_map(places) {
                asks.insert(Ask {
                    restrictions: [place, None, None],
                    ..Ask::plain(GENERATE.to_owned())
                });
            }
        }
        Self(asks)
    }

    /// One line for each thing, sorted.
    pub fn lines(&self) -> Vec<String> {
        let lines: BTreeSet<String> = self.0.iter().map(Ask::line).collect();
        lines.into_iter().collect()
    }

    /// The lines that others, [`Self::lines`] of another manifest, do not cover. First
    /// what changes anything, then what sends anything out, then what is only looked at:
    /// where not all are shown, it is the last that are left out.
    pub fn beyond(&self, others: &[String]) -> Vec<String> {
        let others = others.iter().map(String::as_str).collect();
        let more: BTreeSet<(usize, String)> = self
            .0
            .iter()
            .filter(|ask| !ask.is_covered(&others))
            .map(|ask| (ask.rank(), ask.line()))
            .collect();
        more.into_iter().map(|(_, line)| line).collect()
    }

    /// What stands in an approval for exactly these, asked for by this component under this
    /// configuration: another version that asks for the same was approved by nobody.
    pub fn token(&self, component: &Digest, config: &Digest) -> String {
        let version = [&component.bytes()[..], config.bytes()];
        let lines = self.lines();
        let asked = lines.iter().map(String::as_bytes);
        Digest::of_parts(version.into_iter().chain(asked)).digits(TOKEN_LENGTH)
    }
}

/// Whether one of these [lines](Asks::lines) asks for as much as this one, or more, as far as
/// that is told from the lines alone: where it is, it is so.
fn is_plainly_covered(line: &str, lines: &[String]) -> bool {
    // A line with less of a restriction is the beginning of it.
    lines.iter().any(|other| {
        let rest = line.strip_prefix(other.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// What of some lines is not covered by others, both of [`Asks::lines`]; some that are may be
/// among them, where a restriction in the middle of a line was given up.
pub fn lines_beyond<'a>(lines: &'a [String], others: &[String]) -> Vec<&'a str> {
    let lines = lines.iter().map(String::as_str);
    lines
        .filter(|line| !is_plainly_covered(line, others))
        .collect()
}

/// Where lines of [`Asks::lines`] say that objects of a kind are written.
pub fn written(lines: &[String], kind: &GroupVersionKind) -> Vec<Scope> {
    places_of(lines, &format!("write {}", name(kind)))
}

/// Where lines of [`Asks::lines`] say that Secrets are generated.
pub fn generated(lines: &[String]) -> Vec<Scope> {
    places_of(lines, GENERATE)
}

/// The places of the lines that ask for just this.
fn places_of(lines: &[String], what: &str) -> Vec<Scope> {
    let places_of = lines.iter().filter_map(|line| line.strip_prefix(what));
    let scopes = places_of.filter_map(|place| match place.trim_start() {
        "" => Some(Scope::Cluster),
        IN_PRIMARY => Some(Scope::PrimaryNamespace),
        LIKE_PRIMARY => Some(Scope::NamespaceNamedLikePrimary),
        place => {
            let name = place.strip_prefix(IN_NAMESPACE)?;
            // Not of a kind whose name only begins like this one.
            is_dns_label(name).then(|| Scope::Namespaces(vec![name.to_owned()]))
        }
    });
    scopes.collect()
}

fn name(kind: &GroupVersionKind) -> String {
    // No kind, and so none without its version: what other versions have is not asked for.
    if is_wildcard(kind) {
        return kind.to_string();
    }
    if kind.group.is_empty() {
        kind.kind.clone()
    } else {
        format!("{}.{}", kind.kind, kind.group)
    }
}

/// The restriction to a name. What is no usual name is quoted, so that it can be
/// taken for nothing else.
fn named(name: &str) -> String {
    if is_dns_subdomain(name) {
        format!("named {name}")
    } else {
        format!("named {name:?}")
    }
}

/// The restriction to each place of a scope.
fn places(scope: &Scope) -> Vec<Option<String>> {
    match scope {
        Scope::Cluster => vec![None],
        Scope::PrimaryNamespace => vec![Some(IN_PRIMARY.to_owned())],
        Scope::NamespaceNamedLikePrimary => vec![Some(LIKE_PRIMARY.to_owned())],
        Scope::Namespaces(names) => names
            .iter()
            .map(|name| Some(format!("{IN_NAMESPACE}{name}")))
            .collect(),
    }
}

/// What is seen of a primary, each with what shows that and more.
fn seen(projection: &Projection) -> Vec<(String, Vec<String>)> {
    const ALL: &str = "all but the status";
    let pointers = projection.pointers();
    if pointers.is_empty() {
        return vec![(ALL.to_owned(), Vec::new())];
    }
    pointers
        .into_iter()
        .map(|pointer| {
            let mut wider: Vec<String> = pointer
                .match_indices('/')
                .skip(1)
                .map(|(end, _)| pointer[..end].to_owned())
                .collect();
            if pointer != "/status" && !pointer.starts_with("/status/") {
                wider.push(ALL.to_owned());
            }
            (pointer, wider)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{ActionRule, RawManifest, RawPrimary, RawRead, RawSource, WriteRule};

    type Change<'a> = &'a dyn Fn(&mut RawManifest);

    fn asks(change: Change<'_>) -> Asks {
        let mut raw = RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: "team=a".into(),
                projection: vec!["/metadata/labels".into()],
            }),
            reads: vec![RawRead {
                kind: GroupVersionKind::new("", "v1", "Event"),
                scope: Scope::Namespaces(vec!["a".into(), "b".into()]),
                names: vec!["x".into()],
                selector: String::new(),
            }],
            writes: vec![WriteRule {
                kind: GroupVersionKind::new("", "v1", "ResourceQuota"),
                scope: Scope::NamespaceNamedLikePrimary,
            }],
            sources: vec![],
            actions: vec![],
        };
        change(&mut raw);
        Asks::of(&Manifest::try_from(raw).unwrap())
    }

    fn primary(raw: &mut RawManifest) -> &mut RawPrimary {
        raw.primary.as_mut().unwrap()
    }

    #[test]
    fn lines_are_for_people() {
        assert_eq!(
            asks(&|_| {}).lines(),
            [
                "read Event named x in namespace a",
                "read Event named x in namespace b",
                "see /metadata/labels of each Profile.kubeflow.org where team=a",
                "write ResourceQuota in the namespace named like the primary",
            ]
        );
    }

    #[test]
    fn more_is_told_and_less_is_not() {
        let base = asks(&|_| {}).lines();
        let cases: [(Change<'_>, &[&str]); 14] = [
            (&|_| {}, &[]),
            (&|m| m.writes.clear(), &[]),
            (&|m| m.writes[0].kind.version = "v2".into(), &[]),
            (
                &|m| m.writes[0].scope = Scope::Cluster,
                &["write ResourceQuota"],
            ),
            (
                &|m| m.writes[0].kind.kind = "RoleBinding".into(),
                &["write RoleBinding in the namespace named like the primary"],
            ),
            (
                &|m| m.writes[0].scope = Scope::Namespaces(vec!["kube-system".into()]),
                &["write ResourceQuota in namespace kube-system"],
            ),
            (
                &|m| m.reads[0].scope = Scope::Namespaces(vec!["a".into()]),
                &[],
            ),
            (
                &|m| m.reads[0].names.clear(),
                &["read Event in namespace a", "read Event in namespace b"],
            ),
            (
                &|m| m.reads[0].names.push("y".into()),
                &[
                    "read Event named y in namespace a",
                    "read Event named y in namespace b",
                ],
            ),
            (&|m| m.reads[0].selector = "app=web".into(), &[]),
            (
                &|m| primary(m).selector.clear(),
                &["see /metadata/labels of each Profile.kubeflow.org"],
            ),
            (
                &|m| primary(m).projection = vec!["/metadata/labels/a".into()],
                &[],
            ),
            (
                &|m| primary(m).projection.push("/spec".into()),
                &["see /spec of each Profile.kubeflow.org where team=a"],
            ),
            (
                &|m| primary(m).projection.clear(),
                &["see all but the status of each Profile.kubeflow.org where team=a"],
            ),
        ];
        for (change, expected) in cases {
            let asks = asks(change);
            assert_eq!(asks.beyond(&base), expected);
            assert_eq!(asks.beyond(&asks.lines()), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_outside_is_asked_for_too() {
        let source = |origin| RawSource {
            name: "s".into(),
            description: "a document".into(),
            origin,
            interval_seconds: 60,
        };
        let url = |m: &mut RawManifest, url: &str| {
            m.sources = vec![source(Origin::Url(url.into()))];
        };
        let action = |m: &mut RawManifest| {
            m.actions = vec![ActionRule {
                name: "database".into(),
                description: "makes a database".into(),
                http: vec!["https://a.example/".into()],
                sql: vec!["main".into()],
                secrets: vec![Scope::NamespaceNamedLikePrimary],
            }];
        };
        let base = asks(&|_| {}).lines();
        let cases: [(Change<'_>, &[&str]); 3] = [
            (
                &|m| url(m, "https://a.example/x"),
                &["fetch https://a.example/x"],
            ),
            (
                &|m| m.sources = vec![source(Origin::File("/etc/x".into()))],
                &["read file /etc/x"],
            ),
            (
                &action,
                &[
                    "generate Secrets in the namespace named like the primary",
                    "use database main",
                    "send requests to https://a.example/",
                ],
            ),
        ];
        for (change, expected) in cases {
            let asks = asks(change);
            assert_eq!(asks.beyond(&base), expected);
            assert_eq!(asks.beyond(&asks.lines()), Vec::<String>::new());
        }
        let other = asks(&|m| url(m, "https://b.example/x"));
        let known = asks(&|m| url(m, "https://a.example/x")).lines();
        assert_eq!(other.beyond(&known), ["fetch https://b.example/x"]);
    }

    #[test]
    fn the_status_is_not_part_of_all() {
        let all = asks(&|m| primary(m).projection.clear()).lines();
        for (field, more) in [
            ("/spec/x", 0),
            ("/status", 1),
            ("/status/x", 1),
            ("/statusx", 0),
        ] {
            let asks = asks(&|m| primary(m).projection = vec![field.into()]);
            assert_eq!(asks.beyond(&all).len(), more, "{field}");
        }
    }

    #[test]
    fn a_token_stands_for_one_set_of_one_version() {
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let same = asks(&|m| m.writes[0].kind.version = "v2".into());
        let (asks, fewer) = (asks(&|_| {}), asks(&|m| m.writes.clear()));
        let token = asks.token(&one, &other);
        assert_eq!(token, same.token(&one, &other));
        for another in [
            fewer.token(&one, &other),
            asks.token(&one, &one),
            asks.token(&other, &other),
            asks.token(&other, &one),
        ] {
            assert_ne!(token, another);
        }
    }

    #[test]
    fn places_are_read_back() {
        let kind = GroupVersionKind::new("", "v1", "ResourceQuota");
        for scope in [
            Scope::Cluster,
            Scope::PrimaryNamespace,
            Scope::NamespaceNamedLikePrimary,
            Scope::Namespaces(vec!["a".into()]),
        ] {
            let lines = asks(&|raw| raw.writes[0].scope = scope.clone()).lines();
            assert_eq!(written(&lines, &kind), [scope]);
        }
        let lines = asks(&|raw| raw.writes[0].kind.kind = "ResourceQuotas".into()).lines();
        assert_eq!(written(&lines, &kind), []);
        let lines = asks(&|raw| raw.writes[0].kind.group = "a.b".into()).lines();
        assert_eq!(written(&lines, &kind), []);
    }

    #[test]
    fn places_of_generated_secrets_are_read_back() {
        for scope in [
            Scope::Cluster,
            Scope::PrimaryNamespace,
            Scope::NamespaceNamedLikePrimary,
            Scope::Namespaces(vec!["a".into()]),
        ] {
            let change = |raw: &mut RawManifest| {
                raw.actions = vec![ActionRule {
                    name: "database".into(),
                    description: String::new(),
                    http: vec![],
                    sql: vec![],
                    secrets: vec![scope.clone()],
                }];
            };
            let lines = asks(&change).lines();
            assert_eq!(generated(&lines), [scope]);
        }
        assert_eq!(generated(&asks(&|_| {}).lines()), []);
    }

    #[test]
    fn lines_say_what_is_beyond_others() {
        let lines =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        let before = lines(&["write A in namespace a", "write B", "read AB"]);
        let after = lines(&["write A", "write B in namespace a", "read A"]);
        assert_eq!(lines_beyond(&before, &after), ["write B", "read AB"]);
        assert_eq!(lines_beyond(&before, &before), Vec::<&str>::new());
    }
}
