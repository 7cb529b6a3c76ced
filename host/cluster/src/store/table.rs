//! One version of the store: the views of all watches.

use super::objects::Name;
use super::spec::{WatchScope, WatchSpec};
use super::view::View;
use crate::object::Object;
use equivalent::Equivalent;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use reeve_core::GroupVersionKind;
use reeve_core::selector::Selector;
use std::sync::Arc;

type HashMap<K, V> = GenericHashMap<K, V, foldhash::fast::RandomState, DefaultSharedPtr>;

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
    pub(super) without_payload: bool,
}

/// Which view of a kind is looked for; the same as a [`ViewKey`], and hashed as one.
#[derive(Clone, Copy, Hash)]
struct Sought<'a> {
    scope: &'a WatchScope,
    selector: &'a Selector,
    without_payload: bool,
}

impl ViewKey {
    fn of(spec: &WatchSpec) -> Self {
        Self {
            scope: spec.scope.clone(),
            selector: spec.selector.clone(),
            without_payload: spec.without_payload,
        }
    }
}

impl<'a> Sought<'a> {
    fn of(spec: &'a WatchSpec) -> Self {
        Self {
            scope: &spec.scope,
            selector: &spec.selector,
            without_payload: spec.without_payload,
        }
    }
}

impl Equivalent<Arc<ViewKey>> for Sought<'_> {
    fn equivalent(&self, key: &Arc<ViewKey>) -> bool {
        let key = &**key;
        self.without_payload == key.without_payload
            && *self.scope == key.scope
            && *self.selector == key.selector
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
        let view = self
            .kinds
            .get(&spec.resource.kind)?
            .get(&Sought::of(spec))?;
        view.is_of(spec).then_some(&**view)
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
        let key = Sought::of(spec);
        if views.get(&key).is_some_and(|view| view.is_of(spec)) {
            views.remove(&key);
        }
        if views.is_empty() {
            self.kinds.remove(&spec.resource.kind);
        }
    }

    /// Puts an object into each complete view that covers it, and takes what has its name
    /// out of the others.
    pub(super) fn show(&mut self, object: &Arc<Object>) {
        let Some(views) = self.kinds.get_mut(object.kind()) else {
            return;
        };
        let name = Name::of(object);
        let complete = views.iter().filter(|(_, view)| view.complete);
        let concerned = complete.filter_map(|(key, view)| {
            let covered = view.spec.matches(object);
            (covered || view.objects.get(name).is_some()).then(|| (key.clone(), covered))
        });
        let concerned: Vec<_> = concerned.collect();
        for (key, covered) in concerned {
            let Some(view) = views.get_mut(&key) else {
                continue;
            };
            let kept = view.spec.kept_shared(object);
            let objects = &mut Arc::make_mut(view).objects;
            match covered {
                true => objects.put(kept.clone()),
                false => objects.remove(name),
            }
        }
    }

    /// A view, to be changed: versions that were taken before keep theirs. Whoever
    /// changes it counts the version up.
    pub(super) fn view_mut(&mut self, spec: &WatchSpec) -> Option<&mut View> {
        let views = self.kinds.get_mut(&spec.resource.kind)?;
        let view = views.get_mut(&Sought::of(spec))?;
        view.is_of(spec).then(|| Arc::make_mut(view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use crate::store::snapshot::{Answer, Snapshot};

    fn object(label: &str) -> Arc<Object> {
        let json =
            format!(r#"{{"metadata":{{"name":"a","namespace":"n","labels":{{"is":"{label}"}}}}}}"#);
        Arc::new(Object::parse(&resource(), json.as_bytes()).unwrap())
    }

    fn resource() -> Resource {
        Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        }
    }

    #[test]
    fn what_is_shown_stands_where_it_belongs_and_nowhere_else() {
        let watch = |scope: WatchScope, selector: &str| {
            let selector = selector.parse().unwrap();
            Arc::new(WatchSpec {
                resource: resource(),
                scope,
                selector,
                without_payload: false,
            })
        };
        let there = WatchScope::Namespace("n".to_owned());
        let elsewhere = WatchScope::Namespace("m".to_owned());
        let specs = [
            watch(WatchScope::All, ""),
            watch(there.clone(), "is=old"),
            watch(there, "is=new"),
            watch(elsewhere, ""),
        ];
        let mut table = Table::default();
        for spec in &specs {
            table.add(spec);
            table.view_mut(spec).unwrap().complete = true;
        }
        table.add(&watch(WatchScope::All, "is=unseen"));
        let first = Snapshot::new(table).with([object("old")]);
        let second = first.with([object("new")]);
        let labels = |snapshot: &Snapshot| {
            specs.each_ref().map(|spec| {
                let Answer::Found(all) = snapshot.list_in(spec, None, &Selector::default()) else {
                    panic!("{spec} is complete");
                };
                let labels = all.iter().map(|one| one.label("is").unwrap().to_owned());
                labels.collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(labels(&first), ["old", "old", "", ""]);
        assert_eq!(labels(&second), ["new", "", "new", ""]);
    }
}
