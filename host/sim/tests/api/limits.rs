//! What no request may do: end the process, leave behind what cannot be read again, or
//! take what another object has.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Http, admin, config_map};

const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn text(http: &Http, method: &str, path: &str, media: &str, body: String) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(body.into_bytes())
        .unwrap();
    http.send(request).await
}

/// Whether the server still answers as if nothing had been.
async fn lives(http: &Http) {
    let (code, map) = http.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!((code, &map["data"]), (200, &json!({"k": "v"})));
}

#[tokio::test]
async fn patches_cannot_grow_without_end() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({"k": "v"})))
        .await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut copies = vec![json!({"op": "add", "path": "/x", "value": {}})];
    copies.extend((0..60).map(|n| json!({"op": "copy", "from": "/x", "path": format!("/x/k{n}")})));
    let (code, refused) = http
        .call_as("PATCH", &path, JSON_PATCH, json!(copies))
        .await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            422,
            Some("the server rejected our request due to an error in our request")
        )
    );
    let way = "/a".repeat(100);
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    let mut moves = vec![json!({"op": "add", "path": "/y", "value": 1})];
    for _ in 0..1000 {
        moves.extend([
            json!({"op": "add", "path": "/x", "value": deep}),
            json!({"op": "move", "from": "/y", "path": format!("/x{way}")}),
            json!({"op": "move", "from": "/x", "path": "/y"}),
        ]);
    }
    let (code, refused) = http.call_as("PATCH", &path, JSON_PATCH, json!(moves)).await;
    assert_eq!((code, refused["message"].as_str()), (400, Some(TOO_DEEP)));
    lives(&http).await;
}

const TOO_DEEP: &str = "the object with its managedFields nests deeper than 127 levels, which is all that this server reads: make it flatter";

#[tokio::test]
async fn aliases_cannot_build_towers() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({"k": "v"})))
        .await;
    let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
    let mut tower = format!("x:\n- &a0 {}\n", nested("1"));
    for level in 1..56 {
        let alias = nested(&format!("*a{}", level - 1));
        tower += &format!("- &a{level} {alias}\n");
    }
    for (method, path, media) in [
        ("POST", CONFIG_MAPS.to_owned(), "application/yaml"),
        ("PATCH", format!("{CONFIG_MAPS}/a?fieldManager=m"), APPLY),
    ] {
        let (code, refused) = text(&http, method, &path, media, tower.clone()).await;
        let message = refused["message"].as_str().unwrap();
        assert_eq!(code, 400, "{message}");
        assert!(
            message.contains("yaml: exceeded max depth of 127 levels"),
            "{message}"
        );
    }
    lives(&http).await;
}

#[tokio::test]
async fn what_is_stored_can_be_read_again() {
    let (_server, http) = admin();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "frees.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "frees", "kind": "Free"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    assert_eq!(http.post(DEFINITIONS, definition).await.0, 201);
    let frees = "/apis/example.com/v1/namespaces/default/frees";
    let mut stored = 0;
    for depth in [50, 100, 115, 118, 119, 120, 121, 122, 123, 124, 125, 126] {
        let mut deep = json!(1);
        for _ in 1..depth {
            deep = json!({"a": deep});
        }
        let name = format!("f{depth}");
        let object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Free",
            "metadata": {"name": name},
            "deep": deep,
        });
        let (code, answer) = http.post(frees, object).await;
        let path = format!("{frees}/{name}");
        if code == 400 {
            assert_eq!(answer["message"], TOO_DEEP, "{depth}");
            assert_eq!(http.get(&path).await.0, 404, "{depth}");
            continue;
        }
        assert_eq!(code, 201, "{depth}: {answer}");
        stored += 1;
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let (code, patched) = http.call("PATCH", &path, label).await;
        assert_eq!(code, 200, "{depth}: {patched}");
        assert_eq!(patched["metadata"]["uid"], answer["metadata"]["uid"]);
        assert_eq!(patched["deep"], deep, "{depth}");
    }
    assert!(
        (4..12).contains(&stored),
        "{stored} of 12 objects were not too deep"
    );
}

