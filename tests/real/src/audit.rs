//! The record that a kube-apiserver keeps of what it is asked.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::wait::eventually;

/// Writes, when they come in and when they have been answered, and what some users list
/// and watch, when they have been answered; without their bodies, but for what is reported
/// in the status of workloads and of the tests' own kinds.
#[derive(Debug)]
pub(crate) struct AuditLog {
    policy: PathBuf,
    log: PathBuf,
    /// How many of its events are of servers that have ended: what those did not answer
    /// stays without an answer.
    ended: usize,
}

impl AuditLog {
    /// Says what is to be kept in a folder.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub(crate) fn new(folder: &Path, reads_of: &[String]) -> Result<Self> {
        let policy = folder.join("audit-policy.json");
        fs::write(&policy, policy_with(reads_of).to_string())?;
        Ok(Self {
            policy,
            log: folder.join("audit.log"),
            ended: 0,
        })
    }

    /// The flags of a server that keeps it.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ]
    }

    /// Nobody answers what has come in so far, since the server has ended.
    ///
    /// # Errors
    ///
    /// When the record cannot be read.
    pub(crate) fn server_ended(&mut self) -> Result<()> {
        self.ended = self.events()?.len();
        Ok(())
    }

    /// All that was answered, once everything is that has come in before.
    ///
    /// # Errors
    ///
    /// When the record cannot be read, or a request is not answered.
    pub(crate) fn answered(&self) -> Result<Vec<Value>> {
        let came_in = self.under_way(&self.events()?);
        eventually("the API server has answered what it was asked", || {
            let mut events = self.events()?;
            let left = &self.under_way(&events) & &came_in;
            ensure!(left.is_empty(), "it still works on {left:?}");
            events.retain(|event| !is_received(event));
            Ok(events)
        })
    }

    fn events(&self) -> Result<Vec<Value>> {
        let text = match fs::read_to_string(&self.log) {
            // It is made with the first event.
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        // The last line may be under way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let events = whole.lines().map(serde_json::from_str);
        Ok(events.collect::<Result<_, _>>()?)
    }

    /// The ids of requests that came in and have no answer yet.
    fn under_way(&self, events: &[Value]) -> BTreeSet<String> {
        let ids = |received: bool| {
            let events = events.iter().skip(self.ended);
            events
                .filter(move |event| is_received(event) == received)
                .filter_map(|event| event["auditID"].as_str().map(str::to_owned))
        };
        &ids(true).collect::<BTreeSet<_>>() - &ids(false).collect()
    }
}

fn is_received(event: &Value) -> bool {
    event["stage"] == "RequestReceived"
}

fn policy_with(reads_of: &[String]) -> Value {
    let statuses = |group: &str| json!({"group": group, "resources": ["*/status"]});
    let groups = ["apps", "batch", "example.com"].map(statuses);
    let mut rules = vec![
        json!({
            "level": "Request", "verbs": ["update", "patch"],
            "resources": groups,
        }),
        json!({
            "level": "Metadata",
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        }),
    ];
    if !reads_of.is_empty() {
        rules.push(json!({
            "level": "Metadata", "users": reads_of, "verbs": ["list", "watch"],
            "omitStages": ["RequestReceived"],
        }));
    }
    rules.push(json!({"level": "None"}));
    json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules})
}
