//! `reeve cluster`, as a shell sees it: the binary is run.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

const REEVE: &str = env!("CARGO_BIN_EXE_reeve");

/// A running server. It is killed when a test fails.
struct Running {
    child: Child,
    ready: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server and waits for its line.
fn start(kubeconfig: &Path, arguments: &[&str]) -> Running {
    let mut child = Command::new(REEVE)
        .args(["cluster", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let output = child.stdout.as_mut().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    Running { child, ready }
}

impl Running {
    /// Ends the server as an init system does; how it ended, and what else it said.
    fn terminate(mut self) -> (ExitStatus, String) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.child
            .stdout
            .as_mut()
            .unwrap()
            .read_to_string(&mut rest)
            .unwrap();
        (status, rest)
    }
}

/// What the command says when it cannot start, and its exit code.
fn refused(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(REEVE)
        .args(["cluster", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// The code of an answer, and its text.
async fn call(client: &Client, method: &str, path: &str, body: &str) -> (u16, String) {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
    let answer = client.send(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await.unwrap();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    // An earlier file is replaced, its mode too.
    std::fs::write(&file, "old").unwrap();
    let server = start(&file, &[]);
    let line = server.ready.clone();
    assert!(line.starts_with("ready: https://127.0.0.1:"), "{line}");
    assert!(
        line.ends_with(&format!("(export KUBECONFIG={})\n", file.display())),
        "{line}"
    );
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is left beside it");

    let client = client(&file).await;
    for path in ["/readyz", "/livez", "/healthz", "/readyz/ping"] {
        assert_eq!(
            call(&client, "GET", path, "").await,
            (200, "ok".to_owned()),
            "{path}"
        );
    }
    let verbose = "[+]ping ok\n[+]log ok\nreadyz check passed\n".to_owned();
    assert_eq!(
        call(&client, "GET", "/readyz?verbose", "").await,
        (200, verbose)
    );
    assert_eq!(call(&client, "GET", "/readyz/none", "").await.0, 404);
    let (code, list) = call(&client, "GET", "/api/v1/namespaces", "").await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 4));

    let (status, rest) = server.terminate();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
    let request = http::Request::get("/readyz").body(Body::empty()).unwrap();
    assert!(
        client.send(request).await.is_err(),
        "nobody listens any more"
    );
}

#[tokio::test]
async fn faults_are_set_on_the_command_line_and_changed_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let server = start(&file, &["--fault", "internal-error: verb=list, count=1"]);
    let client = client(&file).await;
    let list = "/api/v1/namespaces";
    assert_eq!(call(&client, "GET", list, "").await.0, 500);
    assert_eq!(call(&client, "GET", list, "").await.0, 200);
    let faults = "/debug/faults";
    // Not 503, which this client would ask again about.
    let wanted = "[\"internal-error: verb=list\"]";
    let on = "{\"faults\":[\"internal-error: verb=list\"]}".to_owned();
    assert_eq!(call(&client, "PUT", faults, wanted).await, (200, on));
    assert_eq!(call(&client, "GET", list, "").await.0, 500);
    assert_eq!(call(&client, "DELETE", faults, "").await.0, 200);
    assert_eq!(call(&client, "GET", list, "").await.0, 200);
    drop(server);
}

#[tokio::test]
async fn actors_work_on_the_clock_of_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let server = start(&file, &["--actors", "--nodes", "2"]);
    let client = client(&file).await;
    let (_, nodes) = call(&client, "GET", "/api/v1/nodes", "").await;
    let nodes: Value = serde_json::from_str(&nodes).unwrap();
    assert_eq!(nodes["items"].as_array().unwrap().len(), 2);
    drop(server);
}

#[test]
fn what_keeps_it_from_starting_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let nowhere = folder.path().join("none/kubeconfig");
    for (file, arguments, expected) in [
        (
            &file,
            &["--port", &port][..],
            format!(
                "cannot listen on 127.0.0.1:{port}; choose another port, or 0 for any that is free: "
            ),
        ),
        (
            &nowhere,
            &[][..],
            format!(
                "cannot write kubeconfig to {}; name a file in a folder that you may write to: ",
                nowhere.display()
            ),
        ),
        (
            &file,
            &["--fault", "latency"][..],
            "fault latency: field delay is missing; write latency: delay=200ms".to_owned(),
        ),
        (
            &file,
            &["--actors", "--actor-kind", "Widget"][..],
            "\"Widget\" names no custom kind; write the kind and its group".to_owned(),
        ),
    ] {
        let (code, message) = refused(file, arguments);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(&expected), "{message}");
        assert!(!file.exists());
    }
}
