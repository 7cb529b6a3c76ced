//! The other description of the controllers: their code.

use std::slice;

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use serde_json::{Value, json};

use crate::expected::{
    AUTHORIZATION_POLICIES, CLAIMS, NETWORK_POLICIES, ROLE_BINDINGS, VIRTUAL_SERVICES, VOLUMES,
};
use crate::stage::Stage;
use crate::{databases_open, definitions, what_is_wrong_is_told};
use reeve_test_platform::buckets::{config_map, of_config_map};
use reeve_test_platform::tenants::every_gate;
use reeve_test_platform::{DESCRIPTIONS, Preset, Tenant, World};

/// The ConfigMap that describes buckets.
const BUCKETS: &str = "fdi-aaw-configuration";

/// A Profile in which others have made things. It has guests, and no other gate is open.
const VISITED: &str = "code-4";

#[test]
fn the_code_is_followed_where_the_preset_says_so() -> Result<()> {
    let Some(definitions) = definitions() else {
        return Ok(());
    };
    let mut stage = Stage::new(&definitions)?;
    let tenants = every_gate();
    let mut world = World {
        preset: Preset::Main,
        buckets: of_config_map(&tenants),
        ports: stage.platform.ports(),
        groups: &[],
        editors: Vec::new(),
        plugin: json!({}),
        artifacts: Value::Null,
    };
    store_buckets(&stage, &world)?;
    stage.install(&world)?;
    stage.platform.add(&tenants)?;
    let count = stage.wait_until_as_specified(&tenants, &world)?;
    eprintln!("{count} objects of {} Profiles are there", tenants.len());
    stage.play_argocd()?;
    what_is_wrong_is_told(&stage, &tenants, 0)?;
    databases_open(&stage, &tenants)?;
    policies_are_twelve_to_eighteen(&stage)?;
    editors_come_and_go(&stage, &tenants, &mut world)?;
    what_others_left_goes(&stage)?;
    the_config_map_decides(&stage, &tenants, &mut world)
}

fn policies_are_twelve_to_eighteen(stage: &Stage) -> Result<()> {
    let policies = stage.objects_of_plugins(NETWORK_POLICIES)?;
    for (profile, expected) in [
        ("code-plain", 12),
        ("code-odd", 12),
        ("code-0", 13),
        ("code-7", 17),
        ("code-3", 18),
    ] {
        let of = policies
            .keys()
            .filter(|(namespace, _)| namespace == profile);
        let count = of.count();
        ensure!(count == expected, "{profile} has {count}");
    }
    Ok(())
}

/// Who edits is let in, and is out again at once: also the last of the list.
fn editors_come_and_go(stage: &Stage, tenants: &[Tenant], world: &mut World) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let binding = |user: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {
                "name": format!("user-{user}-clusterrole-edit"), "namespace": VISITED,
                "annotations": {"role": "edit"},
            },
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kubeflow-edit"},
            "subjects": [
                {"apiGroup": group, "kind": "Group", "name": "everybody"},
                {"kind": "ServiceAccount", "name": "default-editor", "namespace": VISITED},
                {"apiGroup": group, "kind": "User", "name": user},
            ],
        })
    };
    // The second stands in two bindings, and once in the list.
    let mut again = binding("zoe");
    again["metadata"]["name"] = json!("once-more");
    stage
        .platform
        .cluster
        .apply_objects(&[binding("zoe"), binding("amy"), again])?;
    let editor = |user: &str| (VISITED.to_owned(), user.to_owned());
    world.editors = vec![editor("zoe"), editor("amy")];
    stage.wait_for_kind(AUTHORIZATION_POLICIES, tenants, world)?;
    for name in ["user-zoe-clusterrole-edit", "once-more"] {
        stage.delete((ROLE_BINDINGS, VISITED, name))?;
    }
    world.editors = vec![editor("amy")];
    stage
        .wait_for_kind(AUTHORIZATION_POLICIES, tenants, world)
        .map(drop)
}

/// What the controllers deleted whoever had made it, and nothing else of others.
fn what_others_left_goes(stage: &Stage) -> Result<()> {
    let profile = stage
        .platform
        .cluster
        .get("profiles.kubeflow.org", "", VISITED)?;
    let profile = profile.context("no Profile")?;
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": VISITED,
        "uid": profile["metadata"]["uid"],
    }]);
    let policy = |name: &str, owner: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": VISITED, "ownerReferences": owner},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
        })
    };
    let group = "rbac.authorization.k8s.io";
    let support = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "profile-support", "namespace": VISITED},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [],
    });
    let through = "direct-through-cloud-main-egress-gateway";
    let service = json!({
        "apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
        "metadata": {"name": through, "namespace": VISITED},
        "spec": {"hosts": ["example.com"], "http": [{"route": [{"destination": {"host": "a"}}]}]},
    });
    let former = "protected-b-default-deny";
    stage.platform.cluster.apply_objects(&[
        policy("theirs", json!([])),
        policy("stray", owner),
        policy(former, json!([])),
        support,
        service,
    ])?;
    for (kind, name) in [
        (NETWORK_POLICIES, "stray"),
        (NETWORK_POLICIES, former),
        (ROLE_BINDINGS, "profile-support"),
        (VIRTUAL_SERVICES, through),
    ] {
        stage.explained(eventually(&format!("{name} is gone"), || {
            let found = stage.platform.cluster.get(kind, VISITED, name)?;
            ensure!(found.is_none(), "it is there");
            Ok(())
        }))?;
    }
    let theirs = stage
        .platform
        .cluster
        .get(NETWORK_POLICIES, VISITED, "theirs")?;
    ensure!(theirs.is_some(), "the policy of others is gone");
    Ok(())
}

/// A change of it is seen at once, and without it nothing changes.
fn the_config_map_decides(stage: &Stage, tenants: &[Tenant], world: &mut World) -> Result<()> {
    let mut kept = stage.uids_of_volumes()?;
    world.buckets[0].readers.retain(|reader| reader != VISITED);
    store_buckets(stage, world)?;
    for kind in [VOLUMES, CLAIMS] {
        stage.wait_for_kind(kind, tenants, world)?;
    }
    for gone in [
        (String::new(), format!("{VISITED}-fdi-unclassified-inside")),
        (VISITED.to_owned(), "fdi-inside-unclassified".to_owned()),
    ] {
        kept.remove(&gone).context("it was not there")?;
    }
    ensure!(stage.uids_of_volumes()? == kept, "others are not the same");

    stage.delete(("configmap", DESCRIPTIONS, BUCKETS))?;
    let told = |expected: bool| {
        let waited = eventually(&format!("that it is lacking is told: {expected}"), || {
            let told = stage.told()?;
            let mut of = told.iter().filter(|one| one.plugin == "blobcsi");
            let is_told = of.any(|one| one.condition == "SourcesUsable");
            ensure!(is_told == expected, "{told:?}");
            Ok(())
        });
        stage.explained(waited)
    };
    told(true)?;
    ensure!(stage.uids_of_volumes()? == kept, "something went with it");
    store_buckets(stage, world)?;
    told(false)?;
    ensure!(stage.uids_of_volumes()? == kept, "something went after it");
    Ok(())
}

pub(crate) fn store_buckets(stage: &Stage, world: &World) -> Result<()> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": BUCKETS, "namespace": DESCRIPTIONS},
        "data": config_map(&world.buckets),
    });
    stage.platform.cluster.apply_objects(slice::from_ref(&map))
}
