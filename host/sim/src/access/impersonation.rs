//! Acting for somebody else, in the ways that the real server knows: those that are
//! granted for some requests only, and the one that is granted for all.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::{authorize, authorize_path, refused};
use crate::authz::Attributes;
use crate::identity::{
    ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED, service_account_groups,
};
use crate::names;
use crate::server::Shared;
use crate::status::ApiError;

const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
/// Where a service account's identity says which node it runs on.
const NODE_OF_POD: &str = "authentication.kubernetes.io/node-name";
/// The group of the rights that are not the oldest one.
const GROUP: &str = "authentication.k8s.io";
/// From so many groups or attributes on, the right to all of them is asked for first.
const MANY: usize = 4;

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// A resource.
    Resource(Attributes<'a>),
    /// A path that is none.
    Path {
        /// The method, in small letters.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// A way to act for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A service account for the node that it runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// For anybody else.
    UserInfo,
    /// For anybody, whatever is asked.
    Legacy,
}

/// In the order in which they are tried.
const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

/// Which way was open to whom the last time: it is tried first, so that a refusal is
/// about it.
#[derive(Debug, Default)]
pub(crate) struct LastModes(Mutex<HashMap<Identity, Mode>>);

/// So many callers are remembered.
const REMEMBERED: usize = 1024;

impl LastModes {
    fn get(&self, user: &Identity) -> Option<Mode> {
        self.0.lock().get(user).copied()
    }

    fn set(&self, user: &Identity, mode: Mode) {
        let mut modes = self.0.lock();
        if modes.get(user) == Some(&mode) {
            return;
        }
        if modes.len() >= REMEMBERED {
            modes.clear();
        }
        modes.insert(user.clone(), mode);
    }
}

/// The identity that the user may take on for what is asked, with the groups that it
/// has anyway.
///
/// # Errors
///
/// 403 with what the first way lacks, where none is open.
pub(crate) fn impersonate(
    shared: &Shared,
    user: &Identity,
    wanted: &Identity,
    asked: &Asked<'_>,
) -> Result<Identity, ApiError> {
    let last = shared.rights.modes.get(user);
    let others = MODES.into_iter().filter(|mode| Some(*mode) != last);
    let modes = last.into_iter().chain(others);
    let mut first = None;
    for mode in modes.filter(|mode| mode.applies(user, wanted)) {
        match mode.check(shared, user, wanted, asked) {
            Ok(identity) => {
                shared.rights.modes.set(user, mode);
                return Ok(identity);
            }
            Err(refusal) => {
                first.get_or_insert(refusal);
            }
        }
    }
    // The last one applies always.
    Err(first.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

impl Mode {
    /// What rights call it; the oldest has no name.
    fn name(self) -> Option<&'static str> {
        match self {
            Mode::AssociatedNode => Some("associated-node"),
            Mode::ArbitraryNode => Some("arbitrary-node"),
            Mode::ServiceAccount => Some("serviceaccount"),
            Mode::UserInfo => Some("user-info"),
            Mode::Legacy => None,
        }
    }

    fn applies(self, user: &Identity, wanted: &Identity) -> bool {
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node(&wanted.name);
        let account = Identity::parse_service_account(&wanted.name);
        match self {
            Mode::AssociatedNode => {
                let runs_on = user.extra.get(NODE_OF_POD).map(Vec::as_slice);
                let runs_on = match runs_on {
                    Some([one]) => Some(one.as_str()),
                    _ => None,
                };
                only_name
                    && node.is_some()
                    && node == runs_on
                    && Identity::parse_service_account(&user.name).is_some()
            }
            Mode::ArbitraryNode => only_name && node.is_some(),
            Mode::ServiceAccount => only_name && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }

    fn check(
        self,
        shared: &Shared,
        user: &Identity,
        wanted: &Identity,
        asked: &Asked<'_>,
    ) -> Result<Identity, ApiError> {
        let Some(name) = self.name() else {
            let rights = Rights {
                shared,
                user,
                verb: "impersonate",
                is_constrained: false,
            };
            return rights.identity(self, wanted);
        };
        let on = |verb: &str| format!("impersonate-on:{name}:{verb}");
        match asked {
            Asked::Resource(asked) => {
                let verb = on(asked.verb);
                let asked = Attributes {
                    verb: &verb,
                    ..*asked
                };
                authorize(shared, user, &asked)?;
            }
            Asked::Path { verb, path } => authorize_path(shared, user, &on(verb), path)?,
        }
        let rights = Rights {
            shared,
            user,
            verb: &format!("impersonate:{name}"),
            is_constrained: true,
        };
        rights.identity(self, wanted)
    }
}

/// The node whose user that is.
fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE_PREFIX)?;
    names::dns1123_subdomain(name).is_empty().then_some(name)
}

/// What a user may take on by one verb.
struct Rights<'a> {
    shared: &'a Shared,
    user: &'a Identity,
    verb: &'a str,
    is_constrained: bool,
}

