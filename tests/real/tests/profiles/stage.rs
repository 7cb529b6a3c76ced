//! A cluster with the true kinds, the servers around it, and the agent with its plugins as
//! both charts install them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::{
    ADMIN, Agent, Azurite, ControlPlane, Installed, Opa, Postgres, chart_of, eventually, helm,
};
use reeve_test_support::http::Certificate;
use reeve_test_support::{component, samples};
use serde_json::{Value, json};

use crate::buckets::{PROTECTED_B, UNCLASSIFIED, document};
use crate::expected::routes::ARGOCD;
use crate::expected::volumes::{INSTANCES, SECRETS};
use crate::expected::{self, APPLICATIONS, KINDS, VOLUMES, Wanted, World};
use crate::tenants::Tenant;
use crate::values::{account_of, connection_secret, values};
use reeve_test_support::definitions::OF_PROFILES;

pub(crate) const NAMESPACE: &str = "reeve-system";
const CHART: &str = "profile-plugins";

/// The namespace of the ConfigMap that describes buckets.
pub(crate) const DESCRIPTIONS: &str = "daaas-system";

/// The plugins, and the components that they are of.
pub(crate) const PLUGINS: [(&str, &str); 11] = [
    ("authpolicy", "authpolicy"),
    ("blobcsi", "blobcsi"),
    ("cloudmain", "cloudmain"),
    ("gitea-protected-b", "gitea"),
    ("gitea-unclassified", "gitea"),
    ("limitranges", "limitranges"),
    ("network", "network"),
    ("notebook", "notebook"),
    ("quotas", "quotas"),
    ("rbac", "rbac"),
    ("s3proxy", "s3proxy"),
];

/// What makes deletion and volumes work as in a real cluster.
const CONTROLLERS: [&str; 6] = [
    "namespace-controller",
    "garbage-collector-controller",
    "clusterrole-aggregation-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
];

/// A short lease: who begins after a kill waits for the end of the one before.
const SETTINGS: [&str; 2] = [
    "--set",
    "config.lease-duration=4s,config.lease-renew-deadline=2s,config.lease-retry-period=500ms",
];

/// A condition of a unit.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) plugin: String,
    pub(crate) profile: String,
    pub(crate) condition: String,
    pub(crate) words: String,
}

impl Told {
    /// Whether it is of the unit of this plugin for this Profile.
    pub(crate) fn is_of(&self, plugin: &str, profile: &str) -> bool {
        self.plugin == plugin && self.profile == profile
    }
}

pub(crate) struct Stage {
    // Ends before what it talks to.
    agent: Option<Agent>,
    installed: Installed,
    pub(crate) cluster: ControlPlane,
    /// For what is unclassified, and for what is protected-b.
    pub(crate) databases: [Postgres; 2],
    pub(crate) gateways: [Opa; 2],
    pub(crate) storage: Azurite,
    certificate: Certificate,
    admin_password: String,
    storage_key: String,
}

