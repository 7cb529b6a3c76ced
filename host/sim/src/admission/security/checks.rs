//! Which rules make up the standards, in which of their versions.

use super::pod::{Pod, Violation};
use super::{Level, Standard, Version, baseline, restricted};

/// What a rule has against a pod; none where it allows it.
type Rule = fn(&Pod<'_>) -> Option<Violation>;

/// A rule through the versions.
struct Check {
    name: &'static str,
    level: Level,
    /// The first minor version that each form of it is of.
    forms: &'static [(u64, Rule)],
    /// What it takes the place of, where it counts.
    instead_of: &'static str,
}

impl Check {
    const fn baseline(name: &'static str, forms: &'static [(u64, Rule)]) -> Self {
        Check {
            name,
            level: Level::Baseline,
            forms,
            instead_of: "",
        }
    }

    const fn restricted(name: &'static str, forms: &'static [(u64, Rule)]) -> Self {
        Check {
            level: Level::Restricted,
            ..Check::baseline(name, forms)
        }
    }

    const fn instead_of(mut self, name: &'static str) -> Self {
        self.instead_of = name;
        self
    }

    fn form(&self, minor: u64) -> Option<Rule> {
        let known = self.forms.iter().rev().find(|(from, _)| *from <= minor);
        known.map(|(_, rule)| *rule)
    }
}

/// In the order in which they are told: by level, and by name, in the order of its bytes.
const CHECKS: &[Check] = &[
    Check::baseline("appArmorProfile", &[(0, baseline::app_armor)]),
    Check::baseline("capabilities_baseline", &[(0, baseline::capabilities)]),
    Check::baseline("hostNamespaces", &[(0, baseline::host_namespaces)]),
    Check::baseline("hostPathVolumes", &[(0, baseline::host_paths)]),
    Check::baseline("hostPorts", &[(0, baseline::host_ports)]),
    Check::baseline(
        "hostProbesAndHostLifecycle",
        &[(34, baseline::probed_hosts)],
    ),
    Check::baseline("privileged", &[(0, baseline::privileged)]),
    Check::baseline(
        "procMount",
        &[
            (0, baseline::proc_mount),
            (35, |pod| {
                outside_of_user_namespaces(pod, baseline::proc_mount)
            }),
        ],
    ),
    Check::baseline(
        "seLinuxOptions",
        &[
            (0, |pod| {
                baseline::se_linux(pod, &baseline::SE_LINUX_TYPES[..4])
            }),
            (31, |pod| baseline::se_linux(pod, &baseline::SE_LINUX_TYPES)),
        ],
    ),
    Check::baseline(
        "seccompProfile_baseline",
        &[(0, baseline::seccomp_annotations), (19, baseline::seccomp)],
    ),
    Check::baseline(
        "sysctls",
        &[
            (0, |pod| baseline::sysctls(pod, &baseline::SYSCTLS[..5])),
            (27, |pod| baseline::sysctls(pod, &baseline::SYSCTLS[..6])),
            (29, |pod| baseline::sysctls(pod, &baseline::SYSCTLS[..10])),
            (32, |pod| baseline::sysctls(pod, &baseline::SYSCTLS)),
        ],
    ),
    Check::baseline("windowsHostProcess", &[(0, baseline::host_process)]),
    Check::restricted(
        "allowPrivilegeEscalation",
        &[
            (8, restricted::escalation),
            (25, |pod| outside_of_windows(pod, restricted::escalation)),
        ],
    ),
    Check::restricted(
        "capabilities_restricted",
        &[
            (22, restricted::capabilities),
            (25, |pod| outside_of_windows(pod, restricted::capabilities)),
        ],
    )
    .instead_of("capabilities_baseline"),
    Check::restricted("procMount_restricted", &[(35, baseline::proc_mount)])
        .instead_of("procMount"),
    Check::restricted("restrictedVolumes", &[(0, restricted::volumes)])
        .instead_of("hostPathVolumes"),
    Check::restricted(
        "runAsNonRoot",
        &[
            (0, restricted::non_root),
            (35, |pod| {
                outside_of_user_namespaces(pod, restricted::non_root)
            }),
        ],
    ),
    Check::restricted(
        "runAsUser",
        &[
            (23, restricted::user),
            (35, |pod| outside_of_user_namespaces(pod, restricted::user)),
        ],
    ),
    Check::restricted(
        "seccompProfile_restricted",
        &[
            (19, restricted::seccomp),
            (25, |pod| outside_of_windows(pod, restricted::seccomp)),
        ],
    )
    .instead_of("seccompProfile_baseline"),
];

fn outside_of_windows(pod: &Pod<'_>, rule: Rule) -> Option<Violation> {
    (!pod.is_of_windows()).then(|| rule(pod)).flatten()
}

fn outside_of_user_namespaces(pod: &Pod<'_>, rule: Rule) -> Option<Violation> {
    (!pod.has_own_users()).then(|| rule(pod)).flatten()
}

/// What a standard has against a pod.
pub(super) fn violations(standard: Standard, pod: &Pod<'_>) -> Vec<Violation> {
    let minor = match standard.version {
        Version::Latest => u64::MAX,
        Version::Minor(minor) => minor,
    };
    let counts = |check: &&Check| check.level <= standard.level && check.form(minor).is_some();
    let checks = || CHECKS.iter().filter(counts);
    let is_replaced = |name: &str| checks().any(|check| check.instead_of == name);
    let rules = checks().filter(|check| !is_replaced(check.name));
    let rules = rules.filter_map(|check| check.form(minor));
    rules.filter_map(|rule| rule(pod)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_told_in_their_order() {
        let key = |check: &Check| (check.level, check.name);
        assert!(CHECKS.is_sorted_by_key(key));
        let replaced = CHECKS.iter().map(|check| check.instead_of);
        for name in replaced.filter(|name| !name.is_empty()) {
            assert!(CHECKS.iter().any(|check| check.name == name), "{name}");
        }
        for check in CHECKS {
            assert!(check.forms.is_sorted_by_key(|(from, _)| *from));
        }
    }
}
