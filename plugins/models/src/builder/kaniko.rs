//! kaniko: root in its own container, no privileges, no host mounts.
//!
//! The project at GoogleContainerTools was archived in June 2025; this is the fork that
//! has releases and images.

use reeve_sdk::prelude::*;

use super::{Build, Recipe, image_or};
use crate::names::literal;

const IMAGE: &str = "ghcr.io/osscontainertools/kaniko:v1.28.3";

pub(super) fn recipe(build: &Build<'_>) -> Recipe {
    let config = &build.settings.config.image_builder;
    let mut arguments = vec![
        "--context=dir:///workspace".to_owned(),
        "--dockerfile=/workspace/Dockerfile".to_owned(),
        // Written before it is pushed, which is why it is pushed under a tag of its own first.
        "--digest-file=/dev/termination-log".to_owned(),
        "--push-ignore-immutable-tag-errors".to_owned(),
        // Models are large; both keep kaniko from holding layers in memory.
        "--single-snapshot".to_owned(),
        "--compressed-caching=false".to_owned(),
    ];
    if !config.cache_repository.is_empty() {
        arguments.push("--cache=true".to_owned());
        arguments.push(format!("--cache-repo={}", config.cache_repository));
    }
    let each = |flag: &str, hosts: &[String]| -> Vec<String> {
        hosts.iter().map(|host| format!("{flag}={host}")).collect()
    };
    arguments.extend(each("--insecure-registry", &config.insecure_registries));
    arguments.extend(each(
        "--skip-tls-verify-registry",
        &config.skip_ssl_verify_registries,
    ));
    arguments.extend(config.extra_arguments.iter().cloned());
    let destinations = [build.own(), literal(&build.destination.to_string())];
    let destinations = destinations.map(|tag| format!("--destination={tag}"));
    let arguments = arguments.iter().map(|text| literal(text));
    let arguments: Vec<String> = destinations.into_iter().chain(arguments).collect();
    Recipe {
        container: json!({
            "image": image_or(build, IMAGE),
            "args": arguments,
            "securityContext": {
                "runAsUser": 0,
                "allowPrivilegeEscalation": false,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }),
        volumes: Vec::new(),
        credentials: "/kaniko/.docker",
        files: Vec::new(),
        pod: json!({}),
    }
}
