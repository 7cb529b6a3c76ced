//! Outside documents: polled, kept, and fed to those who read them.
//!
//! The last good version of a document stays until there is a newer one, however long
//! that takes; how old it is can be asked. A look that finds nothing new wakes nobody.
//! Entries of ConfigMaps are no business of this module: they are watched and read as
//! the objects that they are.

mod look;
mod poll;

pub use look::{GivenSource, GivenSources, SourceFeed};

use crate::granted::Granted;
use crate::metrics::Metrics;
use bytes::Bytes;
use parking_lot::Mutex;
use poll::Poller;
use reeve_core::Digest;
use reeve_core::manifest::{Manifest, Origin, SourceRule};
use reeve_engine::{Document, SourceError};
use reeve_outside::Validators;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Makes the sources of plugins. Clones share them.
#[derive(Clone)]
pub(crate) struct Sources {
    feed: SourceFeed,
    metrics: Metrics,
    changes: mpsc::UnboundedSender<SourceChange>,
    open: Arc<Mutex<HashMap<SourceKey, Weak<Source>>>>,
}

/// Which source of which plugin.
type SourceKey = (Arc<str>, String);

/// What has changed about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceChange {
    pub(crate) plugin: Arc<str>,
    pub(crate) name: String,
    /// Whether the document is another; otherwise it has aged, or it is known whether
    /// it can be had.
    pub(crate) content: bool,
}

/// The sources of one version of a plugin. Those that nobody holds any more are not
/// looked at any more.
#[derive(Debug, Default)]
pub(crate) struct SourceSet(BTreeMap<String, Arc<Source>>);

/// One source.
#[derive(Debug)]
pub(crate) struct Source {
    rule: SourceRule,
    grants: Digest,
    state: Arc<Mutex<SourceState>>,
    /// Whether it has been looked at once.
    looked: watch::Receiver<bool>,
    /// Told to look at once.
    hurry: Arc<Notify>,
    poller: Option<AbortHandle>,
}

/// What is known of a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceState {
    document: Option<Kept>,
    /// Why it is not looked at at all.
    forbidden: Option<String>,
    /// Why the last look gave nothing.
    problem: Option<String>,
    failures: u32,
    /// Counts changes.
    version: u64,
}

/// The last good version.
#[derive(Clone, Debug)]
struct Kept {
    document: Document,
    validators: Validators,
    /// When it was last found to be current.
    confirmed: Instant,
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(poller) = &self.poller {
            poller.abort();
        }
    }
}

impl Sources {
    pub(crate) fn new(
        feed: SourceFeed,
        metrics: Metrics,
    ) -> (Self, mpsc::UnboundedReceiver<SourceChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let sources = Self {
            feed,
            metrics,
            changes,
            open: Arc::default(),
        };
        (sources, receiver)
    }

    /// The sources that a manifest declares, looked at from now on. What another
    /// version of the plugin has fetched from the same place is taken over.
    pub(crate) fn open(
        &self,
        plugin: &Arc<str>,
        manifest: &Manifest,
        granted: &Arc<Granted>,
    ) -> SourceSet {
        let polled = manifest.sources.iter();
        let polled = polled.filter(|rule| !matches!(rule.origin, Origin::ConfigMap(_)));
        let set = polled.map(|rule| (rule.name.clone(), self.source(plugin, rule, granted)));
        SourceSet(set.collect())
    }

    fn source(&self, plugin: &Arc<str>, rule: &SourceRule, granted: &Arc<Granted>) -> Arc<Source> {
        let key = (plugin.clone(), rule.name.clone());
        let mut open = self.open.lock();
        open.retain(|_, source| source.strong_count() > 0);
        let known = open.get(&key).and_then(Weak::upgrade);
        let known = known.filter(|known| known.rule.origin == rule.origin);
        if let Some(known) = &known
            && (&known.rule, known.grants) == (rule, granted.digest)
        {
            return known.clone();
        }
        let state = known.map(|known| SourceState {
            document: known.state.lock().document.clone(),
            ..SourceState::default()
        });
        let state = Arc::new(Mutex::new(state.unwrap_or_default()));
        let (looking, looked) = watch::channel(false);
        let hurry = Arc::new(Notify::new());
        let poller = Poller {
            plugin: plugin.clone(),
            rule: rule.clone(),
            granted: granted.clone(),
            state: state.clone(),
            changes: self.changes.clone(),
            looked: looking,
            hurry: hurry.clone(),
            meter: self.metrics.source(plugin, &rule.name),
        };
        let source = Arc::new(Source {
            rule: rule.clone(),
            grants: granted.digest,
            state,
            looked,
            hurry,
            poller: Some(tokio::spawn(poller.run(self.feed.clone())).abort_handle()),
        });
        open.insert(key, Arc::downgrade(&source));
        source
    }
}

/// What one call sees of the sources: as they were at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourcesView(BTreeMap<String, Seen>);

/// A source at one moment, and how old it is then.
#[derive(Clone, Debug)]
struct Seen {
    state: SourceState,
    age: Option<u64>,
}

