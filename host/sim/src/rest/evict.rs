//! Eviction: deleting a pod, if the budget that it counts for allows that.

use http::StatusCode;
use serde_json::{Value, json};

use super::options::{DeleteOptions, Propagation};
use super::write::{Part, Proposal, UnknownFields, Writer};
use super::{Call, meta};
use crate::admission::policy::Operation;
use crate::http::negotiate;
use crate::http::response::{self, Answer};
use crate::kinds::edit::{ensure_object, integer, items, set, text, text_at};
use crate::selector::LabelSelector;
use crate::status::{About, ApiError};
use crate::store::Range;
use crate::typed::EVICTION;

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// Who writes the status of budgets here.
const MANAGER: &str = "kube-apiserver";
/// More evictions than these wait for nobody: who confirms them is not there.
const MOST_DISRUPTED: usize = 2000;
const TOO_MANY: &str = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
/// Seconds after which to try again while a budget has not been looked at.
const SOON: u32 = 10;

/// Evicts the pod that the path names.
pub(super) fn evict(call: &Call) -> Result<Answer, ApiError> {
    let mut eviction = negotiate::parse_body(&call.parts.headers, &call.body, EVICTION.kind)?;
    call.change_sent(Operation::Create, EVICTION, &mut eviction, None)?;
    if text_at(&eviction, "/metadata/name") != call.name() {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    call.check_sent(Operation::Create, EVICTION, &eviction)?;
    let mut options = options(&eviction);
    options.dry_run |= call.query.dry_run();
    let live = call.live()?;
    let pod = live.value();
    if !is_free(&pod) {
        let budgets = budgets_of(call, &pod);
        match budgets.as_slice() {
            [] => {}
            [budget] if is_spare(budget, &pod) => {
                // Nobody may have found it healthy since.
                let seen = || live.version().to_string();
                options.version.get_or_insert_with(seen);
            }
            [budget] => take_from(call, budget, &options)?,
            _ => return Err(ApiError::internal(TOO_MANY)),
        }
    }
    // Nobody is asked about the deletion besides.
    let writer = Writer {
        user: None,
        ..call.writer()?
    };
    if !options.dry_run {
        let marked = mark(&writer, call, &options)?;
        if options.version.is_some() {
            options.version = Some(marked);
        }
    }
    writer.delete(&call.key(), &options)?;
    let done = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    });
    Ok(response::encoded(
        StatusCode::CREATED,
        call.accepted.encoding,
        &done,
    ))
}

fn options(eviction: &Value) -> DeleteOptions {
    let options = &eviction["deleteOptions"];
    let given = |pointer: &str| options.pointer(pointer).and_then(Value::as_str);
    DeleteOptions {
        propagation: match given("/propagationPolicy") {
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            _ => None,
        },
        uid: given("/preconditions/uid").map(str::to_owned),
        version: given("/preconditions/resourceVersion").map(str::to_owned),
        dry_run: items(options, "dryRun").next().is_some(),
    }
}

/// Whether no budget has to be asked: the pod does not run, or not for long.
fn is_free(pod: &Value) -> bool {
    let phase = text_at(pod, "/status/phase");
    meta::is_terminating(pod) || matches!(phase, "Succeeded" | "Failed" | "Pending")
}

/// Whether the pod is not one of those that the budget protects: it is not ready,
/// and enough others are, or the budget lets such pods go.
fn is_spare(budget: &Value, pod: &Value) -> bool {
    let ready = items(&pod["status"], "conditions")
        .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True");
    let number = |field| integer(&budget["status"], field).unwrap_or_default();
    let desired = number("desiredHealthy");
    let always = text_at(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    !ready && (always || (desired > 0 && number("currentHealthy") >= desired))
}

/// The budgets that a pod counts for.
fn budgets_of(call: &Call, pod: &Value) -> Vec<Value> {
    let prefix = format!("{}/", call.namespace());
    let range = Range {
        prefix: &prefix,
        ..Range::default()
    };
    let page = call.server.store.list(BUDGETS, &range, None);
    let all = page.map(|page| page.objects).unwrap_or_default();
    let matches = |budget: &Value| {
        let Some(selector) = budget.pointer("/spec/selector").filter(|s| s.is_object()) else {
            return false;
        };
        LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches_object(pod))
    };
    all.iter()
        .map(|budget| budget.value())
        .filter(matches)
        .collect()
}

