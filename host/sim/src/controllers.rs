//! The controllers inside: what a cluster does by itself after a write.
//!
//! One task follows all writes and acts on what they left to do. It waits for
//! nothing but writes, so it stands still when the cluster does, under any clock.

mod aggregation;
mod certificates;
mod conditions;
mod ending;
mod garbage;
mod graph;
mod namespaces;
mod protection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::aggregation::Aggregation;
use self::ending::Ending;
use self::graph::Graph;
use crate::definitions;
use crate::quotas;
use crate::resource::Resource;
use crate::rest::write::{Part, Writer};
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Change, Object, Range};

/// Who writes what the controllers write.
const MANAGER: &str = "kube-controller-manager";
/// How many objects are looked at before other tasks get their turn.
const BATCH: usize = 64;

/// The task, once it runs, and what it knows and has still to do.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    task: Mutex<Option<JoinHandle<()>>>,
    work: Mutex<Work>,
    /// Namespaces that others want counted.
    uncounted: Mutex<BTreeSet<Box<str>>>,
}

impl Controllers {
    /// Those of a fork, which know what these know and go on from there.
    pub(crate) fn fork(&self) -> Self {
        let mut work = self.work.lock().clone();
        // It is served under another one, if at all.
        work.certificate = None;
        Controllers {
            task: Mutex::default(),
            work: Mutex::new(work),
            uncounted: Mutex::default(),
        }
    }

    /// Has what is used of the quotas of a namespace counted, when the task next runs.
    pub(crate) fn count_again(&self, namespace: &str) {
        self.uncounted.lock().insert(namespace.into());
    }

    /// Starts the task on the present runtime, unless it runs. A runtime that
    /// ended took its task with it, and the next request starts another.
    pub(crate) fn ensure_running(&self, shared: &Arc<Shared>) {
        let mut task = self.task.lock();
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let news = shared.store.follow_all();
            *task = Some(runtime.spawn(run(Arc::downgrade(shared), news)));
        }
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

/// What is known and what is to be done.
#[derive(Debug, Default, Clone)]
struct Work {
    /// The version up to which the changes have been read.
    seen: u64,
    graph: Graph,
    /// UIDs of objects that the garbage collector has to look at.
    garbage: BTreeSet<Box<str>>,
    /// Namespaces that are being deleted, and what is in them.
    ending_namespaces: BTreeMap<Box<str>, Ending>,
    /// Namespaces that may lack their service account.
    new_namespaces: BTreeSet<Box<str>>,
    /// Namespaces whose objects are counted.
    bounded_namespaces: BTreeSet<Box<str>>,
    /// Those of them in which something changed since.
    uncounted_namespaces: BTreeSet<Box<str>>,
    /// Namespaces that may lack the certificate.
    uncertified_namespaces: BTreeSet<Box<str>>,
    /// The certificate when all namespaces were gone through.
    certificate: Option<Arc<str>>,
    /// Definitions that are being deleted, and whether something of them changed.
    ending_definitions: BTreeMap<Box<str>, bool>,
    /// Claims that are being deleted.
    ending_claims: BTreeSet<Box<str>>,
    /// Volumes that are being deleted.
    ending_volumes: BTreeSet<Box<str>>,
    /// Claims and volumes that lack their protection, by table and key.
    unprotected: BTreeSet<(Arc<str>, Box<str>)>,
    aggregation: Aggregation,
}

async fn run(shared: Weak<Shared>, mut news: watch::Receiver<u64>) {
    loop {
        news.mark_unchanged();
        loop {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if !shared.controllers.work.lock().go_on(&shared) {
                break;
            }
            drop(shared);
            tokio::task::yield_now().await;
        }
        if news.changed().await.is_err() {
            return;
        }
    }
}

impl Work {
    /// Does a part of what the writes so far left to do. Says whether there may be
    /// more.
    fn go_on(&mut self, shared: &Arc<Shared>) -> bool {
        self.read(shared);
        self.step(shared)
    }

    /// Takes in what was written since.
    fn read(&mut self, shared: &Shared) {
        match shared.store.all_changes(self.seen) {
            Ok((upto, changes)) => {
                let now = shared.clock.now();
                for (table, change) in &changes {
                    self.note(table, change, now);
                }
                self.seen = upto;
            }
            Err(_) => self.start_over(shared),
        }
    }

    /// Takes in everything, after falling behind the history.
    fn start_over(&mut self, shared: &Shared) {
        *self = Work {
            seen: shared.store.version(),
            ..Work::default()
        };
        let now = shared.clock.now();
        for table in shared.store.tables() {
            let page = shared.store.list(&table, &Range::default(), None);
            for object in page.map(|page| page.objects).unwrap_or_default() {
                let change = Change {
                    version: object.version(),
                    before: None,
                    after: object,
                    removed: false,
                };
                self.note(&table, &change, now);
            }
        }
    }

