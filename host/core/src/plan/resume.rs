//! What has to be resumed before it is deleted.

use crate::kind::GroupVersionKind;
use serde_json::Value;

/// Whether the controller of an object would leave behind all that it has made if the object
/// were deleted now: helm-controller uninstalls nothing, and kustomize-controller prunes
/// nothing, for what is suspended. The object is asked for where its kind is one of theirs.
pub fn leaves_behind(kind: &GroupVersionKind, object: impl FnOnce() -> Value) -> bool {
    let is_release = match (kind.group.as_str(), kind.kind.as_str()) {
        ("helm.toolkit.fluxcd.io", "HelmRelease") => true,
        ("kustomize.toolkit.fluxcd.io", "Kustomization") => false,
        _ => return false,
    };
    let object = object();
    let spec = &object["spec"];
    let takes_along = is_release
        || match spec["deletionPolicy"].as_str().unwrap_or_default() {
            "Delete" | "WaitForTermination" => true,
            "Orphan" => false,
            // MirrorPrune, which is the default.
            _ => spec["prune"] == true,
        };
    takes_along && spec["suspend"] == true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_suspended_leaves_behind_what_it_has_made() {
        const HELM: &str = "helm.toolkit.fluxcd.io";
        const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
        for (group, kind, spec, expected) in [
            (HELM, "HelmRelease", json!({"suspend": true}), true),
            (HELM, "HelmRelease", json!({"suspend": false}), false),
            (HELM, "HelmRelease", json!({}), false),
            (
                KUSTOMIZE,
                "Kustomization",
                json!({"suspend": true, "prune": true}),
                true,
            ),
            (
                KUSTOMIZE,
                "Kustomization",
                json!({"suspend": true, "deletionPolicy": "Delete"}),
                true,
            ),
            (
                KUSTOMIZE,
                "Kustomization",
                json!({"suspend": true, "prune": true, "deletionPolicy": "Orphan"}),
                false,
            ),
            (KUSTOMIZE, "Kustomization", json!({"suspend": true}), false),
            (KUSTOMIZE, "Kustomization", json!({"prune": true}), false),
            (
                "kustomize.config.k8s.io",
                "Kustomization",
                json!({"suspend": true, "prune": true}),
                false,
            ),
            ("batch", "Job", json!({"suspend": true}), false),
        ] {
            let kind = GroupVersionKind::new(group, "v1", kind);
            assert_eq!(
                leaves_behind(&kind, || json!({"spec": spec})),
                expected,
                "{kind}: {spec}"
            );
        }
    }
}
