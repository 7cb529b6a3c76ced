//! Delete: marking an object for deletion, and removing it once nothing holds it.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::options::{DeleteOptions, Propagation};
use super::{Call, Writer, meta};
use crate::admission::policy::Operation;
use crate::definitions;
use crate::http::response::{self, Answer};
use crate::resource::{Nature, Resource};
use crate::status::{About, ApiError};
use crate::store::{Object, Refused};

/// The table of pods, which are told to end before they do.
pub(crate) const PODS: &str = "pods";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// What who deletes a Job is told.
const JOBS_LEAVE_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
/// How often a deletion without preconditions is tried again.
const ATTEMPTS: usize = 50;

/// What a deletion came to.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last state.
    Gone(Arc<Object>),
    /// The object goes when its finalizers are removed.
    Terminating(Arc<Object>),
}

/// Deletes the object that the path names.
pub(super) fn delete(call: &Call) -> Result<Answer, ApiError> {
    if call.subresource().is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::parse(call)?;
    let resource = &call.resource;
    if resource.kind == "Job" && resource.group == "batch" && options.propagation.is_none() {
        call.warn(JOBS_LEAVE_PODS);
    }
    let writer = deleting(call, &options)?;
    Ok(match writer.delete(&call.key(), &options)? {
        Deleted::Terminating(object) => call.answer(StatusCode::OK, object)?,
        Deleted::Gone(object) if resource.returns_deleted() => {
            call.answer(StatusCode::OK, object)?
        }
        Deleted::Gone(object) => {
            let mut details =
                json!({"name": object.name(), "kind": resource.plural, "uid": object.uid()});
            if !resource.group.is_empty() {
                details["group"] = json!(resource.group);
            }
            let status = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            });
            response::encoded(StatusCode::OK, call.accepted.encoding, &status)
        }
    })
}

/// Who deletes: what a body says of a dry run is so whatever the parameters say.
pub(super) fn deleting<'a>(
    call: &'a Call,
    options: &DeleteOptions,
) -> Result<Writer<'a>, ApiError> {
    Ok(Writer {
        dry_run: options.dry_run,
        ..call.writer()?
    })
}

