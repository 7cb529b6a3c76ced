//! PersistentVolumeClaims: how they get their volume. That neither goes while it
//! is in use is looked after by the controllers.

use serde_json::{Value, json};

use super::context::{Context, Kind, MANAGER, SCHEDULER, key};
use super::tables::{CLAIMS, STORAGE_CLASSES, VOLUMES};
use super::template;
use crate::kinds::edit::{ensure_object, items, set, text, text_at};
use crate::names;
use crate::quantity::Quantity;
use crate::rest::meta;
use crate::selector::LabelSelector;
use crate::status::ApiError;

const CONTROLLER: &str = "persistentvolume-controller";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const PROVISIONER_BETA: &str = "volume.beta.kubernetes.io/storage-provisioner";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether a claim has its volume.
pub(super) fn is_bound(claim: &Value) -> bool {
    text_at(claim, "/status/phase") == "Bound"
}

/// Whether a claim gets its volume only when a pod that uses it has a node.
pub(super) fn waits_for_consumer(context: &Context<'_>, claim: &Value) -> bool {
    class(context, claim)
        .is_some_and(|class| text(&class, "volumeBindingMode") == "WaitForFirstConsumer")
}

/// Says on which node a pod is to use a claim.
pub(super) fn select_node(
    context: &Context<'_>,
    claim: &Value,
    node: &str,
) -> Result<(), ApiError> {
    context.change(CLAIMS, claim, SCHEDULER, |claim| {
        annotate(claim, SELECTED_NODE, node)
    })
}

fn class(context: &Context<'_>, claim: &Value) -> Option<Value> {
    match text_at(claim, "/spec/storageClassName") {
        "" => None,
        name => context.get(STORAGE_CLASSES, name),
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object
        .pointer("/metadata/annotations")
        .map_or("", |annotations| text(annotations, name))
}

pub(super) fn annotate(object: &mut Value, name: &str, value: &str) {
    if let Some(annotations) = ensure_object(&mut object["metadata"], "annotations") {
        set(annotations, name, value);
    }
}

pub(super) fn reconcile(context: &mut Context<'_>, claim: &Value) -> Result<(), ApiError> {
    context.complain(claim);
    if meta::is_terminating(claim) {
        return Ok(());
    }
    if is_bound(claim) {
        return follow(context, claim);
    }
    if claim.pointer("/spec/storageClassName").is_none()
        && text_at(claim, "/spec/volumeName").is_empty()
        && let Some(class) = default_class(context)
    {
        return context.change(CLAIMS, claim, MANAGER, |claim| {
            set(&mut claim["spec"], "storageClassName", class.clone());
        });
    }
    if let Some(volume) = matching(context, claim) {
        return bind(context, claim, &volume);
    }
    if !text_at(claim, "/spec/volumeName").is_empty() {
        return Ok(());
    }
    let Some(class) = class(context, claim) else {
        return cannot(context, claim);
    };
    let provisioner = text(&class, "provisioner").to_owned();
    if text(&class, "volumeBindingMode") == "WaitForFirstConsumer"
        && annotation(claim, SELECTED_NODE).is_empty()
    {
        let message = "waiting for first consumer to be created before binding";
        return say_once(
            context,
            claim,
            Kind::Normal,
            "WaitForFirstConsumer",
            message,
        );
    }
    if provisioner == "kubernetes.io/no-provisioner" {
        return cannot(context, claim);
    }
    let script = context.script(claim, &[]);
    if script.stalled || script.failure.is_some() {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner {provisioner:?} or manually by the system administrator."
        );
        return say_once(
            context,
            claim,
            Kind::Normal,
            "ExternalProvisioning",
            &message,
        );
    }
    let since = context.since(
        claim,
        annotation(claim, SELECTED_NODE),
        meta::text(claim, "creationTimestamp"),
    );
    let ready = since + script.ready_after;
    if ready > context.now() {
        context.wake_at(ready);
        return Ok(());
    }
    let volume = provision(context, claim, &class)?;
    bind(context, claim, &volume)
}

/// The class of claims that name none: of several, the youngest.
fn default_class(context: &Context<'_>) -> Option<String> {
    let classes = context.list(STORAGE_CLASSES, "");
    let defaults = classes
        .iter()
        .filter(|class| annotation(class, DEFAULT_CLASS) == "true");
    let youngest = defaults.max_by_key(|class| {
        (
            meta::text(class, "creationTimestamp"),
            std::cmp::Reverse(meta::text(class, "name")),
        )
    });
    youngest.map(|class| meta::text(class, "name").to_owned())
}

