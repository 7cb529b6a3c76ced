//! Connect: what a real server hands on to a node, a pod or the pods of a Service.
//! Nothing runs here that could answer, so these requests come as far as they come in a
//! cluster where nobody answers, and are refused there.

use super::Call;
use crate::http::response::Answer;
use crate::kinds::edit::{items, text, text_at};
use crate::status::ApiError;

const ENDPOINTS: &str = "endpoints";

/// Whether a subresource is a way to something that runs.
pub(super) fn is_connection(call: &Call) -> bool {
    let sub = call.subresource();
    matches!(sub, Some("exec" | "attach" | "portforward" | "proxy")) && !call.resource.is_custom()
}

/// Says why nothing can be reached.
pub(super) fn connect(call: &Call) -> Result<Answer, ApiError> {
    Err(match (&*call.resource.plural, call.subresource()) {
        ("services", _) => service(call)?,
        ("pods", Some("proxy")) => pod_address(call)?,
        ("pods", _) => container(call)?,
        // A Node.
        _ => {
            let node = call.live()?;
            unreachable(&format!("node {:?}", node.name()))
        }
    })
}

/// What can be reached is not there.
fn unreachable(what: &str) -> ApiError {
    let why = format!("error trying to reach service: nothing runs behind {what} in this server");
    ApiError::service_unavailable(why)
}

/// A container of a pod, by way of its kubelet.
fn container(call: &Call) -> Result<ApiError, ApiError> {
    let pod = call.live()?.value();
    let name = call.name();
    if let Some(wanted) = call.query.get("container") {
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        let spec = &pod["spec"];
        let mut all = lists.iter().flat_map(|list| items(spec, list));
        if !all.any(|container| text(container, "name") == wanted) {
            let why = format!("container {wanted} is not valid for pod {name}");
            return Err(ApiError::bad_request(why));
        }
    }
    let node = text_at(&pod, "/spec/nodeName");
    if node.is_empty() {
        let why = format!("pod {name} does not have a host assigned");
        return Err(ApiError::bad_request(why));
    }
    Ok(unreachable(&format!("node {node:?}")))
}

/// A port of a pod, by its address. The name may have a scheme and a port.
fn pod_address(call: &Call) -> Result<ApiError, ApiError> {
    let (name, _) = target(call.name())
        .ok_or_else(|| ApiError::bad_request(format!("invalid pod request {:?}", call.name())))?;
    let key = call.resource.key(call.namespace(), name);
    let pod = call.server.store.get(&call.resource.table, &key);
    let pod = pod.ok_or_else(|| ApiError::not_found(call.resource.about(name)))?;
    if text_at(&pod.value(), "/status/podIP").is_empty() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(unreachable(&format!("pod {name:?}")))
}

/// A port of the pods of a Service: its Endpoints say which. The name may have a scheme
/// and a port.
fn service(call: &Call) -> Result<ApiError, ApiError> {
    let id = call.name();
    let (name, port) = target(id)
        .ok_or_else(|| ApiError::bad_request(format!("invalid service request {id:?}")))?;
    let key = call.resource.key(call.namespace(), name);
    let store = &call.server.store;
    if let Ok(number) = port.parse::<i64>() {
        let service = store.get(&call.resource.table, &key);
        let service = service.ok_or_else(|| ApiError::not_found(call.resource.about(name)))?;
        let service = service.value();
        let mut ports = items(&service["spec"], "ports");
        if !ports.any(|port| port["port"] == number) {
            let why = format!("no service port {number} found for service {name:?}");
            return Err(ApiError::service_unavailable(why));
        }
    }
    // That there are no Endpoints is told of the Service.
    let endpoints = store.get(ENDPOINTS, &key);
    let endpoints = endpoints.ok_or_else(|| ApiError::not_found(call.resource.about(name)))?;
    let endpoints = endpoints.value();
    let mut addresses = items(&endpoints, "subsets").flat_map(|set| items(set, "addresses"));
    Ok(match addresses.next() {
        None => ApiError::service_unavailable(format!("no endpoints available for service {id:?}")),
        Some(_) => unreachable(&format!("service {name:?}")),
    })
}

/// The name and the port in `name`, `name:port` or `scheme:name:port`.
fn target(id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    match parts[..] {
        [name] => Some((name, "")),
        [name, port] => Some((name, port)),
        ["" | "http" | "https", name, port] => Some((name, port)),
        _ => None,
    }
    .filter(|(name, _)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for (id, expected) in [
            ("a", Some(("a", ""))),
            ("a:80", Some(("a", "80"))),
            ("https:a:web", Some(("a", "web"))),
            (":a:", Some(("a", ""))),
            ("ftp:a:80", None),
            ("a:b:c:d", None),
            (":80", None),
        ] {
            assert_eq!(target(id), expected, "{id}");
        }
    }
}
