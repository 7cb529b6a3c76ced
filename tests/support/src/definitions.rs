//! Definitions that other projects publish, which tests read and this repository has not.

/// Names the folder with them, a file `<plural>.<group>.yaml` each.
pub const FOLDER: &str = "REEVE_DEFINITIONS";

/// Of the kinds that the plugins of Profiles read and write.
pub const OF_PROFILES: [&str; 8] = [
    "profiles.kubeflow.org",
    "notebooks.kubeflow.org",
    "poddefaults.kubeflow.org",
    "applications.argoproj.io",
    "authorizationpolicies.security.istio.io",
    "destinationrules.networking.istio.io",
    "serviceentries.networking.istio.io",
    "virtualservices.networking.istio.io",
];