    fn note(&mut self, table: &Arc<str>, change: &Change, now: SystemTime) {
        let object = &change.after;
        self.graph.note(table, change, &mut self.garbage);
        if let Some(ending) = self.ending_namespaces.get_mut(object.namespace()) {
            ending.note(table, object);
        }
        if let Some(is_due) = self.ending_definitions.get_mut(&**table) {
            *is_due = true;
        }
        self.note_for_quotas(table, change, now);
        if !change.removed && protection::lacks(table, object).is_some() {
            self.unprotected
                .insert((table.clone(), object.key().into()));
        }
        match &**table {
            "namespaces" if change.removed => {
                self.ending_namespaces.remove(object.key());
                self.bounded_namespaces.remove(object.key());
                self.uncounted_namespaces.remove(object.key());
                self.uncertified_namespaces.remove(object.key());
            }
            "namespaces" if object.is_terminating() => {
                let ending = self.ending_namespaces.entry(object.key().into());
                ending.or_default().touch();
            }
            "namespaces" if change.before.is_none() => {
                self.new_namespaces.insert(object.key().into());
                self.lacks_certificate(object.key());
            }
            certificates::TABLE if object.name() == certificates::NAME => {
                self.lacks_certificate(object.namespace());
            }
            "serviceaccounts" if change.removed => {
                self.new_namespaces.insert(object.namespace().into());
            }
            aggregation::TABLE => self.aggregation.note(change),
            protection::CLAIMS => track(&mut self.ending_claims, change),
            protection::VOLUMES => track(&mut self.ending_volumes, change),
            definitions::TABLE if object.is_terminating() && !change.removed => {
                self.ending_definitions.insert(object.key().into(), true);
            }
            definitions::TABLE if change.removed => {
                self.ending_definitions.remove(object.key());
            }
            _ => {}
        }
    }

    fn note_for_quotas(&mut self, table: &str, change: &Change, now: SystemTime) {
        let namespace = change.after.namespace();
        if table == quotas::TABLE && !change.removed {
            self.bounded_namespaces.insert(namespace.into());
        }
        if self.bounded_namespaces.contains(namespace) && quotas::concerns(table, change, now) {
            self.uncounted_namespaces.insert(namespace.into());
        }
    }

    /// Before there is a certificate nothing need be noted: all namespaces get it then.
    fn lacks_certificate(&mut self, namespace: &str) {
        if self.certificate.is_some() {
            self.uncertified_namespaces.insert(namespace.into());
        }
    }

    /// Keeps up what every namespace has, where that is wanted.
    fn keep_up_namespaces(&mut self, shared: &Arc<Shared>) {
        let again = std::mem::take(&mut *shared.controllers.uncounted.lock());
        self.uncounted_namespaces.extend(again);
        for namespace in std::mem::take(&mut self.uncounted_namespaces) {
            let counted = quotas::count(shared, &namespace);
            if counted.is_err() {
                // With the next change, whatever it is.
                self.uncounted_namespaces.insert(namespace);
            }
            report(counted);
        }
        let certificate = shared.certificate.lock().clone();
        let Some(certificate) = certificate else {
            return;
        };
        if self.certificate.as_ref() != Some(&certificate) {
            self.certificate = Some(certificate.clone());
            let page = shared.store.list("namespaces", &Range::default(), None);
            let all = page.map(|page| page.objects).unwrap_or_default();
            let all = all.iter().map(|namespace| namespace.key().into());
            self.uncertified_namespaces.extend(all);
        }
        for namespace in std::mem::take(&mut self.uncertified_namespaces) {
            let ensured = certificates::ensure(shared, &namespace, &certificate);
            if ensured.is_err() {
                // As above.
                self.uncertified_namespaces.insert(namespace);
            }
            report(ensured);
        }
    }

    /// Does a part of what is to be done. Says whether there may be more.
    fn step(&mut self, shared: &Arc<Shared>) -> bool {
        let before = shared.store.version();
        while let Some(namespace) = self.new_namespaces.pop_first() {
            report(namespaces::ensure_service_account(shared, &namespace));
        }
        if shared.keeps_up_namespaces {
            self.keep_up_namespaces(shared);
        }
        report(self.aggregation.go_on(shared));
        for (definition, is_due) in &mut self.ending_definitions {
            if std::mem::take(is_due) {
                let finished = definitions::finish(shared, definition);
                *is_due = finished.is_err();
                report(finished);
            }
        }
        for (namespace, ending) in &mut self.ending_namespaces {
            if ending.is_due() {
                let finished = namespaces::finish(shared, namespace, ending);
                if finished.is_err() {
                    ending.touch();
                }
                report(finished);
            }
        }
        for (table, key) in std::mem::take(&mut self.unprotected) {
            let protected = protection::protect(shared, &table, &key);
            if protected.is_err() {
                // With the next change, whatever it is.
                self.unprotected.insert((table, key));
            }
            report(protected);
        }
        for claim in &self.ending_claims {
            report(protection::release_claim(shared, claim));
        }
        for volume in &self.ending_volumes {
            report(protection::release_volume(shared, volume));
        }
        for _ in 0..BATCH {
            let Some(uid) = self.garbage.pop_first() else {
                break;
            };
            report(garbage::collect(shared, &self.graph, &uid));
        }
        !self.garbage.is_empty() || shared.store.version() != before
    }
}

/// Keeps the objects in `ending` that are being deleted.
fn track(ending: &mut BTreeSet<Box<str>>, change: &Change) {
    let object = &change.after;
    if object.is_terminating() && !change.removed {
        ending.insert(object.key().into());
    } else {
        ending.remove(object.key());
    }
}

/// A controller's write can be refused: the object changed or went meanwhile,
/// which will be noted and looked at again.
fn report(result: Result<(), ApiError>) {
    if let Err(error) = result {
        tracing::debug!(%error, "controller write refused");
    }
}

/// The write path of the controllers.
fn writer<'a>(shared: &'a Arc<Shared>, resource: &'a Resource) -> Writer<'a> {
    Writer::of_server(shared, resource, Part::Whole, MANAGER)
}

/// Deletes an object with these options; one that is gone already is fine.
fn delete(
    shared: &Arc<Shared>,
    resource: &Resource,
    object: &Object,
    options: &crate::rest::options::DeleteOptions,
) -> Result<(), ApiError> {
    match writer(shared, resource).delete(object.key(), options) {
        Err(error) if error.code() != 404 => Err(error),
        _ => Ok(()),
    }
}
