//! Flux itself.

use reeve_sdk::prelude::*;

use super::world::{World, example, objects};
use crate::cloud::Cloud;

fn run(world: &World, config: &Value) -> Outcome {
    world.try_run("flux", config).unwrap()
}

#[test]
fn who_it_is_to_the_cloud_is_told_to_what_somebody_else_installs() {
    for (cloud, annotation, names) in [
        (Cloud::Aws, "eks.amazonaws.com/role-arn", 1),
        (Cloud::Gcp, "iam.gke.io/gcp-service-account", 1),
        (Cloud::Azure, "azure.workload.identity/client-id", 2),
    ] {
        let world = World::new(&example(cloud, true));
        let found = objects(&run(&world, &json!({"role": "Flux"})));
        let contributed = found
            .values()
            .filter(|object| object["metadata"]["annotations"]["reeve.dev/apply"] == "Contribute");
        assert_eq!(contributed.count(), names);
        let account = &found["ServiceAccount flux-system/source-controller"]["metadata"];
        assert!(account["annotations"][annotation].is_string(), "{account}");
        let label = account["labels"]["azure.workload.identity/use"] == "true";
        assert_eq!(label, cloud == Cloud::Azure);
        assert!(found.contains_key("Namespace flux-system"));
    }
    let world = World::new(&example(Cloud::Aws, false));
    let found = objects(&run(&world, &json!({"role": "Flux"})));
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(
        names,
        [
            "ConfigMap flux-system/pack-flux-ends",
            "Namespace flux-system"
        ]
    );
}

#[test]
fn manifests_that_are_given_are_applied_with_it() {
    let mut world = World::new(&example(Cloud::Azure, true));
    let config = json!({"role": "Flux", "fluxManifests": {"configMap": "flux"}});
    let failure = world.try_run("flux", &config).unwrap_err();
    assert_eq!(
        failure,
        Failure::not_ready(
            "the manifests of Flux (ConfigMap sgp-system-manager/flux, entry flux.json) are not \
             there yet; store them"
        )
    );
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount",
         "metadata": {"name": "source-controller", "namespace": "flux-system"}},
        {"apiVersion": "apps/v1", "kind": "Deployment",
         "metadata": {"name": "source-controller", "namespace": "flux-system"},
         "spec": {"template": {"metadata": {"labels": {"app": "source-controller"}}}}},
    ]});
    world.store("ConfigMap", "flux", "flux.json", &manifests.to_string());
    let found = objects(&run(&world, &config));
    assert_eq!(found.len(), 4);
    let account = &found["ServiceAccount flux-system/source-controller"]["metadata"];
    assert_eq!(
        account["annotations"],
        json!({"azure.workload.identity/client-id": "fluxClientId-value"})
    );
    assert_eq!(
        found["Deployment flux-system/source-controller"]["spec"]["template"]["metadata"]["labels"],
        json!({"app": "source-controller", "azure.workload.identity/use": "true"})
    );
    assert_eq!(account["labels"]["packs.reeve.dev/pack"], "flux");

    let published = "# Flux\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: flux-system\n\
                     ---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: source-controller\n  \
                     namespace: flux-system\n---\n";
    world.store("ConfigMap", "flux", "flux.json", published);
    let found = objects(&run(&world, &config));
    let account = &found["ServiceAccount flux-system/source-controller"]["metadata"];
    assert_eq!(account["labels"]["packs.reeve.dev/pack"], "flux");

    for (text, problem) in [
        ("apiVersion: v1", "item 0 has no kind"),
        ("[]", "item 0 has no kind"),
        ("{}", "item 0 has no kind"),
        ("", "there is nothing"),
        ("---\n# none\n", "there is nothing"),
        ("kind: [", "line 1"),
        (
            r#"{"kind": "List", "items": {}}"#,
            "the items of a List are no list",
        ),
        (r#"{"kind": "List", "items": []}"#, "there is nothing"),
        (
            r#"{"kind": "List", "items": [{"kind": "A"}, 1]}"#,
            "item 1 has no kind",
        ),
    ] {
        world.store("ConfigMap", "flux", "flux.json", text);
        let failure = world.try_run("flux", &config).unwrap_err().to_string();
        assert!(
            failure.contains(problem) && failure.contains("flux install --export"),
            "{text}: {failure}"
        );
    }
}

#[test]
fn manifests_at_a_url_are_a_source() {
    let mut world = World::new(&example(Cloud::Aws, false));
    let url = "https://example.com/flux/v2.9.4/install.yaml";
    let config = json!({"role": "Flux", "fluxManifests": {"url": url}});
    let failure = world.try_run("flux", &config).unwrap_err();
    assert!(failure.to_string().contains("flux-manifests"), "{failure}");
    let text = "kind: ServiceAccount\nmetadata: {name: source-controller, namespace: flux-system}";
    world.published = Some(text.to_owned());
    let found = objects(&run(&world, &config));
    assert!(found.contains_key("ServiceAccount flux-system/source-controller"));

    // As any program that computes SHA-256 says.
    let sha256 = "4e51dbd2ef0b602f548d577ce59c299bcce7385af10876be35cd3a32502dc96a";
    let mut config = json!({"role": "Flux", "fluxManifests": {
        "url": format!("{url}?token=canary"), "sha256": sha256,
    }});
    assert_eq!(objects(&run(&world, &config)), found);
    config["fluxManifests"]["sha256"] = json!("0".repeat(64));
    let failure = world.try_run("flux", &config).unwrap_err().to_string();
    assert!(
        failure.contains(&format!("is {sha256} and not 0000")),
        "{failure}"
    );
    assert!(!failure.contains("canary"), "{failure}");
}

#[test]
fn the_parts_leave_each_others_packs_alone() {
    let world = World::new(&example(Cloud::Aws, true)).with_flux();
    assert_eq!(world.run("flux"), Outcome::nothing());
    let outcome = world.try_run("istio", &json!({"role": "Flux"})).unwrap();
    assert_eq!(outcome, Outcome::nothing());
    let front_door = json!({"role": "FrontDoor"});
    for pack in ["flux", "spicedb", "sgp-apps"] {
        assert_eq!(
            world.try_run(pack, &front_door).unwrap(),
            Outcome::nothing()
        );
    }
}
