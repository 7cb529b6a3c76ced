//! ModelDeployments in mixed states: what it costs the agent to come to a decision about
//! each of them anew.

use super::agent::AgentProcess;
use crate::figure::{Figures, median};
use crate::process::ClusterProcess;
use crate::scale::{SETTLING, scaled};
use crate::setup::{plugin, spread};
use crate::world::{World, apply};
use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use reeve_cluster::Cluster;
use reeve_engine::{Compiler, Engine, EngineConfig};
use serde_json::{Value, json};
use std::path::Path;
use tokio::time::sleep;

const COUNT: usize = 1_000;
const ROUNDS: usize = 5;
/// How often it is looked whether something is there.
const PATIENCE: usize = 60;
/// Where models live.
const PLACE: &str = "datarobot-mlops";

/// What becomes of a ModelDeployment: each state has a fifth of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Building,
    Failed,
    Deploying,
    Ready,
    Stopped,
}

impl State {
    const ALL: [(&str, Self); 5] = [
        ("Building", Self::Building),
        ("Deploying", Self::Deploying),
        ("Errored", Self::Failed),
        ("Ready", Self::Ready),
        ("Stopped", Self::Stopped),
    ];

    fn of(number: usize) -> Self {
        use State::{Building, Deploying, Failed, Ready, Stopped};
        [Building, Failed, Deploying, Ready, Stopped][number % 5]
    }
}

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let cluster = ClusterProcess::start()?;
    let client = cluster.client().await?;
    let mut world = World::install(client.clone(), &engine, []).await?;
    prepare(world.admin()).await?;
    let config = json!({
        "ingress": {"className": "mlops", "outfacingURLPrefix": "http://your-company.com/deployments/"},
        "datarobot": {"apiSecretName": "mlops-api-key"},
        "imageBuilder": {
            "ppsImage": "registry.your-company.com/datarobot/pps:7.0",
            "generatedImageRepository": "registry.your-company.com/mlops/frozen-models",
            "secretName": "registry-creds",
        },
    });
    world
        .add(&engine, "models", plugin("models")?, &config)
        .await?;
    let count = scaled(COUNT)?;
    spread(count, world.admin().clone(), async |admin, number| {
        apply(&admin, &deployment(number)).await
    })
    .await?;
    let cache = tempfile::tempdir()?;
    let mut agent = AgentProcess::start(&cluster.kubeconfig(), cache.path())?;
    let of = |states: &[State]| {
        (0..count)
            .filter(|n| states.contains(&State::of(*n)))
            .count()
    };
    let (stopped, served) = (of(&[State::Stopped]), of(&[State::Deploying, State::Ready]));
    until(&api(&client, "batch", "v1", "Job"), count - stopped).await?;
    build(&client).await?;
    until(&api(&client, "apps", "v1", "Deployment"), served).await?;
    figures.plain("models: ModelDeployments", count as f64, "");
    let expected = State::ALL.map(|(phase, state)| (phase, of(&[state])));
    told(&client, &expected).await?;
    for (phase, found) in &expected {
        figures.plain(&format!("models: of these are {phase}"), *found as f64, "");
    }
    sleep(SETTLING).await;

    for (phase, state) in State::ALL {
        let (mut decisions, mut all) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let cost = decide(&client, &mut agent, round, count, state).await?;
            // The first round warms up.
            if round > 0 {
                decisions.push(cost.decision * 1e3);
                all.push(cost.all * 1e3);
            }
        }
        let what = format!(
            "models: CPU of an event's decision in {phase}, with all that it reads, median"
        );
        figures.limited(&what, median(&mut decisions), "ms", 1.0);
        let what = format!("models: CPU of the agent for an event in {phase}, in all, median");
        figures.plain(&what, median(&mut all), "ms");
    }
    Ok(())
}

