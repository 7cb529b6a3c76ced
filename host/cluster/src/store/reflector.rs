//! One watch: lists, follows, and starts over when it has lost the thread.

use super::objects::Objects;
use super::shared::{Event, Shared};
use super::spec::{WatchScope, WatchSpec};
use super::state::WatchState;
use super::wire::{Bookmark, Head, Line, Lines, Page, Told, told};
use crate::jitter::Jitter;
use crate::object::{Object, ObjectError};
use crate::resource::Resource;
use crate::status::Status;
use crate::transport::{Call, CallError, REQUEST_TIMEOUT, TransportError};
use http_body_util::BodyExt;
use reeve_core::backoff::Backoff;
use reeve_core::chain;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Objects asked for at once: enough that few lists need a second page, little
/// enough that a page is parsed in a few milliseconds.
const PAGE_SIZE: &str = "500";

/// The API server is asked to end a watch after this time or up to twice as much,
/// as its own clients do, so that connections are renewed and load spreads anew.
const WATCH_TIME: Duration = Duration::from_secs(300);

/// A watch that the API server should have ended this long ago hangs on a dead
/// connection.
const WATCH_GRACE: Duration = Duration::from_secs(30);

/// A watch that says nothing for so long hangs on a dead connection: API servers send
/// a bookmark about every minute to whoever asks for them.
const WATCH_IDLE: Duration = Duration::from_secs(150);

/// A watch that ends this soon and without an event was as good as refused.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// The task behind a watch.
pub(super) struct Reflector {
    shared: Arc<Shared>,
    spec: Arc<WatchSpec>,
    resource: Arc<Resource>,
    id: u64,
    /// Attempts in vain, in a row.
    failures: u32,
    jitter: Jitter,
}

/// How far a watch got.
#[derive(Default)]
struct Progress {
    opened: Option<Instant>,
    heard: bool,
}

impl Progress {
    /// Whether it was more than a connection that broke at once.
    fn worked(&self) -> bool {
        let lasted = |opened: Instant| opened.elapsed() >= SHORT_WATCH;
        self.heard || self.opened.is_some_and(lasted)
    }
}

/// Why a list or a watch ended early.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    /// The version to go on from is not remembered any more.
    #[error("the api server no longer knows the version to go on from")]
    Expired,
    #[error("{0}")]
    Transport(#[source] TransportError),
    #[error("the api server refuses ({}): {}", .0.code, .0.message)]
    Refused(Box<Status>),
    #[error("cannot understand the api server's answer: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("{0}")]
    Object(#[from] ObjectError),
    #[error("the watch ended as soon as it began")]
    Short,
    #[error("the watch said nothing for {} s", WATCH_IDLE.as_secs())]
    Idle,
}

impl From<CallError> for Interruption {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Status(status) if status.code == 410 => Self::Expired,
            CallError::Status(status) => Self::Refused(status),
            CallError::Transport(source) => Self::Transport(source),
        }
    }
}

impl Reflector {
    pub(super) fn new(shared: Arc<Shared>, spec: Arc<WatchSpec>, id: u64) -> Self {
        let jitter = shared
            .cluster
            .jitter
            .of(&(&spec.resource.kind.group, &*spec));
        Self {
            resource: Arc::new(spec.resource.clone()),
            shared,
            spec,
            id,
            failures: 0,
            jitter,
        }
    }

    /// Runs until the task is aborted. When `refresh` changes, whatever is under
    /// way is dropped for a new list.
    pub(super) async fn run(mut self, mut refresh: watch::Receiver<u64>) {
        loop {
            tokio::select! {
                () = self.list_and_follow() => {}
                Ok(()) = refresh.changed() => self.failures = 0,
            }
        }
    }

    /// Lists, and watches until only another list helps.
    async fn list_and_follow(&mut self) {
        match self.list().await {
            Ok(version) => self.follow(version).await,
            Err(interruption) => self.back_off(&interruption).await,
        }
    }

