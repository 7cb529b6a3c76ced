//! system-manager-config.json, good and bad.

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use super::world::{World, example};
use crate::ReevePlugin;
use crate::cloud::Cloud;
use crate::configuration::Configuration;
use crate::findings::Findings;
use crate::forms::encode;
use crate::values::put;

fn parse(text: &str) -> Findings {
    let mut findings = Findings::default();
    Configuration::parse(text, &mut findings);
    findings
}

/// What is said of the example with these changes.
fn changed(changes: &[(&str, Value)]) -> Findings {
    let mut document = example(Cloud::Aws, true);
    for (path, value) in changes {
        put(document.as_object_mut().unwrap(), path, value.clone());
    }
    parse(&document.to_string())
}

#[test]
fn the_example_is_good() {
    for cloud in Cloud::ALL {
        for all in [true, false] {
            let findings = parse(&example(cloud, all).to_string());
            assert!(findings.errors.is_empty(), "{:?}", findings.errors);
            let warnings: &[&str] = match all {
                true => &[],
                false => &[
                    "/samlSetupEnabled: not true, though authType is saml: nobody can \
                            log in yet",
                ],
            };
            assert_eq!(findings.warnings, warnings);
        }
    }
}

#[test]
fn all_errors_are_told_at_once_each_with_its_path() {
    let placeholder = "still has the placeholder of the example; put in the value";
    let findings = changed(&[
        ("/workspaceId", json!(3)),
        ("/deploymentURL", json!("http://ws.example.com")),
        ("/baseDomain", json!("a b")),
        ("/baseRepository", json!("oci://host/charts:1.0")),
        ("/authType", json!("ldap")),
        ("/deploySae", json!("true")),
        ("/frontDoorSSLCertB64", json!("%")),
        ("/aws/region", json!("<region>")),
        ("/aws/train", json!("x")),
        ("/aws/identities/a", json!([])),
        ("/aws/registryProxy/workspaceConfig", json!("{")),
        ("/aws/registryProxy/jwtSecret", json!({"a": "hidden"})),
        ("/gcp", json!({})),
    ]);
    assert_eq!(
        findings.errors,
        [
            "/authType: expected one of saml, oidc",
            "/aws/identities/a: expected an object",
            &format!("/aws/region: {placeholder}"),
            "/aws/registryProxy/jwtSecret: expected a text",
            "/aws/registryProxy/workspaceConfig: expected JSON, or a text that is JSON",
            "/aws/train: expected an object",
            "/baseDomain: expected a host name, such as a.example.com",
            "/baseRepository: expected an OCI address, such as \
             oci://registry.example.com/charts",
            "/deploySae: expected true or false",
            "/deploymentURL: expected an https URL with a host, such as https://a.example.com",
            "/frontDoorSSLCertB64: expected base64 of a PEM text",
            "/gcp: cloudProvider is aws; remove the block of another cloud",
            "/workspaceId: expected a text",
        ]
    );
}