impl Writer<'_> {
    /// Deletes the object of `key`, or begins to.
    pub(crate) fn delete(&self, key: &str, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let resource = self.resource;
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        let store = &self.server.store;
        let missing = || ApiError::not_found(resource.about(name));
        forbid_built_in_namespaces(resource, name)?;
        // What can end gracefully is told to end before it does.
        let is_graceful = &*resource.table == PODS;
        let mut told: Option<Arc<Object>> = None;
        for _ in 0..ATTEMPTS {
            let Some(live) = store.get(&resource.table, key) else {
                return told.map(Deleted::Gone).ok_or_else(missing);
            };
            match &told {
                None => check_preconditions(resource, &live, options)?,
                // Somebody has ended it, and made another one of its name.
                Some(told) if told.uid() != live.uid() => return Ok(Deleted::Gone(told.clone())),
                Some(_) => {}
            }
            let before = self.before(&live, Resource::shown_anew_now)?;
            let policy = options
                .propagation
                .or_else(|| resource.propagation(&before));
            let is_new = !meta::is_terminating(&before);
            if is_new {
                self.tell_of_deletion(&before)?;
                self.ask_admission(Operation::Delete, None, Some(&before))?;
            }
            let mut after = self.marked(&before, policy);
            let ends = meta::may_end(resource, &after);
            if ends && (self.dry_run || options.dry_run) {
                return Ok(Deleted::Gone(match is_graceful {
                    true => Arc::new(Object::unstored(key, &after)),
                    false => live,
                }));
            }
            if ends && !(is_graceful && is_new) {
                match store.remove(&resource.table, key, live.version()) {
                    Ok(object) => {
                        self.server.committed(resource, &object, true);
                        return Ok(Deleted::Gone(object));
                    }
                    Err(Refused::Missing) => {
                        return told.map(Deleted::Gone).ok_or_else(missing);
                    }
                    Err(Refused::Unkept) => return Err(ApiError::unkept()),
                    Err(_) => continue,
                }
            }
            if after == before {
                return Ok(Deleted::Terminating(live));
            }
            if self.dry_run || options.dry_run {
                return Ok(Deleted::Terminating(Arc::new(Object::unstored(
                    key, &after,
                ))));
            }
            resource.encode(&mut after)?;
            match store.replace(&resource.table, key, live.version(), after) {
                Ok(object) => {
                    self.server.committed(resource, &object, false);
                    if !ends {
                        return Ok(Deleted::Terminating(object));
                    }
                    told = Some(object);
                }
                Err(Refused::Missing) => return Err(missing()),
                Err(Refused::Unkept) => return Err(ApiError::unkept()),
                Err(_) => {}
            }
        }
        Err(ApiError::modified(resource.about(name)))
    }

    /// The object with the marks of a deletion that has begun.
    fn marked(&self, before: &Value, policy: Option<Propagation>) -> Value {
        let mut after = before.clone();
        set_policy_finalizer(&mut after, policy);
        if meta::is_terminating(before) {
            return after;
        }
        let is_definition = definitions::is_definition(self.resource);
        if is_definition {
            add_finalizer(&mut after, definitions::FINALIZER);
        }
        let now = self.server.clock.timestamp();
        let metadata = meta::of_mut(&mut after);
        metadata.insert("deletionTimestamp".to_owned(), json!(now));
        let is_namespace = self.resource.plural == "namespaces" && self.resource.group.is_empty();
        if is_namespace {
            after["status"]["phase"] = json!("Terminating");
            return after;
        }
        if is_definition {
            definitions::announce_end(&mut after, &now);
            return after;
        }
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), json!(generation + 1));
        }
        after
    }
}

impl Resource {
    /// What becomes of dependents where the caller does not say: what an earlier
    /// deletion or who made the object has said, or else what is usual for the kind.
    fn propagation(&self, object: &Value) -> Option<Propagation> {
        let finalizers = object.pointer("/metadata/finalizers");
        let mut finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        if finalizers.any(|finalizer| finalizer == ORPHAN || finalizer == FOREGROUND) {
            return None;
        }
        match &self.nature {
            Nature::Builtin(kind) if kind.orphans => Some(Propagation::Orphan),
            _ => None,
        }
    }
}

/// The policy is kept as a finalizer, which the garbage collector acts upon. A
/// later deletion with another policy replaces it.
fn set_policy_finalizer(object: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let metadata = meta::of_mut(object);
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let mut finalizers: Vec<Value> = finalizers.cloned().unwrap_or_default();
    let wanted = match policy {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    finalizers.retain(|f| {
        Some(f.as_str().unwrap_or_default()) == wanted || (f != ORPHAN && f != FOREGROUND)
    });
    if let Some(wanted) = wanted
        && !finalizers.iter().any(|finalizer| finalizer == wanted)
    {
        finalizers.push(json!(wanted));
    }
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = meta::of_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|present| present == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
}

fn check_preconditions(
    resource: &Resource,
    live: &Object,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != live.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            live.uid()
        );
        return Err(ApiError::conflict(resource.about_kind(live.name()), &why));
    }
    let version = live.version().to_string();
    if let Some(asked) = options.version.as_deref().filter(|asked| *asked != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(ApiError::conflict(resource.about_kind(live.name()), &why));
    }
    Ok(())
}

/// The namespaces that a cluster cannot be without.
fn forbid_built_in_namespaces(resource: &Resource, name: &str) -> Result<(), ApiError> {
    let forbidden = resource.plural == "namespaces"
        && resource.group.is_empty()
        && matches!(name, "default" | "kube-system" | "kube-public");
    if forbidden {
        let about = About {
            group: "",
            resource: "namespaces",
            name,
        };
        return Err(ApiError::forbidden(
            about,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}
