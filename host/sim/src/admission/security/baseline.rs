//! The rules of the level `baseline`.

use serde_json::Value;

use super::pod::{Pod, Violation, context, named, plural, quoted, setters, sorted, use_of};
use crate::kinds::edit::{flag, integer, items, object, text, text_at};

/// What every container may do anyway.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Settings of the kernel that are a pod's own, in the order in which they came to be
/// allowed.
pub(super) const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
/// Types of SELinux, in the order in which they came to be allowed.
pub(super) const SE_LINUX_TYPES: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Profiles that may be asked for by `type`.
const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];

/// The type of a profile in a `securityContext` that has none of the allowed ones.
pub(super) fn bad_profile<'c>(context: &'c Value, field: &str) -> Option<&'c str> {
    let profile = text(object(context, field)?, "type");
    (!PROFILES.contains(&profile)).then_some(profile)
}

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    const FIELD: &str = "appArmorProfile";
    let of_pod = bad_profile(pod.context(), FIELD);
    let bad = pod.bad(|container| bad_profile(context(container), FIELD).is_some());
    let of_containers = pod
        .containers()
        .filter_map(|c| bad_profile(context(c), FIELD));
    let mut values: Vec<String> = sorted(of_pod.into_iter().chain(of_containers))
        .into_iter()
        .map(str::to_owned)
        .collect();
    let is_allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let mut annotations: Vec<String> = annotations
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    annotations.sort_unstable();
    let noted = (!annotations.is_empty()).then(|| plural("annotation", annotations.len()));
    values.append(&mut annotations);
    let who: Vec<String> = setters(of_pod.is_some(), &bad)
        .into_iter()
        .chain(noted)
        .collect();
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        who.join(" and "),
        quoted(&values)
    );
    Violation::new(plural("forbidden AppArmor profile", values.len()), detail)
}

/// What of the capabilities that a container adds is not among `allowed`.
pub(super) fn added<'c>(
    container: &'c Value,
    allowed: &'static [&'static str],
) -> impl Iterator<Item = &'c str> {
    let given = object(context(container), "capabilities").unwrap_or(&Value::Null);
    let given = items(given, "add").filter_map(Value::as_str);
    given.filter(|name| !allowed.contains(name))
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.bad(|container| added(container, &CAPABILITIES).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let names = sorted(pod.containers().flat_map(|c| added(c, &CAPABILITIES)));
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        named("container", &bad),
        quoted(&names)
    );
    Violation::new("non-default capabilities", detail)
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let given = fields.into_iter().filter(|field| flag(pod.spec, field));
    let given: Vec<String> = given.map(|field| format!("{field}=true")).collect();
    let detail = given.join(", ");
    (!given.is_empty())
        .then(|| Violation::new("host namespaces", detail))
        .flatten()
}

pub(super) fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = items(pod.spec, "volumes").filter(|volume| object(volume, "hostPath").is_some());
    let volumes: Vec<&str> = volumes.map(|volume| text(volume, "name")).collect();
    if volumes.is_empty() {
        return None;
    }
    Violation::new("hostPath volumes", named("volume", &volumes))
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    fn ports(container: &Value) -> impl Iterator<Item = i64> {
        let ports = items(container, "ports").filter_map(|port| integer(port, "hostPort"));
        ports.filter(|port| *port != 0)
    }
    let bad = pod.bad(|container| ports(container).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let ports: Vec<String> = pod
        .containers()
        .flat_map(ports)
        .map(|port| port.to_string())
        .collect();
    let ports = sorted(ports.iter().map(String::as_str));
    let detail = format!(
        "{} {} {} {}",
        named("container", &bad),
        use_of(bad.len()),
        plural("hostPort", ports.len()),
        ports.join(", ")
    );
    Violation::new("hostPort", detail)
}