impl Stage {
    /// Starts the servers, and installs the chart of the agent. The agent does not run yet.
    pub(crate) fn new(definitions: &Path) -> Result<Self> {
        let certificate = Certificate::of(&["localhost"])?;
        let (roots, private) = (&certificate.pem, &certificate.key_pem);
        let admin_password = "an-administrator-of-databases".to_owned();
        let storage_key = STANDARD.encode([7; 64]);
        let start = || Postgres::start(roots, private, &admin_password);
        let databases = [start()?, start()?];
        let nothing = || Opa::start(&json!({}));
        let gateways = [nothing()?, nothing()?];
        let storage = Azurite::keeping(roots, private, &storage_key)?;
        let cluster = ControlPlane::builder()
            .audited()
            .controllers(CONTROLLERS)
            .start()?;
        for name in OF_PROFILES {
            let file = definitions.join(format!("{name}.yaml"));
            let text = fs::read_to_string(&file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            // Some are too large for what `kubectl apply` notes down.
            let create = ["create", "-f", "-"];
            cluster.kubectl_with(ADMIN, &create, &text)?;
        }
        let wait = ["wait", "--for=condition=Established", "crd", "--all"];
        cluster.kubectl(&wait)?;
        let installed = cluster.install_chart(NAMESPACE, &SETTINGS)?;
        let namespaces = [ARGOCD, SECRETS, DESCRIPTIONS].map(samples::namespace);
        cluster.apply_objects(&namespaces)?;
        Ok(Self {
            agent: None,
            installed,
            cluster,
            databases,
            gateways,
            storage,
            certificate,
            admin_password,
            storage_key,
        })
    }

    /// Ports of the database servers.
    pub(crate) fn ports(&self) -> [u16; 2] {
        [self.databases[0].port(), self.databases[1].port()]
    }

    /// Whom to trust: all servers have one certificate.
    pub(crate) fn roots(&self) -> &str {
        &self.certificate.pem
    }

    pub(crate) fn storage_key(&self) -> &str {
        &self.storage_key
    }

    /// Installs the chart of the plugins, delivers the components, and starts the agent.
    pub(crate) fn install(&mut self, world: &World) -> Result<()> {
        self.store_logins()?;
        self.store_keys()?;
        self.describe(world)?;
        let file = self.cluster.folder().join("values.json");
        fs::write(&file, values(self, world).to_string())?;
        let (chart, file) = (chart_of(CHART), file.to_string_lossy().into_owned());
        let chart = chart.to_string_lossy();
        let install = ["install", CHART, &chart, "--namespace", NAMESPACE];
        let kubeconfig = self.cluster.kubeconfig();
        let arguments = [&install[..], &["--values", &file]].concat();
        helm(self.cluster.folder(), Some(&kubeconfig), &arguments)?;
        for (plugin, component) in PLUGINS {
            self.deliver(plugin, component)?;
        }
        self.start_agent()?;
        for (plugin, _) in PLUGINS {
            self.wait_for_condition(plugin, "Ready", "Running")?;
        }
        Ok(())
    }

    /// As the notes of the chart say.
    fn deliver(&self, plugin: &str, name: &str) -> Result<()> {
        let file = component(name).to_string_lossy().into_owned();
        let package = ["plugin", "package", &file, "--name", plugin];
        let packed = self
            .cluster
            .reeve(&[&package[..], &["--namespace", NAMESPACE]].concat())?;
        let apply = ["apply", "--server-side", "-f", "-"];
        self.cluster.kubectl_with(ADMIN, &apply, &packed).map(drop)
    }

    /// The logins of who makes databases.
    fn store_logins(&self) -> Result<()> {
        let of_class = |(class, port): (&str, u16)| {
            let entries = json!({
                "host": "localhost", "port": port.to_string(), "username": Postgres::ADMIN,
                "password": self.admin_password, "ca.crt": self.roots(),
            });
            secret(NAMESPACE, &connection_secret(class), &entries)
        };
        let secrets = [UNCLASSIFIED, PROTECTED_B].into_iter().zip(self.ports());
        let secrets: Vec<Value> = secrets.map(of_class).collect();
        self.cluster.apply_objects(&secrets)
    }

    /// The key of the storage accounts.
    fn store_keys(&self) -> Result<()> {
        let writable = INSTANCES.iter().filter(|instance| !instance.4);
        let secrets = writable.map(|(_, _, name, ..)| {
            let entries = json!({
                "azurestorageaccountname": account_of(name),
                "azurestorageaccountkey": self.storage_key,
            });
            secret(SECRETS, name, &entries)
        });
        self.cluster.apply_objects(&secrets.collect::<Vec<_>>())
    }

    /// Gives the storage accounts another key, and the cluster the same a while `between`.
    pub(crate) fn rotate_key(&mut self, between: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.storage_key = STANDARD.encode([8; 64]);
        self.storage.stop();
        self.storage.rotate(&self.storage_key);
        self.storage.resume()?;
        between(self)?;
        self.store_keys()
    }

    /// Has the gateways describe the buckets.
    pub(crate) fn describe(&self, world: &World) -> Result<()> {
        for (gateway, class) in self.gateways.iter().zip([UNCLASSIFIED, PROTECTED_B]) {
            gateway.set(&document(&world.buckets, class))?;
        }
        Ok(())
    }

    /// Makes Profiles, all at once, with their namespaces.
    pub(crate) fn add(&self, tenants: &[Tenant]) -> Result<()> {
        let all: Vec<Value> = tenants.iter().flat_map(Tenant::objects).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
        let create = ["create", "-f", "-"];
        self.cluster
            .kubectl_with(ADMIN, &create, &list.to_string())
            .map(drop)
    }

    /// Starts the agent; the one before must have ended.
    pub(crate) fn start_agent(&mut self) -> Result<()> {
        self.agent = Some(Agent::start_installed(&self.cluster, &self.installed)?);
        Ok(())
    }

    /// Ends it as a crash does, and starts another.
    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let agent = self.agent.take().context("no agent")?;
        agent.signal("KILL")?;
        drop(agent);
        self.start_agent()
    }

