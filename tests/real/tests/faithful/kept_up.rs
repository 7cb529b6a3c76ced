//! What both servers do for namespaces by themselves, some time after they were asked for
//! something: they count what quotas bound, and publish their certificate.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::corpus::{self, Scenario, Step};
use crate::play::Player;
use crate::servers::Servers;
use crate::suite::{compare, folder, report};

const CERTIFICATE: &str = "/api/v1/namespaces/$ns/configmaps/kube-root-ca.crt";

/// How long a controller may take.
const PATIENCE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(20);

/// The ConfigMap once it is as `wanted`.
async fn published(player: &mut Player<'_>, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let started = Instant::now();
    loop {
        let found = player.look(CERTIFICATE).await?;
        match found {
            Some(found) if wanted(&found) => return Ok(found),
            found => ensure!(started.elapsed() < PATIENCE, "it stays {found:?}"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn holds_a_certificate(object: &Value) -> bool {
    let data = object["data"].as_object();
    let text = object["data"]["ca.crt"].as_str().unwrap_or_default();
    data.is_some_and(|data| data.len() == 1) && text.contains("BEGIN CERTIFICATE")
}

/// What there is of the ConfigMap but for what differs from server to server.
fn shape(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    let managers = metadata["managedFields"].as_array_mut();
    for entry in managers.into_iter().flatten() {
        entry["time"] = Value::Null;
    }
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata[field] = Value::Null;
    }
    object["data"]["ca.crt"] = Value::Null;
    object
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_are_kept_up_alike() -> Result<()> {
    let text = fs::read_to_string(folder().join("kept-up.yaml"))?;
    let scenarios: Vec<Scenario> = corpus::parse(&text)?;
    let servers = Servers::keeping_up_namespaces().await?;
    for (number, scenario) in scenarios.iter().enumerate() {
        let namespace = format!("kept-up-{number}");
        let found = compare(&servers, scenario, &namespace).await?;
        ensure!(found.is_empty(), "{}", report(&scenario.name, &found));
    }

    let mut shapes = Vec::new();
    for endpoint in [&servers.real, &servers.embedded] {
        let mut player = Player::new(endpoint, "certified").await?;
        let first = published(&mut player, holds_a_certificate).await?;
        shapes.push(shape(first.clone()));
        let mut edit = Step::request("PATCH", CERTIFICATE);
        edit.merge = Some(json!({"data": {"ca.crt": "mine", "other": "thing"}}));
        player.step(&edit).await.context("editing it")?;
        let again = published(&mut player, holds_a_certificate).await?;
        ensure!(again["data"] == first["data"], "{again}");
        let delete = Step::request("DELETE", CERTIFICATE);
        player.step(&delete).await.context("deleting it")?;
        let anew = published(&mut player, |found| {
            found["metadata"]["uid"] != first["metadata"]["uid"]
        });
        ensure!(anew.await?["data"] == first["data"]);
    }
    let [real, embedded] = &shapes[..] else {
        unreachable!("two servers were looked at")
    };
    ensure!(real == embedded, "{real:#}\n{embedded:#}");
    Ok(())
}
