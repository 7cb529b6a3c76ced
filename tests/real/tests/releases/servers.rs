//! What is there and done on both servers alike.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, pin_mut};
use hyper::Request;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use kube::{Api, Client};
use reeve_test_support::definitions;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::scenarios::{CHART, Scenario, Step, VERSION};
use crate::statuses;

const RELEASES: &str = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/default/helmreleases";
const SOURCES: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default/ocirepositories";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// No watch lasts longer; all scenarios together take less.
const WATCHED: u32 = 290;

/// All statuses of each release, one after another, by its name.
pub(crate) type Story = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

/// Where the archive of the chart is, and what is known of it.
pub(crate) struct Archive {
    pub(crate) url: String,
    /// Of its bytes, with `sha256:` before it.
    pub(crate) digest: String,
    pub(crate) size: usize,
}

impl Archive {
    /// That with these bytes, on a server.
    pub(crate) fn of(chart: &[u8], server: &str) -> Self {
        let digest = Sha256::digest(chart);
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            url: format!("{server}/{hash}.tar.gz"),
            digest: format!("sha256:{hash}"),
            size: chart.len(),
        }
    }
}

/// One of the two.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
}

impl Server {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Result<Value> {
        let bytes = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(bytes)?;
        let answered = self.client.request::<Value>(request).await;
        answered.with_context(|| format!("{method} {path}"))
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        self.send("POST", path, "application/json", object).await
    }

    async fn patch(&self, path: &str, patch: &Value) -> Result<Value> {
        let media = "application/merge-patch+json";
        self.send("PATCH", path, media, patch).await
    }

    pub(crate) async fn release(&self, name: &str) -> Result<Value> {
        let path = format!("{RELEASES}/{name}");
        let media = "application/json";
        self.send("GET", &path, media, &Value::Null).await
    }

    /// The kinds, open to anything; a status is born as those of Flux are.
    pub(crate) async fn define(&self) -> Result<()> {
        for (plural, kind, group, version) in [
            ("helmreleases", "HelmRelease", "helm", "v2"),
            ("helmcharts", "HelmChart", "source", "v1"),
            ("ocirepositories", "OCIRepository", "source", "v1"),
        ] {
            let group = format!("{group}.toolkit.fluxcd.io");
            let definition = definitions::open(plural, kind, &group, version);
            self.create(DEFINITIONS, &definition).await?;
        }
        Ok(())
    }

    /// Sources, and how they stand: nobody else writes that.
    pub(crate) async fn publish(&self, archive: &Archive) -> Result<()> {
        let hash = archive.digest.trim_start_matches("sha256:");
        let artifact = json!({
            "url": archive.url,
            "digest": archive.digest,
            "revision": format!("{VERSION}@{}", archive.digest),
            "path": format!("{hash}.tar.gz"),
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "size": archive.size,
        });
        let stored = ("Ready", "True", "Succeeded", "stored artifact");
        let pull = ("Ready", "False", "OCIArtifactPullFailed", "failed to pull");
        let invalid = ("Stalled", "True", "URLInvalid", "no such scheme");
        for (name, condition, artifact, observed) in [
            (CHART, Some(stored), artifact, 1),
            ("empty", None, Value::Null, 1),
            ("failing", Some(pull), Value::Null, -1),
            ("stalled", Some(invalid), Value::Null, 1),
            ("new", None, Value::Null, -1),
        ] {
            let source = json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1",
                "kind": "OCIRepository",
                "metadata": {
                    "name": name,
                    "annotations": {"actor.reeve.dev/ignore": "true"},
                },
                "spec": {"interval": "1h", "url": format!("oci://example.com/charts/{CHART}")},
            });
            self.create(SOURCES, &source).await?;
            let condition = condition.map(|(kind, status, reason, message)| {
                json!({
                    "type": kind, "status": status, "reason": reason, "message": message,
                    "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            });
            let conditions: Vec<Value> = condition.into_iter().collect();
            let mut status = json!({"observedGeneration": observed, "conditions": conditions});
            if !artifact.is_null() {
                status["artifact"] = artifact;
            }
            let path = format!("{SOURCES}/{name}/status");
            self.patch(&path, &json!({"status": status})).await?;
        }
        Ok(())
    }

    /// Does a step, the place of which among those of the scenario is given.
    pub(crate) async fn take(&self, scenario: &Scenario, place: usize) -> Result<()> {
        let name = scenario.name;
        let path = format!("{RELEASES}/{name}");
        let is_there = scenario.steps[..place]
            .iter()
            .any(|step| matches!(step, Step::Fails(_)));
        match &scenario.steps[place] {
            Step::Fails(action) => {
                let asked = match *action {
                    "" => "none",
                    action => action,
                };
                let annotations = json!({"actor.reeve.dev/fail": asked});
                let values = json!({"fails": action});
                if is_there {
                    let patch = json!({
                        "metadata": {"annotations": annotations}, "spec": {"values": values},
                    });
                    self.patch(&path, &patch).await?;
                } else {
                    self.create(RELEASES, &release(scenario, &annotations, &values))
                        .await?;
                }
            }
            Step::Patch(patch) => drop(self.patch(&path, patch).await?),
            Step::Create(object) => drop(self.create(MAPS, object).await?),
            Step::Delete => {
                self.send("DELETE", &path, "application/json", &Value::Null)
                    .await?;
            }
        }
        Ok(())
    }

    /// Keeps each status that a release has, as long as this is polled.
    pub(crate) async fn follow(self, story: Story) -> Result<()> {
        let kind = GroupVersionKind::gvk("helm.toolkit.fluxcd.io", "v2", "HelmRelease");
        let resource = ApiResource::from_gvk(&kind);
        let releases: Api<DynamicObject> = Api::namespaced_with(self.client, "default", &resource);
        let params = WatchParams::default().timeout(WATCHED);
        let events = releases.watch(&params, "0").await?;
        pin_mut!(events);
        while let Some(event) = events.next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event? else {
                continue;
            };
            let object = serde_json::to_value(object)?;
            let name = object["metadata"]["name"].as_str().context("no name")?;
            let status = statuses::of(&object);
            let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
            let story = story.entry(name.to_owned()).or_default();
            if story.last() != Some(&status) {
                story.push(status);
            }
        }
        bail!("the watch of releases has ended")
    }
}

fn release(scenario: &Scenario, annotations: &Value, values: &Value) -> Value {
    let mut spec = json!({
        "interval": "1h",
        "timeout": "20s",
        "chartRef": {"kind": "OCIRepository", "name": CHART},
        "values": values,
    });
    for (field, value) in scenario.spec.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": scenario.name, "annotations": annotations},
        "spec": spec,
    })
}
