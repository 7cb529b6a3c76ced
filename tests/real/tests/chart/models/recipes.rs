//! What is rendered for the document's minimal command and its recipes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{RECIPES, minimum};
use crate::grants::{Asked, configured};
use crate::helm::{chart_of, helm, template_with};

const CHART: &str = "models";
/// Where the kinds of its plugins are.
const KINDS: [&str; 2] = ["models/scenarios/crds", "environments/crds"];

/// The objects of the command with more arguments, as release `bosun`.
fn rendered(home: &Path, more: &[&str]) -> Result<Vec<Value>> {
    let arguments = [&minimum()[..], more].concat();
    template_with(CHART, "bosun", home, &arguments)
}

fn config_of(objects: &[Value]) -> Result<Value> {
    let configured = configured(objects);
    let mut configured = configured.iter();
    let found = configured.find(|(plugin, _)| plugin == "models");
    let (_, text) = found.context("models is not configured")?;
    Ok(serde_saphyr::from_str(text)?)
}

/// The names of the Secrets that the plugin's account may read.
fn secrets_of(objects: &[Value]) -> Value {
    let role = objects.iter().find(|object| {
        object["kind"] == "Role"
            && object["metadata"]["name"] == "reeve-plugin-reeve-system.models-account"
    });
    let rules = role.and_then(|role| role["rules"].as_array());
    let secrets = rules
        .into_iter()
        .flatten()
        .find(|rule| rule["resources"] == json!(["secrets"]));
    secrets.map_or(Value::Null, |rule| rule["resourceNames"].clone())
}

fn minimal_config() -> Value {
    json!({
        "namespaces": ["datarobot-mlops"],
        "ingress": {
            "className": "mlops", "outfacingURLPrefix": "http://your-company.com/deployments/",
        },
        "datarobot": {
            "apiSecretName": "mlops-api-key", "predictionEnvId": "64f0c2a1b7d3e90012345678",
        },
        "bosun": {"repository": "registry.your-company.com/datarobot/mlops-management-agent"},
        "tracking": {"image": "registry.your-company.com/datarobot/mlops-tracking-agent:latest"},
        "imageBuilder": {
            "ppsImage": "registry.your-company.com/datarobot/datarobot-portable-prediction-api:10.2.1",
            "generatedImageRepository": "registry.your-company.com/mlops/frozen-models",
            "rebuildOnPpsImageChange": false,
            "userNamespaces": false,
            "serviceAccount": {
                "create": true, "name": "datarobot-management-agent-image-builder",
            },
            "rbac": {"create": true},
        },
        "supervisor": {"report": {"url": "https://app.datarobot.com/api/v2/remoteEvents/"}},
    })
}

#[test]
fn the_minimal_command_says_what_it_said() -> Result<()> {
    let home = tempfile::tempdir()?;
    let objects = rendered(home.path(), &[])?;
    let found = config_of(&objects)?;
    ensure!(found == minimal_config(), "{found}");
    ensure!(secrets_of(&objects) == json!(["mlops-api-key"]));
    Ok(())
}

