//! What one watch sees, and which news is news to it.

use super::change::{Change, ObjectChange};
use super::named::{ObjectName, Outcome};
use super::objects::{Name, Objects};
use super::spec::{WatchScope, WatchSpec};
use super::state::WatchState;
use crate::object::Object;
use std::collections::HashSet;
use std::sync::Arc;

/// The objects of one watch.
///
/// News comes from three sides, the watch, its lists, and the answers to our own
/// writes, in any order. The version of an object decides which is later.
#[derive(Clone)]
pub(super) struct View {
    pub(super) spec: Arc<WatchSpec>,
    pub(super) state: WatchState,
    /// Whether a list was once complete and nothing has cast doubt on it since.
    pub(super) complete: bool,
    pub(super) objects: Objects,
    /// What came of reading the names of a [`WatchScope::Named`].
    pub(super) names: imbl::HashMap<Arc<ObjectName>, Outcome>,
    /// The version up to which lists, events and bookmarks have told everything; none
    /// where versions are no numbers.
    reached: Option<u128>,
}

impl View {
    pub(super) fn new(spec: Arc<WatchSpec>) -> Self {
        Self {
            spec,
            state: WatchState::Syncing,
            complete: false,
            objects: Objects::default(),
            names: imbl::HashMap::new(),
            reached: None,
        }
    }

    /// Whether this is the view of just this watch.
    pub(super) fn is_of(&self, spec: &WatchSpec) -> bool {
        // Whoever holds a watch mostly has the very spec that it was begun with.
        std::ptr::eq(&raw const *self.spec, spec) || *self.spec == *spec
    }

    /// Whether the watch can tell of an object of this name; else, why not.
    pub(super) fn read(&self, namespace: Option<&str>, name: &str) -> Result<(), WatchState> {
        if !matches!(self.spec.scope, WatchScope::Named { .. }) {
            return Ok(());
        }
        match self.names.get(&ObjectName::new(namespace, name)) {
            Some(Outcome::Read) => Ok(()),
            Some(Outcome::Refused(message)) => Err(WatchState::Forbidden {
                message: message.clone(),
            }),
            None => Err(WatchState::Syncing),
        }
    }

    /// Notes that the watch has told of everything up to this version.
    pub(super) fn reach(&mut self, version: Option<u128>) {
        self.reached = self.reached.max(version);
    }

    /// Puts an object as the answer to a write of ours has it, unless the watch has told
    /// of this version already: an object that is not here then was deleted since.
    pub(super) fn put_answer(&mut self, object: Arc<Object>) -> Option<Change> {
        let told = object.version_number().is_some() && object.version_number() <= self.reached;
        let old = self.objects.get(Name::of(&object)).cloned();
        if told && old.is_none() {
            return None;
        }
        self.put_over(old, object)
    }

    /// Puts an object, unless this or a newer state of its name is there.
    pub(super) fn put(&mut self, object: Arc<Object>) -> Option<Change> {
        let old = self.objects.get(Name::of(&object)).cloned();
        self.put_over(old, object)
    }

    fn put_over(&mut self, old: Option<Arc<Object>>, object: Arc<Object>) -> Option<Change> {
        if old.as_ref().is_some_and(|old| !object.is_newer_than(old)) {
            return None;
        }
        self.objects.put(object.clone());
        self.change(old, Some(object))
    }

    /// Removes an object whose last state is this, unless a newer one has its
    /// name.
    pub(super) fn take(&mut self, last: &Object) -> Option<Change> {
        let name = Name::of(last);
        let old = self.objects.get(name)?.clone();
        if old.is_newer_than(last) {
            return None;
        }
        self.objects.remove(name);
        self.change(Some(old), None)
    }

    /// Removes the object of this name: there is none.
    pub(super) fn lose(&mut self, name: &ObjectName) -> Option<Change> {
        let name = Name {
            namespace: name.namespace.as_deref(),
            name: &name.name,
        };
        let old = self.objects.get(name)?.clone();
        self.objects.remove(name);
        self.change(Some(old), None)
    }

    /// Forgets a name that nobody names any more.
    pub(super) fn unname(&mut self, name: &ObjectName) -> Option<Change> {
        self.names.remove(name);
        self.lose(name)
    }

    /// Removes the object of this name if it has this uid.
    pub(super) fn delete(&mut self, name: Name<'_>, uid: &str) -> Option<Change> {
        let old = self.objects.get(name).filter(|old| old.uid() == uid)?;
        let old = old.clone();
        self.objects.remove(name);
        self.change(Some(old), None)
    }

