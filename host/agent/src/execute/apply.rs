//! Sending an object that a plan applies.

use super::{
    Answer, Contested, Done, Executor, Mark, Work, contributed, undeclared, write_problem,
};
use crate::active::Active;
use crate::metrics::{Verb, WriteResult};
use crate::problem::Problem;
use reeve_cluster::{Apply, Body, Object, Preconditions, Resource, SetManagers, WriteError};
use reeve_core::ObjectReference;
use reeve_core::ownership::APPLIED_ANNOTATION;
use reeve_core::plan::{ApplyReason, Wanted, handover, replaced, taken};
use reeve_core::waves::{ApplyMode, Options};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// An apply has no way to say "only create", but the version that it names must be the live
/// one, and where there is none it is not looked at. No object has this one: that is etcd's
/// revision before the first write.
const NO_VERSION: &str = "1";

/// An object that is to be changed is looked at this often at most, while others
/// change it, too. A status that somebody reports into it takes one more look.
const LOOKS: usize = 3;

impl Executor {
    /// Applies an object.
    pub(super) async fn apply(
        &self,
        work: &Work<'_>,
        one: &Wanted,
        uid: Option<&str>,
        reason: ApplyReason,
    ) -> Result<Done, Problem> {
        let reference = &one.stamped.reference;
        let Some(resource) = work.active.resource(&reference.kind) else {
            return Err(undeclared(reference));
        };
        let mut contested = None;
        let applied = match reason {
            ApplyReason::Absent => self.claim(work, resource, one).await?,
            ApplyReason::Changed | ApplyReason::Drifted => {
                let seen = self.seen(work.active, reference);
                let seen = seen.filter(|seen| Some(seen.uid()) == uid);
                let Some(seen) = seen else {
                    let message = format!("{reference} has changed since it was looked at");
                    return Err(Problem::passing(reeve_api::Reason::ApplyFailed, message));
                };
                if reason == ApplyReason::Drifted {
                    let fields = taken(
                        &seen.whole(),
                        one.stamped.body(),
                        &work.active.field_manager,
                    );
                    let object = reference.clone();
                    contested = Some(Contested { object, fields });
                }
                self.change(work, resource, one, &seen).await?
            }
        };
        tracing::info!(object = %reference, ?reason, "applied");
        let object = Arc::new(applied);
        self.store.observe(object.clone());
        // After a drift it is looked up whether all fields are ours again.
        let took = reason != ApplyReason::Drifted && is_taken_whole(one);
        let took = took.then(|| one.stamped.applied.clone());
        Ok(Done {
            contested,
            answer: Some(Answer { object, took }),
        })
    }

    /// Changes an object of ours to what is wanted. What others set of it is written
    /// down before it is overwritten, and what is ignored is given up without being
    /// changed. What is overwritten is what was looked at: an object that has changed
    /// since is looked at again.
    pub(super) async fn change(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
        live: &Object,
    ) -> Result<Object, Problem> {
        let mut newer: Option<Object> = None;
        for _ in 1..LOOKS {
            let live = newer.as_ref().unwrap_or(live);
            match self
                .change_version(work, resource, one, live, false)
                .await?
            {
                Ok(applied) => return Ok(applied),
                Err(error @ WriteError::Precondition { .. }) => {
                    let reference = &one.stamped.reference;
                    let now = self.live(work.active, reference).await?;
                    let same = now.filter(|now| now.uid() == live.uid());
                    newer = Some(same.ok_or_else(|| write_problem(reference, &error))?);
                }
                Err(error) => return self.make_anew(work, resource, one, live, &error).await,
            }
        }
        let live = newer.as_ref().unwrap_or(live);
        match self.change_version(work, resource, one, live, true).await? {
            Ok(applied) => Ok(applied),
            Err(error) => self.make_anew(work, resource, one, live, &error).await,
        }
    }

