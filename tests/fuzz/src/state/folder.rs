//! A folder in which a server has kept its state, and copies of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use reeve_sim::{Config, Server, StateError, save_state};
use serde_json::json;

use super::{read, records, write};
use crate::cluster::{self, Cluster};

pub(super) const LOG: &str = "log-1";
pub(super) const SNAPSHOT: &str = "snapshot-1";
pub(super) const SERVER: &str = "server.json";

/// What a server has left in its folder.
pub(super) struct Made {
    pub(super) snapshot: Vec<u8>,
    pub(super) log: Vec<u8>,
    known: Vec<u8>,
    /// The last version.
    pub(super) version: u64,
    /// What is saved of the folder as it was after each write.
    pub(super) moments: BTreeSet<Vec<u8>>,
}

thread_local! {
    static MADE: Rc<Made> = Rc::new(make());
}

/// The folder that every input begins with.
pub(super) fn made() -> Rc<Made> {
    MADE.with(Rc::clone)
}

impl Made {
    pub(super) fn write_to(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("there is room for a folder");
        write(&folder.join(SNAPSHOT), &self.snapshot);
        write(&folder.join(LOG), &self.log);
        write(&folder.join(SERVER), &self.known);
    }
}

pub(super) fn open(folder: &Path) -> Result<Server, StateError> {
    let config = Config {
        clock: cluster::clock(),
        seed: Some(1),
        history: 100,
        ..Config::default()
    };
    Server::open(config, folder)
}

fn make() -> Made {
    let scratch = Scratch::new();
    let folder = scratch.path("folder");
    {
        let server = open(&folder).expect("an empty folder is one for a state");
        let cluster = Cluster::of(&server);
        cluster::fill(&cluster);
        change(&cluster);
    }
    let mut made = Made {
        snapshot: read(&folder.join(SNAPSHOT)),
        log: read(&folder.join(LOG)),
        known: read(&folder.join(SERVER)),
        version: 0,
        moments: BTreeSet::new(),
    };
    let (log, saved) = (folder.join(LOG), scratch.path("saved"));
    for edge in records::edges(&made.log) {
        write(&log, &made.log[..edge]);
        let found = save_state(&folder, &saved);
        assert!(found.is_ok(), "up to {edge}: {found:?}");
        let bytes = read(&saved);
        made.version = first_line(&bytes).unwrap_or_default();
        made.moments.insert(bytes);
    }
    assert!(made.moments.len() > 8, "{} writes", made.moments.len());
    made
}

/// The version that a file begins at.
fn first_line(bytes: &[u8]) -> Option<u64> {
    let line = bytes.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Writes of all kinds.
fn change(cluster: &Cluster) {
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "b"}}).to_string();
    let merge = "application/merge-patch+json";
    let calls = [
        ("POST", maps.to_owned(), "application/json", map.as_str()),
        ("PATCH", format!("{maps}/a"), merge, r#"{"data":{"b":"é"}}"#),
        ("DELETE", format!("{maps}/b"), "", ""),
        (
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(),
            "application/json",
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#,
        ),
        (
            "DELETE",
            "/apis/fuzz.dev/v1/namespaces/default/things/a".to_owned(),
            "",
            "",
        ),
    ];
    for (method, path, media, body) in calls {
        let answer = cluster.call(method, &path, media, body.as_bytes());
        assert!(answer.is_success(), "{method} {path}: {}", answer.json());
    }
}

/// A folder for one input, which goes with it.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// In memory where there is such a place, since states go to the disk at once.
    pub(super) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let made = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        Scratch(made.expect("there is room for a folder"))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