    /// Lists everything, and returns the version from which to watch.
    async fn list(&mut self) -> Result<String, Interruption> {
        let number = self.shared.begin_list(&self.spec, self.id);
        let mut objects = Objects::default();
        let mut token = String::new();
        loop {
            let mut call = self.collection().query("limit", PAGE_SIZE);
            if !token.is_empty() {
                call = call.query("continue", &token);
            }
            let body = self.shared.cluster.call(call).await?;
            let page: Page<'_> = serde_json::from_slice(&body)?;
            for item in page.items.unwrap_or_default() {
                let object = self.spec.read(&self.resource, item.get())?;
                objects.put(Arc::new(object));
            }
            token = page.metadata.next;
            if token.is_empty() {
                let version = page.metadata.resource_version;
                let number_of_list = version.parse().ok();
                self.shared
                    .replace(&self.spec, self.id, number, &objects, number_of_list);
                return Ok(version);
            }
        }
    }

    /// Watches from a version on, again and again, until only a new list helps.
    async fn follow(&mut self, mut version: String) {
        loop {
            let Err(interruption) = self.watch(&mut version).await else {
                continue;
            };
            let relist = match &interruption {
                Interruption::Expired => true,
                // A server that was restored from a backup has nothing to say after a
                // version that it has not reached yet.
                Interruption::Idle => true,
                // Whether the agent may still read this, and whether it is still
                // served, is for a list to find out.
                Interruption::Refused(status) => matches!(status.code, 401 | 403 | 404),
                _ => false,
            };
            if matches!(interruption, Interruption::Expired) && self.failures == 0 {
                let observer = &self.shared.cluster.observer;
                observer.watch_restarted(&self.resource);
                // Ordinary after a time without events. Counting it makes the next
                // one wait, should the server forget a version at once.
                self.failures = 1;
                return;
            }
            self.back_off(&interruption).await;
            if relist {
                return;
            }
        }
    }

    /// One watch, until the API server ends it.
    async fn watch(&mut self, version: &mut String) -> Result<(), Interruption> {
        let time = WATCH_TIME.mul_f64(1.0 + self.jitter.fraction(u64::MAX));
        let call = self
            .collection()
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("resourceVersion", version)
            .query("timeoutSeconds", &time.as_secs().to_string());
        let limit = time + WATCH_GRACE;
        let mut progress = Progress::default();
        let ended = timeout(limit, self.read_watch(call, version, &mut progress)).await;
        if progress.worked() {
            self.failures = 0;
        }
        match ended {
            Ok(Ok(())) if progress.worked() => Ok(()),
            Ok(Ok(())) => Err(Interruption::Short),
            Ok(Err(interruption)) => Err(interruption),
            Err(_) => Err(Interruption::Transport(TransportError::TimedOut(limit))),
        }
    }

    async fn read_watch(
        &self,
        call: Call,
        version: &mut String,
        progress: &mut Progress,
    ) -> Result<(), Interruption> {
        let opened = timeout(REQUEST_TIMEOUT, self.shared.cluster.open(call)).await;
        let response = opened.unwrap_or(Err(TransportError::TimedOut(REQUEST_TIMEOUT).into()))?;
        progress.opened = Some(Instant::now());
        // It listens: what was wrong with the connection is over.
        self.shared
            .set_state(&self.spec, self.id, WatchState::Synced);
        let mut body = response.into_body();
        let mut lines = Lines::default();
        loop {
            let frame = timeout(WATCH_IDLE, body.frame()).await;
            let Some(frame) = frame.map_err(|_| Interruption::Idle)? else {
                return Ok(());
            };
            let frame = frame.map_err(|error| TransportError::Receive(Box::new(error)));
            let Ok(data) = frame.map_err(Interruption::Transport)?.into_data() else {
                continue;
            };
            lines.push(&data);
            while let Some(line) = lines.next_line() {
                if let Some(reached) = self.take_in(line)? {
                    *version = reached;
                    progress.heard = true;
                }
            }
        }
    }

