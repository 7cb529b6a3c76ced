//! etcd, kube-apiserver and kube-controller-manager for the length of a test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::audit::AuditLog;
use crate::credentials::{ADMIN, User, write_kubeconfig, write_token_file, write_token_kubeconfig};
use crate::etcd;
use crate::kubectl;
use crate::looks::Looks;
use crate::parts::{ETCD, HELPERS, kubernetes};
use crate::ports::free_port;
use crate::proxy::Proxy;
use crate::server::{Server, listens};

/// Two to three seconds on an idle machine; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// A free port can be taken by somebody else before the server has it.
const ATTEMPTS: usize = 3;

/// The controller that gives each namespace its service account.
const ACCOUNTS: &str = "serviceaccount-controller";

/// The controllers that make deletion and access work as in a real cluster. Those
/// that need nodes or clouds are left out.
const DEFAULT_CONTROLLERS: &[&str] = &[
    "namespace-controller",
    "garbage-collector-controller",
    ACCOUNTS,
    "clusterrole-aggregation-controller",
];

/// Those that write into namespaces in their own time.
pub const UPKEEP: [&str; 2] = [
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
];

/// A running control plane with a data folder of its own.
///
/// Its servers end when it is dropped, after a panic of the test too, and when
/// the test process is killed. After a panic the ends of their logs are printed.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order. The API server goes before etcd: without its store
    // it hangs in shutdown. The folder with the logs goes last.
    /// Once the API server has listened.
    looks: Option<Looks>,
    controller_manager: Option<Server>,
    api_server: Option<Server>,
    etcd: Option<Server>,
    programs: Programs,
    users: Vec<User>,
    etcd_port: u16,
    port: u16,
    audit: Option<AuditLog>,
    /// Whether namespaces get their service account, which pods then need.
    accounts: bool,
    folder: TempDir,
}

/// What to start; see [`ControlPlane::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    users: Vec<User>,
    controllers: Vec<String>,
    audited: bool,
    /// Whose lists and watches are in the record.
    reads_of: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            users: vec![User::admin()],
            controllers: DEFAULT_CONTROLLERS
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            audited: false,
            reads_of: Vec::new(),
        }
    }
}

impl Builder {
    /// Makes `user` known to the API server, which grants it nothing yet.
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Runs exactly these controllers, by the names that
    /// kube-controller-manager's `--controllers` takes. Without any, there is no
    /// controller manager.
    pub fn controllers<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.controllers = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Keeps a record of all writes; see [`ControlPlane::audit_log`].
    pub fn audited(mut self) -> Self {
        self.audited = true;
        self
    }

    /// Has the record of all writes hold what this user lists and watches, too: a watch
    /// when it begins and when it ends.
    pub fn reads_of(mut self, user: &str) -> Self {
        self.reads_of.push(user.to_owned());
        self.audited()
    }

    /// Builds the parts that are missing and starts the servers.
    ///
    /// # Errors
    ///
    /// When a part cannot be built or a server does not become ready; the message
    /// has the end of its log.
    pub fn start(self) -> Result<ControlPlane> {
        let programs = Programs::get()?;
        for _ in 1..ATTEMPTS {
            match ControlPlane::start_once(&self, &programs)? {
                Some(control_plane) => return Ok(control_plane),
                None => eprintln!("a free port was taken meanwhile; starting over"),
            }
        }
        ControlPlane::start_once(&self, &programs)?.context("no port stays free long enough")
    }
}

impl ControlPlane {
    /// Starts a control plane with an administrator and the usual controllers.
    ///
    /// # Errors
    ///
    /// As [`Builder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// Starts a control plane with the usual controllers and those that keep up
    /// namespaces: whose part an embedded cluster plays.
    ///
    /// # Errors
    ///
    /// As [`Builder::start`].
    pub fn keeping_up_namespaces() -> Result<Self> {
        let controllers = DEFAULT_CONTROLLERS.iter().chain(&UPKEEP).copied();
        Self::builder().controllers(controllers).start()
    }

