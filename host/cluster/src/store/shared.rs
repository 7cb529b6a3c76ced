//! The store's one lock, and everything that changes what is behind it.

use super::change::{Change, ObjectChange};
use super::handle::{Lease, WatchHandle};
use super::objects::{Name, Objects};
use super::reflector::Reflector;
use super::snapshot::Snapshot;
use super::spec::WatchSpec;
use super::state::WatchState;
use super::table::{Table, View};
use crate::cluster::Cluster;
use crate::object::Object;
use parking_lot::Mutex;
use reeve_core::ObjectReference;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

/// What the handles and the watches of a store share.
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    changes: mpsc::UnboundedSender<Change>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    table: Table,
    watches: HashMap<Arc<WatchSpec>, Running>,
    started: u64,
}

/// A watch that runs.
struct Running {
    id: u64,
    lease: Weak<Lease>,
    state: watch::Sender<WatchState>,
    task: AbortHandle,
    /// How many lists were begun.
    lists: u64,
    /// Uids of objects known to be gone although the watch has not said so, with
    /// the number of lists begun before that: those lists may still hold them.
    gone: HashMap<Box<str>, u64>,
}

/// A list that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListNumber(u64);

/// One object's news from a watch.
pub(super) enum Event {
    /// It is in this state.
    Put(Arc<Object>),
    /// It is gone, or not selected any more; this was its last state.
    Gone(Arc<Object>),
}

impl Shared {
    pub(super) fn new(cluster: Cluster, changes: mpsc::UnboundedSender<Change>) -> Self {
        Self {
            cluster,
            changes,
            inner: Mutex::default(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.inner.lock().table.clone())
    }

    /// A share in the watch of a spec, which is started if there is none.
    pub(super) fn watch(this: &Arc<Self>, spec: WatchSpec) -> WatchHandle {
        let mut inner = this.inner.lock();
        if let Some(running) = inner.watches.get(&spec)
            && let Some(lease) = running.lease.upgrade()
        {
            let state = running.state.subscribe();
            return WatchHandle { lease, state };
        }
        // A watch whose last handle is just going may still be listed; it is
        // replaced, and will find another's id when it comes to end its own.
        let spec = Arc::new(spec);
        inner.started += 1;
        let id = inner.started;
        let lease = Arc::new(Lease {
            shared: this.clone(),
            spec: spec.clone(),
            id,
        });
        let (sender, state) = watch::channel(WatchState::Syncing);
        let reflector = Reflector::new(this.clone(), spec.clone(), id);
        let running = Running {
            id,
            lease: Arc::downgrade(&lease),
            state: sender,
            task: tokio::spawn(reflector.run()).abort_handle(),
            lists: 0,
            gone: HashMap::new(),
        };
        inner.table.add(&spec);
        if let Some(replaced) = inner.watches.insert(spec, running) {
            replaced.task.abort();
        }
        WatchHandle { lease, state }
    }

    /// Ends a watch that nobody holds any more.
    pub(super) fn end(&self, spec: &WatchSpec, id: u64) {
        let mut inner = self.inner.lock();
        if inner.watches.get(spec).is_some_and(|w| w.id == id)
            && let Some(running) = inner.watches.remove(spec)
        {
            running.task.abort();
            inner.table.remove(spec);
        }
    }

    /// Notes that a list begins.
    pub(super) fn begin_list(&self, spec: &WatchSpec, id: u64) -> ListNumber {
        let mut inner = self.inner.lock();
        ListNumber(match inner.running(spec, id) {
            Some(running) => {
                running.lists += 1;
                running.lists
            }
            None => 0,
        })
    }

    /// Puts a complete list in the place of what a watch held, and tells the
    /// differences, deletions that nobody saw among them.
    pub(super) fn replace(
        &self,
        spec: &Arc<WatchSpec>,
        id: u64,
        number: ListNumber,
        listed: &Objects,
        version: Option<u128>,
    ) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        // What was gone before this list began cannot be in it.
        running.gone.retain(|_, lists| *lists >= number.0);
        let gone = running.gone.clone();
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        let old = std::mem::take(&mut view.objects);
        let mut kept = listed.clone();
        let mut changes = Vec::new();
        for object in listed.iter() {
            let before = old.get(Name::of(object));
            if gone.contains_key(object.uid()) {
                kept.remove(Name::of(object));
                continue;
            }
            match before {
                // The same, or written through while the list was under way.
                Some(before) if !object.is_newer_than(before) => kept.put(before.clone()),
                _ => changes.extend(change(spec, before.cloned(), Some(object.clone()))),
            }
        }
        for object in old.iter() {
            if listed.get(Name::of(object)).is_some() {
                continue;
            }
            let written_since = match (object.version_number(), version) {
                (Some(object), Some(list)) => object > list,
                _ => false,
            };
            if written_since {
                kept.put(object.clone());
            } else {
                changes.extend(change(spec, Some(object.clone()), None));
            }
        }
        view.objects = kept;
        view.complete = true;
        inner.tell(&self.changes, changes);
        self.set_state_locked(&mut inner, spec, id, WatchState::Synced);
    }

