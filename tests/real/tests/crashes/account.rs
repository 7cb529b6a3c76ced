//! What became of the plugin's objects over all lives of the agent.

use std::collections::{BTreeMap, BTreeSet};

use reeve_real::Seen;

/// How often each ConfigMap came and went, by name.
#[derive(Debug, Default)]
pub(crate) struct Account {
    made: BTreeMap<String, usize>,
    deleted: BTreeMap<String, usize>,
    first: BTreeMap<String, u64>,
}

impl Account {
    pub(crate) fn of(seen: Vec<Seen>) -> Self {
        let mut account = Self::default();
        for Seen {
            added,
            name,
            version,
        } in seen
        {
            let count = match added {
                true => &mut account.made,
                false => &mut account.deleted,
            };
            *count.entry(name.clone()).or_default() += 1;
            account.first.entry(name).or_insert(version);
        }
        account
    }

    /// How often an object of this name came into being.
    pub(crate) fn made(&self, name: &str) -> usize {
        self.made.get(name).copied().unwrap_or_default()
    }

    /// How often an object of this name was deleted.
    pub(crate) fn deleted(&self, name: &str) -> usize {
        self.deleted.get(name).copied().unwrap_or_default()
    }

    /// When it first came into being, as a version of the cluster.
    pub(crate) fn first_made(&self, name: &str) -> Option<u64> {
        self.first.get(name).copied()
    }

    /// Everything that was there.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.made.keys().map(String::as_str).collect()
    }
}
