//! Events on objects, as `kubectl describe` shows them.

use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::transport::{Call, CallError};
use crate::write::WriteError;
use crate::write::refusal::Attempt;
use http::Method;
use k8s_openapi::jiff::Timestamp;
use reeve_core::{Digest, GroupVersionKind, ObjectReference};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::SystemTime;

/// Who reports, in every event of ours.
pub const REPORTING_CONTROLLER: &str = "reeve.dev/agent";

/// The API server refuses longer messages.
const MAX_MESSAGE: usize = 1024;

/// As much of the end of a longer message is kept: what to do stands there.
const END: usize = 384;

/// The API server refuses longer reasons, actions and names of instances.
const MAX_WORD: usize = 128;

/// The API server refuses longer names.
const MAX_NAME: usize = 253;

/// Writes events. They are made by the agent's own account.
#[derive(Clone, Debug)]
pub struct Recorder {
    cluster: Cluster,
    instance: String,
    events: Resource,
}

/// Something to tell about an object.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The object.
    pub involved: &'a ObjectReference,
    /// Its uid.
    pub uid: &'a str,
    /// Good or bad news.
    pub kind: EventKind,
    /// Why, in one CamelCase word for programs.
    pub reason: &'a str,
    /// What was done or tried, in one CamelCase word.
    pub action: &'a str,
    /// For people. What exceeds 1,024 bytes is cut.
    pub message: &'a str,
    /// When.
    pub at: SystemTime,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something happened that was to happen.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What came of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The event was written.
    Now,
    /// The same event was there already and was left as it is.
    Before,
}

impl Recorder {
    /// A recorder whose events name this instance of the agent, such as its pod.
    pub fn new(cluster: Cluster, instance: impl Into<String>) -> Self {
        Self {
            cluster,
            instance: instance.into(),
            events: Resource {
                kind: GroupVersionKind::new("", "v1", "Event"),
                plural: "events".into(),
                namespaced: true,
            },
        }
    }

    /// Records an event once.
    ///
    /// Its name follows from the object's uid, the reason and the message, so that
    /// the same news is one event however often, and by however many agents, it is
    /// told. It stays as it was first written until the API server expires it
    /// (after an hour by default). Events on cluster-scoped objects are in the
    /// namespace `default`, where `kubectl describe` looks for them.
    pub async fn record(&self, event: &Event<'_>) -> Result<Recorded, WriteError> {
        let namespace = event.involved.namespace.as_deref().unwrap_or("default");
        let name = name(event);
        let body = self.body(event, namespace, &name);
        let path = self.events.collection_path(Some(namespace));
        let call = Call::new(Method::POST, path)
            .query("fieldManager", REPORTING_CONTROLLER)
            .json(&body);
        let attempt = Attempt {
            resource: &self.events,
            subresource: None,
            namespace: Some(namespace),
            name: &name,
            identity: None,
        };
        match self.cluster.call(call).await {
            Ok(_) => Ok(Recorded::Now),
            Err(CallError::Status(status)) if status.reason == "AlreadyExists" => {
                Ok(Recorded::Before)
            }
            Err(error) => Err(attempt.failed(error)),
        }
    }

    fn body(&self, event: &Event<'_>, namespace: &str, name: &str) -> Value {
        let at = timestamp(event.at);
        let mut involved = json!({
            "apiVersion": event.involved.kind.api_version(),
            "kind": event.involved.kind.kind,
            "name": event.involved.name,
            "uid": event.uid,
        });
        if let Some(namespace) = &event.involved.namespace {
            involved["namespace"] = json!(namespace);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": name, "namespace": namespace },
            "involvedObject": involved,
            "type": match event.kind {
                EventKind::Normal => "Normal",
                EventKind::Warning => "Warning",
            },
            "reason": cut(event.reason, MAX_WORD),
            "action": cut(event.action, MAX_WORD),
            "message": message(event.message),
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": { "component": REPORTING_CONTROLLER },
            "reportingComponent": REPORTING_CONTROLLER,
            "reportingInstance": cut(&self.instance, MAX_WORD),
        })
    }
}

fn name(event: &Event<'_>) -> String {
    let parts = [event.uid, event.reason, event.message].map(str::as_bytes);
    let hash = Digest::of_parts(parts).hex();
    let hash = &hash[..16];
    let object = cut(&event.involved.name, MAX_NAME - hash.len() - 1);
    // The name of an RBAC object may hold what an event's name may not.
    let object: String = object
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let object = object.to_ascii_lowercase();
    let object = object.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if object.is_empty() {
        hash.to_owned()
    } else {
        format!("{object}.{hash}")
    }
}

/// RFC 3339 with whole seconds, as `metav1.Time` is written.
fn timestamp(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A message that the API server takes, without what is in the middle of a long one.
fn message(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_MESSAGE {
        return text.into();
    }
    let gap = " … ";
    let end = text.ceil_char_boundary(text.len() - END);
    let begin = cut(text, MAX_MESSAGE - END - gap.len());
    format!("{begin}{gap}{}", &text[end..]).into()
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_message_the_end_is_there() {
        let text = "x".repeat(MAX_MESSAGE);
        assert_eq!(message(&text), text);
        for filling in ["x", "é", "…"] {
            let long = format!("why: {}; do it", filling.repeat(2000));
            let shown = message(&long);
            assert!(shown.len() <= MAX_MESSAGE, "{}", shown.len());
            assert!(
                shown.starts_with("why: ") && shown.ends_with("; do it"),
                "{shown}"
            );
            assert!(shown.contains(" … "), "{shown}");
        }
    }
}
