//! What a method and a path ask for.

use http::Method;

use super::query::{Query, decode};

/// The target of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route {
    /// `/api/v1/…` or `/apis/GROUP/VERSION/…` below the list of resources.
    Resource(ResourcePath),
    /// Any other path: discovery, health, OpenAPI, or nothing at all. Decoded
    /// segments.
    Other(Vec<String>),
}

/// The parts of a path to a resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResourcePath {
    /// The API group; empty for core.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// The namespace; absent for cluster scope and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// The plural resource.
    pub(crate) resource: String,
    /// The object's name.
    pub(crate) name: Option<String>,
    /// What comes after the name.
    pub(crate) subresource: Option<String>,
    /// Whether it is the older path of a watch, `/api/v1/watch/…`.
    pub(crate) watch: bool,
}

/// What is done with a resource: the verbs of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change a part of one.
    Patch,
    /// Delete one.
    Delete,
    /// Delete many.
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC rules spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it changes anything.
    pub const fn is_write(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

impl Route {
    /// Splits a path.
    pub(crate) fn parse(path: &str) -> Self {
        // As the server does: an escaped slash divides like any other.
        let path = decode(path, false);
        let path = path.trim_start_matches('/');
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<&str> = path.split('/').filter(|_| !path.is_empty()).collect();
        match resource_path(&segments) {
            Some(path) => Route::Resource(path),
            None => Route::Other(segments.into_iter().map(str::to_owned).collect()),
        }
    }
}

/// The path to a resource that the segments are.
fn resource_path(segments: &[&str]) -> Option<ResourcePath> {
    let (group, version, rest) = match segments {
        ["api", version, rest @ ..] => ("", version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, version, rest),
        _ => return None,
    };
    if rest.is_empty() {
        return None;
    }
    let mut path = ResourcePath {
        group: group.to_owned(),
        version: (*version).to_owned(),
        ..ResourcePath::default()
    };
    let rest = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => {
            path.watch = true;
            rest
        }
        rest => rest,
    };
    // A path under a namespace is one to the Namespace itself when what follows
    // is nothing or a subresource of it.
    let rest = match rest {
        [namespaces @ "namespaces", name, rest @ ..] => {
            path.namespace = Some((*name).to_owned());
            match rest {
                [] | ["status" | "finalize"] => {
                    path.resource = (*namespaces).to_owned();
                    path.name = Some((*name).to_owned());
                    path.subresource = rest.first().map(|sub| (*sub).to_owned());
                    return Some(path);
                }
                rest => rest,
            }
        }
        rest => rest,
    };
    let mut rest = rest.iter().map(|segment| (*segment).to_owned());
    path.resource = rest.next()?;
    path.name = rest.next();
    path.subresource = rest.next();
    // What comes after a proxy is the path on the other side.
    if rest.next().is_some() && path.subresource.as_deref() != Some("proxy") {
        // Too long for any resource, though it begins like one.
        path.resource.clear();
    }
    Some(path)
}

impl ResourcePath {
    /// The verb that the method means here; `None` where it means nothing.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        let named = self.name.is_some();
        Some(match *method {
            Method::GET if self.watch => Verb::Watch,
            _ if self.watch => return None,
            Method::GET if named => Verb::Get,
            Method::GET if query.flag("watch") => Verb::Watch,
            Method::GET => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// `resource` or `resource/subresource`.
    pub(crate) fn full_resource(&self) -> String {
        match &self.subresource {
            None => self.resource.clone(),
            Some(sub) => format!("{}/{sub}", self.resource),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<(&str, &str, &str, &str, &str)>) {
        let shown = match Route::parse(path) {
            Route::Other(_) => None,
            Route::Resource(p) => Some((
                crate::status::qualified(&p.group, &p.version),
                p.namespace.unwrap_or_default(),
                p.resource,
                p.name.unwrap_or_default(),
                p.subresource.unwrap_or_default(),
            )),
        };
        let shown = shown
            .as_ref()
            .map(|(a, b, c, d, e)| (a.as_str(), b.as_str(), c.as_str(), d.as_str(), e.as_str()));
        assert_eq!(shown, expected, "{path}");
    }

    #[test]
    fn paths_name_resources() {
        check("/api/v1/pods", Some(("v1", "", "pods", "", "")));
        check(
            "/api/v1/namespaces/a/pods/b/status",
            Some(("v1", "a", "pods", "b", "status")),
        );
        check(
            "/api/v1/namespaces/a",
            Some(("v1", "a", "namespaces", "a", "")),
        );
        check(
            "/api/v1/namespaces/a/finalize",
            Some(("v1", "a", "namespaces", "a", "finalize")),
        );
        check(
            "/apis/apps/v1/namespaces/a/deployments",
            Some(("v1.apps", "a", "deployments", "", "")),
        );
        check(
            "/apis/apps/v1/deployments/x%3Ay",
            Some(("v1.apps", "", "deployments", "x:y", "")),
        );
        check("/apis/apps/v1", None);
        check("/api", None);
        check("/healthz", None);
    }

    #[test]
    fn methods_mean_verbs() {
        let verb = |method, path, query| match Route::parse(path) {
            Route::Resource(path) => path.verb(&method, &Query::parse(query)),
            Route::Other(_) => None,
        };
        assert_eq!(verb(Method::GET, "/api/v1/pods", ""), Some(Verb::List));
        assert_eq!(
            verb(Method::GET, "/api/v1/pods", "watch=true"),
            Some(Verb::Watch)
        );
        assert_eq!(verb(Method::GET, "/api/v1/nodes/a", ""), Some(Verb::Get));
        assert_eq!(
            verb(Method::DELETE, "/api/v1/nodes", ""),
            Some(Verb::DeleteCollection)
        );
        assert_eq!(verb(Method::OPTIONS, "/api/v1/nodes", ""), None);
    }
}
