//! The configuration of the plugin itself.

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

#[test]
fn what_makes_no_sense_is_refused_with_its_path() {
    for (config, error) in [
        (
            json!({"configuration": {"secret": "a", "file": "/b"}}),
            "/configuration: more than one of secret, configMap, file and url; leave one",
        ),
        (
            json!({"desiredState": {"file": "b"}}),
            "/desiredState/file: expected an absolute path",
        ),
        (
            json!({"fluxManifests": {"configMap": "A"}}),
            "/fluxManifests/configMap: expected lower-case letters, digits, `-` and `.`, each \
             part with a letter or digit at both ends",
        ),
        (
            json!({"fluxManifests": {"url": "https://example.com/", "file": "/a"}}),
            "/fluxManifests: more than one of secret, configMap, file and url; leave one",
        ),
        (
            json!({"fluxManifests": {"url": "oci://example.com/flux"}}),
            "/fluxManifests/url: expected an http or https URL without a login",
        ),
        (
            json!({"fluxManifests": {"url": "https://u:p@example.com/flux"}}),
            "/fluxManifests/url: expected an http or https URL without a login",
        ),
        (
            json!({"fluxManifests": {"sha256": "AB"}}),
            "/fluxManifests/sha256: expected a SHA-256: 64 digits and letters from a to f",
        ),
        (
            json!({"configuration": {"sha256": "AB"}}),
            "/configuration/sha256: only for the manifests of Flux; take it out",
        ),
        (
            json!({"desiredState": {"url": "https://example.com/"}}),
            "/desiredState/url: only for the manifests of Flux; take it out",
        ),
        (
            json!({"configuration": {"key": "a/b"}}),
            "/configuration/key: expected letters, digits, `-`, `_` and `.`",
        ),
        (
            json!({"configuration": {"namespace": "a.b"}}),
            "/configuration/namespace: expected lower-case letters, digits and `-`, the first \
             and last no `-`",
        ),
        (
            json!({"pullSecret": "/"}),
            "/pullSecret: expected lower-case letters, digits, `-` and `.`, each part with a \
             letter or digit at both ends",
        ),
    ] {
        let found = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}
