//! The life of one deployment, as its supervisor asks for it with `reeve model`: it is
//! built and serves, a replacement fails and another one does not, it is relaunched,
//! stopped and started again.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reeve_real::{Ended, eventually};
use serde_json::{Value, json};

use super::ground::{Ground, holds, name_of};
use super::install::MODELS;
use crate::stage::NAMESPACE;

/// Id and name of the deployment.
const ID: &str = "churn";
/// How many servers it has.
const SERVERS: usize = 2;

const REPOSITORY: &str = "registry.your-company.com/mlops/frozen-models";
const URL: &str = "http://your-company.com/deployments/churn/predictions";

#[test]
fn a_deployment_is_replaced_relaunched_and_stopped() -> Result<()> {
    let mut ground = Ground::new("token", &[], |_| Ok(()))?;
    it_is_built_and_serves(&ground)?;
    let failed = a_build_that_fails_changes_nothing(&ground)?;
    another_model_takes_its_place(&mut ground)?;
    a_relaunch_starts_servers_anew(&ground)?;
    nothing_serves_after_a_stop(&ground)?;
    it_starts_again_without_a_build(&ground)?;
    let kept = ground.get("job", name_of(&failed)?)?;
    ensure!(kept["metadata"]["uid"] == failed["metadata"]["uid"]);
    ensure!(holds(&kept, "Failed"), "{kept}");
    // Their logs are what it is kept for.
    ensure!(ground.build_pods(name_of(&failed)?)?.len() == 3);
    Ok(())
}

fn it_is_built_and_serves(ground: &Ground) -> Result<()> {
    let servers = SERVERS.to_string();
    ask("start", ground, "m1", &["--replicas", &servers])?;
    let job = ground.job(ID, "m1")?;
    let key = key_of(&job)?;
    ensure!(name_of(&job)? == format!("model-build-{key}"), "{job}");
    let pod = ground.build_pod(name_of(&job)?)?;
    let status = ground.wait_for_status(ID, "launching", "unknown")?;
    ensure!(
        status["data"] == json!({"isOfCurrentSpec": true, "oldModelInUse": false}),
        "{status}"
    );
    ensure!(ground.stage.list("deployments", MODELS)?.is_empty());

    pushes(ground, &pod, '1')?;
    wait_for_image(ground, '1')?;
    let status = ground.wait_for_status(ID, "launching", "unknown")?;
    ensure!(status["data"]["currentModelId"].is_null(), "{status}");
    let status = wait_for_servers(ground, "m1", '1', || Ok(()))?;
    ensure!(status["data"]["predictionUrl"] == URL, "{status}");

    let ingress = ground.get("ingress", ID)?;
    let path = "/spec/rules/0/http/paths/0/backend/service/name";
    ensure!(ingress.pointer(path) == Some(&json!(ID)), "{ingress}");
    // That the digest is recorded comes first, and then it may go.
    eventually("the Job goes by itself some time", || {
        let job = ground.get("job", name_of(&job)?)?;
        ensure!(job["spec"]["ttlSecondsAfterFinished"] == 3600, "{job}");
        let record = ground.get("configmap", "churn-builds")?;
        let line = format!("{key} {}", image('1'));
        ensure!(record["data"]["images"] == line, "{record}");
        Ok(())
    })
}

