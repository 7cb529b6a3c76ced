//! As whom the processes of a pod run, and what they may.

use std::collections::BTreeSet;

use serde_json::Value;

use super::supported;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{flag, items, text};
use crate::names;

/// The highest id of a user or group.
const LAST_ID: i64 = i32::MAX as i64;

/// Checks the security context of a pod.
pub(super) fn validate_pod(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let Some(context) = spec.get("securityContext").filter(|c| c.is_object()) else {
        return;
    };
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        validate_id(&path.child(field), context.get(field), errors);
    }
    let groups = path.child("supplementalGroups");
    for (index, group) in items(context, "supplementalGroups").enumerate() {
        validate_id(&groups.index(index), Some(group), errors);
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        errors.push(FieldError::invalid(
            &path.child("shareProcessNamespace"),
            &true.into(),
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    validate_sysctls(&path.child("sysctls"), spec, context, errors);
    supported(
        path,
        context,
        "fsGroupChangePolicy",
        &["Always", "OnRootMismatch"],
        errors,
    );
    validate_seccomp(&path.child("seccompProfile"), context, errors);
    validate_apparmor(&path.child("appArmorProfile"), context, errors);
    let policies = ["Merge", "Strict"];
    supported(path, context, "supplementalGroupsPolicy", &policies, errors);
    // The other one is of a feature that is off.
    supported(path, context, "seLinuxChangePolicy", &["Recursive"], errors);
}

/// Checks the security context of a container. Whether it may be privileged at all is
/// decided by each cluster; here it may.
pub(super) fn validate_container(
    path: &Path<'_>,
    container: &Value,
    own_users: bool,
    errors: &mut Errors,
) {
    let Some(context) = container.get("securityContext").filter(|c| c.is_object()) else {
        return;
    };
    for field in ["runAsUser", "runAsGroup"] {
        validate_id(&path.child(field), context.get(field), errors);
    }
    supported(path, context, "procMount", &["Default", "Unmasked"], errors);
    if text(context, "procMount") == "Unmasked" && !own_users {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid_str(
            &path.child("procMount"),
            "Unmasked",
            why,
        ));
    }
    validate_seccomp(&path.child("seccompProfile"), context, errors);
    let escalation = context.get("allowPrivilegeEscalation");
    if escalation == Some(&Value::Bool(false)) {
        if flag(context, "privileged") {
            errors.push(FieldError::invalid(
                path,
                context,
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            ));
        }
        let capabilities = context.get("capabilities").unwrap_or(&Value::Null);
        if items(capabilities, "add").any(|capability| capability == "CAP_SYS_ADMIN") {
            errors.push(FieldError::invalid(
                path,
                context,
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            ));
        }
    }
    validate_apparmor(&path.child("appArmorProfile"), context, errors);
}

/// Checks the parameters of the kernel: each once, and none of a namespace that is the
/// node's.
fn validate_sysctls(list: &Path<'_>, spec: &Value, context: &Value, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, sysctl) in items(context, "sysctls").enumerate() {
        let path = list.index(index);
        let path = path.child("name");
        let name = text(sysctl, "name");
        let is_new = known.insert(name);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            errors.push(FieldError::invalid_str(
                &path,
                name,
                "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            ));
        } else if !is_new {
            errors.push(FieldError::duplicate(&path, &name.into()));
        }
        if let Some(shared) = namespace_of(name).filter(|namespace| flag(spec, namespace)) {
            let why = format!("may not be specified when '{shared}' is true");
            errors.push(FieldError::invalid_str(&path, name, why));
        }
    }
}

/// By which field of a pod the namespace of a parameter is the node's.
fn namespace_of(sysctl: &str) -> Option<&'static str> {
    const IPC: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    // Written as a path, points and slashes are the other way round.
    let first = sysctl.chars().find(|c| matches!(c, '.' | '/'));
    let turned = |c: char| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let name: String = if first == Some('/') {
        sysctl.chars().map(turned).collect()
    } else {
        sysctl.to_owned()
    };
    if name.starts_with("net.") {
        Some("hostNetwork")
    } else if IPC.contains(&name.as_str()) || name.starts_with("fs.mqueue.") {
        Some("hostIPC")
    } else {
        None
    }
}

