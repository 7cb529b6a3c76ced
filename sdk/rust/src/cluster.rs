//! The cluster as one call sees it.

use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;

use crate::backend::Backend;
use crate::json::{self, JsonError};
use crate::source::Document;
use crate::{Kind, ObjectReference};

/// What a call may ask about: the cluster and the time.
///
/// All questions within one call are answered from one version of the host's
/// store. What is read, and also what is looked for in vain, is recorded: the
/// plugin runs again when one of those things changes, and not otherwise.
///
/// In a plugin there is nothing to make one from; it comes as an argument. In
/// native tests, [`Context::test`] makes one.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// const POD: Kind = Kind::new("v1", "Pod");
/// const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
///
/// #[config]
/// #[derive(Default)]
/// struct Config {}
///
/// fn manifest(_: &Config) -> Manifest {
///     let platform = Scope::Namespaces(vec!["platform".into()]);
///     Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
///         .reads(ReadRule::new(CONFIG_MAP, platform).names(["contacts"]))
///         .reads((POD, Scope::NamespaceNamedLikePrimary))
///         .writes(CONFIG_MAP, Scope::NamespaceNamedLikePrimary)
/// }
///
/// fn reconcile(profile: Value, _: &Config, cx: &Context) -> Result<Outcome, Failure> {
///     let name = profile["metadata"]["name"].as_str().or_terminal("no name")?;
///     let contacts = CONFIG_MAP.object("contacts").in_namespace("platform");
///     let contacts: Option<Value> = cx.get(&contacts)?;
///     let pods = Query::of(POD).in_namespace(name).selector("app=notebook");
///     let pods = cx.list_references(&pods)?.len();
///     Ok(Outcome::of([json!({
///         "apiVersion": "v1", "kind": "ConfigMap",
///         "metadata": {"name": "contacts", "namespace": name},
///         "data": {"notebooks": pods.to_string(), "known": contacts.is_some().to_string()},
///     })]))
/// }
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Context {
    pub(crate) backend: Backend,
}

impl Context {
    /// The object, all of it but its status, or none when it does not exist.
    ///
    /// # Errors
    ///
    /// When the host gives no answer, or the object does not fit the type.
    pub fn get<T: DeserializeOwned>(
        &self,
        object: &ObjectReference,
    ) -> Result<Option<T>, ReadError> {
        self.get_parts::<T, &str>(object, [])
    }

    /// Like [`Context::get`], reading just these parts, as JSON Pointers. A
    /// change outside of them does not run the plugin. No parts stand for all but
    /// `/status`.
    ///
    /// # Errors
    ///
    /// When the host gives no answer, or the parts do not fit the type.
    pub fn get_parts<T: DeserializeOwned, P: Into<String>>(
        &self,
        object: &ObjectReference,
        parts: impl IntoIterator<Item = P>,
    ) -> Result<Option<T>, ReadError> {
        let parts: Vec<String> = parts.into_iter().map(Into::into).collect();
        self.backend
            .get(object, &parts)?
            .map(|json| parse(&object.kind, &json))
            .transpose()
    }

    /// All objects that match, ordered by namespace and name.
    ///
    /// # Errors
    ///
    /// When the host gives no answer, or an object does not fit the type. A list
    /// that is only partly granted fails; it is never just shorter.
    pub fn list<T: DeserializeOwned>(&self, query: &Query) -> Result<Vec<T>, ReadError> {
        self.backend
            .list(query)?
            .iter()
            .map(|json| parse(&query.kind, json))
            .collect()
    }

    /// The names of all objects that match, ordered by namespace and name. Reads
    /// no content: a change of content alone does not run the plugin again.
    ///
    /// # Errors
    ///
    /// When the host gives no answer.
    pub fn list_references(&self, query: &Query) -> Result<Vec<ObjectReference>, ReadError> {
        self.backend.list_references(query)
    }

    /// The last good version of an outside document that the manifest declares. The
    /// plugin runs again when its content changes.
    ///
    /// # Errors
    ///
    /// When it is not declared or not granted, or has never been fetched.
    pub fn source(&self, name: &str) -> Result<Document, ReadError> {
        self.backend.source(name)
    }

    /// How long ago the document was confirmed to be current, in whole intervals: zero
    /// as long as looking at it succeeds. Asking makes the age an input of the call, so
    /// that the plugin runs again as it grows.
    ///
    /// # Errors
    ///
    /// As [`Context::source`].
    pub fn source_age(&self, name: &str) -> Result<Duration, ReadError> {
        self.backend.source_age(name).map(Duration::from_secs)
    }

    /// What the outside effect of this key reported when it was carried out last; none
    /// before that, or when the fact does not fit the type. It stays while the effect
    /// is carried out again.
    pub fn fact<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        json::from_slice(self.backend.fact(key)?).ok()
    }

    /// Whether the outside effect of this key has been carried out; what it reported
    /// is of no interest.
    pub fn has_fact(&self, key: &str) -> bool {
        self.backend.fact(key).is_some()
    }

    /// The time, the same throughout one call.
    ///
    /// Asking makes the time an input of the call, so its answer is not
    /// remembered; combine it with [`Outcome::next_after`](crate::Outcome) to be
    /// run again in time. `SystemTime::now` does not work in a plugin.
    pub fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.backend.now())
    }
}

fn parse<T: DeserializeOwned>(kind: &Kind, json: &[u8]) -> Result<T, ReadError> {
    json::from_slice(json).map_err(|source| ReadError::Malformed {
        kind: kind.clone(),
        source,
    })
}

/// Which objects to list.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let bindings = Query::of(Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding"))
///     .in_namespace("alice")
///     .projection(["/subjects", "/metadata/annotations"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Query {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) selector: String,
    pub(crate) projection: Vec<String>,
}

impl Query {
    /// All objects of this kind, in all namespaces.
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            namespace: None,
            selector: String::new(),
            projection: Vec::new(),
        }
    }

    /// Only in this namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only with these labels, in Kubernetes' text form. Where the manifest's rule has a
    /// selector too, each of its requirements has to follow from one of these: `app`, say,
    /// from `app=web`.
    pub fn selector(mut self, selector: impl Into<String>) -> Self {
        self.selector = selector.into();
        self
    }

    /// Reads just these parts, as JSON Pointers. A change outside of them does
    /// not run the plugin. Without this, all but `/status` is read.
    pub fn projection<P: Into<String>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.projection = parts.into_iter().map(Into::into).collect();
        self
    }
}

/// Why a read gave no answer. Each is different from the object being absent.
///
/// `?` turns it into the [`Failure`](crate::Failure) that suits it: not synced
/// into not ready, forbidden into retry, and the others, which only a new version
/// of the plugin or of the object can heal, into terminal.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The plugin's ServiceAccount may not read this, or not all of it.
    #[error("{0}")]
    Forbidden(String),
    /// The manifest does not declare this read.
    #[error("{0}")]
    Undeclared(String),
    /// The host has not seen all objects of this kind yet, or the cluster does
    /// not serve the kind.
    #[error("{0}")]
    NotSynced(String),
    /// The question itself is malformed, such as a selector that does not parse.
    #[error("{0}")]
    Invalid(String),
    /// The object is there but does not fit the type it was asked as.
    #[error("unexpected content of {kind}: {source}")]
    Malformed {
        /// Kind of the object.
        kind: Kind,
        /// What does not fit.
        source: JsonError,
    },
}
