//! Binding: giving a pod its node, which nothing else may change.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Writer};
use crate::admission::policy::Operation;
use crate::http::response::{self, Answer};
use crate::kinds::edit::text_at;
use crate::status::ApiError;
use crate::store::Refused;
use crate::typed::BINDING;

const PODS: &str = "pods";
/// How often a binding is tried again when another write came in between.
const ATTEMPTS: usize = 50;

/// Binds a pod as the `Binding` in the body says: the pod that the path names, or where
/// it names none the one of the binding's own name.
pub(super) fn bind(call: &Call) -> Result<Answer, ApiError> {
    let mut binding = call.read_as(BINDING)?;
    call.change_sent(Operation::Create, BINDING, &mut binding, None)?;
    let name = text_at(&binding, "/metadata/name");
    if call.path.name.is_some() && name != call.name() {
        let why = "name in URL does not match name in Binding object";
        return Err(ApiError::bad_request(why));
    }
    let node = text_at(&binding, "/target/name");
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name: Required value"));
    }
    call.check_sent(Operation::Create, BINDING, &binding)?;
    let uid = text_at(&binding, "/metadata/uid");
    let pods = call.server.registry.find_table(PODS);
    let pods = pods.ok_or_else(ApiError::no_such_resource)?;
    let writer = Writer {
        resource: &pods,
        ..call.writer()?
    };
    writer.bind(&pods.key(call.namespace(), name), uid, node)?;
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    });
    Ok(response::encoded(
        StatusCode::CREATED,
        call.accepted.encoding,
        &status,
    ))
}

impl Writer<'_> {
    /// Gives the pod of `key` its node, and says so in its conditions. A pod that
    /// has a node keeps it: that is a conflict.
    pub(crate) fn bind(&self, key: &str, uid: &str, node: &str) -> Result<(), ApiError> {
        let resource = self.resource;
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        let store = &self.server.store;
        let missing = || ApiError::not_found(resource.about(name));
        for _ in 0..ATTEMPTS {
            let live = store.get(&resource.table, key).ok_or_else(missing)?;
            let mut pod = live.value();
            let refuse = |why: String| ApiError::conflict(resource.about_binding(name), &why);
            if !uid.is_empty() && uid != live.uid() {
                return Err(refuse(format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                    live.uid()
                )));
            }
            if live.is_terminating() {
                return Err(refuse(format!(
                    "pod {name} is being deleted, cannot be assigned to a host"
                )));
            }
            let assigned = text_at(&pod, "/spec/nodeName");
            if !assigned.is_empty() {
                return Err(refuse(format!(
                    "pod {name} is already assigned to node {assigned:?}"
                )));
            }
            pod["spec"]["nodeName"] = json!(node);
            schedule(&mut pod, &self.server.clock.timestamp());
            if self.dry_run {
                return Ok(());
            }
            match store.replace(&resource.table, key, live.version(), pod) {
                Ok(object) => {
                    self.server.committed(resource, &object, false);
                    return Ok(());
                }
                Err(Refused::Missing) => return Err(missing()),
                Err(Refused::Unkept) => return Err(ApiError::unkept()),
                Err(_) => {}
            }
        }
        Err(ApiError::modified(resource.about(name)))
    }
}

/// Notes in the conditions that the pod has a node.
fn schedule(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|known| known["type"] != "PodScheduled");
        conditions.push(condition);
    }
}
