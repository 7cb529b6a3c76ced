//! The servers, and what is installed among them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::parts::AZURITE;
use reeve_real::{ADMIN, Azurite, ControlPlane, Installed, Opa, Postgres, chart_of, helm};
use reeve_test_support::definitions::{FOLDER, OF_PROFILES};
use reeve_test_support::http::Certificate;
use reeve_test_support::{component, samples};
use serde_json::{Value, json};

use crate::buckets::{PROTECTED_B, UNCLASSIFIED, document};
use crate::values::{ARGOCD, INSTANCES, SECRETS, account_of, connection_secret, values};
use crate::{Tenant, World};

/// The namespace of the agent, and of its plugins.
pub const NAMESPACE: &str = "reeve-system";
const CHART: &str = "profile-plugins";

/// The namespace of the ConfigMap that describes buckets.
pub const DESCRIPTIONS: &str = "daaas-system";

/// The plugins, and the components that they are of.
pub const PLUGINS: [(&str, &str); 11] = [
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

/// A cluster with the true kinds and the servers around it. They end when it is dropped.
#[derive(Debug)]
pub struct Platform {
    /// The cluster, with the chart of the agent in it.
    pub cluster: ControlPlane,
    /// What an agent is started with.
    pub installed: Installed,
    /// For what is unclassified, and for what is protected-b.
    pub databases: [Postgres; 2],
    /// Those that describe buckets, by classification.
    pub gateways: [Opa; 2],
    /// All storage accounts.
    pub storage: Azurite,
    pub(crate) certificate: Certificate,
    admin_password: String,
    storage_key: String,
}

/// A folder of the true definitions, or why there can be no platform here.
///
/// # Errors
///
/// What is absent, and how to come by it. Where `CI` is `true`, servers that cannot be had
/// are no reason: then to start them fails.
pub fn absent() -> Result<PathBuf, String> {
    let folder = env::var_os(FOLDER).map(PathBuf::from);
    let must_run = env::var_os("CI").is_some_and(|value| value == "true");
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let has_storage = || runs("node") && (AZURITE.is_built().unwrap_or(false) || runs("npm"));
    let folder =
        folder.ok_or_else(|| format!("name a folder of the true definitions in {FOLDER}"))?;
    if !must_run && !Postgres::is_installed() {
        return Err("PostgreSQL is not installed".to_owned());
    }
    if !must_run && !has_storage() {
        return Err("Node.js and npm are not installed".to_owned());
    }
    Ok(folder)
}

/// Who makes databases.
const MAKER: &str = "maker";

impl Platform {
    /// Starts the servers, and installs the chart of the agent. No agent runs yet.
    ///
    /// # Errors
    ///
    /// When a server does not start, or a definition cannot be read or is refused.
    pub fn start(definitions: &Path) -> Result<Self> {
        let certificate = Certificate::of(&["localhost"])?;
        let (roots, private) = (&certificate.pem, &certificate.key_pem);
        let admin_password = "an-administrator-of-databases".to_owned();
        let storage_key = STANDARD.encode([7; 64]);
        let start = || Postgres::start(roots, private, &admin_password);
        let databases = [start()?, start()?];
        for server in &databases {
            // With the rights that the documentation asks for, and no more.
            server.admin(&format!(
                "CREATE ROLE {MAKER} LOGIN CREATEROLE CREATEDB PASSWORD '{admin_password}'"
            ))?;
        }
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
    pub fn ports(&self) -> [u16; 2] {
        [self.databases[0].port(), self.databases[1].port()]
    }

    /// Whom to trust: all servers have one certificate.
    pub fn roots(&self) -> &str {
        &self.certificate.pem
    }

    /// The password of those who administer the database servers.
    pub fn admin_password(&self) -> &str {
        &self.admin_password
    }

    /// The key that the storage accounts have.
    pub fn storage_key(&self) -> &str {
        &self.storage_key
    }

    /// Installs the chart of the plugins, and delivers the components unless they are
    /// pulled.
    ///
    /// # Errors
    ///
    /// When something that is installed is refused.
    pub fn install_plugins(&self, world: &World) -> Result<()> {
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
        if world.artifacts.is_null() {
            for (plugin, component) in PLUGINS {
                self.deliver(plugin, component)?;
            }
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
                "host": "localhost", "port": port.to_string(), "username": MAKER,
                "password": self.admin_password, "ca.crt": self.roots(),
            });
            secret(NAMESPACE, &connection_secret(class), &entries)
        };
        let secrets = [UNCLASSIFIED, PROTECTED_B].into_iter().zip(self.ports());
        let secrets: Vec<Value> = secrets.map(of_class).collect();
        self.cluster.apply_objects(&secrets)
    }

    /// Tells the cluster the key of the storage accounts.
    ///
    /// # Errors
    ///
    /// When it does not take it.
    pub fn store_keys(&self) -> Result<()> {
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

    /// Gives the storage accounts another key, which the cluster does not have until
    /// [`Platform::store_keys`] is called.
    ///
    /// # Errors
    ///
    /// When the server does not start again.
    pub fn rotate_key(&mut self) -> Result<()> {
        self.storage_key = STANDARD.encode([8; 64]);
        self.storage.stop();
        self.storage.rotate(&self.storage_key);
        self.storage.resume()
    }

    /// Has the gateways describe the buckets.
    ///
    /// # Errors
    ///
    /// When one does not answer.
    pub fn describe(&self, world: &World) -> Result<()> {
        for (gateway, class) in self.gateways.iter().zip([UNCLASSIFIED, PROTECTED_B]) {
            gateway.set(&document(&world.buckets, class))?;
        }
        Ok(())
    }

    /// Makes Profiles, all at once, with their namespaces.
    ///
    /// # Errors
    ///
    /// When one is refused, or is there.
    pub fn add(&self, tenants: &[Tenant]) -> Result<()> {
        let all: Vec<Value> = tenants.iter().flat_map(Tenant::objects).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
        let create = ["create", "-f", "-"];
        self.cluster
            .kubectl_with(ADMIN, &create, &list.to_string())
            .map(drop)
    }
}

pub(crate) fn secret(namespace: &str, name: &str, entries: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": entries,
    })
}
