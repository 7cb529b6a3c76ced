//! `reeve cluster`, as a shell sees it: the binary is run.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod wire;

use reeve_test_support::definitions::FOLDER;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use wire::{Version, Wire};

const REEVE: &str = env!("CARGO_BIN_EXE_reeve");

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(60);

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
    // A file with nothing in it is replaced, its mode too.
    std::fs::write(&file, "\n").unwrap();
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

/// A context of the kubeconfig, and not the current one, which leads nowhere.
#[test]
fn the_agent_goes_to_the_context_that_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let server = start(&file, &[]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    let user = &config["users"][0]["name"];
    let nowhere = serde_json::json!([
        {"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}},
        {"name": "nowhere", "context": {"cluster": "nowhere", "user": user}},
    ]);
    let name = config["contexts"][0]["name"].as_str().unwrap().to_owned();
    for (list, index) in [("clusters", 0), ("contexts", 1)] {
        let list = config[list].as_array_mut().unwrap();
        list.push(nowhere[index].clone());
    }
    config["current-context"] = "nowhere".into();
    std::fs::write(&file, config.to_string()).unwrap();

    let run = |context: &[&str]| {
        let mut run = Command::new(REEVE);
        run.args(["run", "--health-address", "127.0.0.1:0", "--kubeconfig"])
            .arg(&file)
            .args(context)
            .env_remove("RUST_LOG")
            // For tests, and no setting.
            .env_remove(FOLDER)
            .stderr(Stdio::piped());
        run
    };
    // An empty cluster has not even the kinds of Reeve; nowhere is nobody who says so.
    for (context, expected) in [
        (
            &["--context", &name][..],
            "install the CRDs with `reeve crds",
        ),
        (&[], "onnection refused"),
    ] {
        let mut child = run(context).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut lines = log.lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("not ready"));
        child.kill().unwrap();
        child.wait().unwrap();
        let line = line.unwrap();
        assert!(line.contains(expected), "{context:?}: {line}");
    }
    let output = run(&["--context", "none"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "error: cannot use context none of the kubeconfig from ";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(output.status.code(), Some(2));
    drop(server);
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

/// Puts a config map of that name there.
async fn make(wire: &mut Wire, name: &str) -> hyper::Result<u16> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let answer = wire.send("POST", CONFIG_MAPS, &map.to_string()).await?;
    let status = answer.status().as_u16();
    answer.into_body().collect().await?;
    Ok(status)
}

/// Over a socket, where a connection is one, and several requests share it.
#[tokio::test]
async fn faults_strike_either_version_of_http() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let server = start(&file, &[]);
    let operator = client(&file).await;
    let set = async |faults: Value| {
        let (code, text) = call(&operator, "PUT", "/debug/faults", &faults.to_string()).await;
        assert_eq!(code, 200, "{text}");
    };
    for version in [Version::One, Version::Two] {
        let mut wire = Wire::connect(&file, version).await;
        let name = |what: &str| format!("{what}-{version:?}").to_lowercase();

        set(json!([
            "too-many-requests: retry-after=5s, verb=list, count=1"
        ]))
        .await;
        let answer = wire.send("GET", CONFIG_MAPS, "").await.unwrap();
        assert_eq!(answer.status(), 429, "{version:?}");
        assert_eq!(answer.headers()["retry-after"], "5", "{version:?}");
        answer.into_body().collect().await.unwrap();

        set(json!(["reset: verb=list, count=1"])).await;
        let broken = wire.send("GET", CONFIG_MAPS, "").await;
        assert!(broken.is_err(), "{version:?}: {broken:?}");
        // In HTTP/2 it is one of the requests of a connection that breaks.
        let next = wire.send("GET", CONFIG_MAPS, "").await;
        assert_eq!(next.is_ok(), version == Version::Two, "{next:?}");
        drop(next);

        set(json!(["lost-answer: verb=create, count=1"])).await;
        let mut wire = Wire::connect(&file, version).await;
        assert!(make(&mut wire, &name("lost")).await.is_err(), "{version:?}");
        let made = call(
            &operator,
            "GET",
            &format!("{CONFIG_MAPS}/{}", name("lost")),
            "",
        )
        .await;
        assert_eq!(made.0, 200, "it was carried out: {}", made.1);

        set(json!(["truncated-watch: after=300ms, count=1"])).await;
        let mut wire = Wire::connect(&file, version).await;
        let mut watch = wire.watch(CONFIG_MAPS).await;
        assert!(watch.told().await.unwrap().is_some(), "{version:?}");
        let end = loop {
            match watch.told().await {
                Ok(Some(_)) => {}
                end => break end,
            }
        };
        assert!(end.is_err(), "{version:?}: it ended as if all was said");

        set(json!([])).await;
        // In HTTP/2 both share a connection.
        let (mut wire, mut other) = match version {
            Version::One => (
                Wire::connect(&file, version).await,
                Some(Wire::connect(&file, version).await),
            ),
            Version::Two => (Wire::connect(&file, version).await, None),
        };
        let mut silent = wire.watch(CONFIG_MAPS).await;
        assert!(silent.told().await.unwrap().is_some(), "{version:?}");
        let heard = "/api/v1/configmaps";
        set(json!(["silent-watch: namespace=default"])).await;
        let mut heard = match &mut other {
            Some(other) => other.watch(heard).await,
            None => wire.watch(heard).await,
        };
        let mut writer = Wire::connect(&file, version).await;
        assert_eq!(make(&mut writer, &name("unheard")).await.unwrap(), 201);
        while heard.told().await.unwrap().unwrap() != name("unheard") {}
        let rest = loop {
            match tokio::time::timeout(Duration::from_millis(100), silent.told()).await {
                // What was there when it was opened may come in parts.
                Ok(Ok(Some(told))) if told != name("unheard") => {}
                rest => break rest,
            }
        };
        assert!(rest.is_err(), "{version:?}: it said {rest:?}");
        set(json!([])).await;
    }
    drop(server);
}

/// A port that nobody had a moment ago.
fn free_port() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_in_the_middle_of_work_and_keeps_what_it_answered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let state = folder.path().join("state");
    let port = free_port();
    let arguments = ["--port", &port, "--state", state.to_str().unwrap()];
    let server = start(&file, &arguments);
    let url = format!("ready: https://127.0.0.1:{port} ");
    assert!(server.ready.starts_with(&url), "{}", server.ready);

    let mut watches = Vec::new();
    for version in [Version::One, Version::Two] {
        let mut wire = Wire::connect(&file, version).await;
        let watch = wire.watch(CONFIG_MAPS).await;
        watches.push((wire, watch));
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let mut writers = Vec::new();
    for number in 0..4 {
        let version = [Version::One, Version::Two][number % 2];
        let (mut wire, answered) = (Wire::connect(&file, version).await, answered.clone());
        writers.push(tokio::spawn(async move {
            let mut made = Vec::new();
            loop {
                let name = format!("w{number}-{}", made.len());
                match make(&mut wire, &name).await {
                    Ok(status) => assert_eq!(status, 201, "{name}"),
                    Err(_) => return made,
                }
                answered.fetch_add(1, Ordering::Relaxed);
                made.push(name);
            }
        }));
    }
    while answered.load(Ordering::Relaxed) < 40 {
        tokio::task::yield_now().await;
    }
    let end = tokio::task::spawn_blocking(|| server.terminate());
    let (status, rest) = tokio::time::timeout(PATIENCE, end).await.unwrap().unwrap();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
    for (_wire, mut watch) in watches {
        let end = async { while let Ok(Some(_)) = watch.told().await {} };
        let ended = tokio::time::timeout(PATIENCE, end).await;
        assert!(ended.is_ok(), "a watch stays open without a server");
    }
    let mut made = Vec::new();
    for writer in writers {
        made.extend(writer.await.unwrap());
    }

    let server = start(&file, &arguments);
    assert!(server.ready.starts_with(&url), "{}", server.ready);
    let (_, list) = call(&client(&file).await, "GET", CONFIG_MAPS, "").await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let items = list["items"].as_array().unwrap();
    let there: Vec<&str> = items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    for name in &made {
        assert!(there.contains(&name.as_str()), "{name} was answered");
    }
    assert!(made.len() >= 40, "{} were made", made.len());
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
    // Somebody's own kubeconfig is not written over.
    std::fs::write(&file, "clusters: [{name: prod, cluster: {}}]").unwrap();
    let (code, message) = refused(&file, &[]);
    assert_eq!(code, Some(2), "{message}");
    assert!(
        message.contains("name another file with --kubeconfig"),
        "{message}"
    );
    assert!(std::fs::read_to_string(&file).unwrap().contains("prod"));
}