    /// Puts a complete list of a version in the place of what is there.
    ///
    /// What was deleted unseen is missing in the list, and told. What was written
    /// while the list was under way is newer than the list, and stays; what has
    /// been deleted since, by the uids `gone`, does not come back with it. Where the
    /// list is of an earlier version than what was told, the server was restored from a
    /// backup and counts anew: versions from before say nothing then.
    pub(super) fn replace(
        &mut self,
        listed: &Objects,
        version: Option<u128>,
        gone: &HashSet<Box<str>>,
    ) -> Vec<Change> {
        let restored = version
            .zip(self.reached)
            .is_some_and(|(list, reached)| list < reached);
        let old = std::mem::take(&mut self.objects);
        let mut kept = listed.clone();
        let mut changes = Vec::new();
        for object in listed.iter() {
            let name = Name::of(object);
            if gone.contains(object.uid()) {
                kept.remove(name);
                continue;
            }
            match old.get(name) {
                // The same state keeps its place in memory.
                Some(before) if is_kept(before, object, restored) => kept.put(before.clone()),
                before => changes.extend(self.change(before.cloned(), Some(object.clone()))),
            }
        }
        for object in old.iter() {
            if listed.get(Name::of(object)).is_some() {
                continue;
            }
            let written_since = match (object.version_number(), version) {
                (Some(object), Some(list)) => object > list && !restored,
                _ => false,
            };
            if written_since {
                kept.put(object.clone());
            } else {
                changes.extend(self.change(Some(object.clone()), None));
            }
        }
        self.objects = kept;
        self.complete = true;
        // Not the greater of both.
        self.reached = version;
        changes
    }

    fn change(&self, old: Option<Arc<Object>>, new: Option<Arc<Object>>) -> Option<Change> {
        let reference = new.as_ref().or(old.as_ref())?.reference();
        Some(Change::Object(ObjectChange {
            watch: self.spec.clone(),
            reference,
            old,
            new,
            own_write: false,
        }))
    }
}

