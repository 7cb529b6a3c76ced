//! Making an object that is not there, or taking over one that is.

use super::apply::Onto;
use super::{Executor, Work, write_problem};
use crate::active::Active;
use crate::journal::Deed;
use crate::metrics::Verb;
use crate::problem::Problem;
use reeve_api::{Operation, Reason};
use reeve_cluster::{Create, Object, Resource, WriteError};
use reeve_core::ownership::PRIMARY_ANNOTATION;
use reeve_core::plan::{Claim, Refusal, Wanted, Whose, adopted, judge};
use reeve_core::waves::ApplyMode;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::{Value, json};
use tokio::time::Instant;

impl Executor {
    /// Makes an object where nothing carries our labels. What is there all the same
    /// is judged: ours, to be taken over, or not for us; until then nothing of it is
    /// changed.
    pub(super) async fn claim(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
    ) -> Result<Object, Problem> {
        let active = work.active;
        let reference = &one.stamped.reference;
        let _claiming = self
            .claims
            .open(reference, &work.owner.unit)
            .map_err(|holder| held(work, reference, &holder.id()))?;
        self.check_holder(work, reference)?;
        match self.send_new(work, resource, one).await? {
            Ok(applied) => return Ok(applied),
            // What is there has not our version, and may have others' values too.
            Err(WriteError::Precondition { .. } | WriteError::Conflict { .. }) => {}
            Err(error) => return Err(write_problem(reference, &error)),
        }
        let Some(live) = self.live(active, reference).await? else {
            let message = format!("{reference} has gone since it was looked at");
            return Err(Problem::passing(Reason::ApplyFailed, message));
        };
        if one.member.options.apply == ApplyMode::IfNotPresent && !live.is_deleting() {
            let message = format!("{reference} has come since it was looked at");
            return Err(Problem::passing(Reason::ApplyFailed, message));
        }
        match self.judge(work, reference, &live)? {
            Whose::Ours => self.change(work, resource, one, &live).await,
            _ => self.adopt(work, resource, one, &live).await,
        }
    }

    /// Makes an object, and its namespace first where the object asks for that.
    async fn send_new(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
    ) -> Result<Result<Object, WriteError>, Problem> {
        let make = || self.send(work.active, resource, one, Onto::Nothing, false);
        let sent = make().await;
        let Err(WriteError::NamespaceAbsent { namespace, .. }) = &sent else {
            return Ok(sent);
        };
        if !one.member.options.sync.create_namespace {
            return Ok(sent);
        }
        self.make_namespace(work, &one.stamped.reference, namespace)
            .await?;
        Ok(make().await)
    }

    /// Makes a namespace. It carries no mark of ours, so that it is nobody's to
    /// prune.
    async fn make_namespace(
        &self,
        work: &Work<'_>,
        object: &ObjectReference,
        name: &str,
    ) -> Result<(), Problem> {
        let kind = GroupVersionKind::new("", "v1", "Namespace");
        // Of a kind that is only read there is a resource, too.
        let writes = &work.active.manifest.writes;
        let declared = writes.iter().any(|rule| rule.kind.same_kind(&kind));
        let resource = work.active.resource(&kind).filter(|_| declared);
        let Some(resource) = resource else {
            return Err(Problem::lasting(
                Reason::OutcomeRefused,
                format!(
                    "{object}: `CreateNamespace=true` takes a manifest that declares to write \
                     Namespaces; declare that, or leave the option out"
                ),
            ));
        };
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let began = Instant::now();
        let created = self
            .cluster
            .create(Create {
                resource,
                namespace: None,
                name,
                body: &body,
                manager: &work.active.field_manager,
                identity: Some(&work.active.identity),
            })
            .await;
        self.count(work.active, Verb::Create, began, created.as_ref().err());
        match created {
            // Somebody was faster.
            Ok(_) | Err(WriteError::Precondition { .. }) => Ok(()),
            Err(error) => Err(write_problem(object, &error)),
        }
    }

