//! Writing `Unit` objects.

use super::names::Writing;
use super::{About, Reporter, UnitReport, body};
use reeve_api::UnitSpec;
use reeve_cluster::{Delete, Object, WriteError};
use reeve_core::waves::Propagation;
use serde_json::{Value, json};

impl Reporter {
    /// Brings a `Unit` object to what is said and remembered of the unit.
    pub(super) async fn write_about_unit(
        &self,
        name: &str,
        said: Option<&UnitReport>,
    ) -> Result<(), WriteError> {
        let (writing, names) = self.reports.0.pending.lock().names.writing(name, said);
        match writing {
            Writing::Nothing => Ok(()),
            Writing::Write(report) => {
                self.write_unit(name, &report).await?;
                let mut pending = self.reports.0.pending.lock();
                pending.names.written(name, names, said.is_none());
                pending.begun.written(name, &report.status);
                drop(pending);
                self.reports.0.remembered.notify_waiters();
                Ok(())
            }
            Writing::Delete => {
                let delete = Delete {
                    resource: &self.units.resource,
                    namespace: Some(&self.namespace),
                    name,
                    uid: None,
                    resource_version: None,
                    propagation: Propagation::Background,
                    dry_run: false,
                    identity: None,
                };
                self.cluster.delete(delete).await.map(drop)
            }
        }
    }

    async fn write_unit(&self, name: &str, report: &UnitReport) -> Result<(), WriteError> {
        // What changes is almost always the status alone, and often not even that.
        if let Some((generation, status)) = self.seen_with(name, &report.spec) {
            // Of what failed before nobody knows what came of it.
            let about = About::Unit(name.to_owned());
            let is_known = self.reports.attempts(&about) == 0;
            if is_known && status == Some(status_at(report, Some(generation))) {
                return Ok(());
            }
            match self.write_unit_status(name, report, Some(generation)).await {
                Err(WriteError::Absent { .. }) => {}
                // The watch lags behind: somebody has changed it, or made it anew.
                Ok(now) if generation_with(&now, &report.spec) != Some(generation) => {}
                written => return written.map(|now| self.store.observe(now)),
            }
        }
        let units = &self.units.resource;
        let spec = body(units, name, "spec", &json!(report.spec));
        let applied = self.cluster.apply(self.apply(units, name, &spec)).await?;
        let generation = applied.generation();
        self.store.observe(applied);
        let written = self.write_unit_status(name, report, generation).await;
        written.map(|now| self.store.observe(now))
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