/// Returns the Job that failed.
fn a_build_that_fails_changes_nothing(ground: &Ground) -> Result<Value> {
    const COMPLAINT: &str = "error pushing image: denied: requested access is denied";
    let before = ground.get("deployment", ID)?;
    let pods = uids(&ground.servers(ID)?);
    ask("replace", ground, "m2", &[])?;
    let job = ground.job(ID, "m2")?;
    let name = name_of(&job)?;
    let old_serves = || {
        let now = ground.get("deployment", ID)?;
        ensure!(now["metadata"]["generation"] == before["metadata"]["generation"]);
        ensure!(now["status"]["availableReplicas"] == SERVERS, "{now}");
        ensure!(uids(&ready(&ground.servers(ID)?)) == pods, "other pods");
        Ok(())
    };
    ground.build_pod(name)?;
    let status = ground.wait_for_status(ID, "replacingModel", "passing")?;
    let old = json!({
        "isOfCurrentSpec": true, "oldModelInUse": true, "currentModelId": "m1",
        "predictionUrl": URL,
    });
    ensure!(status["data"] == old, "{status}");

    // Each that fails has one more after it, and the third is the last.
    let failed = ground.wait_while("the Job has failed", old_serves, || {
        let pods = ground.build_pods(name)?;
        ground.schedule(&pods)?;
        for pod in pods {
            if pod["status"]["phase"] == "Running" {
                let ended = Ended {
                    container: "build",
                    code: 1,
                    message: COMPLAINT,
                };
                ground.end(&pod, ended)?;
            }
        }
        let job = ground.get("job", name)?;
        ensure!(holds(&job, "Failed"), "{job}");
        Ok(job)
    })?;
    let status = ground.wait_for_status(ID, "ready", "warning")?;
    ensure!(status["data"] == old, "{status}");
    let said = status["msg"].as_str().unwrap_or_default();
    let serves_on = said.starts_with("the earlier model goes on serving: the build failed");
    ensure!(serves_on && said.contains(COMPLAINT), "{said}");
    eventually("the agent tells of it", || {
        let units = Value::from(ground.stage.list("units", NAMESPACE)?).to_string();
        ensure!(units.contains("BuildFailed"), "{units}");
        Ok(())
    })?;
    old_serves()?;

    let logs = ground.build_pods(name)?;
    ensure!(logs.len() == 3, "{logs:?}");
    for pod in &logs {
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        ensure!(ended["message"] == COMPLAINT && ended["exitCode"] == 1);
    }
    ensure!(failed["metadata"]["uid"] == job["metadata"]["uid"]);
    ensure!(failed["spec"]["ttlSecondsAfterFinished"].is_null());
    Ok(failed)
}

fn another_model_takes_its_place(ground: &mut Ground) -> Result<()> {
    ask("replace", ground, "m3", &[])?;
    let job = ground.job(ID, "m3")?;
    let pod = ground.build_pod(name_of(&job)?)?;
    ground.wait_for_status(ID, "replacingModel", "passing")?;
    // Nobody looks when the build ends.
    ground.stage.kill_agent()?;
    pushes(ground, &pod, '3')?;
    ground.stage.start_agent()?;

    wait_for_image(ground, '3')?;
    let told = "the model is being rolled out; the earlier one serves until it does";
    eventually("it is being rolled out", || {
        let status = ground.status(ID)?;
        ensure!(status["msg"] == told, "{status}");
        let data = &status["data"];
        ensure!(status["state"] == "replacingModel" && status["status"] == "passing");
        ensure!(data["oldModelInUse"] == true && data["currentModelId"] == "m1");
        Ok(())
    })?;
    wait_for_servers(ground, "m3", '3', || enough(ground))?;
    Ok(())
}

fn a_relaunch_starts_servers_anew(ground: &Ground) -> Result<()> {
    let jobs = uids(&ground.stage.list("jobs", MODELS)?);
    let before = uids(&ground.servers(ID)?);
    ground.stage.reeve(&["model", "relaunch", ID])?;
    let status = ground.wait_for_status(ID, "launching", "passing")?;
    let data = &status["data"];
    ensure!(data["oldModelInUse"] == false && data["currentModelId"] == "m3");
    let what = "all servers are other ones";
    ground.wait_while(
        what,
        || enough(ground),
        || {
            let servers = ground.servers(ID)?;
            ground.schedule(&servers)?;
            let now = uids(&servers);
            ensure!(now.len() == SERVERS && now.is_disjoint(&before), "{now:?}");
            Ok(())
        },
    )?;
    wait_for_servers(ground, "m3", '3', || enough(ground))?;
    ensure!(
        uids(&ground.stage.list("jobs", MODELS)?) == jobs,
        "other Jobs"
    );
    let deployment = ground.get("modeldeployment", ID)?;
    let asked = &deployment["spec"]["relaunch"];
    ensure!(
        asked.is_string() && deployment["status"]["relaunch"] == *asked,
        "{deployment}"
    );
    Ok(())
}

fn nothing_serves_after_a_stop(ground: &Ground) -> Result<()> {
    ground.stage.reeve(&["model", "stop", ID])?;
    let status = ground.wait_for_status(ID, "stopped", "unknown")?;
    ensure!(
        status["data"] == json!({"isOfCurrentSpec": true, "oldModelInUse": false}),
        "{status}"
    );
    // Said only when it is so; the pods of ReplicaSets go after them.
    for kind in ["deployments", "replicasets"] {
        let there = ground.stage.list(kind, MODELS)?;
        ensure!(there.is_empty(), "{kind}: {there:?}");
    }
    eventually("all that served is gone", || {
        for kind in ["services", "ingresses"] {
            let there = ground.stage.list(kind, MODELS)?;
            ensure!(there.is_empty(), "{kind}: {there:?}");
        }
        let servers = ground.servers(ID)?;
        ensure!(servers.is_empty(), "{servers:?}");
        Ok(())
    })
}

