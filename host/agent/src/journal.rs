//! Writes down what is about to be deleted or overwritten.
//!
//! An entry is in the cluster before the deletion is sent: what cannot be written
//! down is not deleted.

use crate::controller::own_resource;
use crate::problem::{Problem, chain};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use reeve_api::{GROUP, JournalEntrySpec, Operation, PrimaryReference, Reason, VERSION};
use reeve_cluster::{Cluster, Create, Delete, List, Object, Resource, WriteError};
use reeve_core::journal::{MAX_ENTRIES, MAX_OVERWRITES, keep};
use reeve_core::ownership::plugin_label;
use reeve_core::prune::WINDOW;
use reeve_core::waves::Propagation;
use reeve_core::{Digest, ObjectReference, UnitKey};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// zstd's own default: entries are written seldom, and read even less.
const COMPRESSION: i32 = 3;

/// Field manager of entries.
const FIELD_MANAGER: &str = "reeve";

/// Why an object of a unit is deleted that goes on.
pub(crate) const WITHDRAWN: &str = "the plugin no longer returns it";
/// Why an object of a unit is deleted whose primary lives.
pub(crate) const DESELECTED: &str = "its primary is no longer selected";
/// Why an object is deleted that is nobody's.
pub(crate) const ABSENT: &str = "the plugin says that it must not exist";

/// Label of an entry: the plugin whose budget of withdrawals the deletion counts
/// against.
const WITHDRAWN_BY_LABEL: &str = "journal.reeve.dev/withdrawn-by";
/// Label of such an entry: uid of the object.
const UID_LABEL: &str = "journal.reeve.dev/uid";

/// Entries asked for at once: as many as client-go's pager asks for.
const ENTRIES_AT_ONCE: u32 = 500;

/// The journal of one agent's namespace; clones share it.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    cluster: Cluster,
    entries: Resource,
    namespace: String,
    clock: Arc<dyn crate::Clock>,
    /// Names of the entries that exist, oldest first; none before they were
    /// listed.
    names: Mutex<Option<BTreeSet<String>>>,
    /// One list is enough.
    listing: tokio::sync::Mutex<()>,
}

/// How the names of entries about overwrites end.
const OVERWRITE: &str = "-overwrite";

/// How the names of entries end that count against the budget of a plugin.
const COUNTED: &str = "-withdrawn";

/// The entries that are too many, oldest first. Overwrites have a part of the room
/// and no more: what was deleted must not be forgotten for them. What counts against a
/// budget stays for as long as it does, so that no restart begins a new one; that is
/// bounded by the budgets and by what people approve. However much that is, the last of
/// the others can be undone, too.
fn surplus(names: &BTreeSet<String>, newest: &str, now: Timestamp) -> Vec<String> {
    let overwrites = || names.iter().filter(|name| name.ends_with(OVERWRITE));
    let too_many = overwrites().count().saturating_sub(MAX_OVERWRITES);
    let mut surplus: Vec<String> = overwrites().take(too_many).cloned().collect();
    let others = names.iter().filter(|name| !surplus.contains(name));
    let (counted, others): (Vec<_>, Vec<_>) = others.partition(|name| still_counts(name, now));
    let room = MAX_ENTRIES.saturating_sub(counted.len()).max(LEAST_OTHERS);
    let too_many = others.len().saturating_sub(room);
    // What is about to happen has to be found again, whatever else there is.
    let others = others.into_iter().filter(|name| *name != newest);
    let rest: Vec<String> = others.take(too_many).cloned().collect();
    surplus.extend(rest);
    // The rest goes with the next entries.
    surplus.truncate(FORGOTTEN_AT_ONCE);
    surplus
}

fn still_counts(name: &str, now: Timestamp) -> bool {
    let age = written(name).map(|at| now.duration_since(at).unsigned_abs());
    name.ends_with(COUNTED) && age.is_some_and(|age| age <= WINDOW)
}

/// When an entry was written, by its name.
fn written(name: &str) -> Option<Timestamp> {
    let (seconds, _) = name.split_once('-')?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

/// So many entries that count against no budget stay beside however many that do: what
/// somebody deleted by deleting its primary can be undone then, too.
const LEAST_OTHERS: usize = 200;

/// No entry waits for more than so many others to be deleted.
const FORGOTTEN_AT_ONCE: usize = 100;

/// What is about to happen to an object.
pub(crate) struct Deed<'a> {
    pub(crate) operation: Operation,
    pub(crate) unit: &'a UnitKey,
    pub(crate) object: &'a Object,
    pub(crate) reason: &'a str,
}

impl Deed<'_> {
    /// Whether it counts against the budget of the plugin.
    fn counts(&self) -> bool {
        let counted = [WITHDRAWN, DESELECTED, ABSENT];
        self.operation == Operation::Recreate || counted.contains(&self.reason)
    }
}