    /// Changes an object that is as it was looked at; at the last attempt, whatever it
    /// has become meanwhile, as far as that takes nothing from anybody.
    async fn change_version(
        &self,
        work: &Work<'_>,
        resource: &Resource,
        one: &Wanted,
        live: &Object,
        last: bool,
    ) -> Result<Result<Object, WriteError>, Problem> {
        let manager = &work.active.field_manager;
        let options = &one.member.options;
        let mut handed_over = None;
        let mut takes = false;
        // An object that is ours alone, which most are, has nothing to look into.
        if one.ignored.is_some() || others(live, manager).is_some() {
            let whole = live.whole();
            let fields = taken(&whole, one.stamped.body(), manager);
            takes = !fields.is_empty();
            let gone = replaced(one, &whole, manager);
            self.note_overwrite(work, live, &fields, &gone).await?;
            if let Some(entries) = handover(one, &whole, manager) {
                handed_over = Some(self.hand_over(work, live, &entries).await?);
            }
        }
        // Who writes something else of it without end must not keep it from being as it
        // is wanted: an apply without force is refused where it would take a field.
        let gently = last && !takes && handed_over.is_none();
        let live = handed_over.as_ref().unwrap_or(live);
        // Whoever leaves fields to others does not take one that somebody has set
        // just now either.
        let force = options.apply != ApplyMode::Merge && !gently;
        let onto = match force {
            true => Onto::Version(live),
            false => Onto::Uid(live.uid()),
        };
        Ok(self.send(work.active, resource, one, onto, force).await)
    }

    /// Writes who owns which fields of an object. Values stay. Returns it as it is
    /// then.
    pub(super) async fn hand_over(
        &self,
        work: &Work<'_>,
        live: &Object,
        entries: &Value,
    ) -> Result<Object, Problem> {
        let began = Instant::now();
        let written = self
            .cluster
            .set_managers(SetManagers {
                live,
                entries,
                manager: &work.active.field_manager,
                identity: Some(&work.active.identity),
            })
            .await;
        self.count(work.active, Verb::Apply, began, written.as_ref().err());
        if let Err(error) = &written {
            self.lost
                .note(live.resource(), error, Mark::written(Some(live)));
        }
        written.map_err(|error| write_problem(&live.reference(), &error))
    }

    /// Sends an apply, to the object that is meant and no other of its name.
    pub(super) async fn send(
        &self,
        active: &Active,
        resource: &Resource,
        one: &Wanted,
        onto: Onto<'_>,
        force: bool,
    ) -> Result<Object, WriteError> {
        let manager = &active.field_manager;
        let reference = &one.stamped.reference;
        let before = match onto {
            Onto::Nothing => None,
            // It is there in no other version, or nothing comes of it.
            Onto::Version(object) => Some(object.resource_version().to_owned()),
            Onto::Uid(_) => self.version_before(active, reference),
        };
        let sent = Sent {
            body: (&one.stamped).into(),
            onto: onto.preconditions(),
            before,
            strict: is_sent_strictly(one),
        };
        self.send_body(active, resource, reference, sent, manager, force)
            .await
    }

    /// The version of an object that the store has, of one that is written as it is then.
    pub(super) fn version_before(
        &self,
        active: &Active,
        reference: &ObjectReference,
    ) -> Option<String> {
        let seen = self.seen(active, reference);
        let seen = seen.or_else(|| contributed(active, &self.store.snapshot(), reference));
        seen.map(|object| object.resource_version().to_owned())
    }

    pub(super) async fn send_body(
        &self,
        active: &Active,
        resource: &Resource,
        reference: &ObjectReference,
        sent: Sent<'_>,
        manager: &str,
        force: bool,
    ) -> Result<Object, WriteError> {
        let Sent {
            body,
            onto,
            before,
            strict,
        } = sent;
        let request = Apply {
            resource,
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
            body,
            onto,
            manager,
            force,
            strict,
            dry_run: false,
            identity: Some(&active.identity),
        };
        let began = Instant::now();
        let applied = self.cluster.apply(request).await;
        self.count(active, Verb::Apply, began, applied.as_ref().err());
        if let Err(error) = &applied {
            let digest = body.value()["metadata"]["annotations"][APPLIED_ANNOTATION].as_str();
            let mark = Mark::Written {
                before,
                digest: digest.map(str::to_owned),
            };
            self.lost.note(resource, error, mark);
        }
        applied
    }

