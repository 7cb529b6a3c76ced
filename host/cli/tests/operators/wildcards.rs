//! What commands say of a plugin that declares every kind of a group and version.

use super::Desk;
use reeve_it::guest;
use serde_json::json;

/// A cluster that serves two kinds of a group, a plugin that declares all of them, and no
/// agent.
async fn desk() -> Desk {
    let desk = Desk::new().await;
    for (kind, plural) in [("Gear", "gears"), ("Wheel", "wheels")] {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.parts.example")},
            "spec": {
                "group": "parts.example", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        desk.world.apply(&crd).await;
    }
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reads": [], "writes": ["*.v1.parts.example"], "reconcile": {"do": "nothing"},
    });
    let component = [("plugin.wasm", guest("chameleon"))];
    desk.world
        .install("chameleon", &component, Some(config))
        .await;
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_a_group_is_granted_by_name_and_where_it_is_allowed() {
    let desk = desk().await;
    let said = desk.reeve("plugin inspect chameleon").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.contains("unless it runs with --allow-wildcards"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("write *.v1.parts.example in"),
        "{}",
        said.out
    );

    let refused = desk.reeve("plugin grant chameleon").await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(refused.out, "", "nothing is granted");
    for part in [
        "writes[0].kind",
        "--allow-wildcards, on the agent and on `reeve plugin grant`",
    ] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }

    let (code, list) = desk.json("plugin grant chameleon --allow-wildcards").await;
    assert_eq!(code, Some(0));
    let items = list["items"].as_array().unwrap();
    let rules = items
        .iter()
        .filter_map(|item| item["rules"].as_array())
        .flatten();
    let mut named: Vec<&str> = rules
        .filter(|rule| rule["apiGroups"] == json!(["parts.example"]))
        .flat_map(|rule| rule["resources"].as_array().unwrap())
        .filter_map(|resource| resource.as_str())
        .collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named, ["gears", "wheels"]);
    for item in items.iter().filter(|item| item["rules"].is_array()) {
        assert!(!item["rules"].to_string().contains('*'), "{item}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_knows_wildcards_only_where_the_operator_allows_them() {
    let desk = desk().await;
    desk.world.tenant("alice", &[]).await;
    let said = desk.reeve("plan chameleon").await;
    assert!(
        said.out.contains("--allow-wildcards") || said.err.contains("--allow-wildcards"),
        "{said:?}"
    );
    let said = desk.reeve("plan chameleon --allow-wildcards").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("--allow-wildcards"), "{said:?}");
}
