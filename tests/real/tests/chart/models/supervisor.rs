//! The loop with a supervisor, over HTTPS: what it lists is deployed, and it is told how
//! that is. The server keeps to what DataRobot documents of its API.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use reeve_real::eventually;
use reeve_test_support::component;
use reeve_test_support::http::{self, Body, Certificate};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::install::{MODELS, install};
use crate::stage::{NAMESPACE, Stage};

/// The id of the prediction environment in the document's command.
const ENVIRONMENT: &str = "64f0c2a1b7d3e90012345678";
/// What nobody but the server may see.
const TOKEN: &str = "canary-of-the-api-token";
/// How many deployments are on a page.
const PAGE: usize = 2;

#[test]
fn what_a_supervisor_lists_is_deployed_and_told() -> Result<()> {
    let certificate = Certificate::of(&["localhost"])?;
    let supervisor = Supervisor::start(&certificate)?;
    let mut stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    stage.start_agent()?;
    stage.kubectl(&["create", "namespace", MODELS])?;
    let token = format!("--from-literal=secret={TOKEN}");
    let secret = ["create", "-n", MODELS, "secret", "generic", "mlops-api-key"];
    stage.kubectl(&[&secret[..], &[&token]].concat())?;
    supervisor.change(|state| {
        state.deployments = vec![
            deployment("64a1", ENVIRONMENT, "p1"),
            deployment("64a2", "another", "p1"),
            deployment("64a3", ENVIRONMENT, "unknown"),
            deployment("64a4", ENVIRONMENT, "p2"),
        ];
    });
    let url = supervisor.url();
    let values = stage.file("supervisor.yaml");
    let text = json!({
        "datarobot": {"url": url},
        "supervisor": {
            "deployments": {"pages": 3, "pageSize": PAGE, "pollSeconds": 1},
            "packages": {"url": format!("{url}/packages.json"), "pollSeconds": 1},
            "addresses": ["127.0.0.0/8"],
            "caBundle": certificate.pem,
        },
    });
    fs::write(&values, text.to_string())?;
    install(&stage, &["--values", &values.to_string_lossy()])?;
    for plugin in ["models", "environments"] {
        let file = component(plugin).to_string_lossy().into_owned();
        let package = ["plugin", "package", &file, "--name", plugin];
        let packed = stage.reeve(&[&package[..], &["--namespace", NAMESPACE]].concat())?;
        stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &packed)?;
        stage.wait_for_reason(plugin, "Ready", "Running")?;
    }

    let first = wait_for_model(&stage, "64a1", "m-p1")?;
    let package = json!({
        "url": format!("{url}/p1.mlpkg"), "sha256": "1".repeat(64), "sizeBytes": 10,
    });
    ensure!(first["spec"]["model"]["package"] == package, "{first}");
    wait_for_model(&stage, "64a4", "m-p2")?;
    let models = stage.list("modeldeployments", MODELS)?;
    ensure!(models.len() == 2, "{models:?}");
    eventually("what cannot be deployed is named", || {
        let units = Value::from(stage.list("units", NAMESPACE)?).to_string();
        ensure!(units.contains("deployment `64a3`"), "{units}");
        Ok(())
    })?;
    let event = supervisor.wait_for("64a1", "deployment_launch_started")?;
    ensure!(event["predictionEnvironmentId"] == ENVIRONMENT, "{event}");
    ensure!(event["data"]["newModelId"] == "m-p1", "{event}");
    // Of what was not told while it could be, only the last is told later.
    supervisor.wait_for("64a4", "deployment_launch_started")?;

    // What it cannot say changes nothing; what it says afterwards does.
    supervisor.change(|state| {
        state.away = true;
        state.deployments[0] = deployment("64a1", ENVIRONMENT, "p2");
        state.deployments[3]["status"] = json!("inactive");
    });
    eventually("the agent says that the list cannot be had", || {
        let plugin = stage.get("plugin", NAMESPACE, "environments")?;
        let plugin = plugin.context("no Plugin")?.to_string();
        ensure!(plugin.contains("503"), "{plugin}");
        Ok(())
    })?;
    ensure!(model(&stage, "64a1")?.is_some_and(|now| now["spec"] == first["spec"]));
    supervisor.change(|state| state.away = false);
    wait_for_model(&stage, "64a1", "m-p2")?;
    supervisor.wait_for("64a4", "deployment_shutdown_succeeded")?;
    let told = supervisor.told("64a4");
    let words: Vec<_> = told.iter().map(|one| one["eventType"].clone()).collect();
    let expected = ["launch_started", "shutdown_succeeded"];
    let expected = expected.map(|word| json!(format!("model_deployments.deployment_{word}")));
    // Whether somebody sees it being stopped is a matter of moments.
    let stopping = json!("model_deployments.deployment_shutdown_started");
    let words: Vec<_> = words.into_iter().filter(|word| *word != stopping).collect();
    ensure!(words == expected, "{told:?}");

    // A restart tells nobody anything twice.
    stage.start_agent()?;
    supervisor.change(|state| {
        state.deployments.remove(0);
    });
    eventually("what is listed no more is gone", || {
        ensure!(model(&stage, "64a1")?.is_none(), "it is there still");
        Ok(())
    })?;
    ensure!(model(&stage, "64a4")?.is_some(), "it is gone");
    ensure!(
        supervisor.told("64a4") == told,
        "{:?}",
        supervisor.told("64a4")
    );
    ensure!(supervisor.lock().strangers == 0, "asked without the token");

    for kinds in [
        "plugins,units,events",
        "configmaps,modeldeployments,predictionenvironments",
    ] {
        let text = stage.kubectl(&["get", kinds, "-A", "-o", "yaml"])?;
        ensure!(!text.contains(TOKEN), "the token is in {kinds}");
    }
    Ok(())
}