    /// Takes in one line, and returns the version that it brings the watch to.
    fn take_in(&self, line: &[u8]) -> Result<Option<String>, Interruption> {
        if let Some((told, json)) = told(line) {
            // The echo of a write of ours, whose answer came first, or what a list has told.
            if told == Told::Put
                && let Some(head) = Head::of(json)
                && self.shared.knows(&self.spec, self.id, &head)
            {
                return Ok(Some(head.version.to_owned()));
            }
            if let Ok(object) = self.spec.read(&self.resource, json) {
                return Ok(Some(self.tell(told, object)));
            }
        }
        let line: Line<'_> = serde_json::from_slice(line)?;
        let json = line.object.get();
        let told = match &*line.kind {
            "ADDED" | "MODIFIED" => Told::Put,
            "DELETED" => Told::Gone,
            "BOOKMARK" => {
                let bookmark: Bookmark = serde_json::from_str(json)?;
                let version = bookmark.metadata.resource_version;
                self.shared.reach(&self.spec, self.id, version.parse().ok());
                return Ok(Some(version));
            }
            "ERROR" => {
                let status = Status::parse(500, json.as_bytes());
                return Err(CallError::Status(Box::new(status)).into());
            }
            // Servers may come to say things that we need not know.
            _ => return Ok(None),
        };
        let object = self.spec.read(&self.resource, json)?;
        Ok(Some(self.tell(told, object)))
    }

    /// Passes an object on, and returns the version that it brings the watch to.
    fn tell(&self, told: Told, object: Object) -> String {
        let reached = object.resource_version().to_owned();
        let object = Arc::new(object);
        let event = match told {
            Told::Put => Event::Put(object),
            Told::Gone => Event::Gone(object),
        };
        self.shared.event(&self.spec, self.id, event);
        reached
    }

    /// A call on what the spec selects.
    fn collection(&self) -> Call {
        let path = self.resource.collection_path(self.spec.scope.namespace());
        let mut call = Call::get(path);
        if let WatchScope::Object { name, .. } = &self.spec.scope {
            call = call.query("fieldSelector", &format!("metadata.name={name}"));
        }
        if !self.spec.selector.is_empty() {
            call = call.query("labelSelector", &self.spec.selector.to_string());
        }
        call
    }

    /// Says what happened and waits, longer from time to time.
    async fn back_off(&mut self, interruption: &Interruption) {
        self.failures = self.failures.saturating_add(1);
        let observer = &self.shared.cluster.observer;
        observer.watch_restarted(&self.resource);
        let broken = matches!(
            interruption,
            Interruption::Transport(TransportError::Receive(_))
                | Interruption::Short
                | Interruption::Idle
        );
        // Connections break, and versions expire in an outage; only when the next
        // attempt fails too is it news.
        let quiet = broken && self.failures == 1 || matches!(interruption, Interruption::Expired);
        if !quiet {
            let state = state_of(interruption, self.failures);
            tracing::debug!(watch = %self.spec, %state, "watch interrupted");
            self.shared.set_state(&self.spec, self.id, state);
        }
        let jitter = self.jitter.fraction(self.failures.into());
        let delay = Backoff::CONNECTION.delay(self.failures, jitter);
        // All watches are told so at once, and are not to come back at once.
        let demanded = match interruption {
            Interruption::Refused(status) if status.code == 429 => {
                let wait = status.details.retry_after_seconds;
                Duration::from_secs(wait.into()).mul_f64(1.0 + jitter / 4.0)
            }
            _ => Duration::ZERO,
        };
        sleep(delay.max(demanded)).await;
    }
}

fn state_of(interruption: &Interruption, failures: u32) -> WatchState {
    match interruption {
        Interruption::Refused(status) if status.code == 403 => WatchState::Forbidden {
            message: status.message.as_str().into(),
        },
        Interruption::Refused(status) if status.code == 404 => WatchState::NotServed,
        Interruption::Refused(status) if status.code == 401 => WatchState::Failing {
            message: format!(
                "{interruption}; the agent's token is not valid, or is not valid any more: give it another"
            )
            .into(),
            failures,
        },
        other => WatchState::Failing {
            message: chain(other).into(),
            failures,
        },
    }
}
