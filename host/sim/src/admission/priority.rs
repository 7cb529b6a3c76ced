//! Priorities of pods, by their class or the default one.

use serde_json::Value;

use super::PRIORITY_CLASSES;
use crate::kinds::edit::{ensure_object, flag, integer, is_unset, set, text, text_at};
use crate::server::Shared;
use crate::store::Range;

/// What a pod gets that names no class while none is the default.
const POLICY: &str = "PreemptLowerPriority";

/// Gives a new pod the priority of its class.
pub(super) fn assign(server: &Shared, pod: &mut Value) -> Result<(), String> {
    let named = text_at(pod, "/spec/priorityClassName").to_owned();
    let class = if named.is_empty() {
        default_class(server)
    } else {
        let class = server.store.get(PRIORITY_CLASSES, &named);
        let class = class.ok_or_else(|| format!("no PriorityClass with name {named} was found"))?;
        Some(class.value())
    };
    let Some(spec) = ensure_object(pod, "spec") else {
        return Ok(());
    };
    let (priority, policy) = match &class {
        Some(class) => {
            set(spec, "priorityClassName", text_at(class, "/metadata/name"));
            let priority = integer(class, "value").unwrap_or_default();
            (priority, text(class, "preemptionPolicy"))
        }
        None => (0, POLICY),
    };
    if let Some(given) = integer(spec, "priority")
        && given != priority
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    set(spec, "priority", priority);
    if policy.is_empty() {
        return Ok(());
    }
    let given = text(spec, "preemptionPolicy");
    if !is_unset(spec, "preemptionPolicy") && given != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    set(spec, "preemptionPolicy", policy);
    Ok(())
}

/// Refuses a second class that is the default.
pub(super) fn check_default(server: &Shared, class: &Value, is_new: bool) -> Result<(), String> {
    if !flag(class, "globalDefault") {
        return Ok(());
    }
    let Some(other) = default_class(server) else {
        return Ok(());
    };
    let other = text_at(&other, "/metadata/name");
    if is_new || other != text_at(class, "/metadata/name") {
        return Err(format!(
            "PriorityClass {other} is already marked as default. Only one default can exist"
        ));
    }
    Ok(())
}

/// The class of pods that name none: of several, the one of the least value.
fn default_class(server: &Shared) -> Option<Value> {
    let page = server.store.list(PRIORITY_CLASSES, &Range::default(), None);
    let classes = page.map(|page| page.objects).unwrap_or_default();
    let values = classes.iter().map(|class| class.value());
    values
        .filter(|class| flag(class, "globalDefault"))
        .min_by_key(|class| integer(class, "value"))
}