    /// Settings for a control plane with further users or other controllers.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `None` when a port was lost, which is worth another attempt.
    fn start_once(settings: &Builder, programs: &Programs) -> Result<Option<Self>> {
        let folder = tempfile::Builder::new().prefix("reeve-real-").tempdir()?;
        let path = folder.path();
        write_token_file(&path.join(TOKENS), &settings.users)?;
        let audit = settings
            .audited
            .then(|| AuditLog::new(path, &settings.reads_of))
            .transpose()?;
        programs.write_signing_key(&path.join(SIGNING_KEY))?;

        let (etcd_port, port) = (free_port()?, free_port()?);
        let mut etcd = programs.start_etcd(path, etcd_port)?;
        if let Err(error) = etcd.wait_until(READY_TIMEOUT, || listens(etcd_port)) {
            return retry_if(etcd.lost_its_port(), error);
        }

        let mut this = Self {
            controller_manager: None,
            api_server: None,
            etcd: Some(etcd),
            programs: programs.clone(),
            users: settings.users.clone(),
            etcd_port,
            port,
            audit,
            accounts: settings.controllers.iter().any(|name| name == ACCOUNTS),
            looks: None,
            folder,
        };
        for user in &this.users {
            let certificate = this.certificate();
            write_kubeconfig(
                &this.kubeconfig_path(&user.name),
                &this.url(),
                &certificate,
                user,
            )?;
        }
        if let Err(error) = this.start_api_server() {
            let lost = this.api_server.as_ref().is_some_and(Server::lost_its_port);
            return retry_if(lost, error);
        }
        if !settings.controllers.is_empty() {
            this.controller_manager = Some(this.start_controller_manager(&settings.controllers)?);
        }
        Ok(Some(this))
    }

