//! desired-state.json, good and bad.

use reeve_sdk::prelude::*;

use crate::desired_state::parse;
use crate::findings::Findings;

fn findings(text: &str) -> Findings {
    let mut findings = Findings::default();
    parse(text, false, &mut findings);
    findings
}

/// What is said of a document with these packs.
fn errors(packs: &Value) -> Vec<String> {
    findings(&json!({"version": "0.1", "packs": packs}).to_string()).errors
}

const PUBLISHED: &str = r#"{
  "version": "0.1",
  "packs": [
    { "name": "flux" },
    { "name": "sgp-helm-repository" },
    { "name": "istio" },
    { "name": "spicedb" },
    { "name": "identity-service" },
    { "name": "temporalf" },
    { "name": "sgp-apps" }
  ]
}"#;

#[test]
fn the_published_example_is_good() {
    let mut findings = Findings::default();
    let state = parse(PUBLISHED, false, &mut findings);
    assert!(findings.errors.is_empty() && findings.warnings.is_empty());
    assert_eq!(state.len(), 7);
    assert!(state.iter().all(|one| one.spec.to_json() == json!({})));
}

#[test]
fn everything_that_can_be_said_of_a_pack_is_read() {
    let said = json!({
        "enabled": false, "suspend": true, "version": ">=1 <2", "wave": -3,
        "dependsOn": [], "values": {"istiod": {"a": 1.5}},
    });
    let mut pack = said.clone();
    pack["name"] = json!("istio");
    let text = json!({"version": "0.1", "packs": [pack]}).to_string();
    let mut findings = Findings::default();
    let state = parse(&text, false, &mut findings);
    assert!(findings.errors.is_empty(), "{:?}", findings.errors);
    assert_eq!(state[0].spec.to_json(), said);
}

#[test]
fn all_errors_are_told_at_once_each_with_its_path() {
    let text = json!({"version": "0.2", "packs": [
        {"name": "flux", "enabled": 1, "suspend": "no", "version": "", "wave": 1.5,
         "dependsOn": ["a", 1], "values": []},
        {"name": "Flux"},
        {"name": 3},
        {},
        "istio",
        {"name": "istioo"},
        {"name": "flux", "wave": "1"},
    ]});
    assert_eq!(
        findings(&text.to_string()).errors,
        [
            "/version: expected \"0.1\"",
            "/packs/0/enabled: expected true or false",
            "/packs/0/suspend: expected true or false",
            "/packs/0/version: expected a version, or a range of versions",
            "/packs/0/wave: expected a whole number",
            "/packs/0/dependsOn: expected a list of names of packs",
            "/packs/0/values: expected an object with the values of each release by its name",
            "/packs/1/name: expected lower-case letters, digits and `-`, the first and last no \
             `-`",
            "/packs/2/name: expected the name of a pack",
            "/packs/3/name: expected the name of a pack",
            "/packs/4: expected an object with a name",
            "/packs/5/name: istioo: there is no such pack; there are flux, \
             sgp-helm-repository, istio, spicedb, identity-service, temporalf, sgp-apps",
            "/packs/6/wave: expected a whole number",
            "/packs/6/name: flux is the name of /packs/0 already; remove one of them",
        ]
    );
}

#[test]
fn texts_that_are_no_such_document() {
    for (text, error) in [
        ("", "not JSON: expected a JSON value at byte 0"),
        ("[]", "expected a JSON object"),
        ("{}", "/version: expected \"0.1\""),
        (r#"{"version": "0.1"}"#, "/packs: expected a list of packs"),
        (
            r#"{"version": "0.1", "packs": {}}"#,
            "/packs: expected a list of packs",
        ),
    ] {
        assert_eq!(findings(text).errors[0], error, "{text}");
    }
}

#[test]
fn an_empty_list_is_refused_unless_it_is_meant() {
    let text = r#"{"version": "0.1", "packs": []}"#;
    assert_eq!(
        findings(text).errors,
        [
            "/packs: empty, which would remove every pack; if that is meant, set spec.allowEmpty of \
          the PackSet"
        ]
    );
    let mut findings = Findings::default();
    assert!(parse(text, true, &mut findings).is_empty());
    assert!(findings.errors.is_empty());
}

#[test]
fn what_packs_wait_for_has_to_be_there_and_to_end() {
    for (packs, expected) in [
        (
            json!([{"name": "istio"}]),
            vec![
                "/packs/0: istio needs sgp-helm-repository, which is not among the packs; add \
                 it, or say in dependsOn what istio needs",
            ],
        ),
        (
            json!([{"name": "istio", "dependsOn": ["a", "b"]}]),
            vec![
                "/packs/0/dependsOn/0: a is not among the packs; add it, or take it out here",
                "/packs/0/dependsOn/1: b is not among the packs; add it, or take it out here",
            ],
        ),
        (
            json!([
                {"name": "istio", "dependsOn": ["spicedb"]},
                {"name": "spicedb", "dependsOn": ["istio"]},
                {"name": "sgp-apps", "dependsOn": ["istio"]},
            ]),
            vec![
                "/packs: packs wait for one another in a circle: istio -> spicedb -> istio; \
                 take one of these out of dependsOn",
            ],
        ),
        // Needs beat waves, so that these make no circle.
        (
            json!([{"name": "istio", "dependsOn": ["spicedb"], "wave": 1},
                {"name": "spicedb", "dependsOn": [], "wave": 2}]),
            vec![],
        ),
    ] {
        assert_eq!(errors(&packs), expected, "{packs}");
    }
}

#[test]
fn keys_that_are_not_known_are_kept_and_told() {
    let text = json!({"version": "0.1", "$schema": "x", "packs": [
        {"name": "flux", "a/b": {"c": 1}},
    ]});
    let found = findings(&text.to_string());
    assert!(found.errors.is_empty());
    let said = "this version does not know the key, and leaves it where it is";
    assert_eq!(
        found.warnings,
        [
            format!("/$schema: {said}"),
            format!("/packs/0/a~1b: {said}")
        ]
    );
}
