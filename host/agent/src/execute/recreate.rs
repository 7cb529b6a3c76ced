//! Making an object anew that the API server refuses to change.

use super::apply::Onto;
use super::apply::is_strict;
use super::{Executor, Mark, Work, write_problem};
use crate::journal::Deed;
use crate::metrics::Verb;
use crate::problem::{Problem, chain};
use reeve_api::{Operation, Reason};
use reeve_cluster::{Apply, Delete, Deletion, Object, Preconditions, Resource, WriteError};
use reeve_core::Digest;
use reeve_core::plan::{Recreation, Wanted, recreation};
use reeve_core::waves::Propagation;
use serde_json::json;
use tokio::time::Instant;

/// Names of objects are at most this long, of some kinds.
const MAX_NAME: usize = 63;

impl Executor {
    /// Deletes an object that was refused a change, and makes it anew: where policy
    /// or annotation allows that, and only if the API server would take it as a new
    /// object. In all other cases it stays as it is, and the problem says why.
    pub(super) async fn make_anew(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
        live: &Object,
        refused: &WriteError,
    ) -> Result<Object, Problem> {
        let reference = &one.stamped.reference;
        let WriteError::Invalid {
            causes, message, ..
        } = refused
        else {
            return Err(write_problem(reference, refused));
        };
        let active = work.active;
        match recreation(one, &active.policy, &active.plugin, causes, message) {
            Recreation::Unrelated => return Err(write_problem(reference, refused)),
            // Only the plugin's next answer, or a change of the object, changes that.
            Recreation::Refused(why) => return Err(Problem::lasting(Reason::FieldImmutable, why)),
            Recreation::Allowed { immutable } => {
                let reason = match immutable {
                    true => Reason::FieldImmutable,
                    false => Reason::ApplyFailed,
                };
                self.try_as_new(work, resource, one, refused, reason)
                    .await?;
            }
        }
        // What was seen may be out of date, and what goes must be what is written
        // down.
        let live = match self.live(active, reference).await? {
            Some(now) if now.uid() == live.uid() && !now.is_deleting() => now,
            _ => {
                let message = format!("{reference} has changed since it was looked at");
                return Err(Problem::passing(Reason::ApplyFailed, message));
            }
        };
        if let Some(recreations) = work.recreations
            && !recreations.allow(&live).await?
        {
            let message = format!(
                "{reference} cannot be changed as wanted: {message}. It is not made anew before \
                 that is approved"
            );
            return Err(Problem::lasting(Reason::DeletionHeld, message));
        }
        let reason = format!("it cannot be changed as wanted: {message}");
        self.journal
            .write(&Deed {
                operation: Operation::Recreate,
                unit: &work.owner.unit,
                object: &live,
                reason: &reason,
            })
            .await?;
        let began = Instant::now();
        let deletion = self
            .cluster
            .delete(Delete {
                resource,
                namespace: reference.namespace.as_deref(),
                name: &reference.name,
                uid: Some(live.uid()),
                resource_version: Some(live.resource_version()),
                propagation: Propagation::Background,
                dry_run: false,
                identity: Some(&active.identity),
            })
            .await;
        self.count(active, Verb::Delete, began, deletion.as_ref().err());
        let deletion = deletion.map_err(|error| {
            let uid = live.uid().to_owned();
            self.lost.note(resource, &error, Mark::Deleted { uid });
            write_problem(reference, &error)
        })?;
        tracing::info!(object = %reference, reason, "deleted to be made anew");
        // Marked as it went, as a Pod without a grace period is.
        let pending =
            deletion == Deletion::Pending && self.live(active, reference).await?.is_some();
        if pending {
            let message = format!("{reference} is being deleted, and made anew when it is gone");
            return Err(Problem::passing(Reason::Waiting, message));
        }
        self.store.observe_deleted(reference, live.uid());
        let sent = self.send(active, resource, one, Onto::Nothing, false).await;
        sent.map_err(|error| write_problem(reference, &error))
    }

    /// Asks whether the object would be taken as a new one, under another name since
    /// its own is in use. A deletion must not be followed by a refusal.
    async fn try_as_new(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
        refused: &WriteError,
        reason: Reason,
    ) -> Result<(), Problem> {
        let reference = &one.stamped.reference;
        let name = other_name(&reference.name);
        let mut body = one.stamped.body().clone();
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.insert("name".to_owned(), json!(name));
        }
        let tried = self
            .cluster
            .apply(Apply {
                resource,
                namespace: reference.namespace.as_deref(),
                name: &name,
                body: (&body).into(),
                onto: Preconditions::default(),
                manager: &work.active.field_manager,
                force: false,
                strict: is_strict(&body),
                dry_run: true,
                identity: Some(&work.active.identity),
            })
            .await;
        let why = match tried {
            Ok(_) => return Ok(()),
            // A right to this one name says nothing of another; one to create has no
            // name.
            Err(WriteError::Forbidden { verb, .. }) if verb != "create" => return Ok(()),
            // The place of the old one is free then.
            Err(WriteError::Denied { message, .. }) if message.contains("exceeded quota") => {
                return Ok(());
            }
            Err(error @ (WriteError::Unreachable { .. } | WriteError::Throttled { .. })) => {
                return Err(write_problem(reference, &error));
            }
            Err(error) => chain(&error),
        };
        let message = format!(
            "{reference} cannot be changed as wanted: {}. It is not made anew, since it would be \
             refused: {why}",
            chain(refused)
        );
        Err(Problem::lasting(reason, message))
    }
}

/// A name that is valid where `name` is, and not in use.
fn other_name(name: &str) -> String {
    let suffix = &Digest::of(name.as_bytes()).hex()[..8];
    let room = MAX_NAME - suffix.len() - 1;
    let mut end = name.len().min(room);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let kept = name[..end].trim_end_matches(['-', '.', ':']);
    format!("{kept}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_is_as_valid() {
        for name in [
            "a",
            "a.b",
            &"x".repeat(253),
            &format!("{}.b", "x".repeat(53)),
        ] {
            let other = other_name(name);
            assert_ne!(other, name);
            assert!(other.len() <= MAX_NAME, "{other}");
            assert!(!other.contains(".-"), "{other}");
        }
    }
}
