//! What each level of the Pod Security standards says of pods.

use serde_json::{Value, json};

use super::*;

/// What a standard, as labels say it, has against a pod.
#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn found(level: &str, version: &str, spec: Value, annotations: Value) -> String {
    let mut errors = Errors::new();
    let policy = Policy::read(
        |label| match label.trim_start_matches("pod-security.kubernetes.io/") {
            "enforce" => Some(level),
            "enforce-version" => Some(version),
            _ => None,
        },
        &mut errors,
    );
    assert!(errors.is_empty(), "{level} {version}");
    let pod = json!({"metadata": {"annotations": annotations}, "spec": spec});
    detailed(&violations(policy.enforce, &Pod::new(&pod)))
}

#[test]
fn a_plain_pod_is_not_restricted() {
    let plain = || json!({"containers": [{"name": "c"}, {"name": "d"}]});
    let both = "containers \"c\", \"d\"";
    let of_18 = format!(
        "allowPrivilegeEscalation != false ({both} must set securityContext.allowPrivilegeEscalation=false), \
         runAsNonRoot != true (pod or {both} must set securityContext.runAsNonRoot=true)"
    );
    let latest = format!(
        "allowPrivilegeEscalation != false ({both} must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities ({both} must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or {both} must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or {both} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    for (level, version, expected) in [
        ("restricted", "v1.18", of_18.as_str()),
        ("restricted", "v1.99", &latest),
        ("restricted", "latest", &latest),
        ("baseline", "latest", ""),
        ("privileged", "latest", ""),
    ] {
        let told = found(level, version, plain(), json!({}));
        assert_eq!(told, expected, "{level} {version}");
    }
}

#[test]
fn rules_depend_on_versions() {
    let sysctl = || json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}});
    let refused = "forbidden sysctls (net.ipv4.tcp_rmem)";
    assert_eq!(found("baseline", "v1.31", sysctl(), json!({})), refused);
    assert_eq!(found("baseline", "v1.32", sysctl(), json!({})), "");
    let container = |context: Value| json!({"name": "c", "securityContext": context});
    let unmasked = |own: bool| json!({"hostUsers": !own, "containers": [container(json!({"procMount": "Unmasked"}))]});
    let refused =
        "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")";
    assert_eq!(
        found("baseline", "v1.34", unmasked(true), json!({})),
        refused
    );
    assert_eq!(found("baseline", "v1.35", unmasked(true), json!({})), "");
    assert_eq!(
        found("baseline", "v1.35", unmasked(false), json!({})),
        refused
    );
    let strict = found("restricted", "v1.35", unmasked(true), json!({}));
    assert_eq!(strict.matches(refused).count(), 1, "{strict}");
    let noted = json!({"container.seccomp.security.alpha.kubernetes.io/c": "x"});
    let plain = || json!({"containers": [{"name": "c"}]});
    let refused = "seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/c=\"x\")";
    assert_eq!(found("baseline", "v1.18", plain(), noted.clone()), refused);
    assert_eq!(found("baseline", "v1.19", plain(), noted), "");
}

#[test]
fn what_is_restricted_more_is_told_once() {
    let volumes = json!({"volumes": [
        {"name": "a", "hostPath": {}}, {"name": "b", "nfs": {}}, {"name": "c", "emptyDir": {}},
    ]});
    assert_eq!(
        found("baseline", "v1.0", volumes.clone(), json!({})),
        "hostPath volumes (volume \"a\")"
    );
    assert_eq!(
        found("restricted", "v1.0", volumes, json!({})),
        "restricted volume types (volumes \"a\", \"b\" use restricted volume types \"hostPath\", \"nfs\")"
    );
}

#[test]
fn labels_that_say_nothing_known_are_told() {
    let mut errors = Errors::new();
    let namespace = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "strict",
        "pod-security.kubernetes.io/enforce-version": "v1.07",
        "pod-security.kubernetes.io/warn": "",
    }}});
    let policy = Policy::of(&namespace, &mut errors);
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.07\": must be \"latest\" or \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"\": must be one of privileged, baseline, restricted",
        ]
    );
    // Who mistypes a level is safe.
    assert_eq!(policy.enforce.to_string(), "restricted:latest");
    assert_eq!(policy.warn.level, Level::Privileged);
}

#[test]
fn workloads_are_warned_of_what_pods_are_refused_for() {
    let read = |given: &[(&str, &'static str)]| {
        let label = |name: &str| {
            let name = name.trim_start_matches("pod-security.kubernetes.io/");
            given
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value)
        };
        Policy::read(label, &mut Errors::new()).warn.to_string()
    };
    assert_eq!(
        read(&[("enforce", "baseline"), ("enforce-version", "v1.20")]),
        "baseline:v1.20"
    );
    let own = [("enforce", "baseline"), ("warn-version", "v1.30")];
    assert_eq!(read(&own), "baseline:v1.30");
    assert_eq!(
        read(&[("enforce", "baseline"), ("warn", "privileged")]),
        "privileged:latest"
    );
    assert_eq!(read(&[("enforce", "mistyped")]), "privileged:latest");
}
