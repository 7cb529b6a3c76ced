//! What would be done to objects of others.

use super::Opened;
use super::plan::{Action, ObjectPlan, Standing, to_reader};
use crate::execute::contributed;
use crate::problem::{Problem, chain};
use reeve_api::Reason;
use reeve_core::fields::{Preview, changes, preview};
use reeve_core::ownership::contributor;
use reeve_core::plan::{Wanted, taken};
use reeve_core::{ObjectReference, UnitKey};
use serde_json::{Value, json};

impl Opened<'_> {
    /// What contributing would make of somebody's object. `again` where others have
    /// taken what the plugin had contributed.
    pub(super) async fn contribution(
        &self,
        unit: &UnitKey,
        one: &Wanted,
        again: bool,
    ) -> ObjectPlan {
        let reference = &one.stamped.reference;
        let body = one.stamped.body();
        let Some(live) = self.of_others(reference) else {
            return planned(reference, Action::Contribute);
        };
        let overwritten = taken(&live, body, &contributor(unit));
        let overwritten: Vec<String> = overwritten
            .iter()
            .filter(|field| field.overwrites)
            .map(ToString::to_string)
            .collect();
        let why = match (again, overwritten.as_slice()) {
            (false, []) => "the plugin contributes these fields".to_owned(),
            (true, []) => "fields that the plugin contributes are no longer its own".to_owned(),
            (_, fields) => format!(
                "the plugin contributes these fields, and overwrites {}",
                fields.join(", ")
            ),
        };
        let force = !overwritten.is_empty();
        let mut plan = planned(reference, Action::Contribute);
        plan.reason = Some(why);
        self.show(plan, unit, &live, body, force).await
    }

    /// What giving up a contribution would make of somebody's object.
    pub(super) async fn release(&self, unit: &UnitKey, reference: &ObjectReference) -> ObjectPlan {
        let mut plan = planned(reference, Action::Release);
        plan.reason = Some("the plugin no longer contributes to it".to_owned());
        let Some(live) = self.of_others(reference) else {
            return plan;
        };
        let mut nothing = json!({
            "apiVersion": reference.kind.api_version(),
            "kind": reference.kind.kind,
            "metadata": {"name": reference.name},
        });
        if let Some(namespace) = &reference.namespace {
            nothing["metadata"]["namespace"] = json!(namespace);
        }
        self.show(plan, unit, &live, &nothing, false).await
    }

    fn of_others(&self, reference: &ObjectReference) -> Option<Value> {
        let snapshot = self.runner.store.snapshot();
        contributed(&self.active, &snapshot, reference).map(|live| live.whole())
    }

    async fn show(
        &self,
        mut plan: ObjectPlan,
        unit: &UnitKey,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> ObjectPlan {
        let reference = &plan.object;
        let cluster = &self.runner.executor.cluster;
        let version = match self.active.resource(&reference.kind) {
            Some(resource) => self.schemas.version(cluster, resource).await,
            None => None,
        };
        let previewed = preview(&Preview {
            kind: &reference.kind,
            version: version.as_deref(),
            live: Some(live),
            config,
            manager: &contributor(unit),
            force,
        });
        match previewed {
            Ok(previewed) => {
                plan.fields = changes(previewed.before.as_ref(), Some(&previewed.after));
            }
            Err(error) => {
                let message = format!("{reference}: {}", chain(&error));
                let problem = Problem::passing(Reason::ApplyFailed, message);
                plan.standing = Standing::Refused;
                plan.reason = Some(to_reader(&problem.message));
            }
        }
        plan
    }
}

fn planned(object: &ObjectReference, action: Action) -> ObjectPlan {
    ObjectPlan {
        object: object.clone(),
        action,
        standing: Standing::Now,
        reason: None,
        step: None,
        fields: Vec::new(),
    }
}