/// A deployment as the API has them, of the model of a package.
fn deployment(id: &str, environment: &str, package: &str) -> Value {
    json!({
        "id": id, "label": format!("the {id}"), "description": null, "status": "active",
        "model": {"id": format!("m-{package}"), "type": "Elastic-Net", "targetType": "Binary"},
        "modelPackage": {"id": package, "name": package},
        "predictionEnvironment": {
            "id": environment, "name": "k8s", "platform": "other", "plugin": null,
            "isManagedByManagementAgent": true,
        },
        "importance": "LOW",
    })
}

fn model(stage: &Stage, id: &str) -> Result<Option<Value>> {
    stage.get("modeldeployment", MODELS, &format!("deployment-{id}"))
}

fn wait_for_model(stage: &Stage, id: &str, wanted: &str) -> Result<Value> {
    eventually(&format!("{id} is to serve {wanted}"), || {
        let found = model(stage, id)?;
        let found = found.with_context(|| {
            let units = stage.list("units", NAMESPACE);
            let plugin = stage.get("plugin", NAMESPACE, "environments");
            format!("there is no such ModelDeployment; {units:?} {plugin:?}")
        })?;
        ensure!(found["spec"]["model"]["id"] == wanted, "{found}");
        ensure!(found["spec"]["deploymentId"] == id, "{found}");
        Ok(found)
    })
}

/// The server. It ends with this.
struct Supervisor {
    state: Arc<Mutex<State>>,
    port: u16,
    _runtime: Runtime,
}

#[derive(Default)]
struct State {
    deployments: Vec<Value>,
    events: Vec<Value>,
    /// Whether it answers nothing but that it is away.
    away: bool,
    /// Requests that needed the token and came without it.
    strangers: usize,
}

impl Supervisor {
    fn start(certificate: &Certificate) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        let answers = http::serve(Some(certificate), move |request| {
            let (status, body) = answer(&request, &mut locked(&served));
            let mut response: Response<Body> = Response::new(http::whole(body.to_string()));
            *response.status_mut() = status;
            async move { response }
        });
        let port = runtime.block_on(answers)?;
        Ok(Self {
            state,
            port,
            _runtime: runtime,
        })
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
    }

    /// What it was told about a deployment.
    fn told(&self, id: &str) -> Vec<Value> {
        let state = self.lock();
        let told = state.events.iter();
        told.filter(|event| event["deploymentId"] == id)
            .cloned()
            .collect()
    }

    fn wait_for(&self, id: &str, event: &str) -> Result<Value> {
        eventually(&format!("it is told {event} of {id}"), || {
            let mut told = self.told(id).into_iter();
            let wanted = format!("model_deployments.{event}");
            let found = told.find(|told| told["eventType"] == *wanted);
            found.with_context(|| format!("it was told {:?}", self.told(id)))
        })
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(request: &Request<Bytes>, state: &mut State) -> (StatusCode, Value) {
    let message = |text: &str| json!({"message": text});
    if state.away {
        return (StatusCode::SERVICE_UNAVAILABLE, message("come later"));
    }
    let token = request.headers().get("authorization");
    let knows = token.is_some_and(|token| *token == *format!("Bearer {TOKEN}"));
    if !knows {
        state.strangers += 1;
        return (
            StatusCode::UNAUTHORIZED,
            message("Invalid Authorization header."),
        );
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/api/v2/deployments/") => {
            let number = |name: &str, otherwise: usize| {
                let query = request.uri().query().unwrap_or_default();
                let mut parts = query.split('&').filter_map(|part| part.split_once('='));
                let found = parts.find(|(key, _)| *key == name);
                found.map_or(otherwise, |(_, value)| value.parse().unwrap_or(otherwise))
            };
            let (offset, limit) = (number("offset", 0), number("limit", 20).min(100));
            let page = state.deployments.iter().skip(offset).take(limit);
            let page: Vec<_> = page.collect();
            let more = offset + page.len() < state.deployments.len();
            let next = more.then(|| format!("{}?offset={}", request.uri().path(), offset + limit));
            let list = json!({
                "count": page.len(), "next": next, "previous": null,
                "totalCount": state.deployments.len(), "data": page,
            });
            (StatusCode::OK, list)
        }
        (&Method::GET, "/packages.json") => {
            let host = request.headers().get("host");
            let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
            let package = |name: &str, digit: &str| {
                json!({
                    "url": format!("https://{host}/{name}.mlpkg"), "sha256": digit.repeat(64),
                    "sizeBytes": 10,
                })
            };
            let index = json!({"p1": package("p1", "1"), "p2": package("p2", "2")});
            (StatusCode::OK, index)
        }
        (&Method::POST, "/api/v2/remoteEvents/") => {
            let event: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            if !event["eventType"].is_string() || !event["timestamp"].is_string() {
                return (
                    StatusCode::UNPROCESSABLE_ENTITY,
                    message("Unable to process"),
                );
            }
            let known = |one: &&Value| one["id"] == event["deploymentId"];
            if !state.deployments.iter().any(|one| known(&one)) {
                return (StatusCode::NOT_FOUND, message("Deployment not found"));
            }
            state.events.push(event);
            (StatusCode::CREATED, message("posted"))
        }
        _ => (StatusCode::NOT_FOUND, message("Not Found")),
    }
}