impl SourceSet {
    /// The sources as they are now.
    pub(crate) fn view(&self) -> SourcesView {
        let sources = self.0.iter();
        let seen = sources.map(|(name, source)| {
            let state = source.state.lock().clone();
            let age = state.age(source.rule.interval);
            (name.clone(), Seen { state, age })
        });
        SourcesView(seen.collect())
    }

    /// Another number after each change.
    pub(crate) fn version(&self) -> u64 {
        let sources = self.0.values();
        sources.map(|source| source.state.lock().version).sum()
    }

    /// Looks at once at those whose last look gave nothing: a person asks for it.
    pub(crate) fn look_again(&self) {
        for source in self.0.values() {
            if source.state.lock().failures > 0 {
                source.hurry.notify_one();
            }
        }
    }

    /// Waits until each has been looked at once, for a bounded time.
    pub(crate) async fn looked_at(&self, patience: Duration) {
        let all = self.0.values().map(async |source| {
            let mut looked = source.looked.clone();
            // Who looks has ended: there is nothing to wait for.
            let _ = looked.wait_for(|looked| *looked).await;
        });
        let _ = tokio::time::timeout(patience, futures::future::join_all(all)).await;
    }

    /// What is wrong with them, and whether it is for want of a grant only.
    pub(crate) fn problem(&self) -> Option<(bool, String)> {
        let mut texts = Vec::new();
        let mut forbidden = true;
        for (name, source) in &self.0 {
            let state = source.state.lock();
            let (text, is_forbidden) = match (&state.forbidden, &state.problem) {
                (Some(text), _) => (text, true),
                (None, Some(text)) => (text, false),
                (None, None) => continue,
            };
            forbidden &= is_forbidden;
            let kept = match &state.document {
                Some(_) => "the last good version is used",
                None => "there is no version yet",
            };
            texts.push(format!("source {name}: {text}; {kept}"));
        }
        (!texts.is_empty()).then(|| (forbidden, texts.join("; ")))
    }
}

impl SourcesView {
    /// The document of a declared source.
    pub(crate) fn document(&self, name: &str) -> Result<Document, SourceError> {
        let Seen { state, .. } = self.seen(name)?;
        match &state.document {
            Some(kept) => Ok(kept.document.clone()),
            None => Err(state.absence(name)),
        }
    }

    /// Its age in whole intervals, in seconds.
    pub(crate) fn age(&self, name: &str) -> Result<u64, SourceError> {
        let Seen { state, age } = self.seen(name)?;
        age.ok_or_else(|| state.absence(name))
    }

    fn seen(&self, name: &str) -> Result<&Seen, SourceError> {
        self.0.get(name).ok_or_else(|| undeclared(name))
    }
}

/// That the manifest does not declare a source.
pub(crate) fn undeclared(name: &str) -> SourceError {
    SourceError::Undeclared(format!(
        "{name}: the manifest declares no such source; declare it in `sources`"
    ))
}

impl SourceState {
    /// Age in whole intervals; none as long as looking succeeds.
    fn age(&self, interval: Duration) -> Option<u64> {
        let kept = self.document.as_ref()?;
        if self.failures == 0 && self.forbidden.is_none() {
            return Some(0);
        }
        let interval = interval.as_secs().max(1);
        Some(kept.confirmed.elapsed().as_secs() / interval * interval)
    }

    fn absence(&self, name: &str) -> SourceError {
        if let Some(text) = &self.forbidden {
            return SourceError::Forbidden(format!("source {name}: {text}"));
        }
        let text = self.problem.as_deref();
        let text = text.unwrap_or("it has not been fetched yet");
        SourceError::NotSynced(format!("source {name}: {text}"))
    }

    /// When it was last found to be current; none before there is a document.
    fn confirmed(&self) -> Option<Instant> {
        self.document.as_ref().map(|kept| kept.confirmed)
    }

    /// Takes in a new version. Returns whether it is another.
    fn take(&mut self, document: Document, validators: Validators) -> bool {
        let known = self.document.as_ref().map(|kept| &kept.document);
        let changed = known != Some(&document);
        self.document = Some(Kept {
            document,
            validators,
            confirmed: Instant::now(),
        });
        changed
    }

    fn validators(&self) -> Validators {
        let kept = self.document.as_ref();
        kept.map(|kept| kept.validators.clone()).unwrap_or_default()
    }

    /// Notes that the last version is still the current one.
    fn confirm(&mut self) {
        if let Some(kept) = &mut self.document {
            kept.confirmed = Instant::now();
        }
    }
}

/// Digest of an answer, for whoever remembers what it was told.
pub(crate) fn digest(answer: &Result<Document, SourceError>) -> Digest {
    match answer {
        Ok(document) => Digest::of_parts([
            b"document".as_slice(),
            &document.body,
            document.media_type.as_bytes(),
        ]),
        Err(error) => Digest::of_parts([b"error".as_slice(), format!("{error:?}").as_bytes()]),
    }
}

/// A document without a media type.
pub(crate) fn plain(body: Bytes) -> Document {
    Document {
        body,
        media_type: String::new(),
    }
}
