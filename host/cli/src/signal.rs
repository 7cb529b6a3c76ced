//! Being asked to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Attention to SIGTERM and SIGINT, from the moment that it is made: a signal that
/// comes before [`Self::wait`] is not lost, and does not kill the process.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for SIGTERM or SIGINT.
pub(crate) async fn stop() -> std::io::Result<()> {
    Stop::listen()?.wait().await;
    Ok(())
}
