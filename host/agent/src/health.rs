//! Health over HTTP, for the kubelet and for people.

use crate::status::AgentStatus;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Serves `/livez` and `/readyz`.
///
/// Live: the agent's loop is there. Ready: it has seen every plugin, and its own
/// watches work; otherwise the answer is 503 with a line for each thing that is
/// wrong. An API server that goes away makes the agent unready, not dead: it goes
/// on trying.
#[derive(Debug)]
pub struct HealthServer {
    address: SocketAddr,
    listener: TcpListener,
    status: watch::Receiver<AgentStatus>,
}

impl HealthServer {
    /// Binds an address.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        status: watch::Receiver<AgentStatus>,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            status,
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
            .route("/readyz", get(ready))
            .with_state(self.status);
        axum::serve(self.listener, router).await
    }
}

async fn live(State(status): State<watch::Receiver<AgentStatus>>) -> (StatusCode, &'static str) {
    // The sender lives in the loop.
    if status.has_changed().is_err() {
        (StatusCode::INTERNAL_SERVER_ERROR, "the agent has stopped\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn ready(State(status): State<watch::Receiver<AgentStatus>>) -> (StatusCode, String) {
    let status = status.borrow();
    let problems = &status.own_watches;
    if status.synced && problems.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let mut text = String::from("not ready\n");
    for resource in &status.syncing {
        text.push_str(resource);
        text.push_str(": not all objects have been seen yet\n");
    }
    for problem in problems {
        text.push_str(problem);
        text.push('\n');
    }
    (StatusCode::SERVICE_UNAVAILABLE, text)
}
