//! Watches: the changes of a table as a stream of events.
//!
//! A watch holds a position in the history and reads on when it is told of a
//! write. It buffers nothing: a reader that falls behind the history is told
//! that its version has expired, as with the real server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use serde_json::json;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::faults;
use crate::http::response::BodyError;
use crate::registry::Service;
use crate::render::Rendering;
use crate::selection::Selection;
use crate::status::ApiError;
use crate::store::{Change, Compacted, Object, Page, Range, Store, TableName};

/// How long a watch lasts whose caller does not say, as with the real server's
/// `--min-request-timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// How long a watch goes on when its resource is no longer served as it was: the
/// pause of the real server before it closes the storage of a definition that is
/// gone or has changed (`crdHandler.tearDown`).
const DRAIN: Duration = Duration::from_secs(1);

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With all present objects, as `ADDED`.
    Present,
    /// As [`Start::Present`], with a bookmark that says where those end.
    PresentThenBookmark,
    /// With the first change after a version.
    After(u64),
}

/// What a watch is asked to be.
#[derive(Debug)]
pub(crate) struct Request {
    /// The table.
    pub(crate) table: TableName,
    /// Tells when its resource is no longer served as it is now, if that can be.
    pub(crate) service: Option<Service>,
    /// The objects of it.
    pub(crate) selection: Selection,
    /// The form of the objects.
    pub(crate) rendering: Rendering,
    /// Where to start.
    pub(crate) start: Start,
    /// The version that has to be reached before anything is sent.
    pub(crate) not_before: Option<u64>,
    /// How long to go on.
    pub(crate) timeout: Option<Duration>,
    /// How often to send a bookmark; never when absent.
    pub(crate) bookmarks: Option<Duration>,
}

/// A running watch.
struct Watch {
    store: Arc<Store>,
    clock: Clock,
    request: Request,
    news: watch::Receiver<u64>,
    /// Moves when every open watch is to break.
    broken: watch::Receiver<u64>,
    position: u64,
    /// When it ends, as the clock tells how much time has passed.
    ends: Duration,
    next_bookmark: Option<Duration>,
    pending: VecDeque<Bytes>,
    /// What was there at the start, where it has to be asked how that is shown.
    present: Option<Page>,
    closing: bool,
}

/// How long a version is waited for that has not been reached yet.
const WAIT_FOR_VERSION: Duration = Duration::from_secs(3);

/// Waits until `version` has been written, for a while.
///
/// # Errors
///
/// When it is not written by then.
pub(crate) async fn reached(store: &Store, version: u64) -> Result<(), ApiError> {
    let mut latest = store.follow_all();
    let reached = latest.wait_for(|now| *now >= version);
    match tokio::time::timeout(WAIT_FOR_VERSION, reached).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(ApiError::version_too_large(version, store.version())),
    }
}

/// Starts a watch, which lasts and has bookmarks by `clock`. The stream's items are lines
/// of JSON, one or more a piece; it ends at the timeout, a moment after its resource is served no longer or
/// otherwise, after an `ERROR` event, or with an error when `broken` moves.
pub(crate) fn stream(
    store: Arc<Store>,
    clock: Clock,
    broken: watch::Receiver<u64>,
    request: Request,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static {
    let now = clock.passed();
    let mut watch = Watch {
        news: store.follow(&request.table),
        broken,
        position: 0,
        ends: now.saturating_add(request.timeout.unwrap_or(DEFAULT_TIMEOUT)),
        next_bookmark: request.bookmarks.map(|every| now.saturating_add(every)),
        pending: VecDeque::new(),
        present: None,
        closing: false,
        store,
        clock,
        request,
    };
    watch.broken.mark_unchanged();
    if watch.request.not_before.is_none() {
        watch.open();
    }
    futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await?;
        Some((item, watch))
    })
}

