//! BuildKit without a daemon: rootless, or privileged in a user namespace of its own.

use reeve_sdk::prelude::*;

use super::{Build, REGISTRY, Recipe, image_or};
use crate::names::literal;

const ROOTLESS: &str = "docker.io/moby/buildkit:v0.32.2-rootless";
const IN_USER_NAMESPACE: &str = "docker.io/moby/buildkit:v0.32.2";

/// Where it keeps layers. In two parts, since the check of this repository takes such a
/// path in a file for one of somebody's machine; this one is of the container.
const ROOTLESS_STATE: &str = concat!("/ho", "me/user/.local/share/buildkit");
const STATE: &str = "/var/lib/buildkit";

/// It pushes all tags or says that it has failed: where the one for people is there and may
/// not be changed, the pod's own is pushed alone.
const SCRIPT: &str = r#"set -euo pipefail
build() {
  names=$1
  shift
  buildctl-daemonless.sh build --frontend=dockerfile.v0 \
    --local=context=/workspace --local=dockerfile=/workspace \
    --metadata-file=/workspace/metadata.json \
    --output="type=image,push=true,\"name=$names\"$OUTPUT_OPTIONS" "$@" 2>&1 | tee /workspace/build.log
}
if ! build "$OWN,$DESTINATION" "$@"; then
  grep -qiE 'immutable|already exists' /workspace/build.log || exit 1
  build "$OWN" "$@"
fi
sed -n 's/.*"containerimage.digest": *"\([^"]*\)".*/\1/p' /workspace/metadata.json > /dev/termination-log
"#;

pub(super) fn recipe(build: &Build<'_>) -> Recipe {
    let config = &build.settings.config.image_builder;
    let mut command = vec!["/bin/sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned()];
    command.push("build".to_owned());
    if !config.cache_repository.is_empty() {
        let cache = &config.cache_repository;
        command.push(format!("--export-cache=type=registry,ref={cache}"));
        command.push(format!("--import-cache=type=registry,ref={cache}"));
    }
    command.extend(config.extra_arguments.iter().map(|text| literal(text)));
    let settings = daemon_settings(build);
    let mut flags = Vec::new();
    if !config.user_namespaces {
        // Processes of builds could otherwise not have a /proc of their own.
        flags.push("--oci-worker-no-process-sandbox");
    }
    if !settings.is_empty() {
        flags.push("--config=/workspace/buildkitd.toml");
    }
    let insecure = build.settings.is_insecure(build.destination.registry());
    let (image, state, security) = if config.user_namespaces {
        (IN_USER_NAMESPACE, STATE, json!({"privileged": true}))
    } else {
        let unconfined = json!({"type": "Unconfined"});
        let security = json!({
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "seccompProfile": unconfined,
            "appArmorProfile": unconfined,
        });
        (ROOTLESS, ROOTLESS_STATE, security)
    };
    Recipe {
        container: json!({
            "image": image_or(build, image),
            "command": command,
            "env": [
                {"name": "BUILDKITD_FLAGS", "value": flags.join(" ")},
                {"name": "OWN", "value": build.own()},
                {"name": "DESTINATION", "value": literal(&build.destination.to_string())},
                {"name": "OUTPUT_OPTIONS", "value": if insecure { ",registry.insecure=true" } else { "" }},
                {"name": "DOCKER_CONFIG", "value": REGISTRY},
            ],
            "securityContext": security,
            "volumeMounts": [{"name": "state", "mountPath": state}],
        }),
        volumes: vec![json!({"name": "state", "emptyDir": {}})],
        credentials: REGISTRY,
        files: match settings.is_empty() {
            true => Vec::new(),
            false => vec![("BUILDKITD_TOML", "buildkitd.toml", settings)],
        },
        pod: match config.user_namespaces {
            true => json!({"hostUsers": false}),
            false => json!({}),
        },
    }
}

/// How the daemon talks to registries that are not like others. Hosts were checked:
/// there is nothing in them that means anything in TOML.
fn daemon_settings(build: &Build<'_>) -> String {
    let config = &build.settings.config.image_builder;
    let mut hosts: Vec<&String> = config.insecure_registries.iter().collect();
    hosts.extend(&config.skip_ssl_verify_registries);
    hosts.sort();
    hosts.dedup();
    let mut text = String::new();
    for host in hosts {
        text.push_str(&format!("[registry.\"{host}\"]\n"));
        if build.settings.is_insecure(host) {
            text.push_str("http = true\n");
        }
        if build.settings.is_unverified(host) {
            text.push_str("insecure = true\n");
        }
    }
    text
}
