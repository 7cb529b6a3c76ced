//! Writes of a unit whose answers were lost: what became of them is found out before its
//! plugin is asked again.
//!
//! A write that is answered is in the store with its answer. One whose answer was lost
//! may have been carried out, or may be yet, and the store would not know: the plugin
//! would be asked about what was true before its own last write.

use super::Executor;
use crate::active::Active;
use crate::problem::{Problem, chain};
use parking_lot::Mutex;
use reeve_api::Reason;
use reeve_cluster::{Object, ReadError, Resource, WriteError};
use reeve_core::ObjectReference;
use reeve_core::ownership::APPLIED_ANNOTATION;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// So long after its answer was lost a write may still be carried out. The API server
/// ends its work on a request whose connection or stream is gone; what can still come is
/// a transaction that etcd has accepted, and etcd gives those up after seven seconds
/// (five, and twice its election timeout of one).
pub(crate) const LATE: Duration = Duration::from_secs(10);

/// The writes of one unit whose answers were lost; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(Arc<Mutex<Vec<LostWrite>>>);

#[derive(Clone, Debug)]
struct LostWrite {
    resource: Resource,
    object: ObjectReference,
    mark: Mark,
    at: Instant,
}

/// By what an object shows that a write was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is not of this version any more (none: there was no object), and carries this
    /// digest of what was applied, if any.
    Written {
        before: Option<String>,
        digest: Option<String>,
    },
    /// The one with this uid is gone, or going.
    Deleted { uid: String },
}

/// What became of a write is not known yet.
#[derive(Debug)]
pub(crate) struct Unsettled {
    pub(crate) problem: Problem,
    /// When there is reason to look again.
    pub(crate) after: Duration,
}

impl Mark {
    /// That an object of which this was seen before is written.
    pub(crate) fn written(before: Option<&Object>) -> Self {
        Self::Written {
            before: before.map(|object| object.resource_version().to_owned()),
            digest: None,
        }
    }

    fn shows(&self, live: Option<&Object>) -> bool {
        match (self, live) {
            // What was there is gone, and the write with it: it was for that one.
            (Self::Written { before, .. }, None) => before.is_some(),
            (Self::Written { before, digest }, Some(live)) => {
                before.as_deref() != Some(live.resource_version())
                    && (digest.is_none() || *digest == live.annotation(APPLIED_ANNOTATION))
            }
            (Self::Deleted { .. }, None) => true,
            (Self::Deleted { uid }, Some(live)) => live.uid() != uid || live.is_deleting(),
        }
    }
}

impl Lost {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Notes a write that failed, if what became of it is not known.
    pub(crate) fn note(&self, resource: &Resource, error: &WriteError, mark: Mark) {
        if !error.end_is_unknown() {
            return;
        }
        let object = error.reference().clone();
        tracing::info!(%object, ?mark, "the answer to a write was lost");
        let mut writes = self.0.lock();
        // What shows for the later write of an object shows for both.
        writes.retain(|write| write.object != object);
        writes.push(LostWrite {
            resource: resource.clone(),
            object,
            mark,
            at: Instant::now(),
        });
    }

    fn forget(&self, settled: &LostWrite) {
        let mut writes = self.0.lock();
        writes.retain(|write| write.object != settled.object || write.at != settled.at);
    }
}

impl Executor {
    /// Finds out what became of the unit's writes whose answers were lost, and puts it
    /// into the store. Returns the objects that were written.
    ///
    /// # Errors
    ///
    /// While it is not known of one of them: the unit must not run then.
    pub(crate) async fn settle(&self, active: &Active) -> Result<Vec<ObjectReference>, Unsettled> {
        let writes = self.lost.0.lock().clone();
        let mut settled = Vec::new();
        for write in writes {
            self.settle_one(active, &write).await?;
            self.lost.forget(&write);
            settled.push(write.object);
        }
        Ok(settled)
    }

    async fn settle_one(&self, active: &Active, write: &LostWrite) -> Result<(), Unsettled> {
        let LostWrite {
            resource,
            object,
            mark,
            at,
        } = write;
        let namespace = object.namespace.as_deref();
        // The answer is of no earlier time than this.
        let left = LATE.saturating_sub(at.elapsed());
        let reader = active.reader(&object.kind);
        let live = self
            .cluster
            .get_as(resource, namespace, &object.name, reader);
        let live = match live.await {
            Ok(live) => live,
            // It is gone with its kind.
            Err(ReadError::NotServed { .. }) => None,
            Err(error @ ReadError::Unreachable { .. }) => {
                return Err(unknown(object, &chain(&error), left));
            }
            Err(error) if !left.is_zero() => return Err(unknown(object, &chain(&error), left)),
            // What may not be read is in no answer to the plugin either.
            Err(_) => return Ok(()),
        };
        if !left.is_zero() && !mark.shows(live.as_ref()) {
            let why = "the api server does not show it";
            return Err(unknown(object, why, left));
        }
        match (live, mark) {
            (Some(live), _) => self.store.observe(live),
            (None, Mark::Deleted { uid }) => self.store.observe_deleted(object, uid),
            (None, Mark::Written { .. }) => {}
        }
        Ok(())
    }
}

fn unknown(object: &ObjectReference, why: &str, left: Duration) -> Unsettled {
    let seconds = LATE.as_secs();
    Unsettled {
        problem: Problem::passing(
            Reason::Unreachable,
            format!(
                "{object}: the answer to a write was lost, and it is not known what became of \
                 it: {why}. The plugin is not asked again before that is known; what does not \
                 show within {seconds} s of a working connection was not done, and is tried again"
            ),
        ),
        after: left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use serde_json::json;

    /// An object of this uid, version and digest.
    fn object(uid: &str, version: &str, digest: &str, deleting: bool) -> Object {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        let mut json = json!({"metadata": {
            "name": "a", "uid": uid, "resourceVersion": version,
            "annotations": {APPLIED_ANNOTATION: digest},
        }});
        if deleting {
            json["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Object::parse(&resource, json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_write_shows_in_what_it_leaves() {
        let written = |before: Option<&str>, digest: Option<&str>| Mark::Written {
            before: before.map(str::to_owned),
            digest: digest.map(str::to_owned),
        };
        let deleted = || Mark::Deleted { uid: "u".into() };
        let live = |uid, version, digest| Some(object(uid, version, digest, false));
        for (mark, live, shows) in [
            (written(None, Some("d")), None, false),
            (written(None, Some("d")), live("u", "5", "d"), true),
            (written(None, Some("d")), live("u", "5", "old"), false),
            (written(Some("5"), Some("d")), live("u", "5", "d"), false),
            (written(Some("5"), Some("d")), live("u", "6", "d"), true),
            // Its status was written meanwhile, and our part was not.
            (written(Some("5"), Some("d")), live("u", "6", "old"), false),
            (written(Some("5"), Some("d")), None, true),
            (written(Some("5"), None), live("u", "6", "x"), true),
            (deleted(), None, true),
            (deleted(), live("u", "6", "d"), false),
            (deleted(), live("v", "6", "d"), true),
            (deleted(), Some(object("u", "6", "d", true)), true),
        ] {
            assert_eq!(mark.shows(live.as_ref()), shows, "{mark:?} {live:?}");
        }
    }
}