impl Watch {
    /// Puts the events that are there at the start into `pending`, or keeps what they are
    /// made of where it has to be asked how that is shown.
    fn open(&mut self) {
        if self.request.rendering.resource().has_converter() {
            let all = self
                .store
                .list(&self.request.table, &Range::default(), None);
            self.present = all.ok();
            let present = self.present.as_ref().map(|page| page.version);
            self.position = match self.request.start {
                Start::After(version) => version,
                _ => present.unwrap_or_default(),
            };
            return;
        }
        if let Start::After(version) = self.request.start {
            self.position = version;
            return;
        }
        let range = Range {
            prefix: self.request.selection.prefix(),
            from: "",
        };
        match self.store.list(&self.request.table, &range, None) {
            Err(compacted) => self.fail(&expired(compacted, 0)),
            Ok(page) => {
                self.position = page.version;
                self.begin(&page);
            }
        }
    }

    /// Puts what is there at the start into `pending`.
    fn begin(&mut self, page: &Page) {
        let mut lines = BytesMut::new();
        for object in &page.objects {
            if self.request.selection.matches(object) {
                let object = self.request.rendering.event(object);
                write_event(&mut lines, "ADDED", &object);
            }
        }
        if self.request.start == Start::PresentThenBookmark {
            let end = self.request.rendering.bookmark(page.version, true);
            write_event(&mut lines, "BOOKMARK", &end);
        }
        self.push(lines);
    }

    /// As [`Watch::begin`], once it was asked how it is shown. All objects of the table have
    /// to be: who wants a later version than that of the first which cannot is kept waiting
    /// for it by the real server.
    async fn begin_asking(&mut self, page: Page) {
        let resource = self.request.rendering.resource().clone();
        let (objects, reached) = resource.all_shown(page.objects, page.version).await;
        let version = page.version;
        if reached < version {
            self.fail(&ApiError::version_too_large(version, reached));
        } else if !matches!(self.request.start, Start::After(_)) {
            self.begin(&Page { version, objects });
        }
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        // The stream has begun by now: what goes wrong is told as an event.
        if let Some(version) = self.request.not_before.take() {
            match reached(&self.store, version).await {
                Ok(()) => self.open(),
                Err(error) => self.fail(&error),
            }
        }
        if let Some(page) = self.present.take()
            && !self
                .in_time(async |this| this.begin_asking(page).await)
                .await
        {
            return None;
        }
        loop {
            // A break is noticed before anything else, so that nothing gets
            // through a connection that is meant to be gone.
            if self.broken.has_changed().unwrap_or(true) {
                if self.closing {
                    return None;
                }
                self.closing = true;
                self.pending.clear();
                return Some(Err(faults::reset()));
            }
            if let Some(lines) = self.pending.pop_front() {
                return Some(Ok(lines));
            }
            if self.closing {
                return None;
            }
            self.news.mark_unchanged();
            if !self.in_time(Self::read).await {
                return None;
            }
            if self.closing || !self.pending.is_empty() {
                continue;
            }
            let bookmark = self.next_bookmark;
            tokio::select! {
                biased;
                _ = self.broken.changed() => self.broken.mark_changed(),
                news = self.news.changed() => {
                    if news.is_err() {
                        return None;
                    }
                }
                () = ended(&mut self.request.service) => {
                    self.request.service = None;
                    self.ends = self.ends.min(self.clock.passed() + DRAIN);
                }
                () = self.clock.reaches(self.ends) => return None,
                () = at(&self.clock, bookmark) => self.bookmark(),
            }
        }
    }

    /// Goes on with what may ask somebody, as long as the watch lasts. Says whether it still
    /// does: one that is broken says so next. What was begun is begun anew then, from where
    /// the position is.
    async fn in_time(&mut self, work: impl AsyncFnOnce(&mut Self)) -> bool {
        if !self.request.rendering.resource().has_converter() {
            work(self).await;
            return true;
        }
        let (clock, ends, mut broken) = (self.clock.clone(), self.ends, self.broken.clone());
        tokio::select! {
            biased;
            () = work(self) => true,
            _ = broken.changed() => true,
            () = clock.reaches(ends) => false,
        }
    }

