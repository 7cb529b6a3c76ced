//! Watches that break, and watches that fall silent.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body_util::BodyExt;

use super::strike::reset;
use super::{Asked, Faults, Felt};
use crate::http::response::{self, Answer, Body, BodyError};
use crate::http::route::Verb;

/// A watch that breaks `after` a time, in the middle of what it was saying.
pub(crate) fn truncate(answer: Answer, after: Duration, felt: Option<Felt>) -> Answer {
    let ends = tokio::time::Instant::now() + after;
    rebuilt(answer, |body| {
        let cut = futures::stream::once(async move {
            tokio::time::sleep_until(ends).await;
            if let Some(felt) = felt {
                felt.note();
            }
            Err(reset())
        });
        let whole = body.into_data_stream().map(Some);
        let cut = cut.map(Some).chain(futures::stream::iter([None]));
        futures::stream::select(whole, cut)
            .take_while(|item| std::future::ready(item.is_some()))
            .filter_map(std::future::ready)
    })
}

/// Whose watch it is.
#[derive(Debug, Clone)]
pub(crate) struct Watcher {
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) user: String,
    pub(crate) agent: String,
}

impl Watcher {
    fn asked(&self) -> Asked<'_> {
        Asked {
            verb: Some(Verb::Watch),
            resource: &self.resource,
            namespace: &self.namespace,
            user: &self.user,
            agent: &self.agent,
            versioned: false,
        }
    }
}

/// A watch that says nothing any more once a fault silences it, as a connection
/// whose other end is gone: it stays open until somebody breaks it.
pub(crate) fn silence(answer: Answer, faults: Faults, watcher: Watcher) -> Answer {
    let mut broken = faults.watches();
    broken.mark_unchanged();
    let mut changes = faults.changes();
    changes.mark_unchanged();
    rebuilt(answer, |body| {
        let state = (body.into_data_stream(), faults, watcher, changes, broken);
        futures::stream::unfold(Some(state), |state| async move {
            let (mut body, faults, watcher, mut changes, mut broken) = state?;
            loop {
                if faults.silences(&watcher.asked()) {
                    let _ = broken.changed().await;
                    return Some((Err(reset()), None));
                }
                tokio::select! {
                    biased;
                    _ = changes.changed() => {}
                    item = body.next() => {
                        // What was said while the fault came is not heard.
                        if !faults.none() && faults.silences(&watcher.asked()) {
                            let _ = broken.changed().await;
                            return Some((Err(reset()), None));
                        }
                        let item = item?;
                        return Some((item, Some((body, faults, watcher, changes, broken))));
                    }
                }
            }
        })
    })
}

fn rebuilt<S>(answer: Answer, change: impl FnOnce(Body) -> S) -> Answer
where
    S: Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
{
    let (parts, body) = answer.into_parts();
    Answer::from_parts(parts, response::streamed(change(body)))
}
