//! All seven packs on a real API server with the controller of Flux that installs charts,
//! on simulated nodes. The charts are stand-ins in a registry; the test does what
//! source-controller does.

mod charts;
mod sources;

use std::fs;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::{
    ControlPlane, FLUX_USER, HelmController, KWOK_USER, NODE, Registry, SimulatedNode, User,
    eventually,
};
use reeve_test_support::definitions::FOLDER;
use reeve_test_support::http::Certificate;
use reeve_test_support::{component, samples, skipped};
use serde_json::{Value, json};

use super::CHART;
use super::install::{PARTS, establish, flux_is_described};
use crate::stage::{NAMESPACE, Stage};
use charts::{Charts, Health};
use sources::Sources;

/// Those that make deletion work, and those that make Pods of what charts have.
const CONTROLLERS: [&str; 6] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
];

const PACKS: [&str; 7] = [
    "flux",
    "sgp-helm-repository",
    "istio",
    "spicedb",
    "identity-service",
    "temporalf",
    "sgp-apps",
];

/// Namespace and name of a release.
type Release = (&'static str, &'static str);

/// A release and one that waits for it.
const ORDER: [(Release, Release); 6] = [
    (("istio-system", "istio-base"), ("istio-system", "istiod")),
    (
        ("istio-system", "istiod"),
        ("istio-ingress", "istio-gateway"),
    ),
    (
        ("istio-ingress", "istio-gateway"),
        ("identity-service", "identity-service"),
    ),
    (
        ("spicedb", "spicedb"),
        ("identity-service", "identity-service"),
    ),
    (("identity-service", "identity-service"), ("sgp", "sgp")),
    (("temporalf", "temporalf"), ("sgp", "sgp")),
];

#[test]
fn all_packs_are_installed_by_flux_itself() -> Result<()> {
    if std::env::var_os(FOLDER).is_none() {
        skipped(&format!(
            "packs are not installed by Flux itself, which needs its true definitions; name a \
             folder of them in {FOLDER}"
        ));
        return Ok(());
    }
    let mut platform = Platform::new()?;
    platform.stage.reeve(&["pack", "reconcile"])?;

    // Whoever is killed in between goes on where it was.
    platform.wait_for_release("istio-system", "istio-base", is_ready)?;
    platform.stage.kill_agent()?;
    platform.stage.start_agent()?;
    platform.wait_for_release("temporalf", "temporalf", is_ready)?;
    platform.wait_for_release("identity-service", "identity-service", |release| {
        release.to_string().contains(charts::COMPLAINT)
    })?;
    later_packs_wait_and_say_so(&mut platform)?;

    platform
        .charts
        .publish("identity-service", "1.0.1", Health::Sound)?;
    platform.sources.look_again("identity-service");
    platform.wait_for_release("sgp", "sgp", is_ready)?;
    platform.eventually("all is well", |stage| stage.reeve(&["pack", "status"]))?;
    each_came_when_what_it_needs_was_ready(&platform.stage)?;
    let deployment = platform.stage.get("deployment", "sgp", "sgp")?;
    let deployment = deployment.context("nothing was installed")?;
    ensure!(
        deployment["status"]["availableReplicas"] == 1,
        "{deployment}"
    );

    what_is_removed_goes_in_the_reverse_order(&mut platform)
}

fn later_packs_wait_and_say_so(platform: &mut Platform) -> Result<()> {
    platform.eventually("sgp-apps waits for identity-service", |stage| {
        let list: Value = serde_json::from_str(&stage.reeve(&["pack", "list", "-o", "json"])?)?;
        let packs = list["packs"].as_array();
        let mut packs = packs.into_iter().flatten();
        let found = packs.find(|pack| pack["name"] == "sgp-apps");
        let found = found.with_context(|| format!("no such pack: {list}"))?;
        ensure!(found["state"] == "Blocked", "{found}");
        ensure!(list.to_string().contains(charts::COMPLAINT), "{list}");
        ensure!(found.to_string().contains("identity-service"), "{found}");
        Ok(())
    })?;
    let (code, said) = platform.stage.cluster.reeve_ended(&["pack", "status"])?;
    ensure!(code == Some(1), "it ended with {code:?}: {said}");
    let blocked = ["sgp-apps: blocked", "blocked by pack identity-service"];
    for words in blocked.into_iter().chain([charts::COMPLAINT]) {
        ensure!(said.contains(words), "nothing is said of {words}: {said}");
    }
    ensure!(platform.stage.get("helmrelease", "sgp", "sgp")?.is_none());
    Ok(())
}

