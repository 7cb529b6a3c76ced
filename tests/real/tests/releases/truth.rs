//! The scenarios with helm-controller, on a real API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use futures::future::join_all;
use hyper::Response;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use reeve_real::{ControlPlane, FLUX_USER, User, helm};
use reeve_test_support::http;
use serde_json::Value;

use crate::embedded::Played;
use crate::scenarios::{CHART, Scenario, VERSION};
use crate::servers::{Archive, Server, Story};
use crate::statuses;

/// Pauses between attempts grow from 750 ms, and what waits for others is looked at every
/// 30 s; the machine has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);
const INTERVAL: Duration = Duration::from_millis(200);
const SHORT: Duration = Duration::from_secs(10);

/// The chart: what it has cannot be made, or cannot be deleted, where its values say so.
/// Names that no server takes are enough for that.
const TEMPLATES: [(&str, &str); 3] = [
    (
        "map",
        r#"apiVersion: v1
kind: ConfigMap
metadata:
{{- if or (and .Release.IsInstall (eq .Values.fails "install")) (and .Release.IsUpgrade (eq .Values.fails "upgrade")) }}
  name: NOT_A_NAME
{{- else }}
  name: {{ .Release.Name }}
{{- end }}
"#,
    ),
    (
        "test",
        r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-test
  annotations: {"helm.sh/hook": test}
{{- if eq .Values.fails "test" }}
  labels: {"not/a/label": ""}
{{- end }}
"#,
    ),
    (
        "end",
        r#"{{- if eq .Values.fails "uninstall" }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: NOT_A_NAME
  annotations: {"helm.sh/hook": pre-delete}
{{- end }}
"#,
    ),
];

/// Plays all scenarios at once, and says what became otherwise than with the actors.
pub(crate) fn compare(
    scenarios: &[Scenario],
    played: &BTreeMap<&'static str, Played>,
    chart: Bytes,
) -> Result<Vec<String>> {
    let flux = User {
        name: FLUX_USER.to_owned(),
        groups: vec!["system:masters".to_owned()],
    };
    let cluster = ControlPlane::builder().user(flux).start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let server = runtime.block_on(async {
        let read = Kubeconfig::read_from(cluster.kubeconfig())?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let server = Server::new(Client::try_from(config)?);
        server.define().await?;
        eventually_published(&server, serve(chart).await?).await?;
        anyhow::Ok(server)
    })?;
    let _controller = cluster.start_helm_controller()?;
    runtime.block_on(async {
        let story = Story::default();
        let follow = tokio::spawn(server.clone().follow(story.clone()));
        let all = scenarios.iter().map(|scenario| {
            let played = &played[scenario.name];
            play(&server, scenario, played, &story)
        });
        let found = join_all(all).await;
        ensure!(!follow.is_finished(), "{:?}", follow.await);
        Ok(found
            .into_iter()
            .filter_map(Result::err)
            .map(|e| format!("{e:#}"))
            .collect())
    })
}

/// The sources can be made once their kind is served.
async fn eventually_published(server: &Server, archive: Archive) -> Result<()> {
    let begun = Instant::now();
    loop {
        match server.publish(&archive).await {
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(INTERVAL).await,
            done => return done,
        }
    }
}

async fn play(server: &Server, scenario: &Scenario, played: &Played, story: &Story) -> Result<()> {
    let name = scenario.name;
    for (place, expected) in played.after.iter().enumerate() {
        server.take(scenario, place).await?;
        if expected.is_null() {
            continue;
        }
        let begun = Instant::now();
        loop {
            let found = statuses::of(&server.release(name).await?);
            if statuses::differences(expected, &found).is_empty() {
                break;
            }
            if begun.elapsed() > PATIENCE {
                let differences = statuses::differences(expected, &found).join("\n  ");
                let seen = story_of(story, name);
                let seen: Vec<String> = seen.iter().map(statuses::summary).collect();
                return Err(anyhow!(
                    "{name}, after step {place}, actors and helm-controller say\n  \
                     {differences}\nby way of {seen:#?}"
                ));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
    // What was seen by asking is told by the watch a moment later.
    let begun = Instant::now();
    loop {
        let seen = story_of(story, name);
        let Some(conditions) = missing(&played.story, &seen) else {
            return Ok(());
        };
        if begun.elapsed() > SHORT {
            let seen: Vec<String> = seen.iter().map(statuses::summary).collect();
            return Err(anyhow!(
                "{name}: the actors write {conditions:#}\nwhich helm-controller does not, or not \
                 then: {seen:#?}"
            ));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The first conditions of a story that are not in another, after those before them.
fn missing<'s>(story: &'s [Value], seen: &[Value]) -> Option<&'s Value> {
    let mut left = seen.iter();
    let conditions = story.iter().map(|status| &status["conditions"]);
    conditions.into_iter().find(|conditions| {
        let is_there =
            |found: &Value| statuses::differences(conditions, &found["conditions"]).is_empty();
        !left.any(is_there)
    })
}

fn story_of(story: &Story, name: &str) -> Vec<Value> {
    let story = story.lock().unwrap_or_else(PoisonError::into_inner);
    story.get(name).cloned().unwrap_or_default()
}

/// The archive of the chart.
pub(crate) fn package(home: &Path) -> Result<Bytes> {
    let source = home.join(CHART);
    fs::create_dir_all(source.join("templates"))?;
    let about = format!("apiVersion: v2\nname: {CHART}\nversion: {VERSION}\n");
    fs::write(source.join("Chart.yaml"), about)?;
    fs::write(source.join("values.yaml"), "fails: \"\"\n")?;
    for (name, template) in TEMPLATES {
        fs::write(source.join(format!("templates/{name}.yaml")), template)?;
    }
    let (source, to) = (source.to_string_lossy(), home.to_string_lossy());
    helm(home, None, &["package", &source, "--destination", &to])?;
    let archive = fs::read(home.join(format!("{CHART}-{VERSION}.tgz")));
    Ok(archive.context("nothing was packaged")?.into())
}

async fn serve(chart: Bytes) -> Result<Archive> {
    let served = chart.clone();
    let answers = http::serve(None, move |_| {
        let answer = Response::new(http::whole(served.clone()));
        async move { answer }
    });
    let port = answers.await?;
    Ok(Archive::of(&chart, &format!("http://127.0.0.1:{port}")))
}
