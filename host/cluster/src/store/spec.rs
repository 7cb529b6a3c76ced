//! What is watched.

use crate::identity::Identity;
use crate::object::{Object, ObjectError, without_payload};
use crate::resource::Resource;
use reeve_core::selector::Selector;
use std::fmt;
use std::sync::Arc;

/// A set of objects to watch: equal specs share one watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchSpec {
    /// Kind.
    pub resource: Resource,
    /// Where.
    pub scope: WatchScope,
    /// Which of them; the empty selector for all.
    pub selector: Selector,
    /// Whether the store keeps what [`Object::without_payload`] leaves: enough to see that
    /// something has changed, for objects that are read by themselves when they are needed.
    pub without_payload: bool,
}

/// Where objects are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchScope {
    /// Everywhere: all namespaces, or all objects of a cluster-scoped kind.
    All,
    /// One namespace.
    Namespace(String),
    /// Objects of one name, which needs no more than rights on that name.
    Object {
        /// Their namespace; none for the one object of a cluster-scoped kind, and for
        /// those of all namespaces.
        namespace: Option<String>,
        /// Their name.
        name: String,
    },
    /// The objects that [`crate::WatchHandle::set_names`] names. They are not watched,
    /// which takes rights that cannot be given by name where names are not known before:
    /// each is read by itself, and again within [`crate::REREAD`].
    Named {
        /// As whom they are read; none for the agent itself.
        identity: Option<Identity>,
    },
}

impl WatchScope {
    /// The namespace within which it stays.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::All | Self::Named { .. } => None,
            Self::Namespace(namespace) => Some(namespace),
            Self::Object { namespace, .. } => namespace.as_deref(),
        }
    }

    fn contains(&self, object: &Object) -> bool {
        match self {
            Self::All | Self::Named { .. } => true,
            Self::Namespace(namespace) => object.namespace() == Some(namespace),
            Self::Object { namespace, name } => {
                let within = namespace.as_deref();
                (within.is_none() || object.namespace() == within) && object.name() == name
            }
        }
    }
}

impl WatchSpec {
    /// A watch on all objects of a kind.
    pub fn all(resource: Resource) -> Self {
        Self {
            resource,
            scope: WatchScope::All,
            selector: Selector::default(),
            without_payload: false,
        }
    }

    /// An object that others have as well, as the store is to keep it.
    pub(crate) fn kept_shared(&self, object: &Arc<Object>) -> Arc<Object> {
        match self.without_payload {
            true => Arc::new(Object::clone(object).without_payload()),
            false => object.clone(),
        }
    }

    /// Reads an object as the store is to keep it. What is not kept is left out first, since
    /// it may be a hundred times as long as the rest.
    pub(crate) fn read(&self, resource: &Arc<Resource>, json: &str) -> Result<Object, ObjectError> {
        let short = match self.without_payload {
            true => without_payload(json),
            false => None,
        };
        Object::parse_shared(resource, short.as_deref().unwrap_or(json))
    }

    /// Whether an object of the kind belongs to it.
    pub fn matches(&self, object: &Object) -> bool {
        self.scope.contains(object) && self.selector.matches(|key| object.label(key))
    }
}

/// `resourcequotas in alice (app=web)`, for logs.
impl fmt::Display for WatchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resource)?;
        match &self.scope {
            WatchScope::All => {}
            WatchScope::Namespace(namespace) => write!(f, " in {namespace}")?,
            WatchScope::Object {
                namespace: Some(namespace),
                name,
            } => write!(f, " {namespace}/{name}")?,
            WatchScope::Object {
                namespace: None,
                name,
            } => write!(f, " {name}")?,
            WatchScope::Named { .. } => f.write_str(" by name")?,
        }
        if !self.selector.is_empty() {
            write!(f, " ({})", self.selector)?;
        }
        Ok(())
    }
}
