//! Clients that have a server killed and started again behind them: `kubectl get --watch`,
//! `kubectl wait`, `kubectl rollout status`, and informers of client-go. The embedded
//! server, which goes on from its state, does to them what a kube-apiserver does.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use reeve_real::parts::{CLIENTS, KUBERNETES};
use reeve_real::{ControlPlane, EmbeddedCluster, eventually, without_collecting};

/// A server that can be killed.
trait Killed {
    fn kubeconfig(&self) -> PathBuf;
    fn kubectl(&self, arguments: &[&str]) -> Result<String>;
    fn folder(&self) -> &Path;
    fn kill(&mut self) -> Result<()>;
    fn start_again(&mut self) -> Result<()>;
}

impl Killed for ControlPlane {
    fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig()
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl(arguments)
    }

    fn folder(&self) -> &Path {
        self.folder()
    }

    fn kill(&mut self) -> Result<()> {
        self.kill_api_server()
    }

    fn start_again(&mut self) -> Result<()> {
        self.start_api_server()
    }
}

impl Killed for EmbeddedCluster {
    fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig()
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl(arguments)
    }

    fn folder(&self) -> &Path {
        self.folder()
    }

    fn kill(&mut self) -> Result<()> {
        self.kill()
    }

    fn start_again(&mut self) -> Result<()> {
        self.start_again()
    }
}

/// A program in the background. It is killed when this is dropped.
struct Program {
    name: &'static str,
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    fn start(
        server: &dyn Killed,
        name: &'static str,
        program: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        let output = server.folder().join(format!("{name}.output"));
        let errors = server.folder().join(format!("{name}.errors"));
        let mut command = Command::new(program);
        let child = without_collecting(&mut command)
            .args(arguments)
            .env("KUBECONFIG", server.kubeconfig())
            .env("KUBECACHEDIR", server.folder().join("cache"))
            .stdin(Stdio::piped())
            .stdout(File::create(&output)?)
            .stderr(File::create(&errors)?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name,
            child,
            output,
            errors,
        })
    }

    fn kubectl(server: &dyn Killed, name: &'static str, arguments: &[&str]) -> Result<Self> {
        let kubectl = KUBERNETES.get()?.join("kubectl");
        Self::start(server, name, &kubectl, arguments)
    }

    /// An informer, in the beginning with a list, or with a stream of what there is.
    fn informer(server: &dyn Killed, name: &'static str, streaming: bool) -> Result<Self> {
        let program = if streaming {
            "KUBE_FEATURE_WatchListClient=true"
        } else {
            "KUBE_FEATURE_WatchListClient=false"
        };
        let clients = CLIENTS.get()?.join("clients").display().to_string();
        let kubeconfig = server.kubeconfig().display().to_string();
        let arguments = [program, &clients, &kubeconfig, "default", "follow"];
        Self::start(server, name, Path::new("env"), &arguments)
    }

    fn output(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.output)?)
    }

    fn errors(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.errors)?)
    }

    /// Waits until it has begun to watch, by what it says of its requests.
    fn watches(&self) -> Result<()> {
        eventually(&format!("{} watches", self.name), || {
            let said = self.errors()?;
            let watches = said.contains("watch=true") || said.contains("sendInitialEvents");
            ensure!(watches, "{said}");
            Ok(())
        })
    }

    /// Waits until these are the words that it has printed, in this order, or in any.
    fn reaches(&self, expected: &[&str]) -> Result<()> {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        eventually(&format!("{} sees all", self.name), || {
            let (output, errors) = (self.output()?, self.errors()?);
            let found: BTreeSet<&str> = output.split_whitespace().collect();
            ensure!(found == expected, "{output}\n{errors}");
            // Nothing is told twice, either.
            let count = output.split_whitespace().count();
            ensure!(count == expected.len(), "{output}\n{errors}");
            Ok(())
        })
    }

    /// Waits until it has ended by itself: how, and what it printed, each line once.
    fn ended(&mut self) -> Result<String> {
        let mut code = None;
        let child = &mut self.child;
        eventually(&format!("{} ends", self.name), || {
            code = child.try_wait()?;
            ensure!(code.is_some(), "it still runs");
            Ok(())
        })?;
        let code = code.and_then(|code| code.code()).context("a signal")?;
        let output = self.output()?;
        let mut lines: Vec<_> = output.lines().collect();
        // Where a client reads everything anew, it may say what it has said.
        lines.dedup();
        Ok(format!("{}: {code}, {}", self.name, lines.join("; ")))
    }
}

