//! Looks at objects through a `kubectl proxy`. Tests look often while they wait, and a
//! kubectl for each look is most of what such a test costs.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use ureq::http::StatusCode;

use crate::ports::free_port;
use crate::server::{Server, listens};

/// To come to listen, which takes a tenth of a second on an idle machine.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// An API server that is busy answers within seconds; one that hangs is told of.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The document of all kinds at once.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What a look came to.
#[derive(Debug)]
pub(crate) enum Look<T> {
    Seen(T),
    /// Nothing that could be told for sure: the kind is not known by this name, or the
    /// server did not answer well. kubectl says why.
    Unclear,
}

/// The administrator's looks at one API server. They begin and end with it.
#[derive(Debug)]
pub(crate) struct Looks {
    _proxy: Server,
    url: String,
    agent: ureq::Agent,
    /// Those that were served when this last asked.
    kinds: Mutex<Vec<Kind>>,
}

/// A kind that is served.
#[derive(Clone, Debug)]
struct Kind {
    group: String,
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    /// `/api/v1` or `/apis/<group>/<version>`.
    base: String,
    api_version: String,
}

impl Looks {
    /// Starts the proxy; the API server need not be there yet.
    ///
    /// # Errors
    ///
    /// When it does not come to listen.
    pub(crate) fn start(
        supervise: &Path,
        kubectl: &Path,
        kubeconfig: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let port = free_port()?;
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "proxy".to_owned(),
            format!("--port={port}"),
        ];
        let mut proxy = Server::start("kubectl-proxy", supervise, kubectl, &arguments, folder)?;
        proxy.wait_until(READY_TIMEOUT, || listens(port))?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_TIMEOUT));
        Ok(Self {
            _proxy: proxy,
            url: format!("http://127.0.0.1:{port}"),
            agent: config.build().new_agent(),
            kinds: Mutex::default(),
        })
    }

    /// Whether a path is answered with success.
    pub(crate) fn answers(&self, path: &str) -> bool {
        self.ask(path, "*/*")
            .is_ok_and(|(status, _)| status.is_success())
    }

    /// One object, or none.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Look<Option<Value>> {
        let Some(kind) = self.kind(kind) else {
            return Look::Unclear;
        };
        let path = format!("{}/{name}", kind.path(namespace));
        match self.ask(&path, "application/json") {
            Ok((status, object)) if status.is_success() => Look::Seen(Some(object)),
            // Without a name it is the kind that is missing.
            Ok((StatusCode::NOT_FOUND, answer)) if answer["details"]["name"] == name => {
                Look::Seen(None)
            }
            _ => self.unclear(),
        }
    }

    /// All objects of a kind in a namespace, or in all of them.
    pub(crate) fn list(&self, kind: &str, namespace: &str) -> Look<Vec<Value>> {
        let Some(kind) = self.kind(kind) else {
            return Look::Unclear;
        };
        let answer = self.ask(&kind.path(namespace), "application/json");
        let Ok((StatusCode::OK, mut list)) = answer else {
            return self.unclear();
        };
        let Some(items) = list["items"].as_array_mut() else {
            return self.unclear();
        };
        for item in items.iter_mut() {
            // Which items of built-in kinds lack.
            item["apiVersion"] = kind.api_version.clone().into();
            item["kind"] = kind.kind.clone().into();
        }
        Look::Seen(std::mem::take(items))
    }

    fn ask(&self, path: &str, accept: &str) -> Result<(StatusCode, Value)> {
        let url = format!("{}{path}", self.url);
        let mut answer = self.agent.get(url).header("accept", accept).call()?;
        let body = answer.body_mut().with_config().limit(u64::MAX);
        let body = body.read_to_vec()?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Ok((answer.status(), body))
    }

    /// What is not clear may have changed.
    fn unclear<T>(&self) -> Look<T> {
        self.kinds().clear();
        Look::Unclear
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        let known = find(&self.kinds(), name);
        known.or_else(|| {
            let served = self.served().ok()?;
            let kind = find(&served, name);
            *self.kinds() = served;
            kind
        })
    }

    fn served(&self) -> Result<Vec<Kind>> {
        let mut kinds = Vec::new();
        for path in ["/api", "/apis"] {
            let (_, document) = self.ask(path, DISCOVERY)?;
            let groups = document["items"].as_array();
            for group in groups.context("the API server has no aggregated discovery")? {
                kinds.extend(Kind::of_group(group));
            }
        }
        Ok(kinds)
    }

    fn kinds(&self) -> MutexGuard<'_, Vec<Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind {
    /// Those of a group's preferred version, and what only its other versions have.
    fn of_group(document: &Value) -> Vec<Self> {
        let group = document["metadata"]["name"].as_str().unwrap_or_default();
        let mut kinds: Vec<Self> = Vec::new();
        for version in document["versions"].as_array().into_iter().flatten() {
            let name = version["version"].as_str().unwrap_or_default();
            let (base, api_version) = match group {
                "" => (format!("/api/{name}"), name.to_owned()),
                group => (format!("/apis/{group}/{name}"), format!("{group}/{name}")),
            };
            for resource in version["resources"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let plural = text(&resource["resource"]);
                if kinds.iter().all(|known| known.plural != plural) {
                    kinds.push(Self {
                        group: group.to_owned(),
                        singular: text(&resource["singularResource"]),
                        kind: text(&resource["responseKind"]["kind"]),
                        namespaced: resource["scope"] == "Namespaced",
                        base: base.clone(),
                        api_version: api_version.clone(),
                        plural,
                    });
                }
            }
        }
        kinds
    }

    /// Of its objects in a namespace, or of all.
    fn path(&self, namespace: &str) -> String {
        if self.namespaced && !namespace.is_empty() {
            format!("{}/namespaces/{namespace}/{}", self.base, self.plural)
        } else {
            format!("{}/{}", self.base, self.plural)
        }
    }
}