    pub(crate) fn agent(&self) -> Result<&Agent> {
        self.agent.as_ref().context("no agent")
    }

    /// Waits until all objects of all Profiles are as they should be, and there are no
    /// others; returns how many there are.
    pub(crate) fn wait_until_as_specified(
        &self,
        tenants: &[Tenant],
        world: &World,
    ) -> Result<usize> {
        let mut count = 0;
        // Each with a patience of its own: for all together it takes a while.
        for kind in KINDS {
            count += self.wait_for_kind(kind, tenants, world)?;
        }
        Ok(count)
    }

    pub(crate) fn wait_for_kind(
        &self,
        kind: &'static str,
        tenants: &[Tenant],
        world: &World,
    ) -> Result<usize> {
        let wanted = tenants
            .iter()
            .flat_map(|tenant| expected::of(tenant, world))
            .filter(|wanted| wanted.kind == kind);
        let wanted: Vec<Wanted> = wanted.collect();
        self.explained(eventually(
            &format!("all {kind} are as they should be"),
            || self.check(kind, &wanted),
        ))?;
        Ok(wanted.len())
    }

    /// That what plugins have of a kind is what is wanted, and nothing else.
    fn check(&self, kind: &str, wanted: &[Wanted]) -> Result<()> {
        let owners: BTreeMap<String, Value> = self
            .cluster
            .list("profiles.kubeflow.org", "")?
            .into_iter()
            .map(|profile| {
                (
                    text(&profile["metadata"]["name"]),
                    profile["metadata"]["uid"].clone(),
                )
            })
            .collect();
        let mut found = self.objects_of_plugins(kind)?;
        for wanted in wanted {
            let key = (wanted.namespace.clone(), wanted.name.clone());
            let (namespace, name) = &key;
            let object = found.remove(&key);
            let object = object.with_context(|| format!("there is no {namespace}/{name}"))?;
            if let Some(difference) = wanted.difference(&object) {
                bail!("{kind} {namespace}/{name}: {difference}");
            }
            ensure!(
                object["metadata"]["deletionTimestamp"].is_null(),
                "{kind} {namespace}/{name} is being deleted"
            );
            let owner = &object["metadata"]["ownerReferences"];
            let profile = text(&owner[0]["name"]);
            ensure!(
                owner.as_array().is_some_and(|owners| owners.len() == 1)
                    && owner[0]["kind"] == "Profile"
                    && owners.get(&profile) == Some(&owner[0]["uid"]),
                "{kind} {namespace}/{name} belongs to {owner}"
            );
        }
        let more: Vec<_> = found.keys().collect();
        ensure!(more.is_empty(), "{kind}: {more:?} should not be there");
        Ok(())
    }

    /// All of a kind that plugins have made, by namespace and name.
    pub(crate) fn objects_of_plugins(
        &self,
        kind: &str,
    ) -> Result<BTreeMap<(String, String), Value>> {
        let objects = self.cluster.list(kind, "")?.into_iter().filter(|object| {
            let metadata = &object["metadata"];
            // That is how plugins themselves come.
            let is_delivery = metadata["namespace"] == NAMESPACE;
            let is_marked = metadata["labels"]["reeve.dev/plugin"].is_string();
            // Logins carry no label of ours.
            let is_login = text(&metadata["name"]).starts_with("gitea-postgresql-secret-");
            !is_delivery && (is_marked || is_login)
        });
        let key = |object: &Value| {
            let metadata = &object["metadata"];
            (text(&metadata["namespace"]), text(&metadata["name"]))
        };
        Ok(objects.map(|object| (key(&object), object)).collect())
    }

