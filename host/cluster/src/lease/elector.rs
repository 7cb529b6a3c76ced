//! Gets the Lease, keeps it, gives it back.

use super::clock::BootClock;
use super::election::{Answer, Claim, Election};
use super::fence::Fence;
use super::record::Stored;
use super::timing::{LeaseTiming, RETRY_JITTER};
use crate::cluster::Cluster;
use crate::jitter::Jitter;
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use http::Method;
use k8s_openapi::jiff::Timestamp;
use reeve_core::{GroupVersionKind, chain};
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Who gives the Lease back waits this long for the answer: the others get it by
/// themselves when this was in vain.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Which Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What an elector goes by.
#[derive(Clone, Debug)]
pub struct ElectorSettings {
    /// The Lease that decides.
    pub lease: LeaseName,
    /// Names this process, and no other one ever: see [`identity`].
    pub identity: String,
    /// How long, how often.
    pub timing: LeaseTiming,
    /// The clock that judges it.
    pub clock: Arc<dyn BootClock>,
}

/// What a replica is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// There is no election, and no other replica.
    #[default]
    Sole,
    /// It holds the Lease.
    Leader {
        /// Counts the times that this process has come to hold it.
        term: u64,
    },
    /// It does not.
    Follower {
        /// Who does, as far as is known.
        leader: Option<String>,
    },
}

/// A fragment for logs and for people: `follower of pod-1`.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sole => f.write_str("sole replica"),
            Self::Leader { .. } => f.write_str("leader"),
            Self::Follower {
                leader: Some(leader),
            } => write!(f, "follower of {leader}"),
            Self::Follower { leader: None } => f.write_str("follower, no leader known"),
        }
    }
}

/// A candidate for the Lease.
///
/// It needs the rights to get, create and update it. Its requests pass the fence
/// that it governs.
#[derive(Debug)]
pub struct Elector {
    cluster: Cluster,
    resource: Resource,
    settings: ElectorSettings,
    election: Election,
    fence: Fence,
    role: watch::Sender<Role>,
    jitter: Jitter,
    rounds: u64,
    /// What went wrong last, which is said once.
    trouble: Option<String>,
}

impl Elector {
    /// A candidate that has not asked yet.
    pub fn new(cluster: Cluster, settings: ElectorSettings) -> Self {
        let ElectorSettings {
            identity,
            timing,
            clock,
            ..
        } = &settings;
        let jitter = cluster.jitter.of(identity);
        Self {
            cluster,
            resource: Resource {
                kind: GroupVersionKind::new("coordination.k8s.io", "v1", "Lease"),
                plural: "leases".into(),
                namespaced: true,
            },
            election: Election::new(identity.clone(), *timing),
            fence: Fence::closed(clock.clone(), *timing),
            role: watch::Sender::new(Role::Follower { leader: None }),
            jitter,
            rounds: 0,
            trouble: None,
            settings,
        }
    }

    /// The fence that opens for the terms of this candidate, once it is armed for
    /// each.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// What this candidate is, now and whenever it changes. A term that was lost
    /// and got back may be told as one change.
    pub fn role(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }

    /// Tries to get and keep the Lease until `stopped`, and then gives it back.
    ///
    /// By then nothing may begin a write any more. The Lease is given back when
    /// the writes under way have ended; if they do not, it is left to run out.
    pub async fn run(mut self, stopped: impl Future<Output = ()>) {
        let mut stopped = std::pin::pin!(stopped);
        loop {
            self.round().await;
            let pause = self.pause();
            tokio::select! {
                () = &mut stopped => break,
                () = tokio::time::sleep(pause) => {}
            }
            self.publish();
        }
        self.give_back().await;
    }

    /// Looks and claims, or renews.
    async fn round(&mut self) {
        self.rounds += 1;
        if self.election.must_read(self.settings.clock.now()) {
            let answer = self.read().await;
            self.election.saw(answer, self.settings.clock.now());
            self.publish();
        }
        let now = self.settings.clock.now();
        if let Some(claim) = self.election.claim(now, Timestamp::now()) {
            // From before it is sent: the API server may take its time.
            let sent = self.settings.clock.now();
            let answer = self.write(&claim).await;
            let now = self.settings.clock.now();
            self.election.claimed(&claim, answer, sent, now);
            self.publish();
        }
    }

    /// How long until the next round, or until the term lapses.
    fn pause(&mut self) -> Duration {
        let timing = &self.settings.timing;
        let random = self.jitter.fraction(self.rounds);
        let pause = timing.retry_period();
        let now = self.settings.clock.now();
        match self.election.term(now) {
            Some(term) => {
                let lapse = term.renewed.after(timing.renew_deadline());
                pause.min(lapse.since(now))
            }
            None => {
                let pause = pause.mul_f64(1.0 + RETRY_JITTER * random);
                // Not later than the Lease runs out, and not at once in vain.
                let chance = self.election.chance().map(|chance| chance.since(now));
                let soon = chance.filter(|left| !left.is_zero());
                soon.map_or(pause, |left| pause.min(left))
            }
        }
    }

