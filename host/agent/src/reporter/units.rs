//! Writing `Unit` objects.

use super::names::Writing;
use super::{About, Reporter, UnitReport, body};
use reeve_api::UnitSpec;
use reeve_cluster::{Delete, Deletion, Object, WriteError};
use reeve_core::waves::Propagation;
use serde_json::{Value, json};

impl Reporter {
    /// Brings a `Unit` object to what is said and remembered of the unit. Says whether that took
    /// a request.
    pub(super) async fn write_about_unit(
        &self,
        name: &str,
        said: Option<&UnitReport>,
    ) -> Result<bool, WriteError> {
        let (writing, names, may_stand) = {
            let pending = self.reports.0.pending.lock();
            let (writing, names) = pending.names.writing(name, said);
            // Whoever waits is told of what the API server has just answered, and nothing that
            // was seen before. Of what failed before nobody knows what came of it.
            let may_stand = !pending.begun.is_awaited(name)
                && !pending.names.is_behind(name)
                && pending.attempts(&About::Unit(name.to_owned())) == 0;
            (writing, names, may_stand)
        };
        match writing {
            Writing::Nothing => Ok(false),
            Writing::Write(report) => {
                let sent = self.write_unit(name, &report, may_stand).await?;
                let mut pending = self.reports.0.pending.lock();
                pending.names.written(name, names, said.is_none());
                // Who has begun to wait since is told of what is sent then.
                if sent {
                    pending.begun.written(name, &report.status);
                    drop(pending);
                    self.reports.0.remembered.notify_waiters();
                }
                Ok(sent)
            }
            Writing::Delete => self.delete_unit(name).await.map(|()| true),
        }
    }

    async fn delete_unit(&self, name: &str) -> Result<(), WriteError> {
        let namespace = Some(&*self.namespace);
        let seen = self.store.snapshot().get_in(&self.units, namespace, name);
        let delete = Delete {
            resource: &self.units.resource,
            namespace,
            name,
            uid: None,
            resource_version: None,
            propagation: Propagation::Background,
            dry_run: false,
            identity: None,
        };
        let deletion = self.cluster.delete(delete).await?;
        // The watch may not have told yet when it is to be made again.
        if let (Deletion::Gone | Deletion::Absent, Some(seen)) = (deletion, seen.found()) {
            self.store.observe_deleted(&seen.reference(), seen.uid());
        }
        Ok(())
    }

    /// Says whether that took a request: none where it `may_stand` as it is.
    async fn write_unit(
        &self,
        name: &str,
        report: &UnitReport,
        may_stand: bool,
    ) -> Result<bool, WriteError> {
        // What changes is almost always the status alone, and often not even that.
        if let Some((generation, status)) = self.seen_with(name, &report.spec) {
            if may_stand && status == Some(status_at(report, Some(generation))) {
                return Ok(false);
            }
            match self.write_unit_status(name, report, Some(generation)).await {
                Err(WriteError::Absent { .. }) => {}
                // The watch lags behind: somebody has changed it, or made it anew.
                Ok(now) if generation_with(&now, &report.spec) != Some(generation) => {}
                written => return written.map(|now| self.take_in(now)),
            }
        }
        let units = &self.units.resource;
        let spec = body(units, name, "spec", &json!(report.spec));
        let applied = self.cluster.apply(self.apply(units, name, &spec)).await?;
        let generation = applied.generation();
        self.store.observe(applied);
        let written = self.write_unit_status(name, report, generation).await;
        written.map(|now| self.take_in(now))
    }

    /// Has the next report compared with what was written, which took a request.
    fn take_in(&self, written: Object) -> bool {
        self.store.observe(written);
        true
    }

    /// The generation of a `Unit` object and its status, as far as the watch or an answer has
    /// told, if it has this spec.
    fn seen_with(&self, name: &str, spec: &UnitSpec) -> Option<(i64, Option<Value>)> {
        let snapshot = self.store.snapshot();
        let found = snapshot.get_in(&self.units, Some(&self.namespace), name);
        let found = found.found()?;
        let mut value = found.value();
        let generation = found.generation()?;
        let is_same = value.get("spec") == Some(&json!(spec));
        is_same.then(|| (generation, value.get_mut("status").map(Value::take)))
    }

    async fn write_unit_status(
        &self,
        name: &str,
        report: &UnitReport,
        generation: Option<i64>,
    ) -> Result<Object, WriteError> {
        let units = &self.units.resource;
        let status = body(units, name, "status", &status_at(report, generation));
        let apply = self.apply(units, name, &status);
        self.cluster.apply_status(apply).await
    }
}

/// The status of an object with that generation: whoever waits for the unit compares it with
/// the object's own.
fn status_at(report: &UnitReport, generation: Option<i64>) -> Value {
    let mut status = report.status.clone();
    for condition in &mut status.conditions {
        condition.observed_generation = generation;
    }
    json!(status)
}

/// The generation of an object, if it has this spec.
fn generation_with(unit: &Object, spec: &UnitSpec) -> Option<i64> {
    let is_same = unit.value().get("spec") == Some(&json!(spec));
    unit.generation().filter(|_| is_same)
}
