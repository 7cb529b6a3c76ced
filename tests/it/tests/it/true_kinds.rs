//! What the plugins of Profiles apply, against the definitions that their projects
//! publish.
//!
//! Those definitions are large and not ours, so they are not in this repository:
//! the folder with them, a file `<plural>.<group>.yaml` each, is named by an
//! environment variable. Without it, the test says that it was skipped.

use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::{GroupVersionKind, Manifest};
use reeve_engine::{Compiler, Engine, EngineConfig, Limits};
use reeve_it::{AGENT, NAMESPACE, World, plugin};
use reeve_test_support::definitions::{FOLDER, OF_PROFILES};
use reeve_test_support::{samples, skipped};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    if folder.is_none() {
        skipped(&format!(
            "what plugins apply is not compared with the true definitions; name a folder of \
             them in {FOLDER}"
        ));
    }
    folder
}

/// Grants just what a plugin asks for.
async fn allow(world: &World, engine: &Engine, name: &str, config: &Value) {
    let component = engine.load(plugin(name).into()).await.unwrap();
    let described = component
        .describe(config.to_string().into(), &Limits::default())
        .await
        .unwrap();
    let manifest = Manifest::try_from(described.value.unwrap()).unwrap();
    let served = |kind: &GroupVersionKind| Served {
        plural: match kind.kind.as_str() {
            "NetworkPolicy" => "networkpolicies".to_owned(),
            "AuthorizationPolicy" => "authorizationpolicies".to_owned(),
            "ServiceEntry" => "serviceentries".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        },
        // None of them writes or reads a kind of the cluster by name.
        namespaced: true,
    };
    let grantee = Grantee {
        plugin: name,
        namespace: NAMESPACE,
        service_account: name,
        agent: Subject::User(AGENT),
    };
    for object in grant::objects(&grantee, &manifest, served) {
        world.apply(&object).await;
    }
}

fn application(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "profiles-argocd-system"},
    })
}

#[tokio::test(start_paused = true)]
async fn plugins_apply_what_the_true_definitions_admit() {
    let Some(folder) = folder() else { return };
    let mut world = World::bare();
    for name in OF_PROFILES {
        let file = folder.join(format!("{name}.yaml"));
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let definition: Value = serde_saphyr::from_str(&text).unwrap();
        world.apply(&definition).await;
    }
    world.install_crds().await;
    for name in [NAMESPACE, "profiles-argocd-system"] {
        world.apply(&samples::namespace(name)).await;
    }
    for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
        world.apply(&object).await;
    }
    let binds = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "resourceNames": ["ml-pipeline", "profile-support"], "verbs": ["bind"],
    }]);
    let account = json!({"kind": "ServiceAccount", "name": "rbac", "namespace": NAMESPACE});
    world.role("binds", &binds, &account).await;

    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess)).unwrap();
    let main = json!({"preset": "main"});
    let plugins = [
        ("authpolicy", main.clone(), 2),
        ("cloudmain", main.clone(), 3),
        ("limitranges", json!({}), 1),
        ("network", main.clone(), 18),
        ("notebook", main.clone(), 1),
        ("quotas", json!({}), 1),
        ("rbac", json!({"supportGroups": ["g"]}), 2),
        (
            "s3proxy",
            json!({
                "source": {"repoUrl": "https://git.example.com/manifests.git", "path": "s3proxy"},
                "rootUrl": "https://kubeflow.example.com",
            }),
            3,
        ),
    ];
    for (name, config, _) in &plugins {
        allow(&world, &engine, name, config).await;
        let component = [("plugin.wasm", plugin(name))];
        world.deliver(name, &component, Some(config.clone())).await;
    }
    let labels = [
        ("sourcecontrol.statcan.gc.ca/enabled", "true"),
        ("s3.statcan.gc.ca/enabled", "true"),
        (
            "state.aaw.statcan.gc.ca/exists-non-cloud-main-user",
            "false",
        ),
    ];
    world.tenant("alice", &labels).await;
    world
        .apply(&json!({
            "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
            "metadata": {"name": "lab", "namespace": "alice"},
            "spec": {"template": {"spec": {"containers": [{"name": "lab", "image": "lab"}]}}},
        }))
        .await;
    world.start();
    world.settle().await;
    // Argo CD, which is not here, deploys what it is told to.
    let mut proxy = world.get(&application("s3proxy-alice")).await.unwrap();
    let spec = &proxy["spec"];
    let compared = json!({"source": spec["source"], "destination": spec["destination"]});
    proxy = application("s3proxy-alice");
    proxy["status"] = json!({
        "sync": {"status": "Synced", "comparedTo": compared},
        "health": {"status": "Healthy"},
    });
    world.apply(&proxy).await;
    world.wait(Duration::from_secs(60)).await;

    let units = world.agent().units().await;
    for (name, _, count) in plugins {
        let unit = units.iter().find(|unit| unit.plugin == name).unwrap();
        assert_eq!(unit.objects.len(), count, "{name}");
        assert_eq!(
            world.unit(name, "alice").await,
            None,
            "{name} is in trouble"
        );
    }
    // Nothing that was sent was pruned or defaulted in a way that is sent again.
    world.writes();
    world.wait(Duration::from_secs(3600)).await;
    assert_eq!(world.writes(), 0);
}
