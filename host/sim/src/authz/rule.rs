//! A policy rule: what it matches, and what it covers.

use serde_json::{Value, json};

use super::rbac::Attributes;
use crate::field::quoted;
use crate::kinds::edit::items;

const ALL: &str = "*";

/// One rule of a role: some verbs on some resources, or on some paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// API groups of the resources.
    pub groups: Vec<String>,
    /// Resources, with subresources as in `pods/log` or `*/scale`.
    pub resources: Vec<String>,
    /// The only names; all when empty.
    pub names: Vec<String>,
    /// Paths that are no resources, possibly ending in `*`.
    pub paths: Vec<String>,
}

impl Rule {
    /// Reads an entry of `rules`.
    pub fn parse(rule: &Value) -> Self {
        let texts = |field: &str| {
            items(rule, field)
                .filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        Rule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            paths: texts("nonResourceURLs"),
        }
    }

    /// Everything on every resource, or on every path.
    pub(super) fn everything() -> [Rule; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Rule {
                verbs: all(),
                groups: all(),
                resources: all(),
                ..Rule::default()
            },
            Rule {
                verbs: all(),
                paths: all(),
                ..Rule::default()
            },
        ]
    }

    /// The entry of `rules`.
    pub fn to_value(&self) -> Value {
        let mut rule = json!({ "verbs": self.verbs });
        for (field, list) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ] {
            if !list.is_empty() {
                rule[field] = json!(list);
            }
        }
        rule
    }

    /// Whether the rule allows a request for a resource.
    pub fn matches(&self, asked: &Attributes<'_>) -> bool {
        has(&self.verbs, asked.verb)
            && has(&self.groups, asked.group)
            && self
                .resources
                .iter()
                .any(|resource| matches_resource(resource, asked.resource, asked.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }

    /// Whether the rule allows a request for a path.
    pub fn matches_path(&self, verb: &str, path: &str) -> bool {
        has(&self.verbs, verb) && self.paths.iter().any(|rule| matches_path(rule, path))
    }

    /// The rule as rules of one verb on one thing each.
    pub(super) fn atoms(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Rule {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    if self.names.is_empty() {
                        atoms.push(atom);
                    } else {
                        atoms.extend(self.names.iter().map(|name| Rule {
                            names: one(name),
                            ..atom.clone()
                        }));
                    }
                }
            }
        }
        for path in &self.paths {
            for verb in &self.verbs {
                atoms.push(Rule {
                    verbs: one(verb),
                    paths: one(path),
                    ..Rule::default()
                });
            }
        }
        atoms
    }

    /// Whether everything that `other` allows is allowed here.
    pub(super) fn covers(&self, other: &Rule) -> bool {
        covers_all(&self.verbs, &other.verbs)
            && covers_all(&self.groups, &other.groups)
            && other
                .resources
                .iter()
                .all(|resource| self.covers_resource(resource))
            && other.paths.iter().all(|path| {
                self.paths.iter().any(|own| {
                    own == path
                        || own
                            .strip_suffix(ALL)
                            .is_some_and(|start| path.starts_with(start))
                })
            })
            && (self.names.is_empty()
                || (!other.names.is_empty()
                    && other.names.iter().all(|name| self.names.contains(name))))
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let own = |name: &str| self.resources.iter().any(|own| own == name);
        own(ALL)
            || own(resource)
            || resource
                .split_once('/')
                .is_some_and(|(_, subresource)| own(&format!("*/{subresource}")))
    }

    /// The rule in the short form of messages.
    pub(super) fn compact(&self) -> String {
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", texts.join(" "))
        };
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| format!("{name}:{}", list(texts)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|text| text == ALL || text == wanted)
}

fn covers_all(own: &[String], other: &[String]) -> bool {
    own.iter().any(|text| text == ALL) || other.iter().all(|text| own.contains(text))
}

/// As texts: who asks for the resource `pods/log` asks for the logs of pods.
fn matches_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    match rule.split_once('/') {
        None => false,
        Some((ALL, sub)) if sub == subresource => true,
        Some((of, sub)) => of == resource && sub == subresource,
    }
}

fn matches_path(rule: &str, path: &str) -> bool {
    rule == path
        || rule
            .strip_suffix(ALL)
            .is_some_and(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Rule {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Rule {
            verbs: texts(verbs),
            groups: texts(groups),
            resources: texts(resources),
            names: texts(names),
            paths: Vec::new(),
        }
    }

    #[test]
    fn resources() {
        let check = |resource: &str, asked: (&str, &str), matches: bool| {
            let found = matches_resource(resource, asked.0, asked.1);
            assert_eq!(found, matches, "{resource} {asked:?}");
        };
        check("*", ("pods", "log"), true);
        check("pods", ("pods", ""), true);
        check("pods", ("pods", "log"), false);
        check("pods/log", ("pods/log", ""), true);
        check("*/log", ("pods/log", ""), false);
        check("pods/log", ("pods", "log"), true);
        check("pods/log", ("pods", ""), false);
        check("*/scale", ("deployments", "scale"), true);
        check("*/scale", ("deployments", "status"), false);
        check("pods/*", ("pods", "log"), false);
    }

    #[test]
    fn paths() {
        assert!(matches_path("/healthz", "/healthz"));
        assert!(!matches_path("/healthz", "/healthz/etcd"));
        assert!(matches_path("/api/*", "/api/v1"));
        assert!(!matches_path("/api/*", "/api"));
        assert!(matches_path("*", "/anything"));
    }

    #[test]
    fn covering() {
        let check = |own: &Rule, other: &Rule, covers: bool| {
            assert_eq!(own.covers(other), covers, "{own:?} {other:?}");
        };
        let get_pods = rule(&["get"], &[""], &["pods"], &[]);
        check(&get_pods, &get_pods, true);
        check(&rule(&["*"], &["*"], &["*"], &[]), &get_pods, true);
        check(
            &get_pods,
            &rule(&["get", "list"], &[""], &["pods"], &[]),
            false,
        );
        check(&get_pods, &rule(&["get"], &[""], &["pods"], &["a"]), true);
        check(&rule(&["get"], &[""], &["pods"], &["a"]), &get_pods, false);
        check(
            &rule(&["get"], &[""], &["*/log"], &[]),
            &rule(&["get"], &[""], &["pods/log"], &[]),
            true,
        );
    }

    #[test]
    fn short_form() {
        let rule = rule(&["get", "list"], &[""], &["pods"], &["a"]);
        assert_eq!(
            rule.compact(),
            "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"a\"], Verbs:[\"get\" \
             \"list\"]}"
        );
        assert_eq!(Rule::parse(&rule.to_value()), rule);
    }
}
