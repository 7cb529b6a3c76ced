//! A server that begins with what a folder holds.

use std::path::Path;
use std::sync::Arc;

use super::file::Kind;
use super::folder::{Folder, Known};
use super::journal::{self, Journal};
use super::keeper::Kept;
use super::snapshot;
use super::source::Source;
use super::{StateError, recover};
use crate::identity::Identity;
use crate::rest::delete::PODS;
use crate::rest::meta;
use crate::server::{Config, Server, Shared};
use crate::store::Range;
use crate::{bootstrap, definitions};

/// The number of the first snapshot and its log.
pub(super) const FIRST: u64 = 1;
/// The API group of roles and bindings, as the end of the names of their tables.
const RIGHTS: &str = ".rbac.authorization.k8s.io";

impl Server {
    /// A server whose state is in `folder`, which is made where it is missing: objects,
    /// their versions, uids and owners of fields, definitions, tokens, and the
    /// certificate and port of [`Server::serve`]. Faults, the counts of requests and
    /// what was done to the clock are not kept.
    ///
    /// A write is answered when it is in the folder. The end of the process, at any
    /// moment, loses nothing that was answered; the end of the machine may lose the
    /// writes of the last second, and nothing of what was before. Watches that began
    /// before the last snapshot get 410, others go on where they were.
    ///
    /// One server has the folder at a time. A seed gives other uids each time that the
    /// folder is opened in another version.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written, is in use, holds something else, is of a
    /// newer version, or is damaged; it is left as it is then.
    pub fn open(config: Config, folder: &Path) -> Result<Self, StateError> {
        let folder = Folder::open(folder)?;
        match folder.recover(config.history)? {
            Some(found) => resume(config, folder, found),
            None => begin(config, folder),
        }
    }

    /// Whether the server goes on from what its folder held when it was opened.
    pub fn has_resumed(&self) -> bool {
        self.shared.kept.get().is_some_and(|kept| kept.resumed)
    }

    /// Brings everything that was written to the disk, where it is kept on one.
    pub fn sync(&self) {
        if let Some(kept) = self.shared.kept.get() {
            kept.sync();
        }
    }
}

fn begin(config: Config, folder: Folder) -> Result<Server, StateError> {
    let server = Server::new(config);
    let known = known(&server, &folder)?;
    let (snapshot, ()) = Source::of(&server.shared).image(|_| Ok(()))?;
    let length = snapshot::create(&folder.file(Kind::Snapshot, FIRST), &snapshot)?;
    let log = folder.file(Kind::Log, FIRST);
    let (file, written) = journal::begin(&log, snapshot.objects.version)?;
    let journal = Journal::new(folder.path.clone(), FIRST, file, written, length);
    keep(&server, folder, known, journal, false)?;
    Ok(server)
}

fn resume(
    mut config: Config,
    folder: Folder,
    found: recover::Recovered,
) -> Result<Server, StateError> {
    // No uid is given twice.
    let version = found.store.version();
    config.seed = config.seed.map(|seed| seed.wrapping_add(version));
    let server = Server::with_store(found.store, config);
    let shared = &server.shared;
    shared.tokens.restore(&found.tokens, shared.clock.now());
    let known = known(&server, &folder)?;
    let path = folder.path.clone();
    let journal = Journal::new(path, found.number, found.log, found.length, found.snapshot);
    keep(&server, folder, known, journal, true)?;
    // From here on, what is written is kept.
    for table in shared.store.tables() {
        if table.ends_with(RIGHTS) {
            let page = shared.store.list(&table, &Range::default(), None);
            for object in page.map(|page| page.objects).unwrap_or_default() {
                let object = object.value();
                let kind = object["kind"].as_str().unwrap_or_default();
                shared.rights.put(kind, &object);
            }
        }
    }
    end_pods(shared);
    // What a server always has is made again where it was deleted or is new.
    bootstrap::fill(shared);
    definitions::resume(shared);
    Ok(server)
}

/// Removes pods that were told to end and have nothing to wait for: that is one request and
/// two writes, between which the process may have ended.
fn end_pods(shared: &Shared) {
    let tables = shared.store.tables();
    for table in tables.iter().filter(|table| &***table == PODS) {
        let page = shared.store.list(table, &Range::default(), None);
        let pods = page.map(|page| page.objects).unwrap_or_default();
        for pod in pods.iter().filter(|pod| pod.is_terminating()) {
            if meta::has_no_finalizers(&pod.value()) {
                // Nobody else writes yet.
                let _ = shared.store.remove(table, pod.key(), pod.version());
            }
        }
    }
}

/// As whom the server is known; somebody new where that was not kept.
fn known(server: &Server, folder: &Folder) -> Result<Known, StateError> {
    if let Some(known) = folder.known()? {
        // It was granted before, or its grant went with another state.
        let shared = &server.shared;
        let token = known.token.clone();
        let now = shared.clock.now();
        let _ = shared
            .tokens
            .grant(token, Identity::admin(), None, Vec::new(), Vec::new(), now);
        return Ok(known);
    }
    let known = Known::new(server.token(Identity::admin())).map_err(StateError::Certificate)?;
    folder.keep(&known)?;
    Ok(known)
}

fn keep(
    server: &Server,
    folder: Folder,
    known: Known,
    (journal, orders): (Journal, std::sync::mpsc::Receiver<super::journal::Order>),
    resumed: bool,
) -> Result<(), StateError> {
    let (shared, journal) = (&server.shared, Arc::new(journal));
    shared.store.keep_in(journal.clone());
    shared.tokens.keep_in(journal.clone());
    let kept = Kept::start(shared, folder, known, journal, orders, resumed)?;
    // The server was just made: nothing is kept of it yet.
    let _ = shared.kept.set(kept);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::TableName;

    #[test]
    fn a_pod_that_was_told_to_end_ends() {
        let folder = tempfile::tempdir().unwrap();
        let pods = TableName::from(PODS);
        let server = Server::open(Config::default(), folder.path()).unwrap();
        for (name, finalizers) in [("told", json!([])), ("waits", json!(["example.com/wait"]))] {
            let pod = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                    "finalizers": finalizers,
                },
            });
            let key = format!("default/{name}");
            server.shared.store.create(&pods, &key, pod).unwrap();
        }
        drop(server);
        let server = Server::open(Config::default(), folder.path()).unwrap();
        let left = server.shared.store.list(&pods, &Range::default(), None);
        let left: Vec<String> = left
            .unwrap()
            .objects
            .iter()
            .map(|pod| pod.key().to_owned())
            .collect();
        assert_eq!(left, ["default/waits"]);
    }
}
