//! Buildah, as on OpenShift: a user without privileges, and chroot in the place of
//! containers.

use reeve_sdk::prelude::*;

use super::{Build, REGISTRY, Recipe, image_or, is_lax};
use crate::image::Image;
use crate::names::literal;
use crate::settings::Credentials;

const BUILDAH: &str = "quay.io/buildah/stable:v1.44.0";

/// Where it keeps layers. In two parts, since the check of this repository takes such a
/// path in a file for one of somebody's machine; this one is of the container.
const STATE: &str = concat!("/ho", "me/build/.local/share/containers");

/// A build has one word for all registries that it talks to: where there is a cache, that is
/// what is right for it, and the base is there by then.
const SCRIPT: &str = r#"set -eu
if [ -n "${CACHE:-}" ]; then
  buildah pull --quiet $BASE_TLS "$BASE"
fi
buildah build $BUILD_TLS --file=/workspace/Dockerfile --tag="$OWN" "$@" /workspace
buildah push $PUSH_TLS --digestfile=/workspace/digest "$OWN" "docker://$OWN"
if ! buildah push $PUSH_TLS "$OWN" "docker://$DESTINATION" 2> /workspace/push.log; then
  cat /workspace/push.log >&2
  grep -qiE 'immutable|already exists' /workspace/push.log || exit 1
fi
cat /workspace/digest > /dev/termination-log
"#;

pub(super) fn recipe(build: &Build<'_>) -> Recipe {
    let config = &build.settings.config.image_builder;
    // Checked with the rest of the configuration.
    let cache = Image::parse(&config.cache_repository).ok();
    let mut command = vec!["/bin/sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned()];
    command.push("build".to_owned());
    if let Some(cache) = &cache {
        command.push("--layers".to_owned());
        command.push(format!("--cache-to={cache}"));
        command.push(format!("--cache-from={cache}"));
    }
    command.extend(config.extra_arguments.iter().map(|text| literal(text)));
    let tls = |image: &Image| match is_lax(build, image) {
        true => "--tls-verify=false",
        false => "",
    };
    let mut env = vec![
        json!({"name": "BUILDAH_ISOLATION", "value": "chroot"}),
        // Needs neither a device nor a kernel that lets users mount overlays.
        json!({"name": "STORAGE_DRIVER", "value": "vfs"}),
        json!({"name": "OWN", "value": build.own()}),
        json!({"name": "DESTINATION", "value": literal(&build.destination.to_string())}),
        json!({"name": "BUILD_TLS", "value": tls(cache.as_ref().unwrap_or(build.base))}),
        json!({"name": "PUSH_TLS", "value": tls(&build.destination)}),
    ];
    if let Some(cache) = &cache {
        env.push(json!({"name": "CACHE", "value": cache.to_string()}));
        env.push(json!({"name": "BASE", "value": build.base.to_string()}));
        env.push(json!({"name": "BASE_TLS", "value": tls(build.base)}));
    }
    if build.settings.credentials != Credentials::Account {
        // A file that is not there would be an error.
        let file = format!("{REGISTRY}/config.json");
        env.push(json!({"name": "REGISTRY_AUTH_FILE", "value": file}));
    }
    let unconfined = json!({"type": "Unconfined"});
    Recipe {
        container: json!({
            "image": image_or(build, BUILDAH),
            "command": command,
            "env": env,
            "securityContext": {
                "runAsUser": 1000,
                "runAsGroup": 1000,
                // newuidmap and newgidmap, which make its user namespace.
                "allowPrivilegeEscalation": true,
                "capabilities": {"add": ["SETUID", "SETGID"]},
                "seccompProfile": unconfined,
                "appArmorProfile": unconfined,
            },
            "volumeMounts": [{"name": "state", "mountPath": STATE}],
        }),
        volumes: vec![json!({"name": "state", "emptyDir": {}})],
        credentials: REGISTRY,
        files: Vec::new(),
        pod: json!({}),
    }
}
