//! Informers of client-go over hours of the server's time, while objects and a definition
//! come, change and go: whenever nobody writes, each of them has what a list has. The
//! server's clock is moved by hand, so watches end, get bookmarks and find that their
//! version was forgotten in the course of a few seconds.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use hyper::Request;
use kube::Client;
use reeve_real::parts::CLIENTS;
use reeve_sim::{Clock, Config, Hand, Server};
use reeve_test_support::Chance;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::controllers::STREAMING;

/// How long objects come and go, in minutes of the server.
const MINUTES: u64 = 240;
/// How often caches are compared with lists, in minutes.
const CHECKED: u64 = 20;
/// How long the program has to read what a minute brings, before the next one: far less
/// than it may take, so that it lags behind now and then.
const BREATH: Duration = Duration::from_millis(10);
/// Far more changes than are kept however old they are: half of them are of another kind,
/// and many are refused.
const MANY: u64 = 600;

const MAPS: &str = "/api/v1/namespaces/churn/configmaps";
const WIDGETS: &str = "/apis/clients.example.com/v1/namespaces/churn/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "widgets.clients.example.com";

#[test]
fn caches_follow_for_hours_by_lists() -> Result<()> {
    caches_follow_for_hours(false)
}

#[test]
fn caches_follow_for_hours_by_streams() -> Result<()> {
    caches_follow_for_hours(true)
}

fn caches_follow_for_hours(streaming: bool) -> Result<()> {
    let program = CLIENTS.get()?.join("clients");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (clock, hand) = Clock::by_hand(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
        let server = Server::new(Config {
            clock,
            ..Config::default()
        });
        let serving = server
            .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        serving.write_kubeconfig(&kubeconfig, "churn")?;
        let churn = Churn {
            client: server.client(),
            hand,
            chance: Chance::new(7),
            defined: false,
        };
        churn
            .send(
                "POST",
                "/api/v1/namespaces",
                &json!({"metadata": {"name": "churn"}}),
            )
            .await?;
        let informers = Informers::start(
            Command::new(program)
                .arg(&kubeconfig)
                .args(["churn", "caches"])
                .env(STREAMING, streaming.to_string()),
        )?;
        let last = follow(&server, churn, informers).await?;
        let count = |what: &str| last[what].as_i64().unwrap_or(0);
        for what in [
            "ended",
            "bookmarks",
            "gone",
            "resyncs",
            "configmaps",
            "widgets",
        ] {
            ensure!(count(what) > 0, "no {what}: {last}");
        }
        // Three informers, whose watches last ten minutes at most.
        let fewest = i64::try_from(3 * MINUTES / 10)?;
        ensure!(count("watches") >= fewest, "{last}");
        ensure!((count("streams") > 0) == streaming, "{last}");
        Ok(())
    })
}

async fn follow(server: &Server, mut churn: Churn, mut informers: Informers) -> Result<Value> {
    churn.define().await?;
    let mut last = Value::Null;
    for minute in 1..=MINUTES {
        churn.some(6).await?;
        churn.pass(1).await;
        match minute {
            // The definition goes with all of its objects, and comes back.
            50 | 130 => churn.undefine().await?,
            70 | 131 => churn.define().await?,
            // Whoever's watch ends has to wait for the next one, until all that it has seen
            // has been forgotten. A connection that breaks would be another matter: then
            // informers list again.
            100 => {
                server.set_faults(vec!["too-many-requests: verb=watch".parse()?]);
                churn.pass(12).await;
                churn.some(MANY).await?;
                churn.pass(6).await;
                churn.some(MANY).await?;
                server.set_faults(Vec::new());
            }
            _ => {}
        }
        if minute % CHECKED == 0 {
            last = informers
                .check()
                .await
                .with_context(|| format!("after {minute} minutes"))?;
            ensure!((last["widgets"] == -1) != churn.defined, "{last}");
            println!("after {minute} minutes: {last}");
        }
    }
    Ok(last)
}

/// Those who write, and the clock.
struct Churn {
    client: Client,
    hand: Hand,
    chance: Chance,
    defined: bool,
}

impl Churn {
    /// Lets minutes pass.
    async fn pass(&self, minutes: u64) {
        for _ in 0..minutes {
            self.hand.advance(Duration::from_secs(60));
            tokio::time::sleep(BREATH).await;
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<u16> {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(kube::client::Body::from(body.to_string().into_bytes()))?;
        Ok(self.client.send(request).await?.status().as_u16())
    }

    /// Does so much to objects that are there or are not.
    async fn some(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            let is_map = !self.defined || self.chance.below(2) == 0;
            let (path, version, kind) = match is_map {
                true => (MAPS, "v1", "ConfigMap"),
                false => (WIDGETS, "clients.example.com/v1", "Widget"),
            };
            let name = format!("object-{}", self.chance.below(12));
            let value = self.chance.below(1000).to_string();
            let content = match is_map {
                true => json!({"data": {"value": value}}),
                false => json!({"spec": {"value": value}}),
            };
            let object = format!("{path}/{name}");
            let status = match self.chance.below(5) {
                0 => self.send("DELETE", &object, &json!({})).await?,
                1 | 2 => self.send("PATCH", &object, &content).await?,
                _ => {
                    let mut made = content;
                    made["apiVersion"] = json!(version);
                    made["kind"] = json!(kind);
                    made["metadata"] = json!({"name": name});
                    self.send("POST", path, &made).await?
                }
            };
            ensure!([200, 201, 404, 409].contains(&status), "{object}: {status}");
        }
        Ok(())
    }

    async fn define(&mut self) -> Result<()> {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": DEFINITION},
            "spec": {
                "group": "clients.example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"value": {"type": "string"}}}},
                    }},
                }],
            },
        });
        let status = self.send("POST", DEFINITIONS, &definition).await?;
        ensure!(status == 201, "the definition is answered with {status}");
        self.defined = true;
        Ok(())
    }

    /// Deletes the definition, and waits until it is gone with its objects.
    async fn undefine(&mut self) -> Result<()> {
        let path = format!("{DEFINITIONS}/{DEFINITION}");
        let status = self.send("DELETE", &path, &json!({})).await?;
        ensure!(status == 200, "the deletion is answered with {status}");
        while self.send("GET", &path, &json!({})).await? != 404 {
            tokio::time::sleep(BREATH).await;
        }
        self.defined = false;
        Ok(())
    }
}

/// The program that has informers.
struct Informers {
    // It ends when this is dropped.
    _program: Child,
    asks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Informers {
    fn start(command: &mut Command) -> Result<Self> {
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let asks = program.stdin.take().context("no input")?;
        let answers = program.stdout.take().context("no output")?;
        Ok(Self {
            _program: program,
            asks,
            answers: BufReader::new(answers).lines(),
        })
    }

    /// Waits until all have what lists have, and returns what has passed so far.
    async fn check(&mut self) -> Result<Value> {
        self.asks.write_all(b"compare\n").await?;
        let answer = self.answers.next_line().await?;
        let answer = answer.context("the program has ended, and says above why")?;
        Ok(serde_json::from_str(&answer)?)
    }
}
