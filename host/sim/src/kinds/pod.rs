//! Defaults of Pods and of the pod templates inside workloads.

use serde_json::{Value, json};

use super::edit::{
    default_to, ensure_object, entries, flag, integer, items, items_mut, present, set, text,
};
use super::{claim, images, pod_status};

/// The quantities of a pod spec, below the given path, and more; for rows.
macro_rules! pod_quantities {
    ($prefix:literal $(, $more:literal)*) => {
        &[
            concat!($prefix, "containers[].env[].valueFrom.resourceFieldRef.divisor"),
            concat!($prefix, "containers[].resources.limits.*"),
            concat!($prefix, "containers[].resources.requests.*"),
            concat!($prefix, "initContainers[].env[].valueFrom.resourceFieldRef.divisor"),
            concat!($prefix, "initContainers[].resources.limits.*"),
            concat!($prefix, "initContainers[].resources.requests.*"),
            concat!($prefix, "ephemeralContainers[].env[].valueFrom.resourceFieldRef.divisor"),
            concat!($prefix, "ephemeralContainers[].resources.limits.*"),
            concat!($prefix, "ephemeralContainers[].resources.requests.*"),
            concat!($prefix, "resources.limits.*"),
            concat!($prefix, "resources.requests.*"),
            concat!($prefix, "overhead.*"),
            concat!($prefix, "volumes[].emptyDir.sizeLimit"),
            concat!($prefix, "volumes[].ephemeral.volumeClaimTemplate.spec.resources.limits.*"),
            concat!($prefix, "volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests.*"),
            $($more),*
        ]
    };
}
pub(super) use pod_quantities;

/// Those of them that are in lists that are owned as a whole.
macro_rules! pod_atomic_quantities {
    ($prefix:literal $(, $more:literal)*) => {
        &[
            concat!($prefix, "volumes[].downwardAPI.items[].resourceFieldRef.divisor"),
            concat!(
                $prefix,
                "volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor"
            ),
            $($more),*
        ]
    };
}
pub(super) use pod_atomic_quantities;

/// The defaults that only a Pod has.
pub(super) fn default(pod: &mut Value) {
    pod_status::default_addresses(pod);
    let Some(spec) = ensure_object(pod, "spec") else {
        return;
    };
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            request_limits(container);
        }
    }
    default_to(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            for container in items_mut(spec, list) {
                for port in items_mut(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        default_to(port, "hostPort", number);
                    }
                }
            }
        }
    }
    if integer(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    default_spec(spec);
}

/// What admission adds to every new Pod.
pub(super) fn admit(pod: &mut Value) {
    const SECONDS: i64 = 300;
    let Some(spec) = ensure_object(pod, "spec") else {
        return;
    };
    let mut tolerations: Vec<Value> = items(spec, "tolerations").cloned().collect();
    for taint in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerated = tolerations.iter().any(|toleration| {
            let key = text(toleration, "key");
            (key == taint || key.is_empty())
                && matches!(text(toleration, "effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": SECONDS,
            }));
        }
    }
    set(spec, "tolerations", tolerations);
}

/// What admission adds again to a Pod that has lost it.
pub(super) fn prepare_update(pod: &mut Value, _old: &Value) {
    admit(pod);
}

/// The status of a new Pod.
pub(super) fn prepare_status(pod: &mut Value) {
    let class = qos_class(pod.get("spec").unwrap_or(&Value::Null));
    set(
        pod,
        "status",
        json!({"phase": "Pending", "qosClass": class}),
    );
}

/// How well a pod is served where there is not enough for all.
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let of_containers = ["containers", "initContainers"];
    let of_containers = of_containers.iter().flat_map(|list| items(spec, list));
    // What the pod asks for as a whole counts instead of what its containers do.
    let is_whole = spec.get("resources").is_some_and(Value::is_object);
    let asking: Vec<&Value> = if is_whole {
        vec![spec]
    } else {
        of_containers.collect()
    };
    for who in asking {
        for resource in ["cpu", "memory"] {
            let amount = |field: &str| {
                who.pointer(&format!("/resources/{field}/{resource}"))
                    .and_then(super::resources::quantity)
                    .filter(|quantity| !quantity.is_zero())
            };
            let (limit, request) = (amount("limits"), amount("requests"));
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// The defaults of the template in `field` of a workload's spec.
pub(super) fn default_template(workload_spec: &mut Value) {
    let Some(template) = ensure_object(workload_spec, "template") else {
        return;
    };
    ensure_object(template, "metadata");
    if let Some(spec) = ensure_object(template, "spec") {
        default_spec(spec);
    }
}

/// The defaults of a pod spec.
pub(super) fn default_spec(spec: &mut Value) {
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "restartPolicy", "Always");
    ensure_object(spec, "securityContext");
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_to(spec, "schedulerName", "default-scheduler");
    // The old name of the field is kept beside the new one.
    if let Some(account) = present(spec, "serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    } else if let Some(account) = present(spec, "serviceAccount").cloned() {
        set(spec, "serviceAccountName", account);
    }
    if spec.get("containers").is_none() {
        set(spec, "containers", Value::Null);
    }
    for volume in items_mut(spec, "volumes") {
        default_volume(volume);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            default_container(container);
        }
    }
}