#[test]
fn each_recipe_says_what_it_said() -> Result<()> {
    let asked = Asked::new(&KINDS)?;
    let account = "/imageBuilder/serviceAccount";
    let both = json!(["mlops-api-key", "registry-creds"]);
    let secret = ("/imageBuilder/secretName", json!("registry-creds"));
    for (name, recipe) in RECIPES {
        let file = asked.home().join(format!("{name}.yaml"));
        fs::write(&file, recipe)?;
        let values = ["--values", &file.to_string_lossy()];
        let objects = rendered(asked.home(), &values)?;
        let mut expected = minimal_config();
        let (changes, secrets) = match name {
            "aws" => (
                vec![
                    ("/imageBuilder/configMap", json!("docker-config")),
                    ("/imageBuilder/serviceAccount/create", json!(false)),
                ],
                json!(["mlops-api-key"]),
            ),
            "gcp" => (
                vec![(
                    account,
                    json!({
                        "create": true, "name": "datarobot-management-agent-image-builder",
                        "annotations": {
                            "iam.gke.io/gcp-service-account":
                                "gcr-push-user@project.iam.gserviceaccount.com",
                        },
                    }),
                )],
                json!(["mlops-api-key"]),
            ),
            "insecure" => (
                vec![
                    secret.clone(),
                    (
                        "/imageBuilder/insecureRegistries",
                        json!(["registry.your-company.com"]),
                    ),
                ],
                both.clone(),
            ),
            _ => (vec![secret.clone()], both.clone()),
        };
        for (pointer, value) in changes {
            let (place, key) = pointer.rsplit_once('/').context("no place")?;
            expected.pointer_mut(place).context("no place")?[key] = value;
        }
        let found = config_of(&objects)?;
        ensure!(found == expected, "{name}: {found}");
        ensure!(secrets_of(&objects) == secrets, "{name}");
        // The others read what these do.
        if ["aws", "insecure"].contains(&name) {
            asked
                .check(&objects, |plugin| plugin, "")
                .with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

#[test]
fn grants_follow_the_settings() -> Result<()> {
    let asked = Asked::new(&KINDS)?;
    let more = [
        "--set-json",
        r#"namespaces=["datarobot-mlops","other"]"#,
        "--set-json",
        r#"predictionServer.imagePullSecrets=["z",{"name":"a"}]"#,
        "--set-json",
        r#"plugin={"limits":{"runMilliseconds":5000}}"#,
        "--set",
        "datarobot.predictionEnvId=6400000000000001",
    ];
    let objects = rendered(asked.home(), &more)?;
    asked.check(&objects, |plugin| plugin, "")
}

/// The objects of a kind.
fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let found = objects.iter().filter(|object| object["kind"] == kind);
    found.collect()
}

/// What a Plugin may reach.
fn capabilities(objects: &[Value], plugin: &str) -> Value {
    let mut plugins = of_kind(objects, "Plugin").into_iter();
    let found = plugins.find(|object| object["metadata"]["name"] == plugin);
    found.map_or(Value::Null, |found| found["spec"]["capabilities"].clone())
}

#[test]
fn the_loop_reaches_its_supervisor_and_signs_what_goes_there() -> Result<()> {
    let asked = Asked::new(&KINDS)?;
    let objects = rendered(asked.home(), &[])?;
    let [environment] = of_kind(&objects, "PredictionEnvironment")[..] else {
        bail!("no one PredictionEnvironment");
    };
    ensure!(environment["spec"] == json!({"id": "64f0c2a1b7d3e90012345678"}));
    let key = json!([{
        "name": "supervisor", "type": "Bearer", "entry": "secret",
        "secret": {"name": "mlops-api-key", "namespace": "datarobot-mlops"},
    }]);
    let signed =
        |url: &str, method: &str| json!({"url": url, "methods": [method], "key": "supervisor"});
    let found = capabilities(&objects, "models");
    let events = signed("https://app.datarobot.com/api/v2/remoteEvents/", "POST");
    ensure!(found == json!({"http": [events], "keys": key}), "{found}");
    let found = capabilities(&objects, "environments");
    let list = signed("https://app.datarobot.com/api/v2/deployments/", "GET");
    ensure!(found == json!({"http": [list], "keys": key}), "{found}");

    let other = asked.home().join("other.yaml");
    fs::write(
        &other,
        "supervisor:\n  deployments: {url: 'https://s.example/list?all=1', pages: 2}\n  packages: \
         {url: 'https://files.example/index.json'}\n  report: {url: \
         'https://s.example/v1/d-{deploymentId}/state', method: PUT, events: {healthDegraded: ''}}\n  \
         addresses: [10.0.0.0/8]\nplugin:\n  capabilities: {files: [/etc/x]}\n",
    )?;
    let objects = rendered(asked.home(), &["--values", &other.to_string_lossy()])?;
    let found = capabilities(&objects, "models");
    let at = json!(["10.0.0.0/8"]);
    let mut events = signed("https://s.example/v1/", "PUT");
    events["addresses"] = at.clone();
    ensure!(
        found == json!({"http": [events], "keys": key, "files": ["/etc/x"]}),
        "{found}"
    );
    let found = capabilities(&objects, "environments");
    let mut list = signed("https://s.example/list", "GET");
    list["addresses"] = at.clone();
    // The token is for the supervisor alone.
    let index = json!({
        "url": "https://files.example/index.json", "methods": ["GET"], "addresses": at,
    });
    ensure!(
        found == json!({"http": [list, index], "keys": key}),
        "{found}"
    );
    let config = config_of(&objects)?;
    ensure!(config["supervisor"]["report"]["events"]["healthDegraded"] == "");
    asked.check(&objects, |plugin| plugin, "")
}

#[test]
fn the_token_of_one_supervisor_goes_to_no_other() -> Result<()> {
    let home = tempfile::tempdir()?;
    // Who lists the deployments is another than DataRobot, which is told nothing by itself.
    let elsewhere = ["--set", "supervisor.deployments.url=https://s.example/list"];
    for (more, expected) in [
        (None, None),
        (Some("supervisor.report.url="), None),
        (
            Some("supervisor.report.url=https://s.example.evil/events"),
            Some(json!({"url": "https://s.example.evil/events", "methods": ["POST"]})),
        ),
        (
            Some("supervisor.report.url=https://s.example@evil/events"),
            Some(json!({"url": "https://s.example@evil/events", "methods": ["POST"]})),
        ),
        (
            Some("supervisor.report.url=https://app.datarobot.com/api/v2/remoteEvents/"),
            Some(json!({
                "url": "https://app.datarobot.com/api/v2/remoteEvents/", "methods": ["POST"],
            })),
        ),
    ] {
        let mut arguments = elsewhere.to_vec();
        arguments.extend(more.iter().flat_map(|more| ["--set", more]));
        let objects = rendered(home.path(), &arguments)?;
        let expected = expected.map_or(Value::Null, |grant| json!({"http": [grant]}));
        let found = capabilities(&objects, "models");
        ensure!(found == expected, "{more:?}: {found}");
    }
    let silent = rendered(home.path(), &["--set", "supervisor.report.url="])?;
    ensure!(capabilities(&silent, "models").is_null());
    for (setting, expected) in [
        (
            "supervisor.deployments.url=https://s.example?x=1",
            "has no path",
        ),
        (
            "plugin.capabilities.keys[0].name=supervisor",
            "is that of the API token",
        ),
    ] {
        match rendered(home.path(), &["--set", setting]) {
            Ok(_) => bail!("{setting} was taken"),
            Err(error) => ensure!(format!("{error:#}").contains(expected), "{error:#}"),
        }
    }
    Ok(())
}

#[test]
fn there_is_no_loop_where_nobody_wants_one() -> Result<()> {
    let home = tempfile::tempdir()?;
    for more in ["supervisor.enabled=false", "datarobot.predictionEnvId="] {
        let objects = rendered(home.path(), &["--set", more])?;
        let names: Vec<_> = of_kind(&objects, "Plugin");
        ensure!(
            names.len() == 1 && names[0]["metadata"]["name"] == "models",
            "{more}"
        );
        ensure!(
            of_kind(&objects, "PredictionEnvironment").is_empty(),
            "{more}"
        );
        ensure!(capabilities(&objects, "models").is_null(), "{more}");
        ensure!(config_of(&objects)?["supervisor"].is_null(), "{more}");
    }
    Ok(())
}

#[test]
fn either_spelling_is_taken_and_others_are_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    let later = [
        "--set",
        "predictionServer.ingressClassName=mlops,predictionServer.outfacingUrlRoot=http://your-company.com/x/",
        "--set",
        "managementAgent.repository=r,trackingAgent.image=i:1",
        "--set",
        "datarobot.predictionEnvId=6400000000000001",
    ];
    let config = config_of(&rendered(home.path(), &later)?)?;
    for (pointer, expected) in [
        ("/predictionServer/ingressClassName", "mlops"),
        (
            "/predictionServer/outfacingUrlRoot",
            "http://your-company.com/x/",
        ),
        ("/managementAgent/repository", "r"),
        ("/trackingAgent/image", "i:1"),
        // Digits alone are a number to --set.
        ("/datarobot/predictionEnvId", "6400000000000001"),
    ] {
        let found = config.pointer(pointer).and_then(Value::as_str);
        ensure!(found == Some(expected), "{pointer}: {found:?}");
    }
    for (setting, expected) in [
        (r#"imageBuilder.ppsimage="x""#, "ppsimage"),
        (r#"imageBuilder.builder="docker""#, "/imageBuilder/builder"),
        (r#"namespaces=["A"]"#, "/namespaces/0"),
        (
            r#"datarobot.modelFormats=["onnx"]"#,
            "/datarobot/modelFormats/0",
        ),
    ] {
        match rendered(home.path(), &["--set-json", setting]) {
            Ok(_) => bail!("{setting} was taken"),
            Err(error) => {
                let text = format!("{error:#}");
                ensure!(text.contains(expected), "no `{expected}` in: {text}");
            }
        }
    }
    Ok(())
}

#[test]
fn it_lints() -> Result<()> {
    let home = tempfile::tempdir()?;
    let chart = chart_of(CHART);
    let lint = ["lint", "--strict", &chart.to_string_lossy()];
    let text = helm(home.path(), None, &lint)?;
    ensure!(text.contains("0 chart(s) failed"), "{text}");
    Ok(())
}
