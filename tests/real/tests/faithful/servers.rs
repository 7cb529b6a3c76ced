//! The two servers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use reeve_real::{ControlPlane, UPKEEP};
use reeve_sim::{Config, Server, Serving};
use serde_json::Value;

use crate::exchange::Endpoint;

/// Those whose part the embedded server plays, too.
const CONTROLLERS: [&str; 6] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
];

/// A real API server and an embedded one, both as new.
pub(crate) struct Servers {
    pub(crate) real: Endpoint,
    pub(crate) embedded: Endpoint,
    control_plane: ControlPlane,
    server: Server,
    // Kept running.
    _serving: Serving,
}

impl Servers {
    /// Starts both, as they answer requests.
    pub(crate) async fn start() -> Result<Self> {
        Self::start_with(false).await
    }

    /// Starts both, with what they do to namespaces by themselves.
    pub(crate) async fn keeping_up_namespaces() -> Result<Self> {
        Self::start_with(true).await
    }

    async fn start_with(keeps_up_namespaces: bool) -> Result<Self> {
        let upkeep = UPKEEP.into_iter().filter(move |_| keeps_up_namespaces);
        let controllers = CONTROLLERS.into_iter().chain(upkeep);
        let start = || ControlPlane::builder().controllers(controllers).start();
        let control_plane = tokio::task::spawn_blocking(start).await??;
        let server = Server::new(Config {
            keeps_up_namespaces,
            asks_webhooks: true,
            ..Config::default()
        });
        let serving = server
            .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .await?;
        let embedded = Endpoint::new(
            serving.address(),
            serving.certificate().as_bytes(),
            serving.token(),
        )?;
        Ok(Self {
            real: endpoint_of(&control_plane)?,
            embedded,
            control_plane,
            server,
            _serving: serving,
        })
    }

    /// Has both forget all versions but the latest one.
    pub(crate) async fn compact(mut self) -> Result<Self> {
        self.server.compact();
        let real = move || self.control_plane.compact().map(|()| self);
        tokio::task::spawn_blocking(real).await?
    }
}

/// What the administrator's kubeconfig says.
fn endpoint_of(control_plane: &ControlPlane) -> Result<Endpoint> {
    let kubeconfig: Value = serde_json::from_slice(&fs::read(control_plane.kubeconfig())?)?;
    let text = |pointer: &str| {
        let value = kubeconfig.pointer(pointer).and_then(Value::as_str);
        value.with_context(|| format!("the kubeconfig has no {pointer}"))
    };
    let certificates = fs::read(text("/clusters/0/cluster/certificate-authority")?)?;
    let url = control_plane.url();
    let address = url.trim_start_matches("https://").parse()?;
    Endpoint::new(address, &certificates, text("/users/0/user/token")?)
}
