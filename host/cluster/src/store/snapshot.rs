//! Questions to one version of the store.

use super::objects::Name;
use super::spec::{WatchScope, WatchSpec};
use super::state::WatchState;
use super::table::{Table, ViewKey};
use super::view::View;
use crate::object::Object;
use reeve_core::GroupVersionKind;
use reeve_core::selector::Selector;
use std::fmt;
use std::sync::Arc;

/// One version of the store. It never changes, and costs little to keep.
#[derive(Clone)]
pub struct Snapshot {
    table: Table,
}

/// What a snapshot knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// This is it. A list may be empty; it is never shorter than it should be.
    Found(T),
    /// The cluster has no such object. Lists never answer this.
    Absent,
    /// It is watched, but the watch has nothing to rely on, for this reason.
    NotSynced(WatchState),
    /// No watch covers the question, or none covers all of it.
    NotWatched,
}

impl Snapshot {
    pub(super) fn new(table: Table) -> Self {
        Self { table }
    }

    /// The number of this version of the store: it grows with every change.
    pub fn version(&self) -> u64 {
        self.table.version
    }

    /// This version as it would be with these objects in it: each in the place of what has
    /// its name, whichever is newer, in every complete watch that covers it, and in no other.
    /// The store knows nothing of it.
    pub fn with(&self, objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        let mut table = self.table.clone();
        for object in objects {
            table.show(&object);
        }
        Self { table }
    }

    /// An object by its name.
    pub fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Answer<Arc<Object>> {
        let wanted = Name { namespace, name };
        let scopes = [
            Some(WatchScope::Object {
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            }),
            namespace.map(|_| WatchScope::Object {
                namespace: None,
                name: name.to_owned(),
            }),
            namespace.map(|namespace| WatchScope::Namespace(namespace.to_owned())),
            Some(WatchScope::All),
        ];
        let scopes = scopes.into_iter().flatten();
        let answer = self.first_complete(kind, scopes, &[Selector::default()], |view| {
            match view.objects.get(wanted) {
                Some(object) => Answer::Found(object.clone()),
                None => Answer::Absent,
            }
        });
        if matches!(answer, Answer::Found(_) | Answer::Absent) {
            return answer;
        }
        // A watch with a selector proves that an object is there, never that it
        // is not.
        let found = self
            .table
            .views(kind)
            .filter(|view| view.complete && !view.spec.without_payload)
            .filter(|view| !view.spec.selector.is_empty())
            .find_map(|view| view.objects.get(wanted));
        found.map_or(answer, |object| Answer::Found(object.clone()))
    }

    /// The objects of a kind that a selector selects, in one namespace or in all,
    /// ordered by namespace and name.
    pub fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Answer<Vec<Arc<Object>>> {
        let scopes = [
            namespace.map(|namespace| WatchScope::Namespace(namespace.to_owned())),
            Some(WatchScope::All),
        ];
        let selectors = [selector.clone(), Selector::default()];
        self.first_complete(kind, scopes.into_iter().flatten(), &selectors, |view| {
            Answer::Found(view.objects.selected(namespace, selector))
        })
    }

    /// An object by its name, as one watch sees it. Behind a selector, `Absent`
    /// means absent or not selected. A watch of one name tells of no other, and one of
    /// names that it is given of none that it has not read.
    pub fn get_in(
        &self,
        watch: &WatchSpec,
        namespace: Option<&str>,
        name: &str,
    ) -> Answer<Arc<Object>> {
        if let WatchScope::Object { name: only, .. } = &watch.scope
            && only != name
        {
            return Answer::NotWatched;
        }
        self.ask_watch(watch, namespace, |view| {
            match (
                view.objects.get(Name { namespace, name }),
                view.read(namespace, name),
            ) {
                (_, Err(state)) => Answer::NotSynced(state),
                (Some(object), Ok(())) => Answer::Found(object.clone()),
                (None, Ok(())) => Answer::Absent,
            }
        })
    }

    /// The objects of one watch that a selector selects, in one namespace or in
    /// all that the watch sees, ordered by namespace and name.
    pub fn list_in(
        &self,
        watch: &WatchSpec,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Answer<Vec<Arc<Object>>> {
        self.ask_watch(watch, namespace, |view| {
            Answer::Found(view.objects.selected(namespace, selector))
        })
    }

    fn ask_watch<T>(
        &self,
        watch: &WatchSpec,
        namespace: Option<&str>,
        ask: impl Fn(&View) -> Answer<T>,
    ) -> Answer<T> {
        let within = watch.scope.namespace();
        if within.is_some() && namespace.is_some() && within != namespace {
            return Answer::NotWatched;
        }
        match self.table.view_of(watch) {
            Some(view) if view.complete => ask(view),
            Some(view) => Answer::NotSynced(view.state.clone()),
            None => Answer::NotWatched,
        }
    }

    /// Asks the narrowest complete view that covers the question.
    fn first_complete<T>(
        &self,
        kind: &GroupVersionKind,
        scopes: impl Iterator<Item = WatchScope>,
        selectors: &[Selector],
        ask: impl Fn(&View) -> Answer<T>,
    ) -> Answer<T> {
        let mut waiting = None;
        for scope in scopes {
            for selector in selectors {
                let key = ViewKey {
                    scope: scope.clone(),
                    selector: selector.clone(),
                    without_payload: false,
                };
                match self.table.view(kind, &key) {
                    Some(view) if view.complete => return ask(view),
                    Some(view) => waiting = waiting.or_else(|| Some(view.state.clone())),
                    None => {}
                }
            }
        }
        waiting.map_or(Answer::NotWatched, Answer::NotSynced)
    }
}

impl<T> Answer<T> {
    /// What was found, if anything was.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::NotSynced(_) | Self::NotWatched => None,
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
