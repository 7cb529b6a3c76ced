//! Which requests a fault strikes.

use crate::http::route::Verb;

/// What a fault can tell requests apart by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The verb; none for paths that are no resource's.
    pub(crate) verb: Option<Verb>,
    /// The resource with subresource and group, such as `deployments/status.apps`;
    /// empty for other paths.
    pub(crate) resource: &'a str,
    /// The namespace; empty where there is none.
    pub(crate) namespace: &'a str,
    /// The user, after impersonation.
    pub(crate) user: &'a str,
    /// The program, as it names itself.
    pub(crate) agent: &'a str,
    /// Whether the request names a resource version or a page to go on from.
    pub(crate) versioned: bool,
}

/// The requests that a fault concerns. An empty list leaves open.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Matcher {
    pub(super) verbs: Vec<Verb>,
    pub(super) resources: Vec<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) users: Vec<String>,
    pub(super) agents: Vec<String>,
}

impl Matcher {
    /// Whether a user is named.
    pub(super) fn names_user(&self) -> bool {
        !self.users.is_empty()
    }

    pub(super) fn matches(&self, asked: &Asked<'_>) -> bool {
        let any = |wanted: &[String], found: &str| {
            wanted.is_empty() || wanted.iter().any(|wanted| fits(wanted, found))
        };
        let verb = |verbs: &[Verb]| asked.verb.is_some_and(|verb| verbs.contains(&verb));
        let resource = |wanted: &String| {
            // A resource without its group is that of any group.
            let plain = asked.resource.split('.').next().unwrap_or_default();
            fits(wanted, asked.resource) || fits(wanted, plain)
        };
        (self.verbs.is_empty() || verb(&self.verbs))
            && (self.resources.is_empty() || self.resources.iter().any(resource))
            && any(&self.namespaces, asked.namespace)
            && any(&self.users, asked.user)
            && any(&self.agents, asked.agent)
    }
}

/// Whether a text is the wanted one; a star at the end stands for any rest.
fn fits(wanted: &str, found: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => found.starts_with(start),
        None => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked<'static> = Asked {
        verb: Some(Verb::Update),
        resource: "deployments/status.apps",
        namespace: "alice",
        user: "system:serviceaccount:alice:bot",
        agent: "kubectl/v1.36",
        versioned: false,
    };

    #[track_caller]
    fn check(change: impl Fn(&mut Matcher), expected: bool) {
        let mut matcher = Matcher::default();
        change(&mut matcher);
        assert_eq!(matcher.matches(&ASKED), expected, "{matcher:?}");
    }

    #[test]
    fn requests_are_told_apart() {
        let list = |texts: &[&str]| {
            texts
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>()
        };
        check(|_| {}, true);
        check(|m| m.verbs = vec![Verb::Get, Verb::Update], true);
        check(|m| m.verbs = vec![Verb::Get], false);
        check(
            |m| m.resources = list(&["pods", "deployments/status"]),
            true,
        );
        check(|m| m.resources = list(&["deployments/status.apps"]), true);
        check(|m| m.resources = list(&["deployments/*"]), true);
        check(|m| m.resources = list(&["deployments"]), false);
        check(
            |m| m.resources = list(&["deployments/status.extensions"]),
            false,
        );
        check(|m| m.namespaces = list(&["al*"]), true);
        check(|m| m.namespaces = list(&["bob"]), false);
        check(|m| m.users = list(&["system:serviceaccount:*"]), true);
        check(|m| m.users = list(&["joe"]), false);
        check(|m| m.agents = list(&["kubectl/*"]), true);
        check(|m| m.agents = list(&["kubectl"]), false);
    }
}
