//! What a pod has in common with its node: the operating system, users, and the name.

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, present, text, text_at};
use crate::names;

/// All containers of a pod, in the order in which the server looks at them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const CONTEXT: &str = "securityContext";
/// What Windows does not have of a pod: fields of its spec (true), or of its security
/// context.
const NOT_OF_POD: [(&str, bool); 15] = [
    ("appArmorProfile", false),
    ("seLinuxOptions", false),
    ("hostUsers", true),
    ("hostPID", true),
    ("hostIPC", true),
    ("seccompProfile", false),
    ("fsGroup", false),
    ("fsGroupChangePolicy", false),
    ("sysctls", false),
    ("shareProcessNamespace", true),
    ("runAsUser", false),
    ("runAsGroup", false),
    ("supplementalGroups", false),
    ("supplementalGroupsPolicy", false),
    ("seLinuxChangePolicy", false),
];
/// And of the security context of a container.
const NOT_OF_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Checks the operating system, and that a pod asks for nothing of the other one.
pub(super) fn validate_system(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let Some(system) = spec.get("os").filter(|system| system.is_object()) else {
        return;
    };
    let of_system = path.child("os");
    match text(system, "name") {
        "" => errors.push(FieldError::required(&of_system.child("name"), "")),
        "linux" => validate_linux(path, spec, errors),
        "windows" => validate_windows(path, spec, errors),
        other => {
            let systems = ["linux", "windows"];
            errors.push(FieldError::not_supported(
                &of_system,
                &other.into(),
                &systems,
            ));
        }
    }
}

fn validate_linux(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let mut refuse = |path: &Path<'_>, context: Option<&Value>| {
        if context.is_some_and(|context| has(context, "windowsOptions")) {
            let why = "windows options cannot be set for a linux pod";
            errors.push(FieldError::forbidden(&path.child("windowsOptions"), why));
        }
    };
    refuse(&path.child(CONTEXT), spec.get(CONTEXT));
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            let path = path.index(index);
            refuse(&path.child(CONTEXT), container.get(CONTEXT));
        }
    }
}

fn validate_windows(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let mut refuse = |path: &Path<'_>, of: Option<&Value>, field: &str| {
        // A flag of the pod that is off is as one that is not given.
        let is_flag = matches!(field, "hostPID" | "hostIPC");
        let is_given = of.is_some_and(|of| has(of, field) && (!is_flag || flag(of, field)));
        if is_given {
            let why = "cannot be set for a windows pod";
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
    };
    let context = path.child(CONTEXT);
    for (field, is_of_spec) in NOT_OF_POD {
        if is_of_spec {
            refuse(path, Some(spec), field);
        } else {
            refuse(&context, spec.get(CONTEXT), field);
        }
    }
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            let path = path.index(index);
            let path = path.child(CONTEXT);
            for field in NOT_OF_CONTAINER {
                refuse(&path, container.get(CONTEXT), field);
            }
        }
    }
}

fn has(value: &Value, field: &str) -> bool {
    value.get(field).is_some_and(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}

/// Who has users of its own shares no processes with its node.
pub(super) fn validate_users(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    const WHY: &str = "when `hostUsers` is false";
    if spec.get("hostUsers") != Some(&Value::Bool(false)) {
        return;
    }
    let mut refuse = |path: &Path<'_>| errors.push(FieldError::forbidden(path, WHY));
    // As the server tells them.
    for (field, told) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, field) {
            refuse(&path.child(told));
        }
    }
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            if present(container, "volumeDevices").is_some() {
                refuse(&path.index(index).child("volumeDevices"));
            }
        }
    }
}

/// Checks the name that a pod has instead of its own.
pub(super) fn validate_hostname(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    const FIELD: &str = "hostnameOverride";
    const LONGEST: usize = 64;
    let Some(name) = spec.get(FIELD).and_then(Value::as_str) else {
        return;
    };
    let path = path.child(FIELD);
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if flag(spec, field) {
            let why = format!("may not be specified when {field} is true");
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    if name.len() > LONGEST {
        errors.push(FieldError::too_long(&path, LONGEST));
    }
    for wrong in names::dns1123_subdomain(name) {
        errors.push(FieldError::invalid_str(&path, name, wrong));
    }
}

/// Windows containers that are processes of their node are on its network, all of them.
pub(super) fn validate_processes(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let of = |of: &Value| {
        let options = of.pointer("/securityContext/windowsOptions/hostProcess");
        options.and_then(Value::as_bool)
    };
    let whole = of(spec);
    let (mut all, mut processes) = (0, 0);
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            all += 1;
            let own = of(container);
            if let (Some(whole), Some(own)) = (whole, own)
                && whole != own
            {
                let path = path.index(index);
                let path = path.child("securityContext.windowsOptions.hostProcess");
                let why = format!(
                    "pod hostProcess value must be identical if both are specified, was {whole}"
                );
                errors.push(FieldError::invalid(&path, &own.into(), why));
            }
            processes += usize::from(own.or(whole).unwrap_or(false));
        }
    }
    if processes == 0 {
        return;
    }
    if processes != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid_str(path, "", why));
    }
    if !flag(spec, "hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(
            &path.child("hostNetwork"),
            &false.into(),
            why,
        ));
    }
}

