//! Times that the server itself notes in the status of what it stores.

use serde_json::{Value, json};

use crate::kinds;
use crate::resource::Resource;

const VOLUMES: &str = "persistentvolumes";
const SERVICES: &str = "apiservices.apiregistration.k8s.io";
/// When a volume came into its phase.
const TRANSITION: &str = "lastPhaseTransitionTime";

/// Notes when an object was made.
pub(super) fn created(resource: &Resource, object: &mut Value, now: &str) {
    match &*resource.table {
        VOLUMES => object["status"][TRANSITION] = json!(now),
        SERVICES => kinds::mark_local_available(object, now),
        _ => {}
    }
}

/// Notes when a write of the status changed what is dated there.
pub(super) fn status_written(resource: &Resource, object: &mut Value, old: &Value, now: &str) {
    let (new, old) = (&object["status"], &old["status"]);
    // Who says another time is believed.
    let dated = new[TRANSITION] != old[TRANSITION] && !new[TRANSITION].is_null();
    if *resource.table == *VOLUMES && new["phase"] != old["phase"] && !dated {
        object["status"][TRANSITION] = json!(now);
    }
}