#[test]
fn the_cloud_and_its_block_are_needed() {
    for (text, error) in [
        ("{}", "/cloudProvider: expected one of aws, gcp, azure"),
        (
            r#"{"cloudProvider": "oracle"}"#,
            "/cloudProvider: expected one of aws, gcp, azure",
        ),
        (
            r#"{"cloudProvider": "gcp", "azure": {}}"#,
            "/gcp: cloudProvider names this block; add it",
        ),
        ("[]", "expected a JSON object"),
        (r#""secret""#, "expected a JSON object"),
        ("{", "not JSON: expected a key at byte 1"),
    ] {
        assert_eq!(parse(text).errors[0], error, "{text}");
    }
}

#[test]
fn a_key_that_is_not_known_is_kept_and_told_without_its_value() {
    let findings = changed(&[
        ("/aws/newThing", json!("hidden")),
        ("/newer", json!({"deep": "hidden"})),
        ("/aws/train/newer", json!("hidden")),
        ("/datadog/null", Value::Null),
    ]);
    let said = "this version does not know the key, and leaves it where it is";
    assert!(findings.errors.is_empty(), "{:?}", findings.errors);
    assert_eq!(
        findings.warnings,
        ["/aws/newThing", "/aws/train/newer", "/newer"].map(|path| format!("{path}: {said}"))
    );
}

#[test]
fn certificate_and_key_belong_together() {
    let pem = |text: &str| json!(encode(text.as_bytes()));
    let certificate = "/frontDoorSSLCertB64";
    let key = "/frontDoorSSLKeyB64";
    let rsa_key = pem(include_str!("pem/rsa.key"));
    let rsa = pem(include_str!("pem/rsa.crt"));
    let other = "/frontDoorSSLKeyB64: not the key of the certificate in /frontDoorSSLCertB64; \
                 put in the two that belong together";
    for (changes, errors) in [
        (vec![(key, rsa_key.clone())], vec![other]),
        (vec![(certificate, rsa.clone())], vec![other]),
        (
            vec![(key, pem("no key"))],
            vec!["/frontDoorSSLKeyB64: expected base64 of an unencrypted private key in PEM"],
        ),
        (
            vec![(certificate, pem("no certificate"))],
            vec!["/frontDoorSSLCertB64: expected base64 of a certificate in PEM"],
        ),
        (vec![(key, json!(""))], vec![]),
    ] {
        assert_eq!(changed(&changes).errors, errors, "{changes:?}");
    }
    let findings = changed(&[(certificate, rsa), (key, rsa_key)]);
    assert!(findings.errors.is_empty());
    assert_eq!(
        findings.warnings,
        [
            "/frontDoorSSLCertB64: the certificate is not for ws.example.com, the host of \
          deploymentURL"
        ]
    );
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let mut world = World::new(&example(Cloud::Aws, true)).with_flux();
    world.install_all();
    world.configure("{\"cloudProvider\": 1}");
    assert_eq!(
        world.failure("istio"),
        Failure::terminal(
            "system-manager-config.json (Secret sgp-system-manager/system-manager-config, entry \
             system-manager-config.json) cannot be used, and what it said before stays: \
             /cloudProvider: expected one of aws, gcp, azure"
        )
    );
    drop(
        world
            .objects
            .remove("Secret sgp-system-manager/system-manager-config"),
    );
    assert_eq!(
        world.failure("istio"),
        Failure::not_ready(
            "system-manager-config.json (Secret sgp-system-manager/system-manager-config, entry \
             system-manager-config.json) is not there yet; store it"
        )
    );
}

#[test]
fn secrets_are_refused_in_a_config_map() {
    let mut world = World::new(&example(Cloud::Aws, false)).with_flux();
    let text = example(Cloud::Aws, false).to_string();
    world.store("ConfigMap", "config", "a.json", &text);
    let config = json!({"configuration": {"configMap": "config", "key": "a.json"}});
    let failure = world.try_run("sgp-helm-repository", &config).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "system-manager-config.json (ConfigMap sgp-system-manager/config, entry a.json) cannot \
         be used, and what it said before stays: /frontDoorSSLKeyB64: a secret, which a \
         ConfigMap does not keep; use a Secret"
    );
    let mut without = example(Cloud::Aws, false);
    without
        .as_object_mut()
        .unwrap()
        .remove("frontDoorSSLKeyB64");
    world.store("ConfigMap", "config", "a.json", &without.to_string());
    assert!(world.try_run("sgp-helm-repository", &config).is_ok());
}

#[test]
fn a_file_is_read_as_a_source() {
    let config = json!({"configuration": {"file": "/etc/sgp/config.json"}}).to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let world = World::new(&example(Cloud::Aws, false)).with_flux();
    let cx = world.objects.values().fold(
        Context::test()
            .declaring(manifest)
            .with_source("configuration", example(Cloud::Aws, false).to_string()),
        |cx, object| cx.with_object(object),
    );
    let primary = json!({"metadata": {"name": "sgp-helm-repository"}}).to_string();
    let outcome = ReevePlugin::reconcile(primary.as_bytes(), config.as_bytes(), &cx);
    assert_eq!(outcome.unwrap().objects_json().len(), 2);
}