/// The one kind of this name: in plural or singular, with its group or without. Of those
/// of several groups, the one without a group, as for kubectl.
fn find(kinds: &[Kind], name: &str) -> Option<Kind> {
    let (plain, group) = match name.split_once('.') {
        Some((plain, group)) => (plain, Some(group)),
        None => (name, None),
    };
    let named = kinds.iter().filter(|kind| {
        let named = kind.plural == plain || kind.singular == plain;
        named && group.is_none_or(|group| kind.group == group)
    });
    match named.collect::<Vec<_>>()[..] {
        [one] => Some(one.clone()),
        ref several => several
            .iter()
            .find(|kind| kind.group.is_empty())
            .copied()
            .cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(name: &str, kinds: &[(&str, &str)]) -> Vec<Kind> {
        let resources = kinds.iter().map(|(singular, plural)| {
            json!({"resource": plural, "singularResource": singular, "scope": "Namespaced",
                "responseKind": {"kind": singular}})
        });
        let resources: Vec<_> = resources.collect();
        let versions = json!([{"version": "v1", "resources": resources}]);
        Kind::of_group(&json!({"metadata": {"name": name}, "versions": versions}))
    }

    #[test]
    fn a_kind_is_found_by_the_names_that_kubectl_takes() {
        let kinds = [
            group("events.k8s.io", &[("event", "events")]),
            group("", &[("event", "events")]),
            group("apps", &[("deployment", "deployments")]),
            group("one.example.com", &[("widget", "widgets")]),
            group("two.example.com", &[("widget", "widgets")]),
        ]
        .concat();
        let base = |name: &str| find(&kinds, name).map(|kind| kind.path("a"));
        let events = "/api/v1/namespaces/a/events";
        assert_eq!(base("events").as_deref(), Some(events));
        let events = "/apis/events.k8s.io/v1/namespaces/a/events";
        assert_eq!(base("events.events.k8s.io").as_deref(), Some(events));
        assert!(base("deployment").is_some());
        assert!(base("widget.two.example.com").is_some());
        // kubectl has an order and short names for these, which are left to kubectl.
        assert_eq!(base("widgets"), None);
        assert_eq!(base("deploy"), None);
    }
}
