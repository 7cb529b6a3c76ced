//! One object of a deliverer on the stage: what it was, what becomes of it, and when it
//! has to be looked at again.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::context::{Context, Kind};
use super::super::script::Script;
use super::conditions::{self, PROGRESSING, READY, RECONCILING, RETRYING, STALLED, Truth};
use crate::duration;
use crate::kinds::edit::{flag, integer, set, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::status::ApiError;

/// Asks Flux to look at an object at once.
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";

pub(super) struct Scene<'s, 'a> {
    pub(super) context: &'s mut Context<'a>,
    pub(super) script: Script,
    pub(super) before: &'s Value,
    pub(super) after: Value,
    pub(super) generation: i64,
    pub(super) now: String,
    resource: &'s Resource,
    manager: &'static str,
}

impl<'s, 'a> Scene<'s, 'a> {
    pub(super) fn new(
        context: &'s mut Context<'a>,
        resource: &'s Resource,
        object: &'s Value,
        manager: &'static str,
    ) -> Self {
        let mut after = object.clone();
        if !after.get("status").is_some_and(Value::is_object) {
            set(&mut after, "status", json!({}));
        }
        Scene {
            script: context.script(object, &[]),
            now: context.timestamp(),
            generation: meta::generation(object),
            context,
            before: object,
            after,
            resource,
            manager,
        }
    }

    pub(super) fn name(&self) -> &'s str {
        meta::text(self.before, "name")
    }

    pub(super) fn namespace(&self) -> &'s str {
        meta::text(self.before, "namespace")
    }

    /// The text at a place of the object, as it was.
    pub(super) fn said(&self, pointer: &str) -> &'s str {
        text_at(self.before, pointer)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.before
            .get("spec")
            .is_some_and(|spec| flag(spec, "suspend"))
    }

    /// A span of time in the object; the usual one where none is given.
    pub(super) fn span(&self, pointer: &str, usual: Duration) -> Duration {
        duration::wait(self.said(pointer)).unwrap_or(usual)
    }

    pub(super) fn status(&mut self) -> &mut Value {
        &mut self.after["status"]
    }

    /// The status as far as it is written by now.
    pub(super) fn stands(&self) -> &Value {
        &self.after["status"]
    }

    /// Sets a condition about the present generation.
    pub(super) fn say(&mut self, kind: &str, truth: Truth, reason: &str, message: &str) {
        let (generation, now) = (self.generation, self.now.clone());
        let about = (generation, now.as_str());
        conditions::put(self.status(), (kind, truth), (reason, message), about);
    }

    pub(super) fn unsay(&mut self, kind: &str) {
        conditions::remove(self.status(), kind);
    }

    /// It is being worked at.
    pub(super) fn progress(&mut self, message: &str) {
        self.unsay(STALLED);
        self.say(RECONCILING, Truth::True, PROGRESSING, message);
    }

    /// It is not ready, and will be tried again: what it was at when it failed, and why
    /// it did.
    pub(super) fn retry(&mut self, progress: &str, reason: &str, message: &str) {
        self.unsay(STALLED);
        self.say(RECONCILING, Truth::True, RETRYING, progress);
        self.say(READY, Truth::False, reason, message);
    }

    /// What source-controller is at before it knows what upstream has.
    pub(super) fn beginning(&self) -> String {
        let observed = integer(&self.before["status"], "observedGeneration").unwrap_or(0);
        match self.generation {
            generation if generation == observed => "reconciliation in progress".to_owned(),
            generation => format!("processing object: new generation {observed} -> {generation}"),
        }
    }

    /// It is not ready, and nobody tries again before something changes.
    pub(super) fn stall(&mut self, reason: &str, message: &str) {
        self.unsay(RECONCILING);
        self.say(STALLED, Truth::True, reason, message);
        self.observed();
    }

    /// It is ready.
    pub(super) fn ready(&mut self, reason: &str, message: &str) {
        self.unsay(RECONCILING);
        self.unsay(STALLED);
        self.say(READY, Truth::True, reason, message);
        self.observed();
    }

    /// Somebody is done with the present generation.
    pub(super) fn observed(&mut self) {
        let generation = self.generation;
        set(self.status(), "observedGeneration", generation);
    }

    /// The request that is open or was answered last.
    pub(super) fn requested(&self) -> &'s str {
        self.annotation(REQUESTED)
    }

    pub(super) fn annotation(&self, key: &str) -> &'s str {
        let annotations = self.before.pointer("/metadata/annotations");
        annotations.map_or("", |annotations| text(annotations, key))
    }

    /// The request is answered.
    pub(super) fn handled(&mut self) {
        let requested = self.requested();
        if !requested.is_empty() {
            set(self.status(), "lastHandledReconcileAt", requested);
        }
    }

    /// How long `mark` has been true of the object. `stamp` is since when, as far as the
    /// object itself tells.
    pub(super) fn lasts(&mut self, mark: &str, stamp: &str) -> Duration {
        let since = self.context.since(self.before, mark, stamp);
        self.context.elapsed(since)
    }

    /// Looks again when `mark`, which has been true for so long, will have been for
    /// that long.
    pub(super) fn wake_at(&mut self, elapsed: Duration, at: Duration) {
        let wait = at.saturating_sub(elapsed);
        let at = self.context.now() + wait.max(Duration::from_millis(1));
        self.context.wake_at(at);
    }

    pub(super) fn wake_in(&mut self, wait: Duration) {
        self.wake_at(Duration::ZERO, wait);
    }

    pub(super) fn event(&self, kind: Kind, reason: &str, message: &str) {
        self.context
            .event(self.manager, self.before, kind, reason, message);
    }

    /// Adds the finalizer, and says whether it had to.
    pub(super) fn hold(&self, finalizer: &str) -> Result<bool, ApiError> {
        if super::has_finalizer(self.before, finalizer) {
            return Ok(false);
        }
        self.change(|object| {
            let finalizers = meta::of_mut(object)
                .entry("finalizers")
                .or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut()
                && !finalizers.iter().any(|known| known == finalizer)
            {
                finalizers.push(json!(finalizer));
            }
        })?;
        Ok(true)
    }

    /// Removes the finalizers of which this is true.
    pub(super) fn release(&self, ours: impl Fn(&str) -> bool) -> Result<(), ApiError> {
        if !meta::finalizers(self.before).any(&ours) {
            return Ok(());
        }
        self.change(|object| {
            let finalizers = meta::of_mut(object).get_mut("finalizers");
            if let Some(Value::Array(finalizers)) = finalizers {
                finalizers.retain(|known| !known.as_str().is_some_and(&ours));
            }
        })
    }

    /// Changes what is no status.
    pub(super) fn change(&self, change: impl FnMut(&mut Value)) -> Result<(), ApiError> {
        self.context
            .change(&self.resource.table, self.before, self.manager, change)
    }

    /// Writes the status, if it is another one.
    pub(super) fn commit(self) -> Result<(), ApiError> {
        if self.is_unchanged() {
            return Ok(());
        }
        self.commit_with(|_| {})
    }

    /// Writes the status and another change: at once, where both are one thing.
    pub(super) fn commit_with(self, mut change: impl FnMut(&mut Value)) -> Result<(), ApiError> {
        let status = &self.after["status"];
        let write = |object: &mut Value| set(object, "status", status.clone());
        let table = &self.resource.table;
        if self.resource.subresource("status").is_none() {
            return self.change(|object| {
                change(object);
                write(object);
            });
        }
        self.change(&mut change)?;
        if self.is_unchanged() {
            return Ok(());
        }
        let context = &self.context;
        context.change_status(table, self.before, self.manager, write)
    }

    fn is_unchanged(&self) -> bool {
        let status = &self.after["status"];
        match self.before.get("status") {
            Some(before) => before == status,
            None => status == &json!({}),
        }
    }
}