#[tokio::test]
async fn many_small_mistakes_are_told_in_linear_time() {
    let (_server, http) = admin();
    let start = Instant::now();
    let data: serde_json::Map<String, Value> = (0..50_000)
        .map(|n| (format!("a!{n}"), json!("v")))
        .collect();
    let (code, _) = http
        .post(CONFIG_MAPS, config_map("b", Value::Object(data)))
        .await;
    assert_eq!(code, 422);
    let lines: String = (0..50_000).map(|n| format!("  k{n}: v\n")).collect();
    let body = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n{lines}");
    let (code, _) = text(&http, "POST", CONFIG_MAPS, "application/yaml", body).await;
    assert_eq!(code, 201);
    assert!(
        start.elapsed().as_secs() < 60,
        "took {:?}, which is more than linear",
        start.elapsed()
    );
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn addresses_and_node_ports_have_one_service_each() {
    let (server, http) = admin();
    let port = json!([{"port": 80}]);
    let (code, first) = http
        .post(
            SERVICES,
            service("a", json!({"type": "NodePort", "ports": port})),
        )
        .await;
    assert_eq!(code, 201, "{first}");
    let ip = first["spec"]["clusterIP"].as_str().unwrap().to_owned();
    let node_port = first["spec"]["ports"][0]["nodePort"].clone();
    let (code, refused) = http
        .post(
            SERVICES,
            service("b", json!({"clusterIP": ip, "ports": port})),
        )
        .await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            422,
            format!("Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"{ip}\"]: failed to allocate IP {ip}: provided IP is already allocated").as_str()
        )
    );
    let outside = service("b", json!({"clusterIP": "1.2.3.4", "ports": port}));
    let (code, refused) = http.post(SERVICES, outside).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            422,
            "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range"
        )
    );
    let taken = json!([{"port": 80, "nodePort": node_port}]);
    let (code, refused) = http
        .post(
            SERVICES,
            service("b", json!({"type": "NodePort", "ports": taken})),
        )
        .await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            422,
            format!("Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: {node_port}: provided port is already allocated").as_str()
        )
    );
    // What a dry run or a Service without one was shown is still free.
    let none = service("none", json!({"clusterIP": "None", "ports": port}));
    for path in [SERVICES.to_owned(), format!("{SERVICES}?dryRun=All")] {
        let name = if path.contains('?') { "tried" } else { "none" };
        let mut made = none.clone();
        made["metadata"]["name"] = json!(name);
        assert_eq!(http.post(&path, made).await.0, 201);
    }
    // Its owner keeps it through updates, and in a fork.
    let fork = server.fork(reeve_sim::Clock::system());
    for client in [&http, &Http(fork.client())] {
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        let (code, changed) = client.call("PATCH", &format!("{SERVICES}/a"), label).await;
        assert_eq!((code, &changed["spec"]["clusterIP"]), (200, &json!(ip)));
        let (code, _) = client
            .post(
                SERVICES,
                service("b", json!({"clusterIP": ip, "ports": port})),
            )
            .await;
        assert_eq!(code, 422);
    }
    assert_eq!(http.delete(&format!("{SERVICES}/a")).await.0, 200);
    let (code, next) = http
        .post(
            SERVICES,
            service("b", json!({"clusterIP": ip, "ports": port})),
        )
        .await;
    assert_eq!(code, 201, "{next}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn services_made_at_once_have_different_addresses() {
    let (_server, http) = admin();
    let made: Vec<_> = (0..64)
        .map(|n| {
            let http = http.clone();
            tokio::spawn(async move {
                let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
                http.post(SERVICES, service(&format!("s{n}"), spec)).await.1
            })
        })
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for service in made {
        let service = service.await.unwrap();
        let spec = &service["spec"];
        assert!(seen.insert(spec["clusterIP"].to_string()), "{spec}");
        assert!(
            seen.insert(spec["ports"][0]["nodePort"].to_string()),
            "{spec}"
        );
    }
    assert_eq!(seen.len(), 128);
}