    /// Takes over an object: what the listed managers own of it becomes ours, so that
    /// what of it we do not want goes, and the rest is set as wanted.
    async fn adopt(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
        live: &Object,
    ) -> Result<Object, Problem> {
        let reference = &one.stamped.reference;
        self.journal
            .write(&Deed {
                operation: Operation::Overwrite,
                unit: &work.owner.unit,
                object: live,
                reason: "it is taken over by the plugin, as spec.adoption of its Plugin says",
            })
            .await?;
        let handed_over = match self.adopted(work, one, live) {
            Some(entries) => Some(self.hand_over(work, live, &entries).await?),
            None => None,
        };
        let onto = Onto::Version(handed_over.as_ref().unwrap_or(live));
        tracing::info!(object = %reference, "taken over");
        match self.send(work.active, resource, one, onto, true).await {
            Ok(applied) => Ok(applied),
            Err(error) => self.make_anew(work, resource, one, live, &error).await,
        }
    }

    /// The managed fields of an object once it is taken over; none where they stay.
    pub(super) fn adopted(&self, work: &Work<'_>, one: &Wanted, live: &Object) -> Option<Value> {
        let claim = Self::claim_of(work);
        let migrate = one.member.options.sync.client_side_apply_migration == Some(true);
        let api_version = one.stamped.reference.kind.api_version();
        adopted(&claim, &live.whole(), &api_version, migrate)
    }

    /// Whose a live object is; a refusal is a problem.
    pub(super) fn judge(
        &self,
        work: &Work<'_>,
        reference: &ObjectReference,
        live: &Object,
    ) -> Result<Whose, Problem> {
        if live.is_deleting() {
            let message = format!("{reference} is being deleted, and made anew when it is gone");
            return Err(Problem::passing(Reason::Waiting, message));
        }
        let claim = Self::claim_of(work);
        match judge(&claim, reference, &live.whole()) {
            Whose::Refused(refusal) => Err(refused(&refusal)),
            whose => Ok(whose),
        }
    }

    fn claim_of<'a>(work: &Work<'a>) -> Claim<'a> {
        Claim {
            owner: work.owner,
            manager: &work.active.field_manager,
            policy: &work.active.policy,
        }
    }

    /// Both units of a plugin have one field manager, so the API server would not
    /// see a conflict between them.
    pub(super) fn check_holder(
        &self,
        work: &Work<'_>,
        reference: &ObjectReference,
    ) -> Result<(), Problem> {
        match self.held_by_another_unit(work.active, &work.owner.unit, reference) {
            Some(holder) => Err(held(work, reference, &holder)),
            None => Ok(()),
        }
    }

    /// The primary of another unit of the same plugin that has this object.
    fn held_by_another_unit(
        &self,
        active: &Active,
        unit: &UnitKey,
        reference: &ObjectReference,
    ) -> Option<String> {
        let own = unit.id();
        let snapshot = self.store.snapshot();
        let watches = active.watches.owned.iter();
        watches
            .filter(|watch| watch.spec().resource.kind == reference.kind)
            .filter_map(|watch| {
                let namespace = reference.namespace.as_deref();
                snapshot
                    .get_in(watch.spec(), namespace, &reference.name)
                    .found()
            })
            .filter(|held| held.manager_fields(&active.field_manager).is_some())
            .filter_map(|held| held.annotation(PRIMARY_ANNOTATION))
            .find(|holder| *holder != own)
    }
}

fn held(work: &Work<'_>, object: &ObjectReference, holder_primary: &str) -> Problem {
    let unit = &work.owner.unit;
    refused(&Refusal::Held {
        object: object.clone(),
        plugin: unit.plugin.to_string(),
        primary: unit.id(),
        holder: unit.plugin.to_string(),
        holder_primary: holder_primary.to_owned(),
    })
}

/// Whoever holds an object may give it up where we do not watch.
fn refused(refusal: &Refusal) -> Problem {
    Problem::passing(Reason::Conflict, refusal.to_string())
}
