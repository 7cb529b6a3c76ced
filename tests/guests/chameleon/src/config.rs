//! What the guest is told to be and to do.

use crate::contract::types::{
    GroupVersionKind, Manifest, PrimaryRule, ReadRule, Role, Scope as WitScope, WriteRule,
};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    primary: String,
    writes: Kinds,
    scope: Scope,
    reads: Vec<Read>,
    pub(crate) describe: Describe,
    pub(crate) reconcile: Deed,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Kinds {
    One(String),
    Several(Vec<String>),
}

/// A kind that is read everywhere, or a rule in full.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Everywhere(String),
    Rule {
        kind: String,
        scope: Scope,
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        selector: String,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scope {
    Named(NamedScope),
    Namespaces(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NamedScope {
    PrimaryNamespace,
    NamespaceNamedLikePrimary,
    Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Describe {
    Declare,
    Refuse,
    Trap,
    Panic,
    PanicLong,
    Loop,
    InvalidKind,
    AskTime,
    AskCluster,
}

/// What to do in `reconcile`.
#[derive(Clone, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Deed {
    /// Returns one object with the primary and the configuration in its data.
    Echo,
    /// Returns this many objects with this many bytes of data each.
    Objects {
        count: usize,
        #[serde(default)]
        bytes: usize,
    },
    /// Returns no objects, and may say that this is meant.
    Nothing {
        #[serde(default)]
        meant: bool,
    },
    /// Returns this text as an object, with this byte behind it: `"{"` is invalid
    /// JSON, and a `byte` of 255 is invalid UTF-8.
    Raw {
        #[serde(default)]
        text: String,
        byte: Option<u8>,
    },
    /// Returns an object without a name.
    NoName,
    /// Returns the same object twice.
    Duplicate,
    /// Returns a Service, which is not declared.
    UndeclaredKind,
    /// Returns an object in this namespace.
    ForeignNamespace { namespace: String },
    /// Returns an object with lists within lists.
    Nested { depth: usize },
    /// Returns an object, a condition `Remarkable` and a warning event.
    Remark { text: String },
    /// Returns an object, and asks to be run again.
    After { millis: u64 },
    /// Returns an object, and that another must not exist if all that is said of
    /// it holds.
    Absent {
        kind: String,
        namespace: Option<String>,
        name: String,
        uid: Option<String>,
        owned_by: Option<String>,
        phases: Option<Vec<String>>,
    },
    /// Returns a failure.
    Fail { how: FailKind, text: String },
    /// Executes `unreachable`.
    Trap,
    /// Panics, with this message.
    Panic { text: String },
    /// Never returns.
    Loop,
    /// Computes for a while, in rounds of about a nanosecond.
    Spin { rounds: u64 },
    /// Calls itself without end.
    Recurse,
    /// Allocates until there is no more.
    Hoard,
    /// Grows its memory by this much at once.
    Grab { bytes: usize },
    /// Passes a string of this length to the host.
    LongLine { bytes: usize },
    /// Logs this many lines of a hundred bytes.
    LogFlood { lines: usize },
    /// Calls the host this often.
    CallFlood { calls: u64 },
    /// Lists a kind again and again.
    ReadFlood { kind: String },
    /// Returns the time.
    ReadClock,
    /// Returns an object that it has read.
    Get {
        kind: String,
        namespace: Option<String>,
        name: String,
        #[serde(default)]
        projection: Vec<String>,
    },
    /// Returns an object with a number that is one more than that in the object that is
    /// there, at most this; with this mode of applying it.
    Grow { most: u64, apply: String },
    /// Returns all objects that it has listed.
    List {
        kind: String,
        namespace: Option<String>,
        #[serde(default)]
        selector: String,
    },
    /// Returns the names of all objects that it has listed.
    ListKeys {
        kind: String,
        namespace: Option<String>,
        #[serde(default)]
        selector: String,
    },
    /// Returns an outside document.
    ReadSource { name: String },
    /// Does the second where the first fails.
    Catch {
        first: Box<Self>,
        instead: Box<Self>,
    },
    /// Returns the order of a hash map's entries, which depends on its seed.
    HashSeed,
    /// Returns the bits of what is no number, from several operations.
    NanBits,
    /// Returns how often it was called, as far as it remembers.
    CountCalls,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailKind {
    Retry,
    Terminal,
    NotReady,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            primary: "ConfigMap.v1".to_owned(),
            writes: Kinds::One("ConfigMap.v1".to_owned()),
            scope: Scope::Named(NamedScope::PrimaryNamespace),
            reads: Vec::new(),
            describe: Describe::Declare,
            reconcile: Deed::Echo,
        }
    }
}

impl Config {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("config: {error}"))
    }

    pub(crate) fn manifest(&self) -> Manifest {
        Manifest {
            role: Role::Controller(PrimaryRule {
                kind: kind(&self.primary),
                selector: String::new(),
                projection: Vec::new(),
            }),
            reads: self.reads.iter().map(Read::to_contract).collect(),
            writes: self
                .writes
                .iter()
                .map(|written| WriteRule {
                    kind: kind(written),
                    scope: self.scope.clone_to_contract(),
                })
                .collect(),
            sources: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// What objects of this primary are called, and where they are.
    pub(crate) fn place(&self, primary: &Primary) -> Place {
        let metadata = &primary.metadata;
        Place {
            name: format!("chameleon-{}", metadata.name),
            namespace: match &self.scope {
                Scope::Named(NamedScope::NamespaceNamedLikePrimary) => Some(metadata.name.clone()),
                Scope::Named(_) => metadata.namespace.clone(),
                Scope::Namespaces(names) => names.first().cloned(),
            },
        }
    }
}

impl Read {
    fn to_contract(&self) -> ReadRule {
        match self {
            Self::Everywhere(read) => ReadRule {
                kind: kind(read),
                scope: WitScope::Cluster,
                names: Vec::new(),
                selector: String::new(),
            },
            Self::Rule {
                kind: read,
                scope,
                names,
                selector,
            } => ReadRule {
                kind: kind(read),
                scope: scope.clone_to_contract(),
                names: names.clone(),
                selector: selector.clone(),
            },
        }
    }
}

impl Kinds {
    fn iter(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::One(kind) => std::slice::from_ref(kind).iter(),
            Self::Several(kinds) => kinds.iter(),
        }
    }
}

impl Scope {
    fn clone_to_contract(&self) -> WitScope {
        match self {
            Self::Named(NamedScope::PrimaryNamespace) => WitScope::PrimaryNamespace,
            Self::Named(NamedScope::NamespaceNamedLikePrimary) => {
                WitScope::NamespaceNamedLikePrimary
            }
            Self::Named(NamedScope::Cluster) => WitScope::Cluster,
            Self::Namespaces(names) => WitScope::Namespaces(names.clone()),
        }
    }
}

/// What objects are called, and where they are.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
}

/// What the guest looks at in its primary.
#[derive(Deserialize)]
pub(crate) struct Primary {
    metadata: PrimaryMetadata,
}

#[derive(Deserialize)]
struct PrimaryMetadata {
    name: String,
    namespace: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Primary {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| format!("primary: {error}"))
    }

    /// What this primary wants, other than the configuration.
    pub(crate) fn deed(&self) -> Result<Option<Deed>, String> {
        self.metadata
            .annotations
            .get("chameleon.reeve.dev/do")
            .map(|text| serde_json::from_str(text))
            .transpose()
            .map_err(|error| format!("chameleon.reeve.dev/do: {error}"))
    }
}

/// `Kind.version.group`, as kubectl writes it. Text of another form goes through
/// as it is, for the host to find fault with.
pub(crate) fn kind(text: &str) -> GroupVersionKind {
    let mut parts = text.splitn(3, '.').map(str::to_owned);
    GroupVersionKind {
        kind: parts.next().unwrap_or_default(),
        version: parts.next().unwrap_or_default(),
        group: parts.next().unwrap_or_default(),
    }
}