pub(super) fn probed_hosts(pod: &Pod<'_>) -> Option<Violation> {
    /// The hosts that a container has asked by its probes and handlers.
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let probes = ["/livenessProbe", "/readinessProbe", "/startupProbe"];
        let handlers = ["/lifecycle/postStart", "/lifecycle/preStop"];
        let asked = probes.into_iter().chain(handlers);
        let asked = asked.filter_map(|pointer| container.pointer(pointer));
        let hosts = asked
            .flat_map(|asks| ["/httpGet/host", "/tcpSocket/host"].map(|host| text_at(asks, host)));
        hosts.filter(|host| !host.is_empty())
    }
    let bad = pod.bad(|container| hosts(container).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let (bad, hosts) = (sorted(bad), sorted(pod.containers().flat_map(hosts)));
    let detail = format!(
        "{} {} {} {}",
        named("container", &bad),
        use_of(bad.len()),
        plural("probe or lifecycle host", hosts.len()),
        quoted(&hosts)
    );
    Violation::new("probe or lifecycle host", detail)
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.bad(|container| flag(context(container), "privileged"));
    if bad.is_empty() {
        return None;
    }
    let who = named("container", &bad);
    let detail = format!("{who} must not set securityContext.privileged=true");
    Violation::new("privileged", detail)
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    fn bad_mount(container: &Value) -> Option<&str> {
        let mount = context(container).get("procMount")?.as_str()?;
        (mount != "Default").then_some(mount)
    }
    let bad = pod.bad(|container| bad_mount(container).is_some());
    if bad.is_empty() {
        return None;
    }
    let mounts = sorted(pod.containers().filter_map(bad_mount));
    let detail = format!(
        "{} must not set securityContext.procMount to {}",
        named("container", &bad),
        quoted(&mounts)
    );
    Violation::new("procMount", detail)
}

pub(super) fn se_linux(pod: &Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let options = |of: &'_ Value| object(of, "seLinuxOptions").cloned();
    let is_bad = |options: &Value| {
        !allowed.contains(&text(options, "type"))
            || !text(options, "user").is_empty()
            || !text(options, "role").is_empty()
    };
    let of_pod = options(pod.context()).filter(|options| is_bad(options));
    let bad = pod.bad(|container| options(context(container)).is_some_and(|given| is_bad(&given)));
    let who = setters(of_pod.is_some(), &bad)?;
    let of_containers = pod
        .containers()
        .filter_map(|container| options(context(container)));
    let all: Vec<Value> = of_pod.into_iter().chain(of_containers).collect();
    let types = all.iter().map(|options| text(options, "type"));
    let types = sorted(types.filter(|name| !allowed.contains(name)));
    let mut wrong = Vec::new();
    if !types.is_empty() {
        wrong.push(named("type", &types));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(options, field).is_empty()) {
            wrong.push(format!("{field} may not be set"));
        }
    }
    let detail = format!(
        "{who} set forbidden securityContext.seLinuxOptions: {}",
        wrong.join("; ")
    );
    Violation::new("seLinuxOptions", detail)
}

/// Up to version 1.18, where profiles were annotations.
pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let names = pod.containers().map(|container| text(container, "name"));
    let keys = names.map(|name| format!("{SECCOMP_OF_CONTAINER}{name}"));
    let keys = std::iter::once(SECCOMP_OF_POD.to_owned()).chain(keys);
    let bad = keys.filter_map(|key| {
        let value = pod.annotations.get(&key)?.as_str()?;
        (!is_allowed(value)).then(|| format!("{key}={value:?}"))
    });
    let bad: Vec<String> = bad.collect();
    let bad = sorted(bad.iter().map(String::as_str));
    if bad.is_empty() {
        return None;
    }
    let annotations = plural("annotation", bad.len());
    let detail = format!("forbidden {annotations} {}", bad.join(", "));
    Violation::new("seccompProfile", detail)
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    const FIELD: &str = "seccompProfile";
    let of_pod = bad_profile(pod.context(), FIELD);
    let bad = pod.bad(|container| bad_profile(context(container), FIELD).is_some());
    let who = setters(of_pod.is_some(), &bad)?;
    let of_containers = pod
        .containers()
        .filter_map(|c| bad_profile(context(c), FIELD));
    let values = sorted(of_pod.into_iter().chain(of_containers));
    let detail = format!(
        "{who} must not set securityContext.seccompProfile.type to {}",
        quoted(&values)
    );
    Violation::new(FIELD, detail)
}

pub(super) fn sysctls(pod: &Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let names = items(pod.context(), "sysctls").map(|sysctl| text(sysctl, "name"));
    let names: Vec<&str> = names.filter(|name| !allowed.contains(name)).collect();
    if names.is_empty() {
        return None;
    }
    Violation::new("forbidden sysctls", names.join(", "))
}

pub(super) fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |context: &Value| {
        object(context, "windowsOptions").is_some_and(|options| flag(options, "hostProcess"))
    };
    let bad = pod.bad(|container| is_bad(context(container)));
    let who = setters(is_bad(pod.context()), &bad)?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Violation::new("hostProcess", detail)
}
