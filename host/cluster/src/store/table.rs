//! One version of the store: the views of all watches.

use super::spec::{WatchScope, WatchSpec};
use super::view::View;
use crate::object::Object;
use imbl::HashMap;
use reeve_core::GroupVersionKind;
use reeve_core::selector::Selector;
use std::sync::Arc;

/// Views by kind, then by scope and selector. Persistent: a clone is a version
/// of its own and shares what has not changed since.
///
/// A kind can come back under other names, when its CRD is made anew. The watch
/// under the new names then takes the place of the one under the old, which may
/// still be held for a while and has no view any more.
#[derive(Clone, Default)]
pub(super) struct Table {
    kinds: HashMap<Arc<GroupVersionKind>, HashMap<Arc<ViewKey>, Arc<View>>>,
    /// Counts changes.
    pub(super) version: u64,
}

/// Which view of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewKey {
    pub(super) scope: WatchScope,
    pub(super) selector: Selector,
}

impl ViewKey {
    pub(super) fn of(spec: &WatchSpec) -> Self {
        Self {
            scope: spec.scope.clone(),
            selector: spec.selector.clone(),
        }
    }
}

impl Table {
    pub(super) fn view(&self, kind: &GroupVersionKind, key: &ViewKey) -> Option<&View> {
        self.kinds.get(kind)?.get(key).map(|view| &**view)
    }

    /// How many objects all views hold.
    pub(super) fn objects(&self) -> usize {
        let views = self.kinds.values().flat_map(HashMap::values);
        views.map(|view| view.objects.len()).sum()
    }

    /// The view of just this watch.
    pub(super) fn view_of(&self, spec: &WatchSpec) -> Option<&View> {
        self.view(&spec.resource.kind, &ViewKey::of(spec))
            .filter(|view| *view.spec == *spec)
    }

    pub(super) fn views(&self, kind: &GroupVersionKind) -> impl Iterator<Item = &View> {
        let views = self.kinds.get(kind).into_iter().flat_map(HashMap::values);
        views.map(|view| &**view)
    }

    /// Adds the empty view of a watch.
    pub(super) fn add(&mut self, spec: &Arc<WatchSpec>) {
        self.version += 1;
        let view = View::new(spec.clone());
        self.kinds
            .entry(Arc::new(spec.resource.kind.clone()))
            .or_default()
            .insert(Arc::new(ViewKey::of(spec)), Arc::new(view));
    }

    pub(super) fn remove(&mut self, spec: &WatchSpec) {
        self.version += 1;
        let Some(views) = self.kinds.get_mut(&spec.resource.kind) else {
            return;
        };
        let key = ViewKey::of(spec);
        if views.get(&key).is_some_and(|view| *view.spec == *spec) {
            views.remove(&key);
        }
        if views.is_empty() {
            self.kinds.remove(&spec.resource.kind);
        }
    }

    /// Puts an object into each complete view that covers it.
    pub(super) fn show(&mut self, object: &Arc<Object>) {
        let Some(views) = self.kinds.get_mut(object.kind()) else {
            return;
        };
        let covers = |view: &View| view.complete && view.spec.matches(object);
        let covering = views.iter().filter(|(_, view)| covers(view));
        let covering: Vec<_> = covering.map(|(key, _)| key.clone()).collect();
        for key in covering {
            if let Some(view) = views.get_mut(&key) {
                Arc::make_mut(view).objects.put(object.clone());
            }
        }
    }

    /// A view, to be changed: versions that were taken before keep theirs. Whoever
    /// changes it counts the version up.
    pub(super) fn view_mut(&mut self, spec: &WatchSpec) -> Option<&mut View> {
        let views = self.kinds.get_mut(&spec.resource.kind)?;
        let view = views.get_mut(&ViewKey::of(spec))?;
        (*view.spec == *spec).then(|| Arc::make_mut(view))
    }
}
