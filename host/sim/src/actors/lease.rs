//! Leases of Nodes, by which a kubelet says that it lives.
//!
//! A real kubelet renews its lease every ten seconds. Here it is renewed when its Node
//! changes, and made again when it is deleted, and not otherwise: whoever wakes up by the
//! clock keeps everybody's virtual time busy.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::context::{Context, KUBELET};
use super::tables::LEASES;
use crate::clock;
use crate::kinds::edit::{items, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

/// Where they are.
pub(super) const NAMESPACE: &str = "kube-node-lease";
/// For how long one holds.
const DURATION: Duration = Duration::from_secs(40);
/// One that was renewed within this time is not renewed again.
const PAUSE: Duration = Duration::from_secs(10);

/// Makes the lease of a Node, or renews it. One whose Node is not ready lapses.
pub(super) fn reconcile(context: &mut Context<'_>, node: &Value) -> Result<(), ApiError> {
    let mut conditions = items(&node["status"], "conditions");
    let ready = conditions.any(|c| text(c, "type") == "Ready" && text(c, "status") == "True");
    if !ready || !text_at(node, "/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    let name = meta::text(node, "name");
    let owners = json!([{
        "apiVersion": "v1",
        "kind": "Node",
        "name": name,
        "uid": meta::text(node, "uid"),
    }]);
    let spec = json!({
        "holderIdentity": name,
        "leaseDurationSeconds": DURATION.as_secs(),
        "renewTime": micro_time(context.now()),
    });
    let Some(known) = context.get(LEASES, &format!("{NAMESPACE}/{name}")) else {
        let lease = json!({
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": owners},
            "spec": spec,
        });
        return context.create(LEASES, NAMESPACE, KUBELET, lease).map(drop);
    };
    // Somebody else keeps this Node alive.
    let holder = text_at(&known, "/spec/holderIdentity");
    if !holder.is_empty() && holder != name {
        return Ok(());
    }
    let renewed = clock::parse(text_at(&known, "/spec/renewTime"));
    let is_recent = renewed.is_some_and(|renewed| context.elapsed(renewed) < PAUSE);
    if is_recent && known["metadata"]["ownerReferences"] == owners {
        return Ok(());
    }
    context.change(LEASES, &known, KUBELET, |lease| {
        lease["metadata"]["ownerReferences"] = owners.clone();
        for (field, value) in spec.as_object().into_iter().flatten() {
            lease["spec"][field] = value.clone();
        }
    })
}

/// A time as leases have it: with a fraction of six digits.
fn micro_time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = clock::rfc3339(time);
    format!(
        "{}.{:06}Z",
        seconds.trim_end_matches('Z'),
        since.subsec_micros()
    )
}
