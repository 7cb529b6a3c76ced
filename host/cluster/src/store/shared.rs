//! The store's one lock, and everything that changes what is behind it.

pub(super) mod names;

use super::change::Change;
use super::handle::{Lease, WatchHandle};
use super::named::{Names, ObjectName, REREAD_GOING};
use super::objects::{Name, Objects};
use super::poller::Poller;
use super::reflector::Reflector;
use super::snapshot::Snapshot;
use super::spec::{WatchScope, WatchSpec};
use super::state::WatchState;
use super::table::Table;
use super::wire::Head;
use crate::cluster::Cluster;
use crate::object::Object;
use parking_lot::Mutex;
use reeve_core::{GroupVersionKind, ObjectReference};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

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
    /// Lists that were begun before this one say what is out of date.
    fresh_from: u64,
    /// The last list that was complete.
    listed: u64,
    refresh: watch::Sender<u64>,
    /// Uids of objects known to be gone although the watch has not said so, with
    /// the number of lists begun before that: those lists may still hold them.
    gone: HashMap<Box<str>, u64>,
    /// What is read by name, where that is so.
    names: Names,
    /// Counts answers to reading a name.
    reads: watch::Sender<u64>,
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

    pub(super) fn sizes(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        let gone = inner.watches.values().map(|watch| watch.gone.len());
        (inner.table.objects(), gone.sum())
    }

    /// A share in the watch of a spec, which is started if there is none, and is given
    /// these names by their holders.
    pub(super) fn watch(
        this: &Arc<Self>,
        spec: WatchSpec,
        names: impl IntoIterator<Item = (String, BTreeSet<ObjectName>)>,
    ) -> WatchHandle {
        let now = Instant::now();
        let mut inner = this.inner.lock();
        if let Some(running) = inner.watches.get_mut(&spec)
            && let Some(lease) = running.lease.upgrade()
        {
            for (holder, mut more) in names {
                more.extend(running.names.of(&holder));
                // Nothing is taken away, so nothing goes.
                running.names.set(&holder, &more, now);
                running.refresh.send_modify(|count| *count += 1);
            }
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
        let refresh = watch::Sender::new(0);
        let mut known = Names::default();
        for (holder, names) in names {
            known.set(&holder, &names, now);
        }
        let task = if let WatchScope::Named { identity } = &spec.scope {
            let identity = identity.clone();
            let poller = Poller::new(this.clone(), spec.clone(), id, identity);
            tokio::spawn(poller.run(refresh.subscribe()))
        } else {
            let reflector = Reflector::new(this.clone(), spec.clone(), id);
            tokio::spawn(reflector.run(refresh.subscribe()))
        };
        let running = Running {
            id,
            lease: Arc::downgrade(&lease),
            state: sender,
            task: task.abort_handle(),
            lists: 0,
            fresh_from: 0,
            listed: 0,
            refresh,
            gone: HashMap::new(),
            names: known,
            reads: watch::Sender::new(0),
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

    /// Doubts everything, until each watch has listed anew. Returns the states of
    /// those that have to.
    pub(super) fn refresh(&self) -> Vec<watch::Receiver<WatchState>> {
        let mut inner = self.inner.lock();
        let mut states = Vec::new();
        for spec in Vec::from_iter(inner.watches.keys().cloned()) {
            let Some(running) = inner.watches.get_mut(&spec) else {
                continue;
            };
            running.fresh_from = running.lists + 1;
            running.names.doubt(Instant::now());
            let id = running.id;
            running.refresh.send_modify(|count| *count += 1);
            states.push(running.state.subscribe());
            self.set_state_locked(&mut inner, &spec, id, WatchState::Syncing);
            if let Some(view) = inner.table.view_mut(&spec) {
                view.complete = false;
                view.names.clear();
            }
        }
        states
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
    /// differences.
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
        if number.0 < running.fresh_from {
            return;
        }
        running.listed = number.0;
        // What was gone before this list began cannot be in it.
        running.gone.retain(|_, lists| *lists >= number.0);
        let gone = running.gone.keys().cloned().collect();
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        let changes = view.replace(listed, version, &gone);
        inner.tell(&self.changes, changes);
        self.set_state_locked(&mut inner, spec, id, WatchState::Synced);
    }

    /// Whether what a watch tells of an object is known already: it is here, and in the very
    /// state. Then there is no news in it but how far the watch is.
    pub(super) fn knows(&self, spec: &Arc<WatchSpec>, id: u64, head: &Head<'_>) -> bool {
        let mut inner = self.inner.lock();
        if inner.running(spec, id).is_none() {
            return false;
        }
        let view = inner.table.view_of(spec);
        let known = view.and_then(|view| view.objects.get(head.name));
        let same = |known: &Arc<Object>| {
            known.uid() == head.uid && known.resource_version() == head.version
        };
        let Some(version) = known
            .filter(|known| same(known))
            .map(|known| known.version_number())
        else {
            return false;
        };
        if let Some(view) = inner.table.view_mut(spec) {
            view.reach(version);
        }
        true
    }

    /// Takes in one object's news.
    pub(super) fn event(&self, spec: &Arc<WatchSpec>, id: u64, event: Event) {
        let mut inner = self.inner.lock();
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        let (known_gone, version) = match &event {
            Event::Put(object) => (
                running.gone.contains_key(object.uid()),
                object.version_number(),
            ),
            Event::Gone(object) => (
                running.gone.remove(object.uid()).is_some(),
                object.version_number(),
            ),
        };
        let Some(view) = inner.table.view_mut(spec) else {
            return;
        };
        view.reach(version);
        if known_gone {
            return;
        }
        let change = match event {
            Event::Put(object) => view.put(object),
            Event::Gone(object) => view.take(&object),
        };
        inner.tell(&self.changes, change);
    }

    /// Notes that a watch has told of everything up to a version.
    pub(super) fn reach(&self, spec: &Arc<WatchSpec>, id: u64, version: Option<u128>) {
        let mut inner = self.inner.lock();
        if inner.running(spec, id).is_some()
            && let Some(view) = inner.table.view_mut(spec)
        {
            view.reach(version);
        }
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
        let Some(running) = inner.running(spec, id) else {
            return;
        };
        // A watch that goes on from an old list is not what was asked for.
        if state == WatchState::Synced && running.listed < running.fresh_from {
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

    pub(super) fn observe(&self, object: &Arc<Object>, own_write: bool) {
        let mut inner = self.inner.lock();
        for spec in inner.viewed(object.kind(), |spec| spec.resource == *object.resource()) {
            let going = object.is_deleting();
            if !inner.hears_of(&spec, object.namespace(), object.name(), going) {
                continue;
            }
            let Some(view) = inner.table.view_mut(&spec) else {
                continue;
            };
            let change = if spec.matches(object) {
                view.put_answer(spec.kept_shared(object))
            } else {
                // It may have been selected before this write.
                view.take(object)
            };
            let told = |change| if own_write { own(change) } else { change };
            inner.tell(&self.changes, change.map(told));
        }
    }

    pub(super) fn observe_deleted(&self, reference: &ObjectReference, uid: &str) {
        let name = Name {
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
        };
        let mut inner = self.inner.lock();
        for spec in inner.viewed(&reference.kind, |_| true) {
            if !inner.hears_of(&spec, name.namespace, name.name, false) {
                continue;
            }
            let Some(view) = inner.table.view_mut(&spec) else {
                continue;
            };
            let change = view.delete(name, uid);
            // An event from before the deletion, or a list that is under way, may
            // yet bring it.
            let listed = !matches!(spec.scope, WatchScope::Named { .. });
            let may_come = listed && (change.is_some() || !view.complete);
            if may_come && let Some(running) = inner.watches.get_mut(&spec) {
                running.gone.insert(uid.into(), running.lists);
            }
            inner.tell(&self.changes, change.map(own));
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

    /// Notes that something becomes known of an object, and returns whether a watch is to
    /// hear of it. One of names hears of those alone. `going` says whether the object is
    /// being deleted.
    fn hears_of(
        &mut self,
        spec: &WatchSpec,
        namespace: Option<&str>,
        name: &str,
        going: bool,
    ) -> bool {
        if !matches!(spec.scope, WatchScope::Named { .. }) {
            return true;
        }
        let name = ObjectName::new(namespace, name);
        let Some(running) = self.watches.get_mut(spec) else {
            return false;
        };
        running.names.told(&name);
        if going {
            running.names.hasten(&name, Instant::now() + REREAD_GOING);
            running.refresh.send_modify(|count| *count += 1);
        }
        running.names.holds(&name)
    }

    fn running(&mut self, spec: &WatchSpec, id: u64) -> Option<&mut Running> {
        self.watches.get_mut(spec).filter(|watch| watch.id == id)
    }

    /// The watches of a kind that see it under its present names.
    fn viewed(
        &self,
        kind: &GroupVersionKind,
        wanted: impl Fn(&WatchSpec) -> bool,
    ) -> Vec<Arc<WatchSpec>> {
        let specs = self.table.views(kind).map(|view| &view.spec);
        specs.filter(|spec| wanted(spec)).cloned().collect()
    }
}

/// Marks a change as the echo of a write of our own.
fn own(mut change: Change) -> Change {
    if let Change::Object(change) = &mut change {
        change.own_write = true;
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use crate::store::Answer;
    use reeve_core::selector::Selector;
    use reeve_sim::{Config, Outage, Server};

    /// A store without a server, and a kind: a watch never lists, the test plays its part.
    fn alone() -> (Arc<Shared>, Resource) {
        let server = Server::new(Config::default());
        server.faults().set_outage(Outage::Refused);
        // Nobody is told of changes.
        let (sender, _) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(Cluster::new(server.client()), sender));
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        (shared, resource)
    }

    #[tokio::test]
    async fn a_deletion_is_remembered_until_a_later_list() {
        let (shared, resource) = alone();
        let json = br#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}"#;
        let object = Arc::new(Object::parse(&resource, json).unwrap());
        let mut listed = Objects::default();
        listed.put(object.clone());
        let handle = Shared::watch(&shared, WatchSpec::all(resource.clone()), []);
        let (spec, id) = (handle.spec().clone(), handle.lease.id);
        let listing = || {
            shared
                .snapshot()
                .list(&resource.kind, None, &Selector::default())
        };
        let holds = || match listing() {
            Answer::Found(objects) => objects.len(),
            other => panic!("{other:?}"),
        };

        let during = shared.begin_list(&spec, id);
        shared.observe_deleted(&object.reference(), object.uid());
        shared.replace(&spec, id, during, &listed, Some(5));
        assert_eq!(holds(), 0);
        shared.event(&spec, id, Event::Put(object.clone()));
        assert_eq!(holds(), 0);
        // Whatever a list says that began later is true.
        let after = shared.begin_list(&spec, id);
        shared.replace(&spec, id, after, &listed, Some(6));
        assert_eq!(holds(), 1);
        assert!(shared.inner.lock().watches[&spec].gone.is_empty());
    }

    #[tokio::test]
    async fn only_what_is_here_in_the_very_state_is_known() {
        let (shared, resource) = alone();
        let json = br#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let object = Arc::new(Object::parse(&resource, json).unwrap());
        let handle = Shared::watch(&shared, WatchSpec::all(resource), []);
        let (spec, id) = (handle.spec().clone(), handle.lease.id);
        let knows = |name, uid, version| {
            let namespace = None;
            let name = Name { namespace, name };
            shared.knows(&spec, id, &Head { name, uid, version })
        };
        assert!(!knows("a", "u", "7"));
        shared.event(&spec, id, Event::Put(object));
        assert!(knows("a", "u", "7"));
        assert!(!knows("a", "u", "8") && !knows("a", "v", "7") && !knows("b", "u", "7"));
        let (spec, id) = (handle.spec().clone(), id + 1);
        let name = Name {
            namespace: None,
            name: "a",
        };
        let head = Head {
            name,
            uid: "u",
            version: "7",
        };
        assert!(!shared.knows(&spec, id, &head), "another watch");
    }
}