    /// Takes in one object's news.
    pub(super) fn event(&self, spec: &Arc<WatchSpec>, id: u64, event: Event) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        let known_gone = match &event {
            Event::Put(object) => running.gone.contains_key(object.uid()),
            Event::Gone(object) => running.gone.remove(object.uid()).is_some(),
        };
        if known_gone {
            return;
        }
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        let change = match event {
            Event::Put(object) => put(view, object),
            Event::Gone(object) => take(view, &object),
        };
        inner.tell(&self.changes, change);
    }

    /// Says how a watch is doing.
    pub(super) fn set_state(&self, spec: &Arc<WatchSpec>, id: u64, state: WatchState) {
        self.set_state_locked(&mut self.inner.lock(), spec, id, state);
    }

    fn set_state_locked(
        &self,
        inner: &mut Inner,
        spec: &Arc<WatchSpec>,
        id: u64,
        state: WatchState,
    ) {
        if inner.running(spec, id).is_none() {
            return;
        }
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        if view.state == state {
            return;
        }
        let news = !view.state.same_kind(&state);
        view.state = state.clone();
        if matches!(state, WatchState::Forbidden { .. } | WatchState::NotServed) {
            // The objects stay, to be compared with the next list; but what may
            // not be read, or is not served, must not be answered from.
            view.complete = false;
        }
        if let Some(running) = inner.running(spec, id) {
            running.state.send_replace(state.clone());
        }
        let watch = spec.clone();
        let news = news.then_some(Change::State { watch, state });
        inner.tell(&self.changes, news);
    }

    pub(super) fn observe(&self, object: &Arc<Object>) {
        let mut inner = self.inner.lock();
        for spec in inner.specs_of(|spec| spec.resource == *object.resource()) {
            let Some(view) = inner.table.view_mut(&spec) else {
                continue;
            };
            let change = if spec.matches(object) {
                put(view, object.clone())
            } else {
                // It may have been selected before this write.
                take(view, object)
            };
            inner.tell(&self.changes, change.map(own));
        }
    }

    pub(super) fn observe_deleted(&self, reference: &ObjectReference, uid: &str) {
        let name = Name {
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
        };
        let mut inner = self.inner.lock();
        for spec in inner.specs_of(|spec| spec.resource.kind == reference.kind) {
            let Some(view) = inner.table.view_mut(&spec) else {
                continue;
            };
            let held = view.objects.get(name).filter(|object| object.uid() == uid);
            let held = held.cloned();
            if held.is_some() {
                view.objects.remove(name);
            }
            // An event from before the deletion, or a list that is under way, may
            // yet bring it.
            let may_come = held.is_some() || !view.complete;
            if may_come && let Some(running) = inner.watches.get_mut(&spec) {
                running.gone.insert(uid.into(), running.lists);
            }
            inner.tell(&self.changes, change(&spec, held, None).map(own));
        }
    }
}

impl Inner {
    /// Counts changes that were made as a new version, and sends them. A consumer
    /// that has gone away does not want them.
    fn tell(
        &mut self,
        consumer: &mpsc::UnboundedSender<Change>,
        changes: impl IntoIterator<Item = Change>,
    ) {
        for change in changes {
            self.table.version += 1;
            let _ = consumer.send(change);
        }
    }

    fn running(&mut self, spec: &WatchSpec, id: u64) -> Option<&mut Running> {
        self.watches.get_mut(spec).filter(|watch| watch.id == id)
    }

    fn specs_of(&self, wanted: impl Fn(&WatchSpec) -> bool) -> Vec<Arc<WatchSpec>> {
        let specs = self.watches.keys();
        specs.filter(|spec| wanted(spec)).cloned().collect()
    }
}

/// Puts an object unless the view holds this or a newer state of its name.
fn put(view: &mut View, object: Arc<Object>) -> Option<Change> {
    let old = view.objects.get(Name::of(&object)).cloned();
    if old.as_ref().is_some_and(|old| !object.is_newer_than(old)) {
        return None;
    }
    view.objects.put(object.clone());
    change(&view.spec, old, Some(object))
}

/// Removes an object whose last state is this, unless a newer one has its name.
fn take(view: &mut View, last: &Object) -> Option<Change> {
    let name = Name::of(last);
    let old = view.objects.get(name)?.clone();
    if old.is_newer_than(last) {
        return None;
    }
    view.objects.remove(name);
    change(&view.spec, Some(old), None)
}

fn change(
    watch: &Arc<WatchSpec>,
    old: Option<Arc<Object>>,
    new: Option<Arc<Object>>,
) -> Option<Change> {
    let reference = new.as_ref().or(old.as_ref())?.reference();
    Some(Change::Object(ObjectChange {
        watch: watch.clone(),
        reference,
        old,
        new,
        own_write: false,
    }))
}

/// Marks a change as the echo of a write of our own.
fn own(mut change: Change) -> Change {
    if let Change::Object(change) = &mut change {
        change.own_write = true;
    }
    change
}
