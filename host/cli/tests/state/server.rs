//! A server that runs on a state, and requests to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// A server on a state. It is killed when this is dropped.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // SIGKILL.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn start(folder: &Path) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_reeve"))
        .args(["cluster", "--kubeconfig"])
        .arg(folder.join("kubeconfig"))
        .arg("--state")
        .arg(folder.join("state"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let output = child.stdout.as_mut().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready: "), "{ready}");
    Running(child)
}

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// The code and body of an answer; none where the connection broke.
pub(crate) async fn call(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Option<(u16, Value)> {
    let kind = match method {
        "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(Body::from(body.into_bytes()))
        .unwrap();
    let answer = client.send(request).await.ok()?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await.ok()?;
    Some((code, serde_json::from_slice(&bytes).ok()?))
}

/// What is read now. A connection of before a kill may not have noticed it yet.
pub(crate) async fn get(client: &Client, path: &str) -> (u16, Value) {
    for _ in 0..20 {
        if let Some(answer) = call(client, "GET", path, &Value::Null).await {
            return answer;
        }
    }
    panic!("no answer to GET {path}");
}