/// Whether a list tells nothing new of an object that is there.
fn is_kept(before: &Object, listed: &Object, restored: bool) -> bool {
    match restored {
        true => {
            before.uid() == listed.uid() && before.resource_version() == listed.resource_version()
        }
        false => !listed.is_newer_than(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use reeve_core::GroupVersionKind;

    fn config_maps() -> Resource {
        Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        }
    }

    /// `a-1@5` has the name `a`, the uid `a-1` and the version 5.
    fn object(text: &str) -> Arc<Object> {
        let (uid, version) = text.split_once('@').unwrap();
        let name = uid.split('-').next().unwrap();
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        );
        Arc::new(Object::parse(&config_maps(), json.as_bytes()).unwrap())
    }

    fn objects(texts: &[&str]) -> Objects {
        let mut objects = Objects::default();
        texts.iter().for_each(|text| objects.put(object(text)));
        objects
    }

    fn view(held: &[&str]) -> View {
        let mut view = View::new(Arc::new(WatchSpec::all(config_maps())));
        view.replace(&objects(held), Some(5), &HashSet::new());
        view
    }

    fn shown(object: &Object) -> String {
        format!("{}@{}", object.uid(), object.resource_version())
    }

    fn told(changes: impl IntoIterator<Item = Change>) -> Vec<String> {
        let side = |side: Option<Arc<Object>>| side.map_or("none".into(), |o| shown(&o));
        let texts = changes.into_iter().map(|change| match change {
            Change::Object(change) => format!("{} -> {}", side(change.old), side(change.new)),
            Change::State { state, .. } => state.to_string(),
        });
        texts.collect()
    }

    fn held(view: &View) -> Vec<String> {
        view.objects.iter().map(|object| shown(object)).collect()
    }

    #[test]
    fn a_list_tells_the_differences_and_respects_what_is_newer() {
        // The list is of version 10.
        for (before, gone, listed, after, expected) in [
            (
                &["a@1", "b@2", "c@3"][..],
                &[][..],
                &["a@1", "b@7", "d@8"][..],
                &["a@1", "b@7", "d@8"][..],
                &["b@2 -> b@7", "none -> d@8", "c@3 -> none"][..],
            ),
            // Deleted and made anew unseen.
            (&["a-1@1"], &[], &["a-2@9"], &["a-2@9"], &["a-1@1 -> a-2@9"]),
            // Written while the list was under way: it cannot be in the list,
            (&["a@11"], &[], &[], &["a@11"], &[]),
            // or the list has an older state.
            (&["a@11"], &[], &["a@1"], &["a@11"], &[]),
            // Written before the list, and gone from it.
            (&["a@8"], &[], &[], &[], &["a@8 -> none"]),
            // Deleted while the list was under way,
            (&[], &["a"], &["a@1"], &[], &[]),
            // and made anew by somebody.
            (&[], &["a-1"], &["a-2@9"], &["a-2@9"], &["none -> a-2@9"]),
        ] {
            let mut view = view(before);
            let gone = gone.iter().map(|uid| Box::from(*uid)).collect();
            let changes = view.replace(&objects(listed), Some(10), &gone);
            assert_eq!(told(changes), expected, "{before:?} {listed:?}");
            assert_eq!(held(&view), after, "{before:?} {listed:?}");
            assert!(view.complete);
        }
    }

    /// The server was restored from a backup of version 3; the watch had told of all up to
    /// version 5.
    #[test]
    fn a_list_of_a_restored_server_is_all_there_is() {
        for (before, listed, expected) in [
            // Made after the backup,
            (&["a@5"][..], &[][..], &["a@5 -> none"][..]),
            // or changed after it,
            (&["a@5"], &["a@2"], &["a@5 -> a@2"]),
            // or made anew after it.
            (&["a-2@5"], &["a-1@2"], &["a-2@5 -> a-1@2"]),
            (&["a@2", "b@4"], &["a@2"], &["b@4 -> none"]),
            (&[], &["a@2"], &["none -> a@2"]),
        ] {
            let mut view = view(before);
            let changes = view.replace(&objects(listed), Some(3), &HashSet::new());
            assert_eq!(told(changes), expected, "{before:?} {listed:?}");
            assert_eq!(held(&view), listed, "{before:?} {listed:?}");
            // Versions count from there.
            view.reach(Some(4));
            view.put(object("c@4"));
            assert!(held(&view).contains(&"c@4".to_owned()));
        }
    }

    #[test]
    fn an_unchanged_object_stays_in_its_place() {
        let mut view = view(&["a@1"]);
        let first = view.objects.iter().next().unwrap().clone();
        view.replace(&objects(&["a@1"]), Some(10), &HashSet::new());
        assert!(Arc::ptr_eq(view.objects.iter().next().unwrap(), &first));
    }

    /// The answer to a write may come after the watch has told that the object came and
    /// went.
    #[test]
    fn an_answer_does_not_bring_back_what_is_gone() {
        // The list of version 5 holds nothing.
        for (events, answer, expected) in [
            // Written before the list, and gone from it.
            (&[][..], "a-1@4", &[][..]),
            (&[], "a-1@6", &["a-1@6"]),
            (&["+a-1@6", "-a-1@7"], "a-1@6", &[]),
            // A bookmark says that all before it was told.
            (&["8"], "a-1@8", &[]),
            (&["8"], "a-1@9", &["a-1@9"]),
            (&["+b-1@9"], "a-1@8", &["b-1@9"]),
            (&["+a-1@6"], "a-1@7", &["a-1@7"]),
            (&["+a-1@6", "-a-1@7"], "a-2@8", &["a-2@8"]),
        ] {
            let mut view = view(&[]);
            for event in events {
                let (kind, text) = event.split_at(1);
                match kind {
                    "+" => {
                        view.reach(object(text).version_number());
                        view.put(object(text));
                    }
                    "-" => {
                        view.reach(object(text).version_number());
                        view.take(&object(text));
                    }
                    _ => view.reach(event.parse().ok()),
                }
            }
            view.put_answer(object(answer));
            assert_eq!(held(&view), expected, "{events:?} {answer}");
            // A server restored from a backup counts anew.
            view.replace(&objects(&[]), Some(1), &HashSet::new());
            view.put_answer(object("c-1@2"));
            assert_eq!(held(&view).last().unwrap(), "c-1@2");
        }
    }

    #[test]
    fn late_news_is_no_news() {
        type Act = fn(&mut View, Arc<Object>) -> Option<Change>;
        let answer: Act = |view, object| view.put_answer(object);
        let put: Act = |view, object| view.put(object);
        let take: Act = |view, object| view.take(&object);
        let delete: Act = |view, object| view.delete(Name::of(&object), object.uid());
        for (act, news, after, expected) in [
            (put, "a-1@6", Some("a-1@6"), Some("a-1@5 -> a-1@6")),
            (put, "a-1@5", Some("a-1@5"), None),
            (put, "a-1@4", Some("a-1@5"), None),
            (put, "a-0@4", Some("a-1@5"), None),
            (put, "a-2@6", Some("a-2@6"), Some("a-1@5 -> a-2@6")),
            (answer, "a-1@6", Some("a-1@6"), Some("a-1@5 -> a-1@6")),
            (answer, "a-1@4", Some("a-1@5"), None),
            (take, "a-1@6", None, Some("a-1@5 -> none")),
            (take, "a-1@5", None, Some("a-1@5 -> none")),
            (take, "a-0@4", Some("a-1@5"), None),
            (delete, "a-1@1", None, Some("a-1@5 -> none")),
            (delete, "a-2@9", Some("a-1@5"), None),
        ] {
            let mut view = view(&["a-1@5"]);
            let change = act(&mut view, object(news));
            assert_eq!(told(change), Vec::from_iter(expected), "{news}");
            assert_eq!(held(&view), Vec::from_iter(after), "{news}");
        }
    }
}