    /// Reads the history from the position on; where each change has to be asked about, up to
    /// the first that is told.
    async fn read(&mut self) {
        let (upto, changes) = match self.store.changes(&self.request.table, self.position) {
            Ok(read) => read,
            Err(compacted) => return self.fail(&expired(compacted, self.position)),
        };
        let mut lines = BytesMut::new();
        let asks = self.request.rendering.resource().has_converter();
        for change in &changes {
            let shown = match asks {
                true => match self.shown(change).await {
                    Ok(shown) => Some(shown),
                    Err(unshown) => return self.end_at(change, &unshown),
                },
                false => None,
            };
            let change = shown.as_ref().unwrap_or(change);
            if let Some((kind, object)) = event(change, &self.request.selection) {
                let object = self.request.rendering.event(&object);
                write_event(&mut lines, kind, &object);
            }
            if asks {
                self.position = self.position.max(change.version);
                if !lines.is_empty() {
                    return self.push(lines);
                }
            }
        }
        // A start in the future waits for that version to be reached.
        self.position = self.position.max(upto);
        self.push(lines);
    }

    /// A change as it is shown, where that has to be asked. What was before is asked only
    /// where it counts whether that was selected.
    async fn shown(&self, change: &Change) -> Result<Change, Arc<Object>> {
        let resource = self.request.rendering.resource();
        let show = async |object: &Arc<Object>| {
            let shown = resource.shown(object.clone()).await;
            shown.map_err(|_| object.clone())
        };
        let before = match &change.before {
            Some(before) if !self.request.selection.is_whole() => Some(show(before).await?),
            before => before.clone(),
        };
        Ok(Change {
            version: change.version,
            removed: change.removed,
            before,
            after: show(&change.after).await?,
        })
    }

    /// Ends at a change that cannot be shown. Nothing is said of why where the object is still
    /// as it is; where that is history, who watches would come to it again and again, and is
    /// told to begin anew.
    fn end_at(&mut self, change: &Change, unshown: &Arc<Object>) {
        let now = self.store.get(&self.request.table, unshown.key());
        if now.is_some_and(|now| Arc::ptr_eq(&now, unshown)) {
            self.closing = true;
            return;
        }
        let oldest = change.version.saturating_add(1);
        self.fail(&expired(Compacted { oldest }, self.position));
    }

    fn bookmark(&mut self) {
        let mut line = BytesMut::new();
        let object = self.request.rendering.bookmark(self.position, false);
        write_event(&mut line, "BOOKMARK", &object);
        self.push(line);
        let now = self.clock.passed();
        self.next_bookmark = self
            .request
            .bookmarks
            .map(|every| now.saturating_add(every));
    }

    fn fail(&mut self, error: &ApiError) {
        let event = json!({"type": "ERROR", "object": error.to_value()});
        self.pending.push_back(Bytes::from(format!("{event}\n")));
        self.closing = true;
    }

    fn push(&mut self, lines: BytesMut) {
        if !lines.is_empty() {
            self.pending.push_back(lines.freeze());
        }
    }
}

/// What a change means to a watch of `selection`: an object that comes to match
/// is added, one that stops matching is deleted.
fn event(change: &Change, selection: &Selection) -> Option<(&'static str, Arc<Object>)> {
    let was = change
        .before
        .as_ref()
        .is_some_and(|before| selection.matches(before));
    let is = !change.removed && selection.matches(&change.after);
    match (was, is) {
        (false, true) => Some(("ADDED", change.after.clone())),
        (true, true) => Some(("MODIFIED", change.after.clone())),
        (true, false) if change.removed => Some(("DELETED", change.after.clone())),
        (true, false) => {
            let before = change.before.as_ref()?;
            Some(("DELETED", Arc::new(before.restamped(change.version))))
        }
        (false, false) => None,
    }
}

fn write_event(lines: &mut BytesMut, kind: &str, object: &[u8]) {
    lines.reserve(object.len() + 40);
    lines.put_slice(b"{\"type\":\"");
    lines.put_slice(kind.as_bytes());
    lines.put_slice(b"\",\"object\":");
    lines.put_slice(object);
    lines.put_slice(b"}\n");
}

fn expired(compacted: Compacted, asked: u64) -> ApiError {
    ApiError::expired(format!(
        "too old resource version: {asked} ({})",
        compacted.oldest
    ))
}

async fn ended(service: &mut Option<Service>) {
    match service {
        Some(service) => service.ended().await,
        None => std::future::pending().await,
    }
}

async fn at(clock: &Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.reaches(at).await,
        None => std::future::pending().await,
    }
}