    /// Starts the API server on its port, with the data it had before, and waits
    /// until it is ready. Does nothing when it runs.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn start_api_server(&mut self) -> Result<()> {
        if self.api_server.is_some() {
            return Ok(());
        }
        let started = Instant::now();
        if let Some(audit) = &mut self.audit {
            audit.server_ended()?;
        }
        let server = self.programs.start_api_server(
            self.folder.path(),
            self.port,
            self.etcd_port,
            self.audit.as_ref(),
            self.accounts,
        )?;
        // Kept before it is ready, so that a failure can be looked into.
        let port = self.port;
        let server = self.api_server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))?;
        let looks = match &mut self.looks {
            Some(looks) => looks,
            // It writes the certificate by which it is known before it listens.
            none => none.insert(Looks::start(
                &self.programs.supervise,
                &self.programs.kubectl,
                &self.folder.path().join(format!("{ADMIN}.kubeconfig")),
                self.folder.path(),
            )?),
        };
        server.wait_until(READY_TIMEOUT, || {
            // The namespace is made in the background, shortly after readiness.
            looks.answers("/readyz") && looks.answers("/api/v1/namespaces/default")
        })?;
        eprintln!(
            "kube-apiserver {} is ready on port {port} after {:.1} s",
            kubernetes()?.version,
            started.elapsed().as_secs_f32()
        );
        Ok(())
    }

    /// Ends the API server, as an outage does; its data stays.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Ends the API server as `kill -9` does, without a word to its clients.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn kill_api_server(&mut self) -> Result<()> {
        let server = self.api_server.take().context("it does not run")?;
        server.kill()
    }

    /// Starts etcd on its port, with the data it had before, and waits until it
    /// listens. Does nothing when it runs.
    ///
    /// # Errors
    ///
    /// When it does not come to listen.
    pub fn start_etcd(&mut self) -> Result<()> {
        if self.etcd.is_some() {
            return Ok(());
        }
        let (port, path) = (self.etcd_port, self.folder.path());
        let server = self.programs.start_etcd(path, port)?;
        let etcd = self.etcd.insert(server);
        etcd.wait_until(READY_TIMEOUT, || listens(port))
    }

    /// Ends etcd, as an outage does; its data stays. An API server that is stopped
    /// while it is away takes long to end.
    pub fn stop_etcd(&mut self) {
        self.etcd = None;
    }

    /// Has etcd forget all versions but the latest one, and starts the API server anew,
    /// which otherwise answers from what it remembers itself.
    ///
    /// # Errors
    ///
    /// When etcd refuses, or as [`Self::start_api_server`].
    pub fn compact(&mut self) -> Result<()> {
        self.stop_api_server();
        let version = etcd::compact(self.etcd_port)?;
        eprintln!("etcd has forgotten what was before version {version}");
        self.start_api_server()
    }

    fn start_controller_manager(&self, controllers: &[String]) -> Result<Server> {
        let folder = self.folder.path();
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!(
                "--service-account-private-key-file={}",
                folder.join(SIGNING_KEY).display()
            ),
            format!("--root-ca-file={}", self.certificate().display()),
            format!("--controllers={}", controllers.join(",")),
            "--use-service-account-credentials".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            // The defaults are made to be kind to a shared server.
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
        ];
        self.programs.start(
            "kube-controller-manager",
            &self.programs.controller_manager,
            &arguments,
            folder,
        )
    }

    /// The address of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The kubeconfig file of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_path(ADMIN)
    }

    /// The kubeconfig file of a user that was named to the [`Builder`].
    ///
    /// # Errors
    ///
    /// When no such user was named.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf> {
        ensure!(
            self.users.iter().any(|known| known.name == user),
            "the control plane was started without a user {user}"
        );
        Ok(self.kubeconfig_path(user))
    }

    /// A kubeconfig file of a user that was named to the [`Builder`], who reaches the API
    /// server through a proxy of its port.
    ///
    /// # Errors
    ///
    /// When no such user was named, or the file cannot be written.
    pub fn kubeconfig_through(&self, proxy: &Proxy, user: &str) -> Result<PathBuf> {
        self.kubeconfig_at(&format!("https://127.0.0.1:{}", proxy.port()), user)
    }

    /// A kubeconfig file of a user that was named to the [`Builder`], who reaches the API
    /// server at another address.
    ///
    /// # Errors
    ///
    /// As [`Self::kubeconfig_through`].
    pub fn kubeconfig_at(&self, url: &str, user: &str) -> Result<PathBuf> {
        let known = self.users.iter().find(|known| known.name == user);
        let user = known
            .with_context(|| format!("the control plane was started without a user {user}"))?;
        let port = url.rsplit(':').next().unwrap_or_default();
        let path = self.kubeconfig_path(&format!("{}-{port}", user.name));
        write_kubeconfig(&path, url, &self.certificate(), user)?;
        Ok(path)
    }

    /// The port of the API server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Writes a kubeconfig file for whoever has this token, under a name of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn kubeconfig_with_token(&self, name: &str, token: &str) -> Result<PathBuf> {
        let path = self.kubeconfig_path(name);
        write_token_kubeconfig(&path, &self.url(), &self.certificate(), token)?;
        Ok(path)
    }

    /// Runs kubectl as the administrator and returns what it printed.
    ///
    /// # Errors
    ///
    /// When kubectl fails; the message has its own.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(ADMIN, arguments, "")
    }

    /// Runs `kubectl apply` as the administrator on a manifest.
    ///
    /// # Errors
    ///
    /// As [`Self::kubectl`].
    pub fn apply(&self, manifest: &str) -> Result<String> {
        self.kubectl_with(ADMIN, &["apply", "-f", "-"], manifest)
    }

    /// Runs kubectl as `user`, with `input` on its standard input.
    ///
    /// # Errors
    ///
    /// When there is no such user, or as [`Self::kubectl`].
    pub fn kubectl_with(&self, user: &str, arguments: &[&str], input: &str) -> Result<String> {
        let kubeconfig = self.kubeconfig_of(user)?;
        kubectl::run(&self.programs.kubectl, &kubeconfig, arguments, input)
    }

    /// Every write that the API server has answered so far, in its audit events, if it was
    /// asked to keep them. An object is seen before the request for it is answered; this
    /// waits for the answers to all that came in before, so whoever saw what a request has
    /// done finds it here.
    ///
    /// # Errors
    ///
    /// When it was not asked, and when a request is not answered.
    pub fn audit_log(&self) -> Result<Vec<Value>> {
        let audit = self.audit.as_ref();
        let audit = audit.context("the control plane was started without an audit log")?;
        audit.answered()
    }

    /// The folder for data and logs, removed with the control plane.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn looks(&self) -> Result<&Looks> {
        self.looks
            .as_ref()
            .context("the API server was never ready")
    }

    pub(crate) fn supervise(&self) -> &Path {
        &self.programs.supervise
    }

    pub(crate) fn kubectl_program(&self) -> &Path {
        &self.programs.kubectl
    }

    fn kubeconfig_path(&self, user: &str) -> PathBuf {
        self.folder.path().join(format!("{user}.kubeconfig"))
    }

    /// The file of the certificate that the API server writes for itself, with its issuer.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join(CERTIFICATES).join("apiserver.crt")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let servers = [&self.controller_manager, &self.api_server, &self.etcd];
            for server in servers.into_iter().flatten() {
                eprintln!("{}", server.log_tail());
            }
        }
    }
}