/// Checks the annotations by which profiles and mirrors were asked for once, at `path`.
pub(super) fn validate_annotations(
    path: &Path<'_>,
    annotations: &Value,
    spec: &Value,
    errors: &mut Errors,
) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";
    const APPARMOR_OF: &str = "container.apparmor.security.beta.kubernetes.io/";
    if let Some(mirror) = annotations.get(MIRROR).and_then(Value::as_str)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid_str(&path.key(MIRROR), mirror, why));
    }
    if let Some(cost) = annotations.get(COST).and_then(Value::as_str)
        && !is_cost(cost)
    {
        let why = "must be a 32bit integer";
        errors.push(FieldError::invalid_str(&path.key(COST), cost, why));
    }
    let all = annotations.as_object().into_iter().flatten();
    let all: Vec<(&str, &str)> = all
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    if let Some(profile) = annotations.get(SECCOMP).and_then(Value::as_str) {
        validate_seccomp(&path.child(SECCOMP), profile, errors);
    }
    for (key, profile) in all.iter().filter(|(key, _)| key.starts_with(SECCOMP_OF)) {
        validate_seccomp(&path.child(key), profile, errors);
    }
    for (key, profile) in &all {
        let Some(container) = key.strip_prefix(APPARMOR_OF) else {
            continue;
        };
        let mut containers = LISTS.iter().flat_map(|list| items(spec, list));
        let path = path.key(key);
        if !containers.any(|given| text(given, "name") == container) {
            errors.push(FieldError::invalid_str(
                &path,
                container,
                "container not found",
            ));
        }
        let is_known = matches!(*profile, "" | "runtime/default" | "unconfined")
            || profile.starts_with("localhost/");
        if !is_known {
            let why = format!("invalid AppArmor profile name: {profile:?}");
            errors.push(FieldError::invalid_str(&path, profile, why));
        }
    }
}

/// Whether a text is a whole number, as it is written without need.
fn is_cost(text: &str) -> bool {
    let is_plain =
        text == "0" || text.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    is_plain && text.parse::<i32>().is_ok()
}

fn validate_seccomp(path: &Path<'_>, profile: &str, errors: &mut Errors) {
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match profile.strip_prefix("localhost/") {
        Some(file) => super::volumes::validate_relative(path, file, errors),
        None => {
            let why = "must be a valid seccomp profile";
            errors.push(FieldError::invalid_str(path, profile, why));
        }
    }
}

/// Annotations and fields for profiles that are both there say the same.
pub(super) fn validate_profiles(
    path: &Path<'_>,
    annotations: &Value,
    spec: &Value,
    errors: &mut Errors,
) {
    validate_seccomp_fields(path, annotations, spec, errors);
    if text_at(spec, "/os/name") != "windows" {
        validate_apparmor_fields(path, annotations, spec, errors);
    }
}

fn validate_seccomp_fields(
    path: &Path<'_>,
    annotations: &Value,
    spec: &Value,
    errors: &mut Errors,
) {
    let mut compare = |path: &Path<'_>, of: &Value, key: &str| {
        let profile = of.pointer("/securityContext/seccompProfile");
        let (Some(profile), Some(given)) =
            (profile.filter(|p| p.is_object()), annotations.get(key))
        else {
            return;
        };
        let given = given.as_str().unwrap_or_default();
        let path = path.child("securityContext.seccompProfile");
        let kind = match text(profile, "type") {
            "Unconfined" => given == "unconfined",
            "RuntimeDefault" => matches!(given, "runtime/default" | "docker/default"),
            "Localhost" => match given.strip_prefix("localhost/") {
                None => false,
                Some(file) => {
                    if profile.get("localhostProfile").and_then(Value::as_str) != Some(file) {
                        let why = "seccomp profile in annotation and field must match";
                        errors.push(FieldError::forbidden(&path.child("localhostProfile"), why));
                    }
                    true
                }
            },
            _ => true,
        };
        if !kind {
            let why = "seccomp type in annotation and field must match";
            errors.push(FieldError::forbidden(&path.child("type"), why));
        }
    };
    compare(path, spec, "seccomp.security.alpha.kubernetes.io/pod");
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            let name = text(container, "name");
            let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
            compare(&path.index(index), container, &key);
        }
    }
}

fn validate_apparmor_fields(
    path: &Path<'_>,
    annotations: &Value,
    spec: &Value,
    errors: &mut Errors,
) {
    const PROFILE: &str = "/securityContext/appArmorProfile";
    let of_pod = spec.pointer(PROFILE).filter(|profile| profile.is_object());
    for list in LISTS {
        let path = path.child(list);
        for (index, container) in items(spec, list).enumerate() {
            let own = container
                .pointer(PROFILE)
                .filter(|profile| profile.is_object());
            let name = text(container, "name");
            let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
            let (Some(profile), Some(given)) = (own.or(of_pod), annotations.get(&key)) else {
                continue;
            };
            let given = given.as_str().unwrap_or_default();
            let file = profile.get("localhostProfile").and_then(Value::as_str);
            let wrong = match (text(profile, "type"), given.strip_prefix("localhost/")) {
                ("Unconfined", _) if given != "unconfined" => "type",
                ("RuntimeDefault", _) if given != "runtime/default" => "type",
                ("Localhost", None) => "type",
                ("Localhost", Some(given)) if file != Some(given) => "localhostProfile",
                _ => continue,
            };
            let path = path.index(index);
            let path = path.child("securityContext.appArmorProfile");
            let what = if wrong == "type" { "type" } else { "profile" };
            let why = format!("apparmor {what} in annotation and field must match");
            errors.push(FieldError::forbidden(&path.child(wrong), why));
        }
    }
}
