//! Whose an object is that a unit wants and that is there already.

use super::policy::{Adoption, Policy};
use super::refusal::Refusal;
use crate::kind::ObjectReference;
use crate::ownership::{
    Owner, PLUGIN_LABEL, PRIMARY_ANNOTATION, UNIT_LABEL, is_contributor, managed_plugin,
    plugin_label, unit_label,
};
use reeve_ssa::{ManagedFields, ManagerId, Operation, Path, PathElement};
use serde_json::Value;

/// The manager under which kubectl applies from the client.
pub const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";
/// kubectl's copy of what it applied from the client last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Labels by which tools find again what is theirs.
const LABELS: [&str; 8] = [
    "app.kubernetes.io/managed-by",
    "applyset.kubernetes.io/part-of",
    "argocd.argoproj.io/instance",
    "helm.toolkit.fluxcd.io/name",
    "kapp.k14s.io/app",
    "kustomize.toolkit.fluxcd.io/name",
    "olm.owner",
    PLUGIN_LABEL,
];
/// Annotations by which they do.
const ANNOTATIONS: [&str; 4] = [
    "argocd.argoproj.io/tracking-id",
    "config.k8s.io/owning-inventory",
    "meta.helm.sh/release-name",
    LAST_APPLIED,
];

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The unit's own, though its labels were edited away.
    Ours,
    /// Somebody else's, or nobody's, and the policy gives it to the unit.
    Adoptable,
    /// Not for this unit.
    Refused(Box<Refusal>),
}

/// What is known of the one who looks.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The unit.
    pub owner: &'a Owner,
    /// Its plugin's field manager.
    pub manager: &'a str,
    /// Its plugin's policy.
    pub policy: &'a Policy,
}

/// Judges an object, as it is with its `managedFields`, that a unit wants.
///
/// It is the unit's where its manager applied it for this unit: labels can be
/// edited away, the fields that a manager applied cannot. It is another unit's or
/// plugin's of ours where theirs did; who came first keeps it, whatever the policy.
///
/// Anything else is foreign. It counts as *unowned* when all of this holds:
///
/// * no ownerReference makes anybody but the unit's primary its controller, unless it is a
///   manager in `adopt_from` that wrote it: then it goes with what that one owned;
/// * it lacks the labels and annotations by which Helm, Argo CD, Flux, kapp, OLM,
///   ApplySets and others find what is theirs, `app.kubernetes.io/managed-by`
///   among them;
/// * nobody applies it server-side (contributions and its status do not count);
/// * nobody applies it with kubectl from the client, unless `adopt_from` lists that
///   manager.
///
/// That somebody created or edited it once does not make it theirs.
pub fn judge(claim: &Claim<'_>, reference: &ObjectReference, live: &Value) -> Whose {
    // Malformed entries prove nothing.
    let managers = ManagedFields::of(live).unwrap_or_default();
    let text = |kind: &str, key: &str| live["metadata"][kind][key].as_str();
    let ours = managers.get(&ManagerId::apply(claim.manager, "")).is_some();
    let id = claim.owner.unit.id();
    let annotated = text("annotations", PRIMARY_ANNOTATION);
    if ours {
        match annotated {
            Some(annotated) if annotated == id => return Whose::Ours,
            Some(other) => return Whose::Refused(held(claim, reference, None, other).into()),
            // All marks are gone but what the API server itself keeps.
            None => {
                let label = text("labels", UNIT_LABEL) == Some(unit_label(&claim.owner.unit));
                if label || owners(live).any(|owner| owner["uid"] == claim.owner.uid.as_str()) {
                    return Whose::Ours;
                }
            }
        }
    }
    let plugin = managers
        .appliers()
        .filter(|manager| *manager != claim.manager && !is_contributor(manager))
        .find_map(managed_plugin);
    if let Some(plugin) = plugin {
        // With another manager of ours come its marks.
        let holder = annotated.unwrap_or_default();
        return Whose::Refused(held(claim, reference, Some(plugin), holder).into());
    }
    let signs = signs(claim, live, &managers);
    match claim.policy.adoption {
        Adoption::Always => Whose::Adoptable,
        Adoption::IfUnowned if signs.is_empty() => Whose::Adoptable,
        adoption => Whose::Refused(Box::new(Refusal::Foreign {
            object: reference.clone(),
            plugin: claim.owner.unit.plugin.to_string(),
            adoption,
            unowned: signs.is_empty(),
            signs: all_signs(claim, signs, &managers),
        })),
    }
}

