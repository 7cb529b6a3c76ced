//! Owning fields of somebody else's object, and giving them up.

use super::apply::{Sent, is_strict};
use super::{Contested, Executor, Work, undeclared, write_problem};
use crate::active::Active;
use crate::problem::Problem;
use reeve_api::Reason;
use reeve_cluster::{Object, Preconditions};
use reeve_core::ObjectReference;
use reeve_core::ownership::contributor;
use reeve_core::plan::{Wanted, taken};
use std::sync::Arc;

impl Executor {
    /// Applies the fields of a contribution. Those that somebody has set, but does
    /// not apply, are overwritten; the plan leaves out what others apply.
    pub(super) async fn contribute(
        &self,
        work: &Work<'_>,
        one: &Wanted,
        uid: &str,
        again: bool,
    ) -> Result<Option<Contested>, Problem> {
        let reference = &one.stamped.reference;
        let Some(resource) = work.active.resource(&reference.kind) else {
            return Err(undeclared(reference));
        };
        let seen = contributed(work.active, &self.store.snapshot(), reference);
        let Some(live) = seen.filter(|live| live.uid() == uid) else {
            let message = format!("{reference} has changed since it was looked at");
            return Err(Problem::passing(Reason::ApplyFailed, message));
        };
        let manager = contributor(&work.owner.unit);
        let fields = taken(&live.whole(), one.stamped.body(), &manager);
        self.note_overwrite(work, &live, &fields, &[]).await?;
        let force = fields.iter().any(|field| field.overwrites);
        let onto = Preconditions {
            // An apply with a uid makes no object.
            uid: Some(uid),
            // What is forced is what was looked at.
            resource_version: force.then_some(live.resource_version()),
        };
        let before = match onto.resource_version {
            Some(version) => Some(version.to_owned()),
            None => self.version_before(work.active, reference),
        };
        let sent = Sent {
            body: (&one.stamped).into(),
            onto,
            before,
            strict: is_strict(one.stamped.body()),
        };
        let applied = self
            .send_body(work.active, resource, reference, sent, &manager, force)
            .await
            .map_err(|error| write_problem(reference, &error))?;
        tracing::info!(object = %reference, "contributed");
        self.store.observe(applied);
        Ok(again.then(|| Contested {
            object: reference.clone(),
            fields,
        }))
    }

    /// Gives up what a contributor owns of an object, if it is there and still the
    /// one that was looked at. What nobody else owns goes.
    pub(crate) async fn withdraw(
        &self,
        active: &Active,
        reference: &ObjectReference,
        uid: Option<&str>,
        manager: &str,
    ) -> Result<(), Problem> {
        let Some(live) = self.live(active, reference).await? else {
            if let Some(uid) = uid {
                self.store.observe_deleted(reference, uid);
            }
            return Ok(());
        };
        let uid = uid.unwrap_or(live.uid()).to_owned();
        if live.uid() != uid || live.manager_fields(manager).is_none() {
            self.take_note(reference, &uid, live);
            return Ok(());
        }
        let released = self.release(active, &live, manager).await?;
        tracing::info!(object = %reference, "contribution given up");
        self.store.observe(released);
        Ok(())
    }
}

/// An object of others as the plugin's watches have it.
pub(crate) fn contributed(
    active: &Active,
    snapshot: &reeve_cluster::Snapshot,
    reference: &ObjectReference,
) -> Option<Arc<Object>> {
    let mut watches = active.watches.contributed.iter();
    watches.find_map(|watch| {
        let spec = watch.spec();
        let namespace = reference.namespace.as_deref();
        let found = (spec.resource.kind == reference.kind)
            .then(|| snapshot.get_in(spec, namespace, &reference.name).found());
        found.flatten()
    })
}