/// Says that nobody can make a volume.
fn cannot(context: &Context<'_>, claim: &Value) -> Result<(), ApiError> {
    let named = text_at(claim, "/spec/storageClassName");
    if named.is_empty() || context.get(STORAGE_CLASSES, named).is_some() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return say_once(context, claim, Kind::Normal, "FailedBinding", message);
    }
    let message = format!("storageclass.storage.k8s.io {named:?} not found");
    say_once(
        context,
        claim,
        Kind::Warning,
        "ProvisioningFailed",
        &message,
    )
}

/// Writes an event unless the same one is there.
fn say_once(
    context: &Context<'_>,
    claim: &Value,
    kind: Kind,
    reason: &str,
    message: &str,
) -> Result<(), ApiError> {
    let uid = meta::text(claim, "uid");
    let events = context.list(super::tables::EVENTS, meta::text(claim, "namespace"));
    let known = events.iter().any(|event| {
        text_at(event, "/involvedObject/uid") == uid && text(event, "reason") == reason
    });
    if !known {
        context.event(CONTROLLER, claim, kind, reason, message);
    }
    Ok(())
}

/// A volume that is there and fits: the one meant for the claim, or the smallest
/// that is free.
fn matching(context: &Context<'_>, claim: &Value) -> Option<Value> {
    let named = text_at(claim, "/spec/volumeName");
    let volumes = context.list(VOLUMES, "");
    let fits = |volume: &&Value| match meant(volume, claim) {
        Some(meant) => meant && (named.is_empty() || meta::text(volume, "name") == named),
        None if !named.is_empty() => meta::text(volume, "name") == named,
        None => is_free(volume) && suits(volume, claim),
    };
    let fitting = volumes.iter().filter(fits);
    let smallest = fitting.min_by(|a, b| {
        let order = |volume: &Value| meant(volume, claim) != Some(true);
        order(a).cmp(&order(b)).then_with(|| {
            size(a)
                .partial_cmp(&size(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
    });
    smallest.cloned()
}

/// Whether the claim is the one that a volume is meant for; none where it is meant
/// for nobody.
fn meant(volume: &Value, claim: &Value) -> Option<bool> {
    let reference = volume.pointer("/spec/claimRef")?;
    let same = |field: &str| text(reference, field) == meta::text(claim, field);
    let uid = text(reference, "uid").is_empty() || same("uid");
    Some(same("namespace") && same("name") && uid)
}

fn is_free(volume: &Value) -> bool {
    !meta::is_terminating(volume)
        && matches!(
            text_at(volume, "/status/phase"),
            "" | "Pending" | "Available"
        )
}

/// The driver of a provisioner's volumes: itself, where it can be one.
fn driver(provisioner: &str) -> String {
    // The longest name that a driver has.
    const LONGEST: usize = 63;
    let name = provisioner.replace('/', ".");
    if name.len() <= LONGEST && names::dns1123_subdomain(&name.to_lowercase()).is_empty() {
        name
    } else {
        "volumes.actor.reeve.dev".to_owned()
    }
}

fn size(volume: &Value) -> Option<Quantity> {
    Quantity::parse(text_at(volume, "/spec/capacity/storage")).ok()
}

fn suits(volume: &Value, claim: &Value) -> bool {
    let same = |field: &str| {
        text_at(volume, &format!("/spec/{field}")) == text_at(claim, &format!("/spec/{field}"))
    };
    let wanted = Quantity::parse(text_at(claim, "/spec/resources/requests/storage")).ok();
    let modes: Vec<&Value> = items(&volume["spec"], "accessModes").collect();
    let selector = claim.pointer("/spec/selector");
    same("storageClassName")
        && same("volumeMode")
        && size(volume) >= wanted
        && items(&claim["spec"], "accessModes").all(|mode| modes.contains(&mode))
        && selector.is_none_or(|selector| {
            LabelSelector::from_object(selector).is_ok_and(|s| s.matches(template::labels(volume)))
        })
}

fn provision(context: &Context<'_>, claim: &Value, class: &Value) -> Result<Value, ApiError> {
    let name = format!("pvc-{}", meta::text(claim, "uid"));
    if let Some(known) = context.get(VOLUMES, &name) {
        return Ok(known);
    }
    let provisioner = text(class, "provisioner");
    context.change(CLAIMS, claim, MANAGER, |claim| {
        annotate(claim, PROVISIONER, provisioner);
        annotate(claim, PROVISIONER_BETA, provisioner);
    })?;
    let mut spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": {"storage": text_at(claim, "/spec/resources/requests/storage")},
        "claimRef": reference(claim),
        "persistentVolumeReclaimPolicy": text(class, "reclaimPolicy"),
        "storageClassName": meta::text(class, "name"),
        "volumeMode": text_at(claim, "/spec/volumeMode"),
        "csi": {"driver": driver(provisioner), "volumeHandle": name},
    });
    if let Some(options) = class.get("mountOptions") {
        set(&mut spec, "mountOptions", options.clone());
    }
    let volume = json!({
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": spec,
    });
    let made = context.create(VOLUMES, "", "csi-provisioner", volume)?;
    let message = format!("Successfully provisioned volume {name}");
    context.event(
        provisioner,
        claim,
        Kind::Normal,
        "ProvisioningSucceeded",
        &message,
    );
    Ok(made)
}

/// The reference of a volume to its claim.
fn reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta::text(claim, "namespace"),
        "name": meta::text(claim, "name"),
        "uid": meta::text(claim, "uid"),
        "resourceVersion": meta::text(claim, "resourceVersion"),
    })
}