/// What an event costs, in seconds, on average.
struct Cost {
    /// CPU of the plugin's call, with the agent's answers to what it asks.
    decision: f64,
    /// CPU of the agent in all.
    all: f64,
}

/// The definition, and what an operator has made where models live.
async fn prepare(admin: &Cluster) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/models/scenarios");
    let text = std::fs::read_to_string(root.join("crds/modeldeployment.yaml"))?;
    apply(admin, &serde_saphyr::from_str(&text)?).await?;
    apply(admin, &reeve_test_support::samples::namespace(PLACE)).await?;
    for (name, kind, data) in [
        ("mlops-api-key", "Opaque", json!({"secret": "token"})),
        (
            "registry-creds",
            "kubernetes.io/dockerconfigjson",
            json!({".dockerconfigjson": "{\"auths\": {}}"}),
        ),
    ] {
        apply(
            admin,
            &json!({
                "apiVersion": "v1", "kind": "Secret", "type": kind,
                "metadata": {"name": name, "namespace": PLACE}, "stringData": data,
            }),
        )
        .await?;
    }
    Ok(())
}

fn name_of(number: usize) -> String {
    format!("model-{number:04}")
}

fn deployment(number: usize) -> Value {
    let package = json!({
        "url": format!("https://app.datarobot.com/packages/{number}.mlpkg"),
        "sha256": format!("{number:064x}"),
    });
    json!({
        "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": name_of(number), "namespace": PLACE},
        "spec": {
            "deploymentId": format!("{number:024x}"),
            "model": {"id": format!("m-{number}"), "package": package},
            "stopped": State::of(number) == State::Stopped,
        },
    })
}

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), PLACE, &resource)
}

/// Waits until there are so many.
async fn until(api: &Api<DynamicObject>, count: usize) -> Result<()> {
    for _ in 0..PATIENCE {
        if api.list(&ListParams::default()).await?.items.len() >= count {
            return Ok(());
        }
        sleep(SETTLING).await;
    }
    bail!("there are not {count} of them")
}

/// Ends the builds that are to have ended, as the Job controller and a builder's pod tell it.
async fn build(client: &Client) -> Result<()> {
    let jobs = api(client, "batch", "v1", "Job");
    let pods = api(client, "", "v1", "Pod");
    let now = "2026-01-01T00:10:00Z";
    let mut ended = Vec::new();
    for job in jobs.list(&ListParams::default()).await? {
        let owner = job
            .owner_references()
            .first()
            .map(|owner| owner.name.clone());
        let owner = owner.context("a Job without an owner")?;
        let number: usize = owner.trim_start_matches("model-").parse()?;
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "Bench", "message": "as told",
                "lastTransitionTime": now})
        };
        let name = job.name_any();
        let status = match State::of(number) {
            State::Building | State::Stopped => continue,
            State::Failed => json!({"startTime": now, "failed": 1, "conditions": [
                condition("FailureTarget"), condition("Failed")]}),
            State::Deploying | State::Ready => {
                let pod = json!({
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": name, "labels": {"models.reeve.dev/build": name}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "build", "image": "kaniko"}]},
                });
                let pod: DynamicObject = serde_json::from_value(pod)?;
                pods.create(&Default::default(), &pod).await?;
                let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
                    "name": "build", "ready": false, "restartCount": 0, "image": "kaniko", "imageID": "",
                    "state": {"terminated": {"exitCode": 0, "message": format!("sha256:{number:064x}")}},
                }]}});
                pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
                    .await?;
                json!({"startTime": now, "completionTime": now, "succeeded": 1, "conditions": [
                    condition("SuccessCriteriaMet"), condition("Complete")]})
            }
        };
        ended.push((name, json!({"status": status})));
    }
    // A Job whose pod nobody has seen yet would count as one that has lost it.
    sleep(SETTLING).await;
    for (name, patch) in ended {
        jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("Job {name}"))?;
    }
    Ok(())
}

/// What a Deployment says of its servers.
fn available() -> Value {
    json!({"type": "Available", "status": "True", "reason": "Bench"})
}