    pub(super) fn count(
        &self,
        active: &Active,
        verb: Verb,
        began: Instant,
        error: Option<&WriteError>,
    ) {
        let result = error.map_or(WriteResult::Success, WriteResult::of);
        self.metrics
            .wrote(&active.plugin, verb, result, began.elapsed());
    }

    /// Gives up all that a manager applied to an object. Applying nothing removes
    /// what only it owns.
    pub(super) async fn release(
        &self,
        active: &Active,
        live: &Object,
        manager: &str,
    ) -> Result<Object, Problem> {
        let reference = &live.reference();
        let mut metadata = json!({"name": reference.name});
        if let Some(namespace) = &reference.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let nothing = json!({
            "apiVersion": reference.kind.api_version(),
            "kind": reference.kind.kind,
            "metadata": metadata,
        });
        let onto = Onto::Uid(live.uid()).preconditions();
        let sent = Sent {
            body: (&nothing).into(),
            onto,
            before: self.version_before(active, reference),
            strict: true,
        };
        self.send_body(active, live.resource(), reference, sent, manager, false)
            .await
            .map_err(|error| write_problem(reference, &error))
    }

    /// An object that the plugin owns, as it was seen last.
    fn seen(&self, active: &Active, reference: &ObjectReference) -> Option<Arc<Object>> {
        let snapshot = self.store.snapshot();
        let mut watches = active.watches.owned.iter();
        watches.find_map(|watch| {
            let spec = watch.spec();
            let namespace = reference.namespace.as_deref();
            let found = (spec.resource.kind == reference.kind)
                .then(|| snapshot.get_in(spec, namespace, &reference.name).found());
            found.flatten()
        })
    }
}

/// What is sent.
pub(super) struct Sent<'a> {
    pub(super) body: Body<'a>,
    pub(super) onto: Preconditions<'a>,
    /// The version that it is to take the place of; none for what is to be made.
    pub(super) before: Option<String>,
    /// Whether its fields are held to its kind's schema; see [`is_strict`].
    pub(super) strict: bool,
}

/// What an apply is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Onto<'a> {
    /// An object that is to be made. One of its name that is there, whosever it is,
    /// stays untouched: [`WriteError::Precondition`].
    Nothing,
    /// The object with this uid. One made by somebody else since we looked is not
    /// ours to force.
    Uid(&'a str),
    /// The object as it was looked at, and no later version of it: what somebody has
    /// set since is not ours to force either.
    Version(&'a Object),
}

impl<'a> Onto<'a> {
    /// How the API server is told so.
    pub(super) fn preconditions(self) -> Preconditions<'a> {
        let (uid, resource_version) = match self {
            Self::Nothing => (None, Some(NO_VERSION)),
            Self::Uid(uid) => (Some(uid), None),
            Self::Version(object) => (Some(object.uid()), Some(object.resource_version())),
        };
        Preconditions {
            uid,
            resource_version,
        }
    }
}

/// Who else owns fields of an object, if anybody. Its status does not count.
pub(super) fn others(object: &Object, own_manager: &str) -> Option<String> {
    let mut names: Vec<String> = object
        .managers()
        .into_iter()
        .filter(|entry| entry.manager != own_manager && entry.subresource != "status")
        .map(|entry| format!("{:?}", entry.manager))
        .collect();
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Whether the fields of what is sent are held to its kind's schema.
pub(super) fn is_sent_strictly(one: &Wanted) -> bool {
    match one.ignored {
        None => one.member.options.sync.validate != Some(false),
        // Without what is ignored, it may say something else.
        Some(_) => is_strict(one.stamped.body()),
    }
}

/// Whether the API server takes all of what is sent, unless it refuses it. Through a request
/// for the object itself nobody sets its status, nor anything of a request to be signed.
fn is_taken_whole(one: &Wanted) -> bool {
    let has_status = one.stamped.written().text().has_status();
    let is_request = one.stamped.reference.kind.group == "certificates.k8s.io";
    is_sent_strictly(one) && !has_status && !is_request
}

/// Whether an object's fields are held to its kind's schema (`Validate`).
pub(super) fn is_strict(body: &Value) -> bool {
    Options::of(body).0.sync.validate != Some(false)
}