    /// Tells the fence and whoever else wants to know.
    fn publish(&mut self) {
        let term = self.election.term(self.settings.clock.now());
        self.fence
            .set_term(term.map(|term| (term.number, term.renewed)));
        let role = match term {
            Some(term) => Role::Leader { term: term.number },
            None => Role::Follower {
                leader: self.election.holder().map(str::to_owned),
            },
        };
        let lease = &self.settings.lease;
        let identity = &self.settings.identity;
        self.role.send_if_modified(|old| {
            let changed = *old != role;
            if changed {
                tracing::info!(%lease, identity, %role, "leader election");
                *old = role;
            }
            changed
        });
    }

    async fn give_back(&mut self) {
        self.fence.disarm();
        // Nor may it be armed once more before the lease is given back.
        self.fence.set_term(None);
        let drained = tokio::time::timeout(RELEASE_TIMEOUT, self.fence.drained()).await;
        if drained.is_err() {
            tracing::warn!("writes are still under way; the lease is left to run out");
            return;
        }
        if self.election.must_read(self.settings.clock.now()) {
            let answer = self.read().await;
            self.election.saw(answer, self.settings.clock.now());
        }
        if let Some(claim) = self.election.release(Timestamp::now()) {
            let written = tokio::time::timeout(RELEASE_TIMEOUT, self.write(&claim)).await;
            if matches!(written, Ok(Answer::Lease(_))) {
                tracing::info!(lease = %self.settings.lease, "lease given back");
            }
        }
        self.publish();
    }

    async fn read(&mut self) -> Answer {
        let LeaseName { namespace, name } = &self.settings.lease;
        let path = self.resource.object_path(Some(namespace), name);
        self.ask(Call::get(path)).await
    }

    async fn write(&mut self, claim: &Claim) -> Answer {
        let LeaseName { namespace, name } = &self.settings.lease;
        let call = match claim {
            Claim::Create(record) => {
                let path = self.resource.collection_path(Some(namespace));
                Call::new(Method::POST, path).json(&record.created(namespace, name))
            }
            Claim::Update(stored, record) => {
                let path = self.resource.object_path(Some(namespace), name);
                Call::new(Method::PUT, path).json(&stored.updated(record))
            }
        };
        // Whoever asks for the Lease cannot wait for it.
        self.ask(call.query("fieldManager", "reeve").unfenced())
            .await
    }

    /// Sends a request, for as long as its answer is of use.
    async fn ask(&mut self, call: Call) -> Answer {
        let timing = &self.settings.timing;
        let now = self.settings.clock.now();
        // As client-go: one that hangs leaves time for another.
        let mut limit = timing.renew_deadline() / 2;
        if let Some(term) = self.election.term(now) {
            limit = limit.min(term.renewed.after(timing.renew_deadline()).since(now));
        }
        let sent = tokio::time::timeout(limit, self.cluster.call(call)).await;
        let error = match sent {
            Ok(Ok(body)) => match Stored::parse(&body) {
                Some(stored) => {
                    self.trouble = None;
                    return Answer::Lease(stored);
                }
                None => "the api server's answer is no Lease".to_owned(),
            },
            // Not an answer about its namespace, or about a path that is not served.
            Ok(Err(CallError::Status(status)))
                if status.code == 404 && *status.details.kind == *self.resource.plural =>
            {
                self.trouble = None;
                return Answer::Absent;
            }
            // Somebody else was faster, or has changed something.
            Ok(Err(CallError::Status(status))) if status.code == 409 => return Answer::Failed,
            Ok(Err(CallError::Status(status))) => {
                format!(
                    "the api server refuses ({}): {}",
                    status.code, status.message
                )
            }
            Ok(Err(CallError::Transport(error))) => chain(&error),
            Err(_) => chain(&TransportError::TimedOut(limit)),
        };
        if self.trouble.as_ref() != Some(&error) {
            let lease = &self.settings.lease;
            tracing::warn!(%lease, error, "cannot get or renew the lease");
            self.trouble = Some(error);
        }
        Answer::Failed
    }
}

/// A name for this process that no other one has, not even the next one in the
/// same pod: the name of the host, for people, and chance.
pub fn identity() -> String {
    // In a pod, the name of the pod.
    let host = std::env::var("HOSTNAME")
        .or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"))
        .unwrap_or_default();
    let host = match host.trim() {
        "" => "reeve",
        host => host,
    };
    let chance = || RandomState::new().hash_one(std::process::id());
    format!("{host}_{:016x}{:016x}", chance(), chance())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_identities_are_the_same() {
        let (one, two) = (identity(), identity());
        assert_ne!(one, two);
        let (host, chance) = one.rsplit_once('_').unwrap();
        assert!(!host.is_empty());
        assert_eq!(chance.len(), 32);
    }
}