/// Rolls out the Deployments that are to be ready, as their controller tells it.
async fn roll_out(client: &Client) -> Result<()> {
    let deployments = api(client, "apps", "v1", "Deployment");
    for deployment in deployments.list(&ListParams::default()).await? {
        let name = deployment.name_any();
        let number: usize = name.trim_start_matches("model-").parse()?;
        if State::of(number) != State::Ready {
            continue;
        }
        let patch = json!({"status": {
            "observedGeneration": deployment.metadata.generation, "replicas": 1,
            "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [available()],
        }});
        deployments
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
    }
    Ok(())
}

/// Rolls out until so many are told to be in each of these phases, in the order of their
/// names.
async fn told(client: &Client, expected: &[(&str, usize)]) -> Result<()> {
    let models = api(client, "models.reeve.dev", "v1alpha1", "ModelDeployment");
    for _ in 0..PATIENCE {
        roll_out(client).await?;
        let mut phases = std::collections::BTreeMap::new();
        let found = models.list(&ListParams::default()).await?;
        for model in &found {
            let phase = model.data["status"]["phase"].as_str().unwrap_or("nothing");
            *phases.entry(phase).or_insert(0) += 1;
        }
        if phases
            .iter()
            .map(|(phase, count)| (*phase, *count))
            .eq(expected.iter().copied())
        {
            return Ok(());
        }
        sleep(SETTLING).await;
    }
    bail!("they do not come to be in the phases {expected:?}")
}

/// What each change of a ModelDeployment in a state costs that changes nothing of what is
/// wanted of it.
async fn decide(
    client: &Client,
    agent: &mut AgentProcess,
    round: usize,
    count: usize,
    state: State,
) -> Result<Cost> {
    let writes = agent.writes().await?;
    let calls = agent.calls("models").await?;
    let (runs, before) = (agent.runs().await?, agent.process().cpu()?);
    let models = api(client, "models.reeve.dev", "v1alpha1", "ModelDeployment");
    let deployments = api(client, "apps", "v1", "Deployment");
    let merge = PatchParams::default();
    let numbers: Vec<usize> = (0..count).filter(|n| State::of(*n) == state).collect();
    for number in &numbers {
        let name = name_of(*number);
        match state {
            // As its controller tells of a rollout that goes on, or has been for long.
            State::Deploying | State::Ready => {
                let seen = json!({"type": "Progressing", "status": "True", "reason": "Bench",
                    "message": format!("seen {round} times")});
                let patch = json!({"status": {"conditions": [available(), seen]}});
                let patch = Patch::Merge(&patch);
                deployments.patch_status(&name, &merge, &patch).await?;
            }
            // How long a server may take to start, which there is none of.
            State::Building | State::Failed | State::Stopped => {
                let patch = json!({"spec": {"startupSeconds": 700 + round}});
                models.patch(&name, &merge, &Patch::Merge(&patch)).await?;
            }
        }
    }
    agent.ran(runs + numbers.len()).await?;
    sleep(SETTLING).await;
    let used = agent.process().cpu()? - before;
    let after = agent.writes().await?;
    // The status says of which spec it is.
    let specs = match state {
        State::Building | State::Failed | State::Stopped => numbers.len(),
        State::Deploying | State::Ready => 0,
    };
    let expected = (writes.0 + specs, writes.1);
    ensure!(
        expected == after,
        "decisions led from {writes:?} writes and failures to {after:?}, not to {expected:?}"
    );
    let (seconds, called) = agent.calls("models").await?;
    let (called_now, events) = (called - calls.1, numbers.len() as f64);
    ensure!(
        called_now >= events,
        "{called_now} calls for {events} events"
    );
    // Where an event leads to more than one call, all of them are what it costs.
    Ok(Cost {
        decision: (seconds - calls.0) / events,
        all: used / events,
    })
}