fn validate_id(path: &Path<'_>, id: Option<&Value>, errors: &mut Errors) {
    if let Some(id) = id.and_then(Value::as_i64)
        && !(0..=LAST_ID).contains(&id)
    {
        let wrong = names::in_range(0, LAST_ID);
        errors.push(FieldError::invalid(path, &id.into(), wrong));
    }
}

fn validate_apparmor(path: &Path<'_>, context: &Value, errors: &mut Errors) {
    // The longest path that Linux takes.
    const LONGEST: usize = 4095;
    const KINDS: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    let Some(profile) = context.get("appArmorProfile").filter(|p| p.is_object()) else {
        return;
    };
    let local = path.child("localhostProfile");
    let missing = "must be set when AppArmor type is Localhost";
    match (text(profile, "type"), file_of(profile, "localhostProfile")) {
        ("Localhost", None) => errors.push(FieldError::required(&local, missing)),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                let why = "must not be padded with whitespace";
                errors.push(FieldError::invalid_str(&local, file, why));
            } else if file.is_empty() {
                errors.push(FieldError::required(&local, missing));
            }
            if file.len() > LONGEST {
                errors.push(FieldError::too_long(&local, LONGEST));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            let why = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid_str(&local, file, why));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => errors.push(FieldError::required(
            &path.child("type"),
            "type is required when appArmorProfile is set",
        )),
        (other, _) => {
            errors.push(FieldError::not_supported(
                &path.child("type"),
                &other.into(),
                &KINDS,
            ));
        }
    }
}

fn validate_seccomp(path: &Path<'_>, context: &Value, errors: &mut Errors) {
    let Some(profile) = context.get("seccompProfile").filter(|p| p.is_object()) else {
        return;
    };
    let sort = text(profile, "type");
    let sorts = ["Localhost", "RuntimeDefault", "Unconfined"];
    if sort.is_empty() {
        errors.push(FieldError::required(
            &path.child("type"),
            "type is required when seccompProfile is set",
        ));
    } else {
        supported(path, profile, "type", &sorts, errors);
    }
    let local = path.child("localhostProfile");
    match (sort, file_of(profile, "localhostProfile")) {
        ("Localhost", None) => errors.push(FieldError::required(
            &local,
            "must be set when seccomp type is Localhost",
        )),
        ("Localhost", Some(file)) => super::volumes::validate_relative(&local, file, errors),
        (_, Some(_)) => errors.push(FieldError::invalid(
            &local,
            profile,
            "can only be set when seccomp type is Localhost",
        )),
        (_, None) => {}
    }
}

fn file_of<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

/// Whether a text is the name of a kernel parameter.
fn is_sysctl(name: &str) -> bool {
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let fits = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(fits)
            && bytes.last().is_some_and(fits)
            && bytes
                .iter()
                .all(|byte| fits(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= names::SUBDOMAIN_MAX && name.split(['.', '/']).all(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sysctls_are_set_once_and_not_on_the_node() {
        let spec = json!({
            "hostNetwork": true,
            "securityContext": {"sysctls": [
                {"name": "net.ipv4.ip_forward", "value": "1"},
                {"name": "net/ipv4/ip_forward", "value": "1"},
                {"name": "kernel.sem", "value": "1"},
                {"name": "kernel.sem", "value": "2"},
                {"name": "fs.mqueue.msg_max", "value": "1"},
            ]},
        });
        let complaints = |spec: &Value| {
            let mut errors = Errors::new();
            validate_pod(&Path::new("c"), spec, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let twice = "c.sysctls[3].name: Duplicate value: \"kernel.sem\"";
        let shared = |index: usize, name: &str, field: &str| {
            format!(
                "c.sysctls[{index}].name: Invalid value: \"{name}\": may not be specified when \
                 '{field}' is true"
            )
        };
        assert_eq!(
            complaints(&spec),
            [
                shared(0, "net.ipv4.ip_forward", "hostNetwork"),
                shared(1, "net/ipv4/ip_forward", "hostNetwork"),
                twice.to_owned(),
            ]
        );
        let mut spec = spec;
        spec["hostNetwork"] = json!(false);
        spec["hostIPC"] = json!(true);
        assert_eq!(
            complaints(&spec),
            [
                shared(2, "kernel.sem", "hostIPC"),
                twice.to_owned(),
                shared(3, "kernel.sem", "hostIPC"),
                shared(4, "fs.mqueue.msg_max", "hostIPC"),
            ]
        );
    }
}