/// Takes one disruption from a budget.
fn take_from(call: &Call, budget: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let server = &call.server;
    let resource = server.registry.find_table(BUDGETS);
    let resource = resource.ok_or_else(ApiError::no_such_resource)?;
    let writer = Writer {
        server,
        resource: &resource,
        part: Part::Status,
        user: None,
        manager: MANAGER,
        warnings: None,
        patches: false,
        dry_run: options.dry_run,
        unknown_fields: UnknownFields::Ignored,
    };
    let now = server.clock.timestamp();
    let key = resource.key(call.namespace(), text_at(budget, "/metadata/name"));
    writer.update(&key, |live| {
        let mut object = live.clone();
        meta::of_mut(&mut object).remove("resourceVersion");
        allow(&object)?;
        let observed = integer(&object["status"], "observedGeneration").unwrap_or_default();
        if let Some(status) = ensure_object(&mut object, "status") {
            let left = integer(status, "disruptionsAllowed").unwrap_or_default() - 1;
            set(status, "disruptionsAllowed", left);
            if left == 0 {
                use_up(status, observed, &now);
            }
            if let Some(disrupted) = ensure_object(status, "disruptedPods") {
                set(disrupted, call.name(), now.clone());
            }
        }
        Ok(Proposal {
            object,
            owned: false,
            ..Proposal::default()
        })
    })?;
    Ok(())
}

/// Says in the conditions of a budget that nothing is left of it.
fn use_up(status: &mut Value, observed: i64, now: &str) {
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": observed,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    });
    let mut conditions: Vec<Value> = items(status, "conditions").cloned().collect();
    let is_it = |known: &&mut Value| text(known, "type") == "DisruptionAllowed";
    match conditions.iter_mut().find(is_it) {
        Some(known) => {
            if text(known, "status") == "False" {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
    set(status, "conditions", conditions);
}

/// Refuses what a budget does not allow.
fn allow(budget: &Value) -> Result<(), ApiError> {
    let name = text_at(budget, "/metadata/name");
    let status = &budget["status"];
    let number = |field| integer(status, field).unwrap_or_default();
    let about = About {
        group: "policy",
        resource: "poddisruptionbudget",
        name,
    };
    if number("observedGeneration") < meta::generation(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(ApiError::would_disrupt(&why, SOON));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden(about, why));
    }
    let disrupted = status.get("disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(about, why));
    }
    if allowed > 0 {
        return Ok(());
    }
    let condition = items(status, "conditions").find(|condition| {
        text(condition, "type") == "DisruptionAllowed"
            && text(condition, "status") == "False"
            && !text(condition, "message").is_empty()
    });
    let (desired, current) = (number("desiredHealthy"), number("currentHealthy"));
    let refuses = format!("The disruption budget {name} does not allow evicting pods currently");
    let why = match condition
        .map(|condition| (text(condition, "reason"), text(condition, "message")))
    {
        Some(("SyncFailed", message)) => format!("{refuses} because it failed sync: {message}"),
        _ if current <= desired => {
            format!(
                "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
            )
        }
        Some((reason, message)) => format!("{refuses} ({reason}): {message}"),
        None => refuses,
    };
    Err(ApiError::would_disrupt(&why, 0))
}

/// Says in the conditions of a pod why it goes. The answer is its new version.
fn mark(writer: &Writer<'_>, call: &Call, options: &DeleteOptions) -> Result<String, ApiError> {
    let writer = Writer {
        part: Part::Status,
        ..*writer
    };
    let now = call.server.clock.timestamp();
    let written = writer.update(&call.key(), |live| {
        check(live, options)?;
        let mut object = live.clone();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "observedGeneration": meta::generation(live),
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        if let Some(status) = ensure_object(&mut object, "status") {
            let kept = items(status, "conditions")
                .filter(|known| text(known, "type") != "DisruptionTarget");
            let mut conditions: Vec<Value> = kept.cloned().collect();
            conditions.push(condition);
            set(status, "conditions", conditions);
        }
        Ok(Proposal {
            object,
            // It is nobody's.
            owned: true,
            ..Proposal::default()
        })
    })?;
    Ok(written.object.version().to_string())
}

/// Refuses another pod than the one that is meant.
fn check(live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let about = About {
        group: "",
        resource: "Pod",
        name: meta::text(live, "name"),
    };
    let differs = |wanted: &Option<String>, field: &str| {
        let wanted = wanted.as_deref().filter(|wanted| !wanted.is_empty())?;
        let found = meta::text(live, field);
        (wanted != found).then(|| (wanted.to_owned(), found.to_owned()))
    };
    if let Some((wanted, found)) = differs(&options.uid, "uid") {
        return Err(ApiError::conflict(
            about,
            &format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
            ),
        ));
    }
    if let Some((wanted, found)) = differs(&options.version, "resourceVersion") {
        return Err(ApiError::conflict(
            about,
            &format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}
