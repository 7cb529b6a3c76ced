//! A pod as the standards look at it, and the words for what is wrong with it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::edit::{items, object, text, text_at};

/// The pod, or template of pods, that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pod<'p> {
    /// Its annotations; null where there are none.
    pub(super) annotations: &'p Value,
    /// Its spec.
    pub(super) spec: &'p Value,
}

/// What one rule has against a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    /// In few words.
    pub(super) reason: Cow<'static, str>,
    /// What of the pod it is.
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: impl Into<Cow<'static, str>>, detail: String) -> Option<Self> {
        let reason = reason.into();
        Some(Violation { reason, detail })
    }
}

impl<'p> Pod<'p> {
    pub(super) fn new(pod: &'p Value) -> Self {
        Pod {
            annotations: pod.pointer("/metadata/annotations").unwrap_or(&Value::Null),
            spec: pod.get("spec").unwrap_or(&Value::Null),
        }
    }

    /// All containers, in the order in which they are looked at.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'p Value> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| items(spec, list))
    }

    /// The `securityContext` of all its containers, where they do not say otherwise.
    pub(super) fn context(&self) -> &'p Value {
        context(self.spec)
    }

    /// The names of the containers of which `is_bad` is true.
    pub(super) fn bad(&self, mut is_bad: impl FnMut(&'p Value) -> bool) -> Vec<&'p str> {
        let bad = self.containers().filter(|container| is_bad(container));
        bad.map(|container| text(container, "name")).collect()
    }

    /// Whether users in it are others on its node.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }

    /// Whether it says that it is for Windows, where much of this means nothing.
    pub(super) fn is_of_windows(&self) -> bool {
        text_at(self.spec, "/os/name") == "windows"
    }
}

/// The `securityContext` of a pod or container; null where there is none.
pub(super) fn context(of: &Value) -> &Value {
    object(of, "securityContext").unwrap_or(&Value::Null)
}

/// Who sets something: `pod`, and containers by their names. None where nobody does.
pub(super) fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    let mut setters = Vec::new();
    if pod {
        setters.push("pod".to_owned());
    }
    if !containers.is_empty() {
        setters.push(named("container", containers));
    }
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn named(what: &str, names: &[&str]) -> String {
    format!("{} {}", plural(what, names.len()), quoted(names))
}

/// The word for so many.
pub(super) fn plural(word: &str, count: usize) -> String {
    match count {
        1 => word.to_owned(),
        _ => format!("{word}s"),
    }
}

/// What so many do.
pub(super) fn use_of(count: usize) -> &'static str {
    match count {
        1 => "uses",
        _ => "use",
    }
}

/// `"a", "b"`.
pub(super) fn quoted<'t>(names: impl IntoIterator<Item = &'t &'t str>) -> String {
    let quoted = names.into_iter().map(|name| format!("\"{name}\""));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Each once, in their order.
pub(super) fn sorted<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<&'t str> {
    let sorted: BTreeSet<&str> = texts.into_iter().collect();
    sorted.into_iter().collect()
}
