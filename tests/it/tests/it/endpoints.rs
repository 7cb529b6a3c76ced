//! What the agent's endpoints say, asked over a socket as the kubelet asks.

use crate::told::{PLUGIN, annotated, config_map, install, tell, world};
use reeve_agent::HealthServer;
use reeve_it::{AGENT, NAMESPACE, World, config_map_reference, plugin, profile_reference};
use reeve_sim::Outage;
use reeve_test_support::eventually;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);

/// Serves the endpoints of a world's agent.
async fn serve(world: &World) -> SocketAddr {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = HealthServer::bind(any, world.agent().health())
        .await
        .unwrap();
    let address = server.address();
    tokio::spawn(server.serve());
    address
}

async fn ask(address: SocketAddr, path: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// What an agent counts, as Prometheus reads it.
pub(crate) async fn metrics(world: &World) -> String {
    let (status, body) = ask(serve(world).await, "/metrics").await;
    assert_eq!(status, 200, "{body}");
    body
}

/// Waits for a status, and returns the body.
async fn answers(address: SocketAddr, path: &str, status: u16) -> String {
    eventually(
        PATIENCE,
        &format!("{path} answers {status}"),
        async || match ask(address, path).await {
            (seen, body) if seen == status => Ok(body),
            other => Err(format!("{other:?}").into()),
        },
    )
    .await
}

/// Waits until a sample is there, or is not.
async fn counts(address: SocketAddr, sample: &str, there: bool) {
    eventually(PATIENCE, sample, async || {
        let (_, body) = ask(address, "/metrics").await;
        match body.contains(sample) == there {
            true => Ok(()),
            false => Err(body.into()),
        }
    })
    .await;
}

#[tokio::test]
async fn they_follow_a_plugin_through_its_life() {
    let mut world = World::started().await;
    let address = serve(&world).await;
    assert_eq!(answers(address, "/readyz", 200).await, "ok\nsole replica\n");
    assert_eq!(answers(address, "/startupz", 200).await, "ok\n");
    assert_eq!(answers(address, "/livez", 200).await, "ok\n");
    counts(address, "reeve_leader 1\n", true).await;

    world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    world.tenant("alice", &[]).await;
    for sample in [
        r#"reeve_units{plugin="quotas",state="ready"} 1"#,
        r#"reeve_writes_total{plugin="quotas",verb="apply",result="success"} 1"#,
        r#"controller_runtime_reconcile_total{controller="quotas",result="success"}"#,
        r#"workqueue_depth{name="quotas",controller="quotas"} 0"#,
        r#"reeve_call_seconds_count{plugin="quotas"}"#,
        r#"rest_client_requests_total{code="200",method="GET"}"#,
    ] {
        counts(address, sample, true).await;
    }
    // Asked again for nothing, it remembers.
    let ask_again = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": "now"}}});
    world.edit(&profile_reference("alice"), ask_again).await;
    for sample in [
        r#"reeve_memo_hits_total{plugin="quotas"}"#,
        r#"workqueue_unfinished_work_seconds{name="quotas",controller="quotas"} 0"#,
    ] {
        counts(address, sample, true).await;
    }
    let (_, body) = ask(address, "/metrics").await;
    assert!(
        body.contains(r#"reeve_plugin_info{plugin="quotas",digest="sha256:"#),
        "{body}"
    );
    assert!(!body.contains("alice"), "a label per unit: {body}");

    // An API server that goes away makes it unready, not dead.
    world.server.faults().set_outage(Outage::Refused);
    let problems = answers(address, "/readyz", 503).await;
    assert!(problems.contains("connection refused"), "{problems}");
    assert_eq!(ask(address, "/livez").await.0, 200);
    assert_eq!(
        ask(address, "/startupz").await.0,
        200,
        "it has started once"
    );
    world.server.faults().set_outage(Outage::None);
    answers(address, "/readyz", 200).await;
    counts(
        address,
        r#"reeve_watch_restarts_total{resource="configmaps"}"#,
        true,
    )
    .await;

    world.delete(&config_map_reference("quotas")).await;
    counts(address, r#""quotas""#, false).await;

    world.stop().await;
    assert_eq!(
        ask(address, "/livez").await,
        (503, "the agent has stopped\n".to_owned())
    );
}

/// The namespace of an object, and the old one where it is made anew, are writes, too.
#[tokio::test]
async fn every_write_for_a_plugin_counts() {
    let mut world = World::new().await;
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}]);
    let account = json!({"kind": "ServiceAccount", "name": PLUGIN, "namespace": NAMESPACE});
    world.role("more-account", &rules, &account).await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("more-agent", &rules, &agent).await;
    install(&world, PLUGIN, "ConfigMap.v1,Namespace.v1").await;
    world.start();
    let address = serve(&world).await;
    world.tenant("alice", &[]).await;
    let sealed = |value: &str| {
        let mut object = config_map("later", "c", &json!({"a": value}));
        object["immutable"] = json!(true);
        let options = "CreateNamespace=true,Force=true";
        annotated(object, "reeve.dev/sync-options", options)
    };
    let wrote = |verb: &str, count: u32| {
        format!(
            "reeve_writes_total{{plugin=\"{PLUGIN}\",verb=\"{verb}\",result=\"success\"}} {count}\n"
        )
    };
    tell(&world, "alice", &sealed("1")).await;
    counts(address, &wrote("create", 1), true).await;
    counts(address, &wrote("apply", 1), true).await;
    tell(&world, "alice", &sealed("2")).await;
    counts(address, &wrote("delete", 1), true).await;
    counts(address, &wrote("apply", 2), true).await;
}

/// What is written for a plugin that was removed counts as long as that goes on.
#[tokio::test(start_paused = true)]
async fn writes_of_a_removal_count() {
    let world = world("ConfigMap.v1", &json!({"deletionPolicy": "Delete"})).await;
    let address = serve(&world).await;
    world.tenant("alice", &[]).await;
    let mut object = config_map("alice", "c", &json!({"a": "1"}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    tell(&world, "alice", &object).await;
    world.delete(&config_map_reference(PLUGIN)).await;
    world.wait(Duration::from_secs(40)).await;
    let deleted =
        format!("reeve_writes_total{{plugin=\"{PLUGIN}\",verb=\"delete\",result=\"success\"}} 1\n");
    let (_, metrics) = ask(address, "/metrics").await;
    assert!(metrics.contains(&deleted), "{metrics}");
    let patch = json!({"metadata": {"finalizers": null}});
    world.edit(&object, patch).await;
    world.wait(Duration::from_secs(10)).await;
    assert_eq!(world.get(&object).await, None);
    let (_, metrics) = ask(address, "/metrics").await;
    assert!(!metrics.contains(&format!("\"{PLUGIN}\"")), "{metrics}");
}

#[tokio::test]
async fn an_agent_that_sees_nothing_lives_but_has_not_started() {
    let mut world = World::bare();
    world.start();
    let address = serve(&world).await;
    for path in ["/readyz", "/startupz"] {
        let problems = answers(address, path, 503).await;
        assert!(problems.starts_with("not ready\n"), "{problems}");
    }
    assert_eq!(ask(address, "/livez").await.0, 200);
}