impl Journal {
    pub(crate) fn new(cluster: Cluster, namespace: &str, clock: Arc<dyn crate::Clock>) -> Self {
        Self(Arc::new(Shared {
            cluster,
            entries: own_resource(GROUP, VERSION, "JournalEntry", "journalentries"),
            namespace: namespace.to_owned(),
            clock,
            names: Mutex::new(None),
            listing: tokio::sync::Mutex::default(),
        }))
    }

    /// Writes down what is about to happen. Only when this has succeeded may it
    /// happen.
    pub(crate) async fn write(&self, deed: &Deed<'_>) -> Result<(), Problem> {
        let problem = |error: &dyn std::error::Error| {
            Problem::passing(
                Reason::JournalFailed,
                format!(
                    "{} is left as it is, since it cannot be written to the journal before: {}",
                    deed.object.reference(),
                    chain(error)
                ),
            )
        };
        self.learn().await.map_err(|error| problem(&error))?;
        let (name, spec) = self.entry(deed);
        let mut body = json!({
            "apiVersion": self.0.entries.kind.api_version(),
            "kind": self.0.entries.kind.kind,
            "metadata": {"name": name, "namespace": self.0.namespace},
            "spec": spec,
        });
        if deed.counts() {
            body["metadata"]["labels"] = json!({
                WITHDRAWN_BY_LABEL: plugin_label(&deed.unit.plugin),
                UID_LABEL: deed.object.uid(),
            });
        }
        let create = Create {
            resource: &self.0.entries,
            namespace: Some(&self.0.namespace),
            name: &name,
            body: &body,
            manager: FIELD_MANAGER,
            identity: None,
        };
        match self.0.cluster.create(create).await {
            // The same deed, written down by an attempt whose answer was lost.
            Ok(_) | Err(WriteError::Precondition { .. }) => {}
            Err(error) => return Err(problem(&error)),
        }
        self.forget_old(name).await;
        Ok(())
    }

    /// Name and content of an entry.
    fn entry(&self, deed: &Deed<'_>) -> (String, JournalEntrySpec) {
        let object = deed.object;
        let kept = keep(&object.value());
        let content = kept.content.and_then(|content| {
            let compressed = zstd::bulk::compress(content.to_string().as_bytes(), COMPRESSION);
            Some(STANDARD.encode(compressed.ok()?))
        });
        let mut omitted = kept.omitted;
        if content.is_none() && omitted.is_empty() {
            omitted.push(String::new());
        }
        let mut spec = JournalEntrySpec {
            operation: deed.operation,
            plugin: deed.unit.plugin.to_string(),
            primary: reference(&deed.unit.primary, ""),
            object: reference(&object.reference(), object.uid()),
            reason: deed.reason.to_owned(),
            content,
            omitted,
        };
        // Names sort by time. The same version of the same object is one entry.
        let digest = Digest::of_parts([
            object.uid().as_bytes(),
            object.resource_version().as_bytes(),
            format!("{:?}", deed.operation).as_bytes(),
        ]);
        let seconds = self.0.clock.now().as_second();
        let mut name = format!("{seconds:012}-{}", digest.short());
        if deed.operation == Operation::Overwrite {
            name.push_str(OVERWRITE);
        } else if deed.counts() {
            name.push_str(COUNTED);
        }
        // etcd's limit is on the whole request.
        if spec
            .content
            .as_ref()
            .is_some_and(|c| c.len() > reeve_core::journal::MAX_CONTENT)
        {
            spec.content = None;
            spec.omitted = vec![String::new()];
        }
        (name, spec)
    }

    /// What a plugin has withdrawn, by uid, and when, as far back as the journal
    /// goes.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read. Nothing more is to be withdrawn then.
    pub(crate) async fn withdrawn(
        &self,
        plugin: &str,
    ) -> Result<Vec<(String, Timestamp)>, Problem> {
        let selector = format!("{WITHDRAWN_BY_LABEL}={}", plugin_label(plugin));
        let (entries, namespace) = (&self.0.entries, &self.0.namespace);
        let unreadable = |error: &dyn std::error::Error| {
            Problem::passing(
                Reason::JournalFailed,
                format!(
                    "nothing is deleted before the journal tells what was deleted within the last hour, and it cannot be read: {}",
                    chain(error)
                ),
            )
        };
        let mut withdrawn = Vec::new();
        let mut after = String::new();
        loop {
            let list = List {
                resource: entries,
                namespace: Some(namespace),
                selector: &selector,
                limit: ENTRIES_AT_ONCE,
                after: &after,
            };
            let page = self.0.cluster.list_metadata(list).await;
            let page = page.map_err(|error| unreadable(&error))?;
            withdrawn.extend(page.objects.iter().filter_map(|entry| {
                let at = written(entry.name())?;
                Some((entry.label(UID_LABEL)?.to_owned(), at))
            }));
            match page.next {
                Some(token) => after = token,
                None => return Ok(withdrawn),
            }
        }
    }

    /// Forgets which entries there are: others have written some since, and they count
    /// towards the bound as well.
    pub(crate) fn learn_anew(&self) {
        *self.0.names.lock() = None;
    }

