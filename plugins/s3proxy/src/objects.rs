//! What deploys the proxy, and what configures it.

use reeve_sdk::prelude::*;

use crate::config::{Complete, Config};
use crate::{APPLICATION, CONFIG_MAP, nginx};

/// The Application of a Profile.
pub(crate) fn reference(profile: &str, config: &Config) -> ObjectReference {
    APPLICATION
        .object(format!("s3proxy-{profile}"))
        .in_namespace(&config.argocd_namespace)
}

/// Argo CD deploys the proxy into the namespace of the Profile, and keeps it so.
pub(crate) fn application(profile: &str, complete: &Complete<'_>) -> Object<Value> {
    let Complete {
        config,
        repo_url,
        path,
        ..
    } = complete;
    Object::new(
        reference(profile, config),
        json!({
            "project": config.project,
            "destination": {"name": "in-cluster", "namespace": profile},
            "source": {
                "repoURL": repo_url,
                "targetRevision": config.source.target_revision,
                "path": path,
                "directory": {
                    "recurse": true,
                    "jsonnet": {"extVars": [{"name": "userNamespace", "value": profile}]},
                },
            },
            "syncPolicy": {"automated": {}},
        }),
    )
}

/// The configuration of nginx.
pub(crate) fn nginx(profile: &str, complete: &Complete<'_>) -> ConfigMap {
    ConfigMap {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: CONFIG_MAP
            .object("s3proxy-nginx-conf")
            .in_namespace(profile)
            .into(),
        data: json!({"nginx.conf": nginx::configuration(profile, &complete.config.prefix)}),
    }
}

/// A ConfigMap.
#[output]
pub(crate) struct ConfigMap {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    data: Value,
}