/// What was built is still known.
fn it_starts_again_without_a_build(ground: &Ground) -> Result<()> {
    let jobs = uids(&ground.stage.list("jobs", MODELS)?);
    ground.stage.reeve(&["model", "start", ID])?;
    wait_for_image(ground, '3')?;
    wait_for_servers(ground, "m3", '3', || Ok(()))?;
    ensure!(
        uids(&ground.stage.list("jobs", MODELS)?) == jobs,
        "other Jobs"
    );
    Ok(())
}

/// Asks for a model.
fn ask(action: &str, ground: &Ground, model: &str, more: &[&str]) -> Result<()> {
    let digit = model.trim_start_matches('m');
    let url = format!("https://app.datarobot.com/packages/{model}.mlpkg");
    let sha256 = digit.repeat(64);
    let model = [
        "--model-id",
        model,
        "--package-url",
        &url,
        "--sha256",
        &sha256,
    ];
    let command = [&["model", action, ID][..], &model, more].concat();
    ground.stage.reeve(&command).map(drop)
}

/// The pod of a build ends well, and says what it has pushed.
fn pushes(ground: &Ground, pod: &Value, digit: char) -> Result<()> {
    let ended = Ended {
        container: "build",
        code: 0,
        message: &digest(digit),
    };
    ground.end(pod, ended)
}

fn digest(digit: char) -> String {
    format!("sha256:{}", String::from(digit).repeat(64))
}

fn image(digit: char) -> String {
    format!("{REPOSITORY}@{}", digest(digit))
}

fn wait_for_image(ground: &Ground, digit: char) -> Result<()> {
    eventually("the Deployment names what was pushed", || {
        let deployment = ground.get("deployment", ID)?;
        let found = image_of(&deployment["spec"]["template"]);
        ensure!(found == image(digit), "it names {found}");
        Ok(())
    })
}

/// Lets servers start, and waits until this model serves, of this image and no other.
fn wait_for_servers(
    ground: &Ground,
    model: &str,
    digit: char,
    is_so: impl Fn() -> Result<()>,
) -> Result<Value> {
    let status = ground.wait_while(&format!("{model} serves"), is_so, || {
        ground.schedule(&ground.servers(ID)?)?;
        let status = ground.status(ID)?;
        let data = &status["data"];
        ensure!(
            status["state"] == "ready" && status["status"] == "passing",
            "{status}"
        );
        ensure!(
            data["oldModelInUse"] == false && data["currentModelId"] == model,
            "{status}"
        );
        // Of those that are replaced, some may be going.
        let servers = ground.servers(ID)?;
        ensure!(servers.len() == SERVERS, "{servers:?}");
        Ok(status)
    })?;
    let servers = ground.servers(ID)?;
    ensure!(ready(&servers).len() == SERVERS, "{servers:?}");
    for pod in &servers {
        ensure!(image_of(pod) == image(digit), "{pod}");
    }
    let service = ground.get("service", ID)?;
    let selector = service["spec"]["selector"].as_object();
    let selector = selector.context("a Service selects pods")?;
    for (label, value) in selector {
        let selects = |pod: &Value| pod["metadata"]["labels"][label] == *value;
        ensure!(servers.iter().all(selects), "{service}");
    }
    Ok(status)
}

/// That no request is lost: at each time as many servers are ready as are wanted.
fn enough(ground: &Ground) -> Result<()> {
    let servers = ground.servers(ID)?;
    ensure!(ready(&servers).len() >= SERVERS, "too few: {servers:?}");
    Ok(())
}

fn ready(pods: &[Value]) -> Vec<Value> {
    let is_ready =
        |pod: &&Value| holds(pod, "Ready") && pod["metadata"]["deletionTimestamp"].is_null();
    pods.iter().filter(is_ready).cloned().collect()
}

fn uids(objects: &[Value]) -> BTreeSet<String> {
    let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned);
    objects.iter().filter_map(uid).collect()
}

/// What the server of a pod runs.
fn image_of(pod: &Value) -> String {
    let containers = pod["spec"]["containers"].as_array();
    let mut containers = containers.into_iter().flatten();
    let server = containers.find(|container| container["name"] == "server");
    let image = server.and_then(|server| server["image"].as_str());
    image.unwrap_or_default().to_owned()
}

fn key_of(job: &Value) -> Result<String> {
    let key = job["metadata"]["labels"]["models.reeve.dev/build-key"].as_str();
    Ok(key.context("a Job has a key")?.to_owned())
}
