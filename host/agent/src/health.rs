//! Health and metrics over HTTP, for the kubelet, for Prometheus and for people.

use crate::controller::Command;
use crate::metrics::Metrics;
use crate::status::AgentStatus;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

/// The loop answers within this time, or does not make progress. It never waits
/// for anything; the longest that it is busy in one go is with putting a plugin of
/// very many units to work.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(5);

/// What the endpoints tell of an agent.
#[derive(Clone, Debug)]
pub struct Health {
    pub(crate) status: watch::Receiver<AgentStatus>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) metrics: Metrics,
}

/// Serves `/livez`, `/readyz`, `/startupz` and `/metrics`.
///
/// - Live: the agent's loop answers a question, within five seconds. That it waits
///   for an API server which is gone does not make it dead.
/// - Started: it has once seen everything that is installed and taken each plugin
///   to work, or found out why not.
/// - Ready: it has seen every plugin, and its own watches work. A follower is as
///   ready as the leader; which of them it is, is in the answer.
///
/// What is not so is answered with 503 and a line for each thing that is wrong.
#[derive(Debug)]
pub struct HealthServer {
    address: SocketAddr,
    listener: TcpListener,
    health: Health,
}

impl HealthServer {
    /// Binds an address.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(address: SocketAddr, health: Health) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            health,
        })
    }

    /// The address, with the port that was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    ///
    /// # Errors
    ///
    /// When the listener fails.
    pub async fn serve(self) -> std::io::Result<()> {
        let router = Router::new()
            .route("/livez", get(live))
            .route("/startupz", get(started))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self.health);
        axum::serve(self.listener, router).await
    }
}

async fn live(State(health): State<Health>) -> (StatusCode, &'static str) {
    let asked = async {
        let (sender, answer) = oneshot::channel();
        let asked = health.commands.send(Command::Ping(sender)).await;
        asked.is_ok() && answer.await.is_ok()
    };
    match tokio::time::timeout(PROGRESS_TIMEOUT, asked).await {
        Ok(true) => (StatusCode::OK, "ok\n"),
        Ok(false) => (StatusCode::SERVICE_UNAVAILABLE, "the agent has stopped\n"),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the agent's loop makes no progress\n",
        ),
    }
}

async fn started(State(health): State<Health>) -> (StatusCode, String) {
    let status = health.status.borrow();
    if status.started {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    unwell(&status, "plugins are still being loaded\n")
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let status = health.status.borrow();
    if status.synced && status.own_watches.is_empty() {
        return (StatusCode::OK, format!("ok\n{}\n", status.role));
    }
    unwell(&status, "")
}

fn unwell(status: &AgentStatus, otherwise: &str) -> (StatusCode, String) {
    let mut text = String::from("not ready\n");
    for resource in &status.syncing {
        text.push_str(resource);
        text.push_str(": not all objects have been seen yet\n");
    }
    for problem in &status.own_watches {
        text.push_str(problem);
        text.push('\n');
    }
    if status.own_watches.is_empty() && status.syncing.is_empty() {
        text.push_str(otherwise);
    }
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

async fn metrics(State(health): State<Health>) -> Response {
    match health.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