/// What clients go through while a server is killed, one line each.
fn told(server: &mut dyn Killed) -> Result<Vec<String>> {
    for name in ["seen-a", "seen-b", "waited", "doomed"] {
        server.kubectl(&["create", "configmap", name])?;
    }
    let image = "--image=example.com/web";
    server.kubectl(&["create", "deployment", "web", image, "--replicas=2"])?;
    status(server, 1)?;

    let name = "custom-columns=:.type,:.object.metadata.name";
    let watch = [
        "get",
        "cm",
        "seen-a",
        "-w",
        "--output-watch-events",
        "-o",
        name,
    ];
    let mut watch = Program::kubectl(server, "get --watch", &watch)?;
    let value = "--for=jsonpath={.data.a}=1";
    let waits = ["wait", "cm", "waited", value, "--timeout=120s", "-v=7"];
    let mut waits = Program::kubectl(server, "wait", &waits)?;
    let goes = [
        "wait",
        "cm",
        "doomed",
        "--for=delete",
        "--timeout=120s",
        "-v=7",
    ];
    let mut goes = Program::kubectl(server, "wait for the end", &goes)?;
    let rollout = [
        "rollout",
        "status",
        "deployment",
        "web",
        "--timeout=120s",
        "-v=7",
    ];
    let mut rollout = Program::kubectl(server, "rollout status", &rollout)?;
    let lists = Program::informer(server, "informer with a list", false)?;
    let streams = Program::informer(server, "informer with a stream", true)?;
    for program in [&waits, &goes, &rollout] {
        program.watches()?;
    }
    eventually("the watch has begun", || {
        ensure!(watch.output()?.contains("seen-a"), "nothing");
        Ok(())
    })?;
    for informer in [&lists, &streams] {
        informer.reaches(&["+a", "+b"])?;
    }
    server.kubectl(&["label", "cm", "seen-a", "step=1"])?;
    for informer in [&lists, &streams] {
        informer.reaches(&["+a", "+b", "~a1"])?;
    }
    eventually("the watch sees the change", || {
        ensure!(watch.output()?.contains("MODIFIED"), "{}", watch.output()?);
        Ok(())
    })?;

    server.kill()?;
    let mut told = vec![watch.ended()?];
    server.start_again()?;
    server.kubectl(&["label", "cm", "seen-a", "step=2", "--overwrite"])?;
    server.kubectl(&["create", "configmap", "seen-c"])?;
    server.kubectl(&["delete", "cm", "seen-b"])?;
    for informer in [&lists, &streams] {
        informer.reaches(&["+a", "+b", "~a1", "~a2", "+c", "-b"])?;
    }
    for program in [&mut waits, &mut goes, &mut rollout] {
        let running = program.child.try_wait()?.is_none();
        ensure!(running, "{}", program.ended()?);
    }
    server.kubectl(&["patch", "cm", "waited", "-p", r#"{"data":{"a":"1"}}"#])?;
    server.kubectl(&["delete", "cm", "doomed"])?;
    status(server, 2)?;
    for program in [&mut waits, &mut goes, &mut rollout] {
        told.push(program.ended()?);
    }
    Ok(told)
}

/// Writes a status of the deployment, of which so many replicas are there.
fn status(server: &dyn Killed, replicas: u8) -> Result<()> {
    let patch = format!(
        r#"{{"status":{{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":{replicas},"availableReplicas":{replicas}}}}}"#
    );
    let arguments = ["patch", "deployment", "web", "--subresource=status"];
    let arguments = [&arguments[..], &["--type=merge", "-p", &patch]].concat();
    server.kubectl(&arguments).map(drop)
}

#[test]
fn clients_go_on_after_a_server_was_killed() -> Result<()> {
    let mut real = ControlPlane::builder().controllers([]).start()?;
    let mut embedded = EmbeddedCluster::start_with(&["--state=state"])?;
    let (expected, found) = thread::scope(|scope| {
        let real = scope.spawn(|| told(&mut real).context("kube-apiserver"));
        let found = told(&mut embedded).context("the embedded server");
        (real.join(), found)
    });
    let expected = expected.ok().context("the thread panicked")?;
    assert_eq!(found?, expected?);
    Ok(())
}
