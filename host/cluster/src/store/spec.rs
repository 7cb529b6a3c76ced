//! What is watched.

use crate::object::Object;
use crate::resource::Resource;
use reeve_core::selector::Selector;
use std::fmt;

/// A set of objects to watch: equal specs share one watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchSpec {
    /// Kind.
    pub resource: Resource,
    /// Where.
    pub scope: WatchScope,
    /// Which of them; the empty selector for all.
    pub selector: Selector,
}

/// Where objects are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchScope {
    /// Everywhere: all namespaces, or all objects of a cluster-scoped kind.
    All,
    /// One namespace.
    Namespace(String),
    /// A single object, which needs no more than rights on its name.
    Object {
        /// Its namespace; none for a cluster-scoped kind.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
}

impl WatchScope {
    /// The namespace within which it stays.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Namespace(namespace) => Some(namespace),
            Self::Object { namespace, .. } => namespace.as_deref(),
        }
    }

    fn contains(&self, object: &Object) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => object.namespace() == Some(namespace),
            Self::Object { namespace, name } => {
                object.namespace() == namespace.as_deref() && object.name() == name
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
        }
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
        }
        if !self.selector.is_empty() {
            write!(f, " ({})", self.selector)?;
        }
        Ok(())
    }
}
