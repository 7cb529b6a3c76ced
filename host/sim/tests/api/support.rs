//! What the tests of the API share: requests as (method, path, body), answers as
//! (code, JSON).

#![allow(dead_code, reason = "each test binary uses a part")]

use http::Request;
use reeve_sim::{Clock, Config, Server};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// A server on a clock that stands at one moment, with a seed.
pub(crate) fn server() -> Server {
    Server::new(Config {
        clock: Clock::new(|| UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        seed: Some(1),
        ..Config::default()
    })
}

/// A client that speaks plain HTTP through `kube::Client`.
#[derive(Clone)]
pub(crate) struct Http(pub(crate) kube::Client);

impl Http {
    /// Sends a request; the answer's code and JSON (null for no JSON).
    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> (u16, Value) {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, kube::client::Body::from(body));
        let answer = self.0.send(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.call_as(method, path, media, body).await
    }

    pub(crate) async fn call_as(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Value,
    ) -> (u16, Value) {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "tests/1")
            .body(bytes)
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.call("DELETE", path, Value::Null).await
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, body: Value) -> (u16, Value) {
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{sign}fieldManager={manager}");
        self.call_as("PATCH", &path, "application/apply-patch+yaml", body)
            .await
    }
}

/// A server with an administrator's client.
pub(crate) fn admin() -> (Server, Http) {
    let server = server();
    let client = Http(server.client());
    (server, client)
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Lets the controllers of the server do what there is to do.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
