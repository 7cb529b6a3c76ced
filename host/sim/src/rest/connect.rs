//! Connect: what a real server hands on to a node, a pod or the pods of a Service.
//! Nothing runs here that could answer, so these requests come as far as they come in a
//! cluster where nobody answers, and are refused there.

use serde_json::Value;

use super::Call;
use crate::field::{Errors, FieldError, Path};
use crate::http::response::{self, Answer};
use crate::kinds::edit::{items, text, text_at};
use crate::status::{About, ApiError};

const ENDPOINTS: &str = "endpoints";
const NODES: &str = "nodes";

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

/// What a container of a pod has printed, which its kubelet would know.
pub(super) fn log(call: &Call) -> Result<Answer, ApiError> {
    check_log_options(call)?;
    let pod = call.live()?.value();
    check_container(call, &pod)?;
    let node = text_at(&pod, "/spec/nodeName");
    if node.is_empty() {
        return Ok(response::nothing());
    }
    Err(by_node(call, node))
}

/// What is said of a node that does not answer; of one that is not there, in the words for
/// what was asked for.
fn by_node(call: &Call, node: &str) -> ApiError {
    if call.server.store.get(NODES, node).is_none() {
        return ApiError::not_found(call.resource.about(node));
    }
    unreachable(&format!("node {node:?}"))
}

fn check_log_options(call: &Call) -> Result<(), ApiError> {
    let mut errors = Errors::new();
    let twice = call.query.get("sinceSeconds").is_some() && call.query.get("sinceTime").is_some();
    for (name, least, why) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        if let Some(number) = call.query.number(name)?
            && number < least
            && !(twice && name == "sinceSeconds")
        {
            errors.push(FieldError::invalid(&Path::new(name), &number.into(), why));
        }
    }
    if twice {
        errors.push(FieldError::forbidden(
            &Path::new("[]"),
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let options = About {
        group: "",
        resource: "PodLogOptions",
        name: call.name(),
    };
    Err(ApiError::invalid(options, &errors))
}

/// Refuses a container that is not the pod's, and none where there are several.
fn check_container(call: &Call, pod: &Value) -> Result<(), ApiError> {
    let (name, spec) = (call.name(), &pod["spec"]);
    let names = |list: &str| -> Vec<String> {
        let all = items(spec, list).map(|container| text(container, "name").to_owned());
        all.collect()
    };
    let why = match call.query.get("container") {
        Some(wanted) => {
            let lists = ["containers", "initContainers", "ephemeralContainers"];
            if lists
                .iter()
                .any(|list| names(list).iter().any(|name| name == wanted))
            {
                return Ok(());
            }
            format!("container {wanted} is not valid for pod {name}")
        }
        None => {
            let own = names("containers");
            if own.len() == 1 {
                return Ok(());
            }
            let all = [names("initContainers"), own].concat().join(" ");
            format!("a container name must be specified for pod {name}, choose one of: [{all}]")
        }
    };
    Err(ApiError::bad_request(why))
}

/// A container of a pod, by way of its kubelet.
fn container(call: &Call) -> Result<ApiError, ApiError> {
    let pod = call.live()?.value();
    let name = call.name();
    // Ports are the pod's.
    if call.subresource() != Some("portforward") {
        check_container(call, &pod)?;
    }
    let node = text_at(&pod, "/spec/nodeName");
    if node.is_empty() {
        let why = format!("pod {name} does not have a host assigned");
        return Err(ApiError::bad_request(why));
    }
    Ok(by_node(call, node))
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