/// Binds a volume and a claim to each other.
fn bind(context: &Context<'_>, claim: &Value, volume: &Value) -> Result<(), ApiError> {
    let (name, owner) = (meta::text(volume, "name"), key(claim));
    if text_at(volume, "/spec/claimRef/uid").is_empty() {
        let by_hand = volume.pointer("/spec/claimRef").is_some();
        context.change(VOLUMES, volume, MANAGER, |volume| {
            set(&mut volume["spec"], "claimRef", reference(claim));
            if !by_hand {
                annotate(volume, BOUND_BY_CONTROLLER, "yes");
            }
        })?;
    }
    context.change_status(VOLUMES, volume, MANAGER, |volume| {
        set(&mut volume["status"], "phase", "Bound");
    })?;
    let by_hand = !text_at(claim, "/spec/volumeName").is_empty();
    context.change(CLAIMS, claim, MANAGER, |claim| {
        set(&mut claim["spec"], "volumeName", name);
        annotate(claim, BIND_COMPLETED, "yes");
        if !by_hand {
            annotate(claim, BOUND_BY_CONTROLLER, "yes");
        }
    })?;
    let (modes, capacity) = (&volume["spec"]["accessModes"], &volume["spec"]["capacity"]);
    context.change_status(CLAIMS, claim, MANAGER, |claim| {
        let status = &mut claim["status"];
        set(status, "phase", "Bound");
        set(status, "accessModes", modes.clone());
        set(status, "capacity", capacity.clone());
    })?;
    tracing::trace!(volume = name, claim = owner, "bound");
    Ok(())
}

/// Follows a bound claim: its size, and the loss of its volume.
fn follow(context: &Context<'_>, claim: &Value) -> Result<(), ApiError> {
    let name = text_at(claim, "/spec/volumeName");
    let Some(volume) = context.get(VOLUMES, name) else {
        let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        context.event(CONTROLLER, claim, Kind::Warning, "ClaimLost", message);
        return context.change_status(CLAIMS, claim, MANAGER, |claim| {
            set(&mut claim["status"], "phase", "Lost");
            crate::kinds::edit::remove(&mut claim["status"], "accessModes");
            crate::kinds::edit::remove(&mut claim["status"], "capacity");
        });
    };
    let wanted = text_at(claim, "/spec/resources/requests/storage");
    let (asked, given) = (Quantity::parse(wanted).ok(), size(&volume));
    let grows = class(context, claim).is_some_and(|class| class["allowVolumeExpansion"] == true);
    if asked > given && grows {
        context.change(VOLUMES, &volume, "csi-resizer", |volume| {
            volume["spec"]["capacity"]["storage"] = json!(wanted);
        })?;
        return context.change_status(CLAIMS, claim, "csi-resizer", |claim| {
            claim["status"]["capacity"]["storage"] = json!(wanted);
        });
    }
    Ok(())
}
