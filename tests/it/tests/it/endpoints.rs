//! What the agent's endpoints say, asked over a socket as the kubelet asks.

use reeve_agent::HealthServer;
use reeve_it::{World, config_map_reference, plugin, profile_reference};
use reeve_sim::Outage;
use reeve_test_support::eventually;
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
    let ask_again =
        serde_json::json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": "now"}}});
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
