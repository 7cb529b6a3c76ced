//! A cluster with an agent in it, and a registry with a plugin in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use reeve_core::Digest;
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, ControlPlane, Registry, User, binary, eventually};
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

/// The user that the agent is: nothing but what RBAC grants it.
const AGENT: &str = "reeve-agent";
const NAMESPACE: &str = "reeve-system";
const PLUGIN: &str = "chameleon";

/// What was pushed.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) component: String,
    pub(crate) manifest: String,
}

pub(crate) struct Stage {
    // Ends before what it talks to.
    agent: Option<Agent>,
    pub(crate) cluster: ControlPlane,
    pub(crate) registry: Registry,
    folder: PathBuf,
}

impl Stage {
    /// Starts the servers and installs the plugin, which is in the registry still to be
    /// pushed, and must be signed by a key that openssl makes.
    pub(crate) fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])?;
        let certificate = certificate.self_signed(&key)?;
        let roots = certificate.pem();
        let cluster = ControlPlane::builder().user(User::new(AGENT)).start()?;
        let folder = cluster.folder().join("keys");
        fs::create_dir_all(&folder)?;
        let stage = Self {
            agent: None,
            registry: Registry::start(&roots, &key.serialize_pem())?,
            cluster,
            folder,
        };
        stage.write("roots.pem", &roots)?;
        stage.write(
            "config.json",
            &stage.registry.docker_config(Registry::PASSWORD),
        )?;
        let curve = "ec_paramgen_curve:P-256";
        stage.openssl(&[
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            curve,
            "-out",
            "key.pem",
        ])?;
        let public = stage.openssl(&["pkey", "-in", "key.pem", "-pubout"])?;

        let cluster = &stage.cluster;
        cluster.install_kinds()?;
        cluster.establish(&samples::profile_crd())?;
        cluster.apply_objects(&[samples::namespace(NAMESPACE), samples::namespace("alice")])?;
        cluster.apply_objects(&[samples::profile("alice")])?;
        cluster.apply_objects(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        stage.store_login(Registry::PASSWORD)?;
        let config = json!({
            "primary": "Profile.v1.kubeflow.org",
            "scope": "namespace-named-like-primary",
        });
        cluster.apply_objects(&[
            json!({
                "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
                "metadata": {"name": PLUGIN, "namespace": NAMESPACE},
                "spec": {
                    "artifact": {
                        "image": stage.image("1"),
                        "pullSecretName": "registry-login",
                        "caBundle": roots,
                        "intervalSeconds": 10,
                    },
                    "signatures": {"keys": [public]},
                },
            }),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": PLUGIN, "namespace": NAMESPACE,
                    "labels": {"reeve.dev/plugin": "true"},
                },
                "data": {"config.yaml": config.to_string()},
            }),
        ])?;
        stage.push("1", 1)?;
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        let said = stage.reeve(&[&grant[..], &to].concat())?;
        let line = format!("get secrets/registry-login in namespace {NAMESPACE}");
        ensure!(said.contains(&line), "{said}");
        Ok(stage)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.folder.join(name), text)?)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn openssl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("openssl");
        let output = command.args(arguments).current_dir(&self.folder).output();
        let output = output.context("openssl is not installed")?;
        ensure!(output.status.success(), "openssl {arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(crate) fn image(&self, tag: &str) -> String {
        self.registry.image(&format!("team/chameleon:{tag}"))
    }

    /// Runs `reeve` as an administrator of the cluster who is logged in to the registry.
    pub(crate) fn reeve(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(binary()?)
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("DOCKER_CONFIG", &self.folder)
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "reeve {arguments:?}: {error}");
        ensure!(!error.contains("c4n4ry"), "a password is in {error}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn at_registry(&self, arguments: &[&str]) -> Result<String> {
        let roots = self.path("roots.pem");
        self.reeve(&[arguments, &["--ca-bundle", &roots]].concat())
    }

    /// Pushes the component in one of its editions: the same with another custom section
    /// at its end.
    pub(crate) fn push(&self, tag: &str, edition: u8) -> Result<Pushed> {
        let mut bytes = fs::read(guest(PLUGIN))?;
        bytes.extend([0, 9, 7]);
        bytes.extend(b"edition");
        bytes.push(edition);
        fs::write(self.folder.join("plugin.wasm"), &bytes)?;
        let (image, file) = (self.image(tag), self.path("plugin.wasm"));
        let said = self.at_registry(&["plugin", "push", &image, &file, "-o", "json"])?;
        let said: Value = serde_json::from_str(&said)?;
        let component = Digest::of(&bytes).to_string();
        ensure!(said["component"] == component, "{said}");
        let manifest = said["digest"].as_str().context("no digest")?.to_owned();
        Ok(Pushed {
            component,
            manifest,
        })
    }

    /// Pushes a component that has nothing in it, and signs it.
    pub(crate) fn push_nothing(&self, tag: &str) -> Result<()> {
        // A component without anything in it.
        fs::write(self.folder.join("text.wasm"), b"\0asm\x0d\0\x01\0\xff")?;
        let (image, file) = (self.image(tag), self.path("text.wasm"));
        let pushed = self.at_registry(&["plugin", "push", &image, &file]);
        // The command looks at what it pushes.
        ensure!(pushed.is_err(), "{pushed:?}");
        fs::write(self.folder.join("text.wasm"), b"\0asm\x0d\0\x01\0")?;
        self.at_registry(&["plugin", "push", &image, &file])?;
        self.sign(tag)
    }

    pub(crate) fn sign(&self, tag: &str) -> Result<()> {
        let (image, key) = (self.image(tag), self.path("key.pem"));
        self.at_registry(&["plugin", "sign", &image, "--key", &key])
            .map(drop)
    }

    /// Stores the login with this password.
    pub(crate) fn store_login(&self, password: &str) -> Result<()> {
        let config = STANDARD.encode(self.registry.docker_config(password));
        self.cluster.apply_objects(&[json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "registry-login", "namespace": NAMESPACE},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": config},
        })])
    }

    /// Starts the agent; the one before must have ended.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        let cache = self.cluster.folder().join("cache");
        let arguments = [
            format!("--namespace={NAMESPACE}"),
            format!("--cache={}", cache.display()),
        ];
        let kubeconfig = self.cluster.kubeconfig_of(AGENT)?;
        self.agent = Some(Agent::start_with(&self.cluster, &kubeconfig, &arguments)?);
        Ok(())
    }

    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")
    }

    pub(crate) fn log(&self) -> Result<String> {
        self.agent.as_ref().context("no agent")?.log()
    }

    pub(crate) fn plugin(&self) -> Result<Value> {
        let found = self.cluster.get("plugin", NAMESPACE, PLUGIN)?;
        found.context("no Plugin")
    }

    fn condition(&self, kind: &str) -> Result<Option<Value>> {
        let plugin = self.plugin()?;
        let conditions = plugin["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        Ok(conditions.find(|one| one["type"] == kind).cloned())
    }

    /// Waits until a condition has this reason and says this.
    pub(crate) fn wait_for(&self, kind: &str, reason: &str, says: &str) -> Result<()> {
        let waited = eventually(&format!("{kind} is {reason}"), || {
            let found = self.condition(kind)?.context("no such condition")?;
            let message = found["message"].as_str().unwrap_or_default();
            ensure!(
                found["reason"] == reason && message.contains(says),
                "{found}"
            );
            Ok(())
        });
        self.explained(waited)
    }

    pub(crate) fn wait_until_runs(&self, version: &Pushed) -> Result<()> {
        let waited = eventually("the version runs", || {
            let loaded = self.condition("Loaded")?.context("no condition")?;
            ensure!(loaded["status"] == "True", "{loaded}");
            self.still_runs(version)
        });
        self.explained(waited)
    }

    /// Waits until the registry says again what its tag names.
    pub(crate) fn wait_until_well(&self) -> Result<()> {
        let waited = eventually("nothing is stale", || {
            let stale = self.condition("ArtifactStale")?;
            ensure!(stale.is_none(), "{stale:?}");
            Ok(())
        });
        self.explained(waited)
    }

    pub(crate) fn still_runs(&self, version: &Pushed) -> Result<()> {
        let status = self.plugin()?["status"].clone();
        ensure!(status["digest"] == version.component, "{status}");
        Ok(())
    }

    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        let log = self.agent.as_ref().map(Agent::log_tail);
        result.with_context(|| format!("the agent's log ends: {}", log.unwrap_or_default()))
    }
}