    /// By which it is told whether objects of a kind are still the same.
    pub(crate) fn uids(&self, kind: &str) -> Result<BTreeMap<(String, String), String>> {
        let objects = self.objects_of_plugins(kind)?.into_iter();
        let uids = objects.map(|(key, object)| (key, text(&object["metadata"]["uid"])));
        Ok(uids.collect())
    }

    /// Those of volumes and claims, together.
    pub(crate) fn uids_of_volumes(&self) -> Result<BTreeMap<(String, String), String>> {
        let mut uids = self.uids(VOLUMES)?;
        uids.extend(self.uids(expected::CLAIMS)?);
        Ok(uids)
    }

    /// Says of the Applications of proxies what Argo CD says when it has deployed them.
    pub(crate) fn play_argocd(&self) -> Result<()> {
        for ((namespace, name), application) in self.objects_of_plugins(APPLICATIONS)? {
            if !name.starts_with("s3proxy-") {
                continue;
            }
            let spec = &application["spec"];
            let status = json!({"status": {
                "health": {"status": "Healthy"},
                "sync": {
                    "status": "Synced",
                    "comparedTo": {
                        "source": spec["source"], "destination": spec["destination"],
                    },
                },
            }});
            self.patch((APPLICATIONS, &namespace, &name), &status)?;
        }
        Ok(())
    }

    /// Edits an object by hand.
    pub(crate) fn patch(&self, object: (&str, &str, &str), patch: &Value) -> Result<()> {
        let (kind, namespace, name) = object;
        let patch = patch.to_string();
        let mut arguments = vec!["patch", kind, name, "--type=merge", "--patch", &patch];
        if !namespace.is_empty() {
            arguments.extend(["--namespace", namespace]);
        }
        self.cluster.kubectl(&arguments).map(drop)
    }

    /// Deletes an object by hand, and does not wait for its end.
    pub(crate) fn delete(&self, object: (&str, &str, &str)) -> Result<()> {
        let (kind, namespace, name) = object;
        let mut arguments = vec!["delete", kind, name, "--wait=false"];
        if !namespace.is_empty() {
            arguments.extend(["--namespace", namespace]);
        }
        self.cluster.kubectl(&arguments).map(drop)
    }

    /// Waits until a condition of a Plugin has a reason.
    pub(crate) fn wait_for_condition(&self, plugin: &str, of: &str, reason: &str) -> Result<()> {
        let what = format!("{of} of {plugin} is {reason}");
        self.explained(eventually(&what, || {
            let found = self.cluster.get("plugin", NAMESPACE, plugin)?;
            let found = found.context("no Plugin")?;
            let conditions = found["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let condition = conditions.find(|condition| condition["type"] == of);
            let condition = condition.context("no condition")?;
            ensure!(condition["reason"] == reason, "it is {condition}");
            Ok(())
        }))
    }

    /// What units have to say: each condition, but for those that say that all is well.
    pub(crate) fn told(&self) -> Result<Vec<Told>> {
        let mut told = Vec::new();
        for unit in self.cluster.list("units", NAMESPACE)? {
            let spec = &unit["spec"];
            let conditions = unit["status"]["conditions"].as_array();
            for condition in conditions.into_iter().flatten() {
                if condition["type"] == "Ready" && condition["status"] == "True" {
                    continue;
                }
                told.push(Told {
                    plugin: text(&spec["plugin"]),
                    profile: text(&spec["primary"]["name"]),
                    condition: text(&condition["type"]),
                    words: text(&condition["message"]),
                });
            }
        }
        Ok(told)
    }

    /// Adds what the agent printed to an error.
    pub(crate) fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match &self.agent {
            Some(agent) => {
                let told = self.told().unwrap_or_default();
                let told: Vec<String> =
                    told.iter().take(20).map(|one| format!("{one:?}")).collect();
                error.context(format!("{}\n{}", told.join("\n"), agent.log_tail()))
            }
            None => error,
        })
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn secret(namespace: &str, name: &str, entries: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": entries,
    })
}
