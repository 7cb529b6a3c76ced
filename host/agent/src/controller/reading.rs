//! Changes of what calls have read: who is run for them, and when.

use super::Controller;
use crate::plugin::UnitState;
use crate::plugin::steps::Waker;
use crate::reads::{Read, Side};
use crate::sources::SourceChange;
use reeve_cluster::{Object, ObjectChange};
use reeve_core::ownership::{UNIT_LABEL, unit_label};
use std::sync::Arc;
use tokio::time::Instant;

impl Controller {
    /// Runs those who have read the object, or looked for it in vain; not at once where they
    /// would follow the agent's own writes too often.
    pub(super) fn on_read(&mut self, change: &ObjectChange) {
        if !self.state.reads.concerns(&change.reference) {
            return;
        }
        let value = |object: &Option<Arc<Object>>| object.as_ref().map(|object| object.value());
        let (old, new) = (value(&change.old), value(&change.new));
        let old = old.as_ref().map(|value| Side { value });
        let new = new.as_ref().map(|value| Side { value });
        let object = change.new.as_ref().or(change.old.as_ref());
        let of = object.and_then(|object| object.label(UNIT_LABEL));
        for unit in self.state.reads.touched(&change.reference, old, new) {
            let plugin = self.state.plugins.get_mut(&unit.plugin);
            let state = plugin.and_then(|plugin| plugin.units.get_mut(&*unit.primary));
            let waker = |state: &UnitState| match change.own_write {
                false => Waker::World,
                true if of == Some(unit_label(&unit)) => Waker::Itself,
                true if state.contributing.contains(&change.reference) => Waker::Itself,
                true => Waker::Other,
            };
            match state.map(|state| state.steps.woken(waker(state))) {
                Some(pause) if !pause.is_zero() => {
                    self.state.queue.add_at(unit, Instant::now() + pause);
                }
                _ => self.state.queue.add(unit),
            }
        }
    }

    /// Runs those who read an outside document that has changed.
    pub(super) fn on_source(&mut self, change: &SourceChange) {
        let SourceChange {
            plugin,
            name,
            content,
        } = change;
        let mut reads = vec![Read::SourceAge(name.clone())];
        reads.extend(content.then(|| Read::Source(name.clone())));
        for read in reads {
            for unit in self.state.reads.source_readers(plugin, &read) {
                self.state.queue.add(unit);
            }
        }
        self.mark_stale(plugin);
    }
}