impl Rights<'_> {
    /// The identity, if each part of it may be taken on.
    fn identity(&self, mode: Mode, wanted: &Identity) -> Result<Identity, ApiError> {
        let mut identity = wanted.clone();
        let group = if self.is_constrained { GROUP } else { "" };
        let account = Identity::parse_service_account(&wanted.name);
        match (account, node(&wanted.name)) {
            (Some((namespace, name)), _) => {
                if wanted.groups.is_empty() {
                    identity.groups.extend(service_account_groups(namespace));
                }
                self.ask(group, "serviceaccounts", "", namespace, name)?;
            }
            (None, Some(name)) if self.is_constrained => {
                identity.groups.push(NODES.to_owned());
                let name = if mode == Mode::AssociatedNode {
                    "*"
                } else {
                    name
                };
                self.ask(group, "nodes", "", "", name)?;
            }
            _ => self.ask(group, "users", "", "", &wanted.name)?,
        }
        if !wanted.uid.is_empty() {
            self.ask(GROUP, "uids", "", "", &wanted.uid)?;
        }
        self.check_groups(group, &wanted.groups)?;
        self.check_extra(wanted)?;
        let has = |group: &str| identity.groups.iter().any(|had| had == group);
        let added = if wanted.name == ANONYMOUS {
            Some(UNAUTHENTICATED)
        } else {
            (!has(UNAUTHENTICATED)).then_some(AUTHENTICATED)
        };
        if let Some(added) = added.filter(|group| !has(group)) {
            identity.groups.push(added.to_owned());
        }
        Ok(identity)
    }

    fn check_groups(&self, of: &str, groups: &[String]) -> Result<(), ApiError> {
        if self.is_constrained {
            let never = |name: &str, why: &str| {
                let asked = self.attributes(of, "groups", "", "", name);
                groups
                    .iter()
                    .any(|group| group == name)
                    .then(|| refused(self.user, &asked, why))
            };
            let empty = never("", "impersonating the empty string group is not allowed");
            let masters = never(
                MASTERS,
                "impersonating the system:masters group is not allowed",
            );
            if let Some(refusal) = empty.or(masters) {
                return Err(refusal);
            }
            if groups.len() >= MANY && self.ask(of, "groups", "", "", "*").is_ok() {
                return Ok(());
            }
        }
        let mut groups = groups.iter();
        groups.try_for_each(|group| self.ask(of, "groups", "", "", group))
    }

    fn check_extra(&self, wanted: &Identity) -> Result<(), ApiError> {
        let extra = &wanted.extra;
        if self.is_constrained {
            if let Some(why) = extra.iter().find_map(|(key, values)| wrong(key, values)) {
                let asked = self.attributes(GROUP, "userextras", "", "", "");
                return Err(refused(self.user, &asked, &why));
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.ask(GROUP, "userextras", "*", "", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.ask(GROUP, "userextras", key, "", value)?;
            }
        }
        Ok(())
    }

    fn attributes<'r>(
        &'r self,
        group: &'r str,
        resource: &'r str,
        subresource: &'r str,
        namespace: &'r str,
        name: &'r str,
    ) -> Attributes<'r> {
        Attributes {
            verb: self.verb,
            group,
            resource,
            subresource,
            namespace,
            name,
        }
    }

    fn ask(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let asked = self.attributes(group, resource, subresource, namespace, name);
        authorize(self.shared, self.user, &asked)
    }
}

/// Why an attribute cannot be taken on, whoever asks.
fn wrong(key: &str, values: &[String]) -> Option<String> {
    let domain = key.split_once('/');
    let domain = domain.filter(|(domain, path)| !domain.is_empty() && !path.is_empty());
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let Some((domain, _)) = domain else {
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: must be a domain-prefixed path (such as \"acme.io/foo\")",
            crate::field::quoted(key)
        ));
    };
    if let Some(why) = names::dns1123_subdomain(domain).first() {
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: {why}",
            crate::field::quoted(domain)
        ));
    }
    if values.is_empty() {
        return Some("impersonating empty values in extra is not allowed".to_owned());
    }
    values
        .iter()
        .any(String::is_empty)
        .then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}