const TOKENS: &str = "tokens.csv";
const SIGNING_KEY: &str = "signing.key";
const CERTIFICATES: &str = "certificates";

fn retry_if(lost_port: bool, error: anyhow::Error) -> Result<Option<ControlPlane>> {
    if lost_port { Ok(None) } else { Err(error) }
}

/// The built programs, and the flags that each is started with.
#[derive(Clone, Debug)]
struct Programs {
    supervise: PathBuf,
    signing_key: PathBuf,
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: PathBuf,
    kubectl: PathBuf,
}

impl Programs {
    fn get() -> Result<Self> {
        let (helpers, etcd, kubernetes) = (HELPERS.get()?, ETCD.get()?, kubernetes()?.get()?);
        Ok(Self {
            supervise: helpers.join("supervise"),
            signing_key: helpers.join("signing-key"),
            etcd: etcd.join("etcd"),
            api_server: kubernetes.join("kube-apiserver"),
            controller_manager: kubernetes.join("kube-controller-manager"),
            kubectl: kubernetes.join("kubectl"),
        })
    }

    fn start(
        &self,
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Server> {
        Server::start(name, &self.supervise, program, arguments, folder)
    }

    fn write_signing_key(&self, path: &Path) -> Result<()> {
        let output = Command::new(&self.signing_key).arg(path).output()?;
        if !output.status.success() {
            bail!("signing-key: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn start_etcd(&self, folder: &Path, port: u16) -> Result<Server> {
        let clients = format!("http://127.0.0.1:{port}");
        // Nobody else joins, so the system may choose this port; the name under
        // which it is announced only has to be consistent.
        let peers = "http://127.0.0.1:0";
        let arguments = [
            format!("--data-dir={}", folder.join("etcd").display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ];
        self.start("etcd", &self.etcd, &arguments, folder)
    }

    fn start_api_server(
        &self,
        folder: &Path,
        port: u16,
        etcd_port: u16,
        audit: Option<&AuditLog>,
        accounts: bool,
    ) -> Result<Server> {
        let key = folder.join(SIGNING_KEY);
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", folder.join(CERTIFICATES).display()),
            format!("--token-auth-file={}", folder.join(TOKENS).display()),
            format!("--service-account-key-file={}", key.display()),
            format!("--service-account-signing-key-file={}", key.display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // As kubeadm does: what runs nodes and volumes needs it.
            "--allow-privileged=true".to_owned(),
        ];
        if !accounts {
            // There are none, and no pod could be made.
            arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        arguments.extend(audit.into_iter().flat_map(AuditLog::arguments));
        self.start("kube-apiserver", &self.api_server, &arguments, folder)
    }
}