/// By the clocks of the API server and of Flux, which have seconds.
fn each_came_when_what_it_needs_was_ready(stage: &Stage) -> Result<()> {
    let release = |(namespace, name): (&str, &str)| {
        let found = stage.get("helmrelease", namespace, name)?;
        found.with_context(|| format!("no release {namespace}/{name}"))
    };
    for (first, then) in ORDER {
        let first = release(first)?;
        ensure!(is_ready(&first), "it is not ready: {first}");
        let conditions = first["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|one| one["type"] == "Ready");
        let ready = ready.and_then(|ready| ready["lastTransitionTime"].as_str());
        let ready = ready.context("no time")?;
        let then = release(then)?;
        let created = then["metadata"]["creationTimestamp"].as_str();
        let created = created.context("no time")?;
        ensure!(ready <= created, "{ready} is not before {created}: {then}");
    }
    Ok(())
}

fn what_is_removed_goes_in_the_reverse_order(platform: &mut Platform) -> Result<()> {
    remove(platform, &["sgp-apps"])?;
    gone(
        platform,
        &[
            ("pack", "", "sgp-apps"),
            ("helmrelease", "sgp", "sgp"),
            ("deployment", "sgp", "sgp"),
            ("ocirepository", "flux-system", "sgp"),
            ("configmap", "sgp", "pack-sgp-apps-ends"),
        ],
    )?;
    for name in ["identity-service", "temporalf", "istio", "spicedb"] {
        let pack = platform.stage.get("pack", "", name)?;
        ensure!(pack.is_some(), "{name} went as well");
    }
    // Of two at once, what needs the other goes first.
    remove(platform, &["identity-service", "spicedb"])?;
    gone(
        platform,
        &[
            ("pack", "", "identity-service"),
            ("helmrelease", "identity-service", "identity-service"),
            ("pack", "", "spicedb"),
            ("helmrelease", "spicedb", "spicedb"),
        ],
    )?;
    let deleted = deletions(&platform.stage.cluster)?;
    let place = |wanted: &str| {
        let found = deleted.iter().position(|one| one == wanted);
        found.with_context(|| format!("{wanted} was not deleted: {deleted:?}"))
    };
    let release = place("helmreleases/sgp")?;
    ensure!(release < place("ocirepositories/sgp")?, "{deleted:?}");
    let source = place("ocirepositories/identity-service")?;
    ensure!(
        place("helmreleases/identity-service")? < source && source < place("helmreleases/spicedb")?,
        "{deleted:?}"
    );
    // That of the chart, which others may use, too.
    let namespace = platform.stage.get("namespace", "", "sgp")?;
    ensure!(namespace.is_some_and(|one| one["status"]["phase"] == "Active"));
    for name in ["temporalf", "istio"] {
        let pack = platform.stage.get("pack", "", name)?;
        ensure!(pack.is_some(), "{name} went as well");
    }
    Ok(())
}

/// Takes packs out of the desired state, and has that applied.
fn remove(platform: &Platform, packs: &[&str]) -> Result<()> {
    for pack in packs {
        let told = platform.stage.reeve(&["pack", "remove", pack])?;
        ensure!(told.contains("was removed"), "{told}");
    }
    platform.stage.reeve(&["pack", "reconcile"])?;
    Ok(())
}

/// Waits until objects are gone, each by its kind, namespace and name.
fn gone(platform: &mut Platform, objects: &[(&str, &str, &str)]) -> Result<()> {
    platform.eventually("packs are gone with all that they had", |stage| {
        for (kind, namespace, name) in objects {
            let found = stage.get(kind, namespace, name)?;
            ensure!(found.is_none(), "{kind} {name} is there");
        }
        Ok(())
    })
}

/// What the plugin's accounts have deleted, in order.
fn deletions(cluster: &ControlPlane) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for event in cluster.audit_log()? {
        let user = event["impersonatedUser"]["username"].as_str();
        let ours = user.is_some_and(|user| user.contains(":packs"));
        let object = &event["objectRef"];
        if event["verb"] == "delete" && ours {
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            let at = event["requestReceivedTimestamp"]
                .as_str()
                .unwrap_or_default();
            found.push((
                at.to_owned(),
                format!("{}/{}", text("resource"), text("name")),
            ));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

fn is_ready(release: &Value) -> bool {
    let conditions = release["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let current = release["status"]["observedGeneration"] == release["metadata"]["generation"];
    current && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

struct Platform {
    sources: Sources,
    charts: Charts,
    _controller: HelmController,
    _node: SimulatedNode,
    _registry: Registry,
    stage: Stage,
}

impl Platform {
    /// A cluster with the agent and the chart of packs in it, which wants all of them.
    /// The chart of one is broken. Nobody has asked for them yet.
    fn new() -> Result<Self> {
        let certificate = Certificate::of(&["localhost", "ws.example.com"])?;
        let registry = Registry::start(&certificate.pem, &certificate.key_pem)?;
        let all = |name: &str| User {
            name: name.to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        let cluster = ControlPlane::builder()
            .audited()
            .controllers(CONTROLLERS)
            .user(all(KWOK_USER))
            .user(all(FLUX_USER))
            .start()?;
        let mut stage = Stage::on(cluster)?;
        let charts = Charts::new(&stage, &registry, &certificate)?;
        for name in ["base", "istiod", "gateway", "spicedb", "temporalf", "sgp"] {
            charts.publish(name, "1.0.0", Health::Sound)?;
        }
        charts.publish("identity-service", "1.0.0", Health::Broken)?;
        stage
            .cluster
            .establish(&samples::open_crd("Widget", "widgets"))?;
        let node = stage.cluster.start_node()?;
        establish(&stage)?;
        let controller = stage.cluster.start_helm_controller()?;

        stage.helm("install", &["--create-namespace"])?;
        stage.start_agent()?;
        let configuration = stage.file("configuration.json");
        let text = configuration_of(&charts, &certificate);
        fs::write(&configuration, text.to_string())?;
        let packs: Vec<Value> = PACKS.iter().map(|name| pack(name)).collect();
        let state = stage.file("desired-state.json");
        fs::write(
            &state,
            json!({"version": "0.1", "packs": packs}).to_string(),
        )?;
        stage.helm_on(
            CHART,
            "install",
            &[
                "--set-file",
                &format!("configuration.document={}", configuration.display()),
                "--set-file",
                &format!("desiredState.document={}", state.display()),
                "--set-json",
                r#"flux.manifests.configMap="flux""#,
            ],
        )?;
        flux_is_described(&stage)?;
        let file = component("packs").to_string_lossy().into_owned();
        let package = ["plugin", "package", &file, "--name", "packs", "--namespace"];
        let packed = stage.reeve(&[&package[..], &[NAMESPACE]].concat())?;
        stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &packed)?;
        for part in PARTS {
            stage.wait_for_reason(part, "Ready", "Running")?;
        }
        Ok(Self {
            sources: Sources::start()?,
            charts,
            _controller: controller,
            _node: node,
            _registry: registry,
            stage,
        })
    }

    /// Waits, and does what source-controller does meanwhile.
    fn eventually<T>(&mut self, what: &str, look: impl Fn(&Stage) -> Result<T>) -> Result<T> {
        let Self {
            sources,
            charts,
            stage,
            _controller: controller,
            ..
        } = self;
        let waited = eventually(what, || {
            sources.look(stage, charts)?;
            look(stage)
        });
        waited.map_err(|error| {
            let kinds =
                "namespaces,packs,helmreleases,ocirepositories,units,deployments,replicasets,pods";
            let state = stage.kubectl(&["get", kinds, "-A"]);
            let state = state.unwrap_or_else(|error| format!("{error:#}"));
            error.context(format!("{state}\n{}", controller.log_tail()))
        })
    }

    fn wait_for_release(
        &mut self,
        namespace: &str,
        name: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        self.eventually(&format!("release {namespace}/{name}"), |stage| {
            let found = stage.get("helmrelease", namespace, name)?;
            let found = found.context("it does not exist")?;
            ensure!(is_so(&found), "it is {}", found["status"]);
            Ok(found)
        })
    }
}

/// Nobody schedules Pods here, so those of Flux say where they are.
fn pack(name: &str) -> Value {
    match name {
        "flux" => json!({"name": name, "patches": [{
            "target": {"kind": "Deployment"},
            "patch": [{"op": "add", "path": "/spec/template/spec/nodeName", "value": NODE}],
        }]}),
        _ => json!({"name": name}),
    }
}

/// What all packs need.
fn configuration_of(charts: &Charts, certificate: &Certificate) -> Value {
    json!({
        "cloudProvider": "gcp",
        "baseRepository": charts.repository(),
        "workspaceId": "ws",
        "deploymentURL": "https://ws.example.com",
        "baseDomain": "example.com",
        "authType": "oidc",
        "frontDoorSSLCertB64": STANDARD.encode(&certificate.pem),
        "frontDoorSSLKeyB64": STANDARD.encode(&certificate.key_pem),
        "gcp": {
            "projectId": "project",
            "region": "us-east1",
            "clusterName": "cluster",
            "postgresHostTemporal": "postgres.example.com",
            "spicedb": {"presharedKey": "key", "datastoreUri": "postgres://spicedb"},
        },
    })
}
