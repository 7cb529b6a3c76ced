//! As whom the processes of a pod run, and what they may.

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
    let list = path.child("sysctls");
    for (index, sysctl) in items(context, "sysctls").enumerate() {
        let path = list.index(index);
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !is_sysctl(name) {
            errors.push(FieldError::invalid_str(
                &path.child("name"),
                name,
                "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            ));
        }
    }
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
