//! `reeve dev` with the plugin that was made: once, and staying.

use crate::toolchain;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Longer than a build takes beside other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// Each number as `#`.
fn unnumbered(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if shown.ends_with('#') => {}
            true => shown.push('#'),
            false => shown.push(c),
        }
    }
    shown
}

/// It shows each step, what was granted and what was applied, and ends well. The target
/// that the compiler lacks is added first.
pub(crate) fn ends_when_converged(place: &Path) {
    let mut reeve = toolchain::bare(place);
    toolchain::helpful(place);
    if let Some(path) = std::env::var_os("PATH") {
        let tools = [place.join("tools")];
        let all = tools.into_iter().chain(std::env::split_paths(&path));
        reeve.env("PATH", std::env::join_paths(all).unwrap());
    }
    let output = reeve.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output:?}");
    assert!(
        err.starts_with("adding the target wasm32-unknown-unknown to the Rust toolchain\n"),
        "{err}"
    );
    let out = String::from_utf8_lossy(&output.stdout);
    let shown = unnumbered(&out);
    let mut lines = shown.lines();
    for line in [
        "  ✓ building # plugins: # KB (#.# s)",
        "  ✓ starting the embedded cluster: https://#.#.#.#:# (#.# s)",
        "  ✓ installing greeting (#.# s)",
        "      granted: create, delete, patch configmaps cluster-wide",
        "      granted: get, list, watch profiles.kubeflow.org cluster-wide",
        "      granted: patch profiles.kubeflow.org cluster-wide, for finalizers",
        "PLUGIN    PRIMARY            APPLIED",
        "greeting  Profile alice      ConfigMap alice/greeting",
        "greeting  Profile bob        ConfigMap bob/greeting",
        "greeting  Profile data-team  ConfigMap data-team/greeting",
        "converged: # objects from # plugins in #.# s",
    ] {
        let found = lines.any(|shown| shown == line);
        assert!(found, "`{line}` does not come, or not in its turn:\n{out}");
    }
    assert!(out.contains("converged: 3 objects from 1 plugins"), "{out}");
    assert_eq!(lines.next(), None, "{out}");
}

/// `reeve dev` while it runs.
struct Dev {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Dev {
    fn start(mut reeve: Command) -> Self {
        let mut child = reeve.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nobody listens after the test.
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            said: String::new(),
        }
    }

    /// The next line that begins like this, whatever comes before.
    fn says(&mut self, start: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("no line begins with `{start}`:\n{}", self.said);
            };
            self.said.push_str(&line);
            self.said.push('\n');
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Ends it as a terminal does that is closed; its exit code.
    fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-TERM", &id]).status();
        assert!(kill.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

/// The greeting of alice, as somebody with the printed kubeconfig sees it.
struct Greeting {
    runtime: Runtime,
    api: Api<ConfigMap>,
}

impl Greeting {
    fn of(kubeconfig: &Path) -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let api = runtime.block_on(async {
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let client = kube::Client::try_from(config.unwrap()).unwrap();
            Api::namespaced(client, "alice")
        });
        Self { runtime, api }
    }

    fn text(config_map: Option<ConfigMap>) -> Option<String> {
        config_map?.data?.remove("text")
    }

    /// Waits until it has this text.
    fn becomes(&self, text: &str) {
        let begun = Instant::now();
        loop {
            let found = self.runtime.block_on(self.api.get_opt("greeting")).unwrap();
            let found = Self::text(found);
            if found.as_deref() == Some(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:?} instead of {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Edits it by hand.
    fn edit(&self, text: &str) {
        let patch = Patch::Merge(json!({"data": {"text": text}}));
        let params = PatchParams::default();
        let edited = self.api.patch("greeting", &params, &patch);
        let edited = self.runtime.block_on(edited).unwrap();
        assert_eq!(Self::text(Some(edited)).as_deref(), Some(text));
    }
}

/// A panic is told with its file and line, until what is saved panics no more.
fn panics(dev: &mut Dev, source: &Path, good: &str) {
    let name = "profile.metadata.name";
    let bad = good.replace(
        name,
        &format!("{name};\n    assert!(namespace.is_empty(), \"not today\")"),
    );
    assert_ne!(bad, good);
    fs::write(source, &bad).unwrap();
    dev.says("greeting: building");
    let at = bad.lines().position(|line| line.contains("not today"));
    let place = format!("src/lib.rs:{})", at.unwrap() + 1);
    let said = loop {
        let said = dev.says("greeting");
        if said.contains("not today") {
            break said;
        }
    };
    assert!(said.contains(&place), "no {place} in {said}");
    fs::write(source, good).unwrap();
    dev.says("greeting: sha256:");
}

/// It says how to look at the cluster, puts a hand edit back, swaps what is saved, and
/// keeps what ran where that does not build.
pub(crate) fn stays(place: &Path) {
    let dev = "dev --plugins plugins/greeting --kubeconfig kubeconfig";
    let mut dev = Dev::start(crate::reeve_command(place, dev));
    dev.says("converged: 3 objects from 1 plugins in ");
    let kubeconfig = place.join("kubeconfig");
    let export = dev.says("export KUBECONFIG=");
    assert_eq!(
        export,
        format!("export KUBECONFIG={}", kubeconfig.display())
    );
    dev.says("Try: kubectl get profiles,resourcequotas -A   or: kubectl get plugins");
    dev.says("Save a source file below plugins/greeting to swap its plugin; Ctrl-C stops.");

    let greeting = Greeting::of(&kubeconfig);
    greeting.becomes("hello");
    greeting.edit("mine");
    greeting.becomes("hello");

    let source = place.join("plugins/greeting/src/lib.rs");
    let first = fs::read_to_string(&source).unwrap();
    let second = first.replace("\"hello\"", "\"good day\"");
    assert_ne!(second, first);
    fs::write(&source, &second).unwrap();
    dev.says("greeting: building");
    let swapped = dev.says("greeting: sha256:");
    let end = " running #.# s after it was saved";
    assert!(unnumbered(&swapped).ends_with(end), "{swapped}");
    greeting.becomes("good day");

    fs::write(&source, format!("{second}\nfn broken(")).unwrap();
    dev.says("greeting: not built, the running version stays");
    dev.says("failed to compile greeting:");
    dev.says("error: this file contains an unclosed delimiter");
    let place = dev.says("  --> ");
    assert!(unnumbered(&place).ends_with("src/lib.rs:#:#"), "{place}");
    greeting.edit("mine");
    greeting.becomes("good day");
    panics(&mut dev, &source, &second);
    greeting.edit("mine");
    greeting.becomes("good day");

    fs::write(&source, &second).unwrap();
    dev.says("greeting: unchanged");
    assert_eq!(dev.terminate(), Some(0));
}