fn default_container(container: &mut Value) {
    let policy = images::pull_policy(text(container, "image"));
    default_to(container, "imagePullPolicy", policy);
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    ensure_object(container, "resources");
    for port in items_mut(container, "ports") {
        default_to(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if let Some(reference) = variable.pointer_mut("/valueFrom/fieldRef") {
            default_to(reference, "apiVersion", "v1");
        }
        if let Some(reference) = variable.pointer_mut("/valueFrom/resourceFieldRef") {
            default_to(reference, "divisor", "0");
        }
        if let Some(reference) = variable.pointer_mut("/valueFrom/fileKeyRef") {
            default_to(reference, "optional", false);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            default_to_number(probe, "timeoutSeconds", 1);
            default_to_number(probe, "periodSeconds", 10);
            default_to_number(probe, "successThreshold", 1);
            default_to_number(probe, "failureThreshold", 3);
            default_handler(probe);
            if let Some(grpc) = probe.get_mut("grpc") {
                default_to(grpc, "service", "");
            }
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            default_handler(hook);
        }
    }
}

fn default_handler(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet").filter(|get| get.is_object()) {
        default_to(get, "path", "/");
        default_to(get, "scheme", "HTTP");
    }
}

fn default_to_number(value: &mut Value, field: &str, default: i64) {
    if value.get(field).and_then(Value::as_i64).unwrap_or(0) == 0 {
        set(value, field, default);
    }
}

fn default_volume(volume: &mut Value) {
    // Modes are octal in manifests and decimal in JSON: 420 is 0644.
    const MODE: i64 = 0o644;
    let sources = volume.as_object().map_or(0, serde_json::Map::len);
    if sources == usize::from(volume.get("name").is_some()) {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            default_to(source, "defaultMode", MODE);
        }
    }
    if let Some(template) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
        claim::default(template);
    }
    if let Some(host) = volume.get_mut("hostPath").filter(|host| host.is_object())
        && host.get("type").is_none()
    {
        set(host, "type", "");
    }
    if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
        let policy = images::pull_policy(text(image, "reference"));
        default_to(image, "pullPolicy", policy);
    }
    if let Some(downward) = volume.get_mut("downwardAPI") {
        default_downward(downward);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items_mut(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                default_to(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                default_downward(downward);
            }
        }
    }
}

fn default_downward(downward: &mut Value) {
    for item in items_mut(downward, "items") {
        if let Some(reference) = item.get_mut("fieldRef") {
            default_to(reference, "apiVersion", "v1");
        }
        if let Some(reference) = item.get_mut("resourceFieldRef") {
            default_to(reference, "divisor", "0");
        }
    }
}

/// Copies limits to the requests that are not given.
fn request_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else {
        return;
    };
    let limits: Vec<(String, Value)> = entries(resources, "limits")
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = ensure_object(resources, "requests") {
        for (name, amount) in limits {
            if requests.get(&name).is_none() {
                set(requests, &name, amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_mounted_are_pulled_like_others() {
        let mut spec = json!({"volumes": [
            {"name": "a", "image": {"reference": "a"}},
            {"name": "b", "image": {"reference": "b:1"}},
            {"name": "c", "image": {"reference": "c", "pullPolicy": "Never"}},
        ]});
        default_spec(&mut spec);
        let policies: Vec<&str> = items(&spec, "volumes")
            .map(|volume| text(&volume["image"], "pullPolicy"))
            .collect();
        assert_eq!(policies, ["Always", "IfNotPresent", "Never"]);
    }

    #[test]
    fn quality_of_service() {
        let check = |resources: Value, class: &str| {
            let spec = json!({"containers": [{ "resources": resources }]});
            assert_eq!(qos_class(&spec), class, "{resources}");
        };
        check(json!({}), "BestEffort");
        check(json!({"limits": {"cpu": "0"}}), "BestEffort");
        check(json!({"requests": {"cpu": "1"}}), "Burstable");
        let all = json!({"cpu": "1", "memory": "1Gi"});
        check(json!({"limits": all, "requests": all}), "Guaranteed");
        check(json!({"limits": all}), "Guaranteed");
        let whole = json!({"resources": {"requests": {"cpu": "1"}}, "containers": [{}]});
        assert_eq!(qos_class(&whole), "Burstable");
        check(
            json!({"limits": all, "requests": {"cpu": "500m"}}),
            "Burstable",
        );
    }

    #[test]
    fn a_pod_requests_its_limits() {
        let mut pod = json!({"spec": {"containers": [
            {"name": "c", "image": "nginx:1", "resources": {"limits": {"cpu": "1"}}},
        ]}});
        default(&mut pod);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["resources"]["requests"], json!({"cpu": "1"}));
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        let once = pod.clone();
        default(&mut pod);
        assert_eq!(pod, once);
    }
}
