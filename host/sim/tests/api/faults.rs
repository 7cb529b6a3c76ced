//! What goes wrong on request, on virtual time.

use std::time::Duration;

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::client::Body;
use reeve_sim::{Clock, Config, Fault, Server};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{CONFIG_MAPS, Http, config_map, settle};

/// A server on virtual time with these faults.
fn failing(faults: &[&str]) -> (Server, Http) {
    let server = Server::new(Config {
        clock: Clock::following_tokio(std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        seed: Some(1),
        ..Config::default()
    });
    set(&server, faults);
    let http = Http(server.client());
    (server, http)
}

fn set(server: &Server, faults: &[&str]) {
    let faults = faults.iter().map(|text| text.parse::<Fault>().unwrap());
    server.set_faults(faults.collect());
}

/// Sends requests and notes their codes.
async fn codes(http: &Http, method: &str, path: &str, body: Value, times: usize) -> Vec<u16> {
    let mut codes = Vec::new();
    for _ in 0..times {
        codes.push(http.call(method, path, body.clone()).await.0);
    }
    codes
}

#[tokio::test(start_paused = true)]
async fn answers_come_late() {
    for (fault, method, path, delay) in [
        ("latency: delay=2s", "GET", CONFIG_MAPS, 2..3),
        ("latency: delay=2s", "GET", "/version", 2..3),
        ("latency: delay=1s, jitter=4s", "GET", CONFIG_MAPS, 1..5),
        ("latency: delay=2s, verb=watch", "GET", CONFIG_MAPS, 0..1),
        (
            "latency: delay=2s, resource=secrets",
            "GET",
            CONFIG_MAPS,
            0..1,
        ),
        ("slow-admission: delay=3s", "POST", CONFIG_MAPS, 3..4),
        ("slow-admission: delay=3s", "GET", CONFIG_MAPS, 0..1),
        ("latency: delay=2s", "GET", "/readyz", 0..1),
    ] {
        let (_server, http) = failing(&[fault]);
        let begun = Instant::now();
        let body = if method == "POST" {
            config_map("a", json!({}))
        } else {
            Value::Null
        };
        let (code, answer) = http.call(method, path, body).await;
        assert!(code < 300, "{answer}");
        assert!(
            delay.contains(&begun.elapsed().as_secs()),
            "{fault}: {:?}",
            begun.elapsed()
        );
    }
    let (_server, http) = failing(&["latency: delay=2s", "latency: delay=3s"]);
    let begun = Instant::now();
    http.get(CONFIG_MAPS).await;
    assert_eq!(begun.elapsed().as_secs(), 5, "delays add up");
}

#[tokio::test(start_paused = true)]
async fn answers_are_refusals() {
    for (fault, code, reason, message) in [
        (
            "internal-error",
            500,
            "InternalError",
            "Internal error occurred: asked for by a fault",
        ),
        (
            "unavailable",
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        (
            "expired",
            410,
            "Expired",
            "too old resource version: asked for by a fault",
        ),
    ] {
        let (_server, http) = failing(&[fault]);
        let (found, status) = http.get(&format!("{CONFIG_MAPS}?resourceVersion=1")).await;
        assert_eq!(found, code);
        assert_eq!(
            (status["reason"].as_str(), status["message"].as_str()),
            (Some(reason), Some(message))
        );
    }
    let (_server, http) = failing(&["too-many-requests: retry-after=7s"]);
    let request = Request::get(CONFIG_MAPS).body(Body::empty()).unwrap();
    let answer = http.0.send(request).await.unwrap();
    assert_eq!(
        (
            answer.status().as_u16(),
            answer.headers()["retry-after"].to_str().unwrap()
        ),
        (429, "7")
    );
    let text = answer.into_body().collect_bytes().await.unwrap();
    assert_eq!(text, "Too many requests, please try again later.\n");

    let (_server, http) = failing(&["expired"]);
    assert_eq!(
        http.get(CONFIG_MAPS).await.0,
        200,
        "who asks for no version can have any"
    );

    let (server, http) = failing(&[]);
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    set(&server, &["conflict"]);
    let (code, status) = http
        .call(
            "PATCH",
            &format!("{CONFIG_MAPS}/a"),
            json!({"data": {"x": "1"}}),
        )
        .await;
    assert_eq!(
        (code, status["message"].as_str()),
        (
            409,
            Some(
                "Operation cannot be fulfilled on configmaps \"a\": \
        the object has been modified; please apply your changes to the latest version and try again"
            )
        )
    );
    let (_, a) = http.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(a.get("data"), None, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn faults_strike_whom_they_name_as_often_as_they_say() {
    let get = |faults: &'static [&'static str], times| async move {
        let (server, http) = failing(faults);
        (
            codes(&http, "GET", CONFIG_MAPS, Value::Null, times).await,
            server,
        )
    };
    assert_eq!(
        get(&["internal-error: count=2"], 4).await.0,
        [500, 500, 200, 200]
    );
    assert_eq!(
        get(&["internal-error: count=1", "unavailable: count=1"], 3)
            .await
            .0,
        [500, 503, 200]
    );
    assert_eq!(get(&["internal-error: user=joe"], 1).await.0, [200]);
    assert_eq!(
        get(&["internal-error: user=kubernetes-*"], 1).await.0,
        [500]
    );
    assert_eq!(get(&["internal-error: agent=tests/*"], 1).await.0, [500]);
    assert_eq!(get(&["internal-error: namespace=other"], 1).await.0, [200]);
    let (first, _) = get(&["internal-error: probability=0.5"], 40).await;
    let (second, _) = get(&["internal-error: probability=0.5"], 40).await;
    assert_eq!(first, second, "the same ones in each run");
    let struck = first.iter().filter(|code| **code == 500).count();
    assert!((10..30).contains(&struck), "{struck} of 40");

    let (server, http) = failing(&["internal-error: for=10s"]);
    assert_eq!(http.get(CONFIG_MAPS).await.0, 500);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(http.get(CONFIG_MAPS).await.0, 200);
    assert_eq!(server.faults().active(), []);

    set(&server, &["internal-error"]);
    server.faults().spare("kubernetes-admin");
    assert_eq!(http.get(CONFIG_MAPS).await.0, 200);
    let joe = Http(server.client_as("joe", ["system:masters"]));
    assert_eq!(joe.get(CONFIG_MAPS).await.0, 500);
    set(&server, &["internal-error: user=kubernetes-admin"]);
    assert_eq!(
        http.get(CONFIG_MAPS).await.0,
        500,
        "who is named is not spared"
    );
}

#[tokio::test(start_paused = true)]
async fn connections_break() {
    let (_server, http) = failing(&["reset"]);
    let request = Request::get(CONFIG_MAPS).body(Body::empty()).unwrap();
    let error = http.0.send(request).await.unwrap_err();
    let mut texts = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(next) = source {
        texts.push_str(&format!(": {next}"));
        source = next.source();
    }
    assert!(texts.contains("connection reset by peer"), "{texts}");
}

#[tokio::test(start_paused = true)]
async fn answers_are_lost_of_what_is_done_then_or_later() {
    for (fault, at_once) in [("lost-answer", 200), ("lost-answer: delay=3s", 404)] {
        let (server, http) = failing(&[fault]);
        let body = Body::from(config_map("a", json!({})).to_string().into_bytes());
        let request = Request::post(CONFIG_MAPS)
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let error = http.0.send(request).await.unwrap_err();
        let texts = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
        let texts: Vec<String> = texts.map(ToString::to_string).collect();
        let texts = texts.join(": ");
        assert!(texts.contains("connection reset by peer"), "{texts}");
        // Reads are not struck, and a refusal that nobody hears is no harm.
        let one = format!("{CONFIG_MAPS}/a");
        assert_eq!(http.get(&one).await.0, at_once, "{fault}");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(http.get(&one).await.0, 200, "{fault}");
        set(&server, &[]);
    }
}

/// What a watch says within ten seconds: kinds of events, or how it ended.
async fn watched(server: &Server, version: &str) -> Vec<String> {
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let watch = match api.watch(&WatchParams::default(), version).await {
        Ok(watch) => watch,
        Err(error) => return vec![format!("refused: {error}")],
    };
    let mut watch = std::pin::pin!(watch);
    let mut said = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match tokio::time::timeout_at(until, watch.next()).await {
            Err(_) => {
                said.push("open".to_owned());
                return said;
            }
            Ok(None) => {
                said.push("ended".to_owned());
                return said;
            }
            Ok(Some(Ok(event))) => said.push(match event {
                WatchEvent::Added(_) => "added".to_owned(),
                WatchEvent::Error(status) => format!("error {}", status.code),
                other => format!("{other:?}"),
            }),
            Ok(Some(Err(_))) => {
                said.push("broken".to_owned());
                return said;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watches_break_fall_silent_and_expire() {
    for (faults, version, expected) in [
        (&[][..], "0", &["added", "open"][..]),
        (&["truncated-watch: after=3s"], "0", &["added", "broken"]),
        (&["silent-watch"], "0", &["open"]),
        (&["silent-watch: resource=secrets"], "0", &["added", "open"]),
        (&["expired"], "1", &["error 410", "ended"]),
    ] {
        let (server, http) = failing(&[]);
        http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
        set(&server, faults);
        assert_eq!(watched(&server, version).await, expected, "{faults:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_watches_fall_silent_too_and_stay_so_until_they_are_dropped() {
    let (server, http) = failing(&[]);
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    set(&server, &["silent-watch: for=5s"]);
    http.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    let hours = Duration::from_secs(3600);
    assert!(
        tokio::time::timeout(hours, watch.next()).await.is_err(),
        "it stays open and says nothing"
    );
    server.faults().drop_watches();
    assert!(matches!(watch.next().await, Some(Err(_))));
    assert_eq!(watched(&server, "0").await, ["added", "added", "open"]);
}

#[tokio::test(start_paused = true)]
async fn the_clock_jumps() {
    let (server, http) = failing(&[]);
    let made = |answer: (u16, Value)| {
        answer.1["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = made(http.post(CONFIG_MAPS, config_map("a", json!({}))).await);
    set(&server, &["clock-jump: by=1h"]);
    let second = made(http.post(CONFIG_MAPS, config_map("b", json!({}))).await);
    set(&server, &["clock-jump: by=-2h"]);
    let third = made(http.post(CONFIG_MAPS, config_map("c", json!({}))).await);
    assert_eq!(
        [&*first, &*second, &*third],
        [
            "2023-11-14T22:13:20Z",
            "2023-11-14T23:13:20Z",
            "2023-11-14T21:13:20Z"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn administrators_change_faults_through_the_server() {
    let (server, http) = failing(&[]);
    let path = "/debug/faults";
    assert_eq!(http.get(path).await, (200, json!({"faults": []})));
    let wanted = json!(["unavailable: verb=list", {"fault": "latency", "delay": "1s"}]);
    let on = json!({"faults": ["unavailable: retry-after=1s, verb=list", "latency: delay=1s"]});
    assert_eq!(http.call("PUT", path, wanted).await, (200, on.clone()));
    assert_eq!(http.get(CONFIG_MAPS).await.0, 503);
    assert_eq!(
        http.call("PUT", path, on.clone()).await,
        (200, on),
        "what is answered can be sent"
    );
    let (code, status) = http.call("PUT", path, json!(["slow"])).await;
    assert_eq!(
        (code, &status["message"].as_str().unwrap()[..49]),
        (400, "item 0 of the list: there is no fault \"slow\"; the")
    );
    // Nothing that goes wrong keeps anybody from ending it.
    server.faults().set_outage(reeve_sim::Outage::Unavailable);
    assert_eq!(http.delete(path).await, (200, json!({"faults": []})));
    server.faults().set_outage(reeve_sim::Outage::None);
    assert_eq!(http.get(CONFIG_MAPS).await.0, 200);
    let joe = Http(server.client_as("joe", [""; 0]));
    let (code, status) = joe.get(path).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (
            403,
            Some(
                "forbidden: user \"joe\" is no administrator: only those may look at faults or change them"
            )
        )
    );
    settle().await;
}
