//! A cluster with the agent in it, and what it reaches outside.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_core::grant::{self, Subject};
use reeve_real::{Agent, Azurite, ControlPlane, Names, Postgres, User, eventually};
use reeve_test_support::http::Certificate;
use reeve_test_support::{guest, samples};
use serde_json::{Value, json};

use crate::canaries::Canaries;
use crate::documents::Documents;

/// The user that the agent is: nothing but what RBAC grants it.
const AGENT: &str = "reeve-agent";
const NAMESPACE: &str = "reeve-system";
const PLUGIN: &str = "envoy";

/// The tenant.
pub(crate) const PROFILE: &str = "alice";
/// Its role and database.
pub(crate) const ROLE: &str = "reeve_alice";

/// A name that stands for what a test says.
pub(crate) const DOCUMENTS: &str = "documents.reeve.test";

/// Where all of the servers are; loopback has to be granted by its address.
const LOOPBACK: &str = "127.0.0.0/8";

/// Effects are looked for as often as is allowed.
const VERIFY: u32 = 10;

pub(crate) struct Stage {
    // Ends before what it talks to.
    agent: Option<Agent>,
    names: Option<Names>,
    pub(crate) cluster: ControlPlane,
    pub(crate) database: Postgres,
    storage: Option<Azurite>,
    pub(crate) documents: Documents,
    pub(crate) canaries: Canaries,
}

impl Stage {
    /// Starts the servers, installs the plugin and grants it what it needs. `wanted`
    /// has what it is to have besides a database: `service`, `document`. The agent does
    /// not run yet.
    pub(crate) fn new(wanted: &Value) -> Result<Self> {
        Self::with_names(wanted, None)
    }

    /// As [`Self::new`], with a name server that knows [`DOCUMENTS`], which is where the
    /// document is then.
    pub(crate) fn with_names(wanted: &Value, names: Option<Names>) -> Result<Self> {
        let certificate = Certificate::of(&["localhost", DOCUMENTS])?;
        let (roots, private) = (certificate.pem.clone(), certificate.key_pem.clone());
        let canaries = Canaries::new();
        let stage = Self {
            agent: None,
            names,
            cluster: ControlPlane::builder().user(User::new(AGENT)).start()?,
            database: Postgres::start(&roots, &private, &canaries.admin_password)?,
            storage: match wanted["service"] == true {
                true => Some(Azurite::start(&roots, &private, &canaries.storage_key)?),
                false => None,
            },
            documents: Documents::serve(&certificate)?,
            canaries,
        };
        let cluster = &stage.cluster;
        cluster.install_kinds()?;
        cluster.establish(&samples::profile_crd())?;
        cluster.apply_objects(&[samples::namespace(NAMESPACE)])?;
        cluster.apply_objects(&grant::agent_base(NAMESPACE, Subject::User(AGENT)))?;
        let admin = json!({
            "host": "localhost",
            "port": stage.database.port().to_string(),
            "username": Postgres::ADMIN,
            "password": stage.canaries.admin_password,
            "ca.crt": roots,
        });
        stage.store_key(&stage.canaries.storage_key)?;
        let host = stage.names.as_ref().map_or("localhost", |_| DOCUMENTS);
        let documents = stage.documents.url(host);
        let folder = documents.trim_end_matches("notes");
        let mut capabilities = json!({
            "http": [
                {"url": folder, "methods": ["GET"], "addresses": [LOOPBACK], "caBundle": roots},
            ],
            "sql": [{"name": "main", "secret": {"name": "postgres-admin"}, "addresses": [LOOPBACK]}],
            "keys": [{
                "name": "storage", "type": "AzureSharedKey", "secret": {"name": "storage-key"},
            }],
        });
        let mut config = json!({"retire": true, "verify": VERIFY, "database": true});
        if let Some(storage) = &stage.storage {
            let url = storage.url();
            let grant = json!({
                "url": url, "addresses": [LOOPBACK], "caBundle": roots, "key": "storage",
            });
            if let Some(grants) = capabilities["http"].as_array_mut() {
                grants.push(grant);
            }
            config["service"] = json!(url);
            config["query"] = json!("?restype=container");
        }
        cluster.apply_objects(&[
            secret("postgres-admin", &admin),
            json!({
                "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
                "metadata": {"name": PLUGIN, "namespace": NAMESPACE},
                "spec": {"capabilities": capabilities},
            }),
        ])?;
        if wanted["document"] == true {
            config["url"] = json!(documents);
            config["seconds"] = json!(1);
        }
        cluster.deliver(NAMESPACE, PLUGIN, &guest("envoy"), Some(&config))?;
        // The Secrets that the policy names are among what is granted.
        let grant = ["plugin", "grant", PLUGIN, "--namespace", NAMESPACE];
        let to = ["--agent-user", AGENT, "--apply"];
        let said = cluster.reeve(&[&grant[..], &to].concat())?;
        for name in ["postgres-admin", "storage-key"] {
            let line = format!("granted to the agent: get secrets/{name} in namespace {NAMESPACE}");
            ensure!(said.contains(&line), "{said}");
        }
        ensure!(!said.contains("not granted"), "{said}");
        Ok(stage)
    }