    /// How many entries are known.
    pub(crate) fn len(&self) -> usize {
        self.0.names.lock().as_ref().map_or(0, BTreeSet::len)
    }

    /// Lists what is there, once.
    async fn learn(&self) -> Result<(), reeve_cluster::ListError> {
        let _listing = self.0.listing.lock().await;
        if self.0.names.lock().is_some() {
            return Ok(());
        }
        let (entries, namespace) = (&self.0.entries, &self.0.namespace);
        let names = self.0.cluster.names(entries, namespace).await?;
        *self.0.names.lock() = Some(names.into_iter().collect());
        Ok(())
    }

    /// Deletes the oldest entries beyond the bound. One that cannot be deleted is
    /// tried again with the next entry.
    async fn forget_old(&self, newest: String) {
        let surplus: Vec<String> = {
            let mut names = self.0.names.lock();
            let names = names.get_or_insert_default();
            names.insert(newest.clone());
            surplus(names, &newest, self.0.clock.now())
        };
        for name in surplus {
            let delete = Delete {
                resource: &self.0.entries,
                namespace: Some(&self.0.namespace),
                name: &name,
                uid: None,
                resource_version: None,
                propagation: Propagation::Background,
                dry_run: false,
                identity: None,
            };
            if let Err(error) = self.0.cluster.delete(delete).await {
                let error = chain(&error);
                tracing::warn!(entry = name, error, "old journal entry not deleted");
                return;
            }
            if let Some(names) = self.0.names.lock().as_mut() {
                names.remove(&name);
            }
        }
    }
}

fn reference(object: &ObjectReference, uid: &str) -> PrimaryReference {
    PrimaryReference {
        api_version: object.kind.api_version(),
        kind: object.kind.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        uid: uid.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_do_not_push_deletions_out() {
        let names = |deletions: usize, overwrites: usize| -> BTreeSet<String> {
            let deletions = (0..deletions).map(|n| format!("{n:012}-aaaa"));
            let overwrites = (0..overwrites).map(|n| format!("{n:012}-bbbb{OVERWRITE}"));
            deletions.chain(overwrites).collect()
        };
        let later = Timestamp::from_second(1_000_000).unwrap();
        for (deletions, overwrites, expected) in [
            (MAX_ENTRIES, 0, 0),
            (MAX_ENTRIES - MAX_OVERWRITES, MAX_OVERWRITES, 0),
            (0, MAX_OVERWRITES + 2, 2),
            (MAX_ENTRIES + 3, 0, 3),
            (MAX_ENTRIES, MAX_OVERWRITES + 1, MAX_OVERWRITES + 1),
        ] {
            let found = surplus(&names(deletions, overwrites), "", later);
            let expected = expected.min(FORGOTTEN_AT_ONCE);
            assert_eq!(found.len(), expected, "{deletions} {overwrites}");
        }
        let found = surplus(&names(3, MAX_OVERWRITES + 2), "", later);
        let first = |n: usize| format!("{n:012}-bbbb{OVERWRITE}");
        assert_eq!(found, [first(0), first(1)]);
    }

    #[test]
    fn what_counts_against_a_budget_stays_as_long_as_it_counts() {
        let counted = |second: usize| format!("{second:012}-aaaa{COUNTED}");
        let mut names: BTreeSet<String> = (0..3).map(counted).collect();
        names.extend((0..=MAX_ENTRIES).map(|n| format!("{:012}-bbbb", 10 + n)));
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let window = i64::try_from(WINDOW.as_secs()).unwrap();
        let found = surplus(&names, "", at(window));
        assert_eq!(found.len(), 4);
        assert!(
            found.iter().all(|name| name.ends_with("-bbbb")),
            "{found:?}"
        );
        let found = surplus(&names, "", at(window + 2));
        let oldest = [counted(0), counted(1)];
        assert_eq!(found[..2], oldest);

        // More that counts than there is room, and one entry that does not.
        let mut names: BTreeSet<String> = (0..2 * MAX_ENTRIES).map(counted).collect();
        let newest = format!("{:012}-bbbb", 2 * MAX_ENTRIES);
        names.insert(newest.clone());
        let found = surplus(&names, &newest, at(i64::try_from(2 * MAX_ENTRIES).unwrap()));
        assert_eq!(found, Vec::<String>::new());
        let found = surplus(&names, &newest, at(10 * window));
        assert_eq!(found.len(), FORGOTTEN_AT_ONCE);

        // The last of those that do not are kept beside them.
        let other = |n: usize| format!("{:012}-bbbb", 2 * MAX_ENTRIES + n);
        names.extend((0..LEAST_OTHERS + 3).map(other));
        let newest = other(LEAST_OTHERS + 2);
        let found = surplus(&names, &newest, at(i64::try_from(2 * MAX_ENTRIES).unwrap()));
        assert_eq!(found, [other(0), other(1), other(2)]);
    }
}
