//! What the agent did, as the API server noted it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use reeve_real::ControlPlane;
use serde_json::Value;

use crate::stage::{ACCOUNT, APPS};

/// The writes of the plugin's account to ConfigMaps, by name.
#[derive(Debug, Default)]
pub(crate) struct Account {
    made: BTreeMap<String, usize>,
    deleted: BTreeMap<String, usize>,
    first: BTreeMap<String, String>,
}

impl Account {
    pub(crate) fn of(cluster: &ControlPlane) -> Result<Self> {
        let mut account = Self::default();
        for event in cluster.audit_log()? {
            account.take_in(&event);
        }
        Ok(account)
    }

    fn take_in(&mut self, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let is_ours = text("/impersonatedUser/username") == Some(ACCOUNT)
            && text("/objectRef/resource") == Some("configmaps")
            && text("/objectRef/namespace") == Some(APPS);
        let (Some(name), Some(at), true) = (
            text("/objectRef/name"),
            text("/requestReceivedTimestamp"),
            is_ours,
        ) else {
            return;
        };
        let count = match (text("/verb"), event.pointer("/responseStatus/code")) {
            (Some("patch" | "create"), Some(code)) if code == 201 => &mut self.made,
            (Some("delete"), Some(code)) if code == 200 => &mut self.deleted,
            _ => return,
        };
        *count.entry(name.to_owned()).or_default() += 1;
        let first = self
            .first
            .entry(name.to_owned())
            .or_insert_with(|| at.to_owned());
        if at < first.as_str() {
            *first = at.to_owned();
        }
    }

    /// How often an object of this name came into being.
    pub(crate) fn made(&self, name: &str) -> usize {
        self.made.get(name).copied().unwrap_or_default()
    }

    /// How often an object of this name was deleted.
    pub(crate) fn deleted(&self, name: &str) -> usize {
        self.deleted.get(name).copied().unwrap_or_default()
    }

    /// When it was written first, in the API server's words, which sort.
    pub(crate) fn first_write(&self, name: &str) -> Option<&str> {
        self.first.get(name).map(String::as_str)
    }

    /// Everything that was written.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let names = self.made.keys().chain(self.deleted.keys());
        names.map(String::as_str).collect()
    }
}