    /// The name server, where there is one.
    pub(crate) fn names(&self) -> Result<&Names> {
        self.names.as_ref().context("no name server")
    }

    /// The storage, where it was asked for.
    pub(crate) fn storage(&mut self) -> Result<&mut Azurite> {
        self.storage.as_mut().context("no storage")
    }

    /// Stores the key of the storage account.
    pub(crate) fn store_key(&self, key: &str) -> Result<()> {
        self.cluster.apply_objects(&[secret(
            "storage-key",
            &json!({
                "azurestorageaccountname": Azurite::ACCOUNT, "azurestorageaccountkey": key,
            }),
        )])
    }

    /// Makes the tenant.
    pub(crate) fn add_profile(&self) -> Result<()> {
        self.cluster
            .apply_objects(&[samples::namespace(PROFILE), samples::profile(PROFILE)])
    }

    /// Starts the agent; the one before must have ended.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        let cache = self.cluster.folder().join("cache");
        let arguments = [
            // It would wait for the lease of the one before it.
            "--leader-elect=false".to_owned(),
            format!("--namespace={NAMESPACE}"),
            format!("--cache={}", cache.display()),
        ];
        let kubeconfig = self.cluster.kubeconfig_of(AGENT)?;
        let names = self.names.as_ref();
        let agent = Agent::start_talkative(&self.cluster, &kubeconfig, names, &arguments)?;
        self.agent = Some(agent);
        Ok(())
    }

    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")
    }

    /// The agent, once it was started.
    pub(crate) fn agent(&self) -> Result<&Agent> {
        self.agent.as_ref().context("no agent")
    }

    /// The Unit of the tenant, if there is one.
    pub(crate) fn unit(&self) -> Result<Option<Value>> {
        let mut units = self.cluster.list("units", NAMESPACE)?.into_iter();
        Ok(units.find(|unit| unit["spec"]["primary"]["name"] == PROFILE))
    }

    fn action(&self, key: &str) -> Result<Value> {
        let unit = self.unit()?.context("no Unit")?;
        let actions = unit["status"]["actions"].as_array();
        let found = actions
            .into_iter()
            .flatten()
            .find(|action| action["key"] == key);
        found
            .cloned()
            .with_context(|| format!("no action {key} in {unit}"))
    }

    /// Waits until an effect is as `check` wants it.
    pub(crate) fn wait_for_action(
        &self,
        key: &str,
        check: impl Fn(&Value) -> Result<()>,
    ) -> Result<()> {
        let waited = eventually(&format!("action {key} is as it should be"), || {
            check(&self.action(key)?)
        });
        self.explained(waited)
    }

    pub(crate) fn wait_until_in_place(&self, key: &str) -> Result<()> {
        self.wait_for_action(key, |action| {
            ensure!(action["state"] == "InPlace", "{action}");
            Ok(())
        })
    }

    /// Waits until an agent that has just started has run the tenant's unit.
    pub(crate) fn wait_until_ready(&self) -> Result<()> {
        let ready = r#"reeve_units{plugin="envoy",state="ready"} 1"#;
        let waited = eventually("the unit is ready", || {
            let (_, metrics) = self.agent()?.ask("/metrics")?;
            ensure!(metrics.contains(ready), "{metrics}");
            Ok(())
        });
        self.explained(waited)
    }

    /// Whether the database of the tenant is said to be in place.
    pub(crate) fn was_recorded(&self) -> Result<bool> {
        let unit = self.unit()?;
        Ok(unit.is_some_and(|unit| unit.to_string().contains("fingerprint")))
    }

    /// Waits until an entry of the plugin's report has a value.
    pub(crate) fn wait_for_report(&self, key: &str, value: &str) -> Result<()> {
        let waited = eventually(&format!("the report has {key} = {value}"), || {
            let report = self.cluster.get("configmap", PROFILE, "report")?;
            let report = report.context("no report")?;
            ensure!(report["data"][key] == value, "{}", report["data"]);
            Ok(())
        });
        self.explained(waited)
    }

    /// Waits until the Plugin says this of its sources, or nothing.
    pub(crate) fn wait_for_stale(&self, expected: Option<&str>) -> Result<()> {
        let waited = eventually(&format!("its sources are told as {expected:?}"), || {
            let plugin = self.cluster.get("plugin", NAMESPACE, PLUGIN)?;
            let plugin = plugin.context("no Plugin")?;
            let conditions = plugin["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let found = conditions.find(|condition| condition["type"] == "SourcesStale");
            let said = found.and_then(|condition| condition["message"].as_str());
            let fits = match (said, expected) {
                (Some(said), Some(expected)) => said.contains(expected),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            ensure!(fits, "it says {said:?}");
            Ok(())
        });
        self.explained(waited)
    }

    /// Waits until an event on the tenant has a reason.
    pub(crate) fn wait_for_event(&self, reason: &str) -> Result<()> {
        eventually(&format!("there is an event {reason}"), || {
            let events = self.cluster.list("events", "")?;
            let there = events.iter().any(|event| event["reason"] == reason);
            ensure!(there, "{events:?}");
            Ok(())
        })
    }

    /// The generated Secret, as uid and data.
    pub(crate) fn login_secret(&self) -> Result<(Value, Value)> {
        let secret = self.cluster.get("secret", PROFILE, "login")?;
        let secret = secret.context("no Secret")?;
        Ok((secret["metadata"]["uid"].clone(), secret["data"].clone()))
    }

    /// The generated password.
    pub(crate) fn password(&self) -> Result<String> {
        let (_, data) = self.login_secret()?;
        let password = data["password"].as_str().context("no password")?;
        Ok(String::from_utf8(STANDARD.decode(password)?)?)
    }

    /// Logs in as the tenant, into its database.
    pub(crate) fn log_in(&self, password: &str, script: &str) -> Result<String> {
        self.database.as_user(ROLE, password, ROLE, script)
    }

    pub(crate) fn has_role(&self) -> Result<bool> {
        let found = self
            .database
            .admin(&format!("SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"))?;
        Ok(!found.trim().is_empty())
    }

    /// Waits until the agent's statement that begins like this waits for a lock.
    pub(crate) fn wait_for_statement(&self, start: &str) -> Result<()> {
        let waited = eventually(&format!("{start} waits for the lock"), || {
            let waiting = self.waiting()?;
            ensure!(waiting.starts_with(start), "what waits is {waiting:?}");
            Ok(())
        });
        self.explained(waited)
    }

    /// Waits until no statement of an agent waits any more.
    pub(crate) fn wait_for_no_statement(&self) -> Result<()> {
        eventually("no statement waits", || {
            let waiting = self.waiting()?;
            ensure!(waiting.is_empty(), "{waiting}");
            Ok(())
        })
    }

    fn waiting(&self) -> Result<String> {
        self.database.admin(
            "SELECT query FROM pg_stat_activity \
             WHERE application_name = 'reeve' AND wait_event_type = 'Lock'",
        )
    }

    /// Everything that somebody can read who may read no Secrets: objects, what the
    /// commands say, metrics, and the logs of the agent and of both servers.
    pub(crate) fn everything(&self) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        for kinds in [
            "plugins.reeve.dev,units.reeve.dev,journalentries.reeve.dev",
            "configmaps",
            "events",
            "events.events.k8s.io",
        ] {
            let objects = self.cluster.kubectl(&["get", kinds, "-A", "-o", "yaml"])?;
            all.push((kinds.to_owned(), objects));
        }
        for arguments in [
            &["get", "units", "--all", "-o", "json"][..],
            &["get", "plugins", "-o", "json"],
            &["plugin", "inspect", PLUGIN],
            &["plugin", "grant", PLUGIN, "--agent-user", AGENT],
        ] {
            let namespace = ["--namespace", NAMESPACE];
            let said = self.cluster.reeve(&[arguments, &namespace[..]].concat())?;
            all.push((format!("reeve {}", arguments.join(" ")), said));
        }
        // It fails where there are changes, and is to say all that it can.
        let plan = ["plan", "--verbose", "--namespace", NAMESPACE, "-o", "json"];
        let plan = self.cluster.reeve(&plan);
        all.push((
            "reeve plan".to_owned(),
            plan.unwrap_or_else(|error| format!("{error:#}")),
        ));
        let unit = format!("{PLUGIN}/{PROFILE}");
        let record = ["record", &unit, "--namespace", NAMESPACE, "--file", "-"];
        let recording = self.cluster.reeve(&record);
        all.push((
            "reeve record".to_owned(),
            recording.unwrap_or_else(|error| format!("{error:#}")),
        ));
        let agent = self.agent()?;
        all.push(("the metrics".to_owned(), agent.ask("/metrics")?.1));
        all.push(("the agent's log".to_owned(), agent.log()?));
        all.push(("the database's log".to_owned(), self.database.log()?));
        if let Some(storage) = &self.storage {
            all.push(("the storage's log".to_owned(), storage.log()?));
        }
        Ok(all)
    }

    /// The Secrets of the tenant.
    pub(crate) fn secrets(&self) -> Result<Vec<(String, String)>> {
        let secrets = ["get", "secrets", "-n", PROFILE, "-o", "yaml"];
        Ok(vec![(
            "secrets".to_owned(),
            self.cluster.kubectl(&secrets)?,
        )])
    }

    /// Adds what the agent printed to an error.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match &self.agent {
            Some(agent) => error.context(agent.log_tail()),
            None => error,
        })
    }
}

fn secret(name: &str, entries: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": entries,
    })
}