/// The `managedFields` after the unit has taken over what the listed managers own;
/// none when nothing moves. `migrate` lists kubectl's client-side apply too.
pub fn adopted(claim: &Claim<'_>, live: &Value, api_version: &str, migrate: bool) -> Option<Value> {
    let from = &claim.policy.adopt_from;
    let listed = |id: &ManagerId| {
        id.operation == Operation::Update
            && (from.contains(&id.manager) || (migrate && id.manager == CLIENT_SIDE_APPLY))
    };
    let managers = ManagedFields::of(live).ok()?;
    let after = managers.hand_over(listed, claim.manager, api_version)?;
    Some(after.to_value())
}

/// What shows that an object is somebody's, in words.
fn signs(claim: &Claim<'_>, live: &Value, managers: &ManagedFields) -> Vec<String> {
    let mut signs = Vec::new();
    for owner in owners(live) {
        let is_other = owner["controller"] == true && owner["uid"] != claim.owner.uid.as_str();
        if is_other && !goes_with_its_manager(claim, live, owner, managers) {
            let word = |field: &str| owner[field].as_str().unwrap_or("?").to_owned();
            signs.push(format!("{} {} controls it", word("kind"), word("name")));
        }
    }
    let migrated = claim.policy.adopt_from.iter();
    let migrated = migrated.clone().any(|name| name == CLIENT_SIDE_APPLY);
    let own_label = plugin_label(&claim.owner.unit.plugin);
    for (kind, word, keys) in [
        ("labels", "label", &LABELS[..]),
        ("annotations", "annotation", &ANNOTATIONS[..]),
    ] {
        for key in keys {
            let Some(value) = live["metadata"][kind][key].as_str() else {
                continue;
            };
            match *key {
                LAST_APPLIED if migrated => {}
                LAST_APPLIED => signs.push("kubectl applies it from the client".to_owned()),
                PLUGIN_LABEL if value == own_label => {}
                key => {
                    let value = crate::annotations::shortened(value, 60);
                    signs.push(format!("its {word} {key} is {value}"));
                }
            }
        }
    }
    let appliers = managers.appliers();
    let others = appliers.filter(|name| *name != claim.manager && !is_contributor(name));
    signs.extend(others.map(|name| format!("{name:?} applies it")));
    signs
}

/// Whether only managers in `adopt_from` wrote an ownerReference, which is gone when they have
/// handed over.
fn goes_with_its_manager(
    claim: &Claim<'_>,
    live: &Value,
    owner: &Value,
    managers: &ManagedFields,
) -> bool {
    let mut path = Path::fields(["metadata", "ownerReferences"]);
    path.0
        .push(PathElement::key([("uid", owner["uid"].clone())]));
    let mut writers = managers.iter().filter(|(_, owned)| owned.set.has(&path));
    let mut count = 0;
    let are_listed = writers.all(|(id, owned)| {
        count += 1;
        // What they own in another version is not handed over.
        live["apiVersion"] == *owned.api_version
            && id.operation == Operation::Update
            && id.subresource.is_empty()
            && claim.policy.adopt_from.contains(&id.manager)
    });
    are_listed && count > 0
}

/// The signs, and if there are none who else owns fields.
fn all_signs(claim: &Claim<'_>, signs: Vec<String>, managers: &ManagedFields) -> Vec<String> {
    if !signs.is_empty() {
        return signs;
    }
    let mut names: Vec<String> = managers
        .iter()
        .filter(|(id, _)| id.manager != claim.manager && id.subresource.is_empty())
        .map(|(id, _)| format!("{:?} owns fields of it", id.manager))
        .collect();
    names.dedup();
    names
}

fn owners(live: &Value) -> impl Iterator<Item = &Value> {
    let list = live["metadata"]["ownerReferences"].as_array();
    list.into_iter().flatten()
}

fn held(
    claim: &Claim<'_>,
    object: &ObjectReference,
    plugin: Option<&str>,
    primary: &str,
) -> Refusal {
    let own = &claim.owner.unit;
    Refusal::Held {
        object: object.clone(),
        plugin: own.plugin.to_string(),
        primary: own.id(),
        holder: plugin.unwrap_or(&own.plugin).to_owned(),
        holder_primary: primary.to_owned(),
    }
}

#[cfg(test)]
mod tests;
