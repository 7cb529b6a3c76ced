//! The handle on a cluster.

use crate::discovery::DiscoveryCache;
use crate::jitter::Jitter;
use crate::lease::Fence;
use crate::observer::Observer;
use crate::review::ReviewCache;
use crate::throttle::Throttle;
use crate::transport::Call;
use kube::Client;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whoever asks for readiness wants to know now.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// A cluster, reached through one client. Cloning is cheap; clones share their
/// caches.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    pub(crate) fence: Fence,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) discovery: Arc<DiscoveryCache>,
    pub(crate) reviews: Arc<ReviewCache>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) jitter: Jitter,
}

impl Cluster {
    /// The cluster that a client leads to. Nothing is sent yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            fence: Fence::open(),
            observer: Arc::new(()),
            discovery: Arc::default(),
            reviews: Arc::default(),
            throttle: Arc::default(),
            jitter: Jitter::random(),
        }
    }

    /// Sends what changes the cluster only while the fence is open.
    #[must_use]
    pub fn with_fence(mut self, fence: Fence) -> Self {
        self.fence = fence;
        self
    }

    /// Tells somebody of each request.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// Draws the delays between attempts from a seed, so that they are the same in each
    /// run. Without, they differ between processes, whose attempts are not to coincide.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.jitter = Jitter::seeded(seed);
        self
    }

    /// Whether the API server is there and ready, asked within five seconds.
    ///
    /// It asks `/readyz`; where that is not served or not permitted, an answer
    /// from `/version` counts.
    pub async fn ready(&self) -> bool {
        let asked = async {
            match self.call(Call::get("/readyz".into())).await {
                Ok(_) => true,
                Err(crate::transport::CallError::Status(status))
                    if matches!(status.code, 401 | 403 | 404) =>
                {
                    self.call(Call::get("/version".into())).await.is_ok()
                }
                Err(_) => false,
            }
        };
        tokio::time::timeout(READY_TIMEOUT, asked)
            .await
            .unwrap_or(false)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}
