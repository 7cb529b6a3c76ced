//! What `reeve cluster --state` keeps, when the process is killed at any moment.
//!
//! Writers work on a server all the time; it is killed at random points and started
//! again on what it left. Each writer has objects of its own, and knows of each what
//! was answered last, and what it has asked for without an answer: nothing else may be
//! there afterwards.
//!
//! Some of what they write is large, so that snapshots take the place of the log all the
//! time, and many kills meet that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::AsyncBufReadExt as _;
use kube::Client;
use reeve_test_support::Chance;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::server::{call, client, get, start};

/// How often a server is killed, over all of the folders.
const KILLS: usize = 200;
/// The folders whose servers are killed at the same time.
const FOLDERS: usize = 2;
const WRITERS: u64 = 4;
/// A server is killed after so many more answers at most, and then within so many
/// microseconds: somewhere in the next writes.
const ANSWERS: u64 = 40;
const MICROSECONDS: u64 = 3000;
/// One write in so many is as large as an object may be, about: a log is long enough for a
/// snapshot after a dozen of those.
const LARGE_ONE_IN: u64 = 15;
const LARGE: usize = 900_000;
/// How many snapshots are made at least, and how many kills leave one unfinished.
const SNAPSHOTS: usize = 3;
const UNFINISHED: usize = 2;
/// It is killed then at the latest.
const PATIENCE: Duration = Duration::from_secs(2);

fn seed() -> u64 {
    let given = std::env::var("REEVE_SEED");
    let chance = || {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::from(now.subsec_nanos())
    };
    given.map_or_else(|_| chance(), |seed| seed.parse().unwrap())
}

/// What is known of one object: that it is there as it was answered, or that it is
/// not.
type State = Option<Value>;

/// A request that has had no answer.
#[derive(Clone, Debug)]
struct Pending {
    path: String,
    /// What it makes of `data.step`; none for a deletion.
    step: Option<String>,
}

/// One client that writes, and what it knows.
struct Writer {
    chance: Chance,
    number: u64,
    step: u64,
    known: BTreeMap<String, State>,
    pending: Option<Pending>,
    /// The highest version that was answered to anybody.
    highest: Arc<AtomicU64>,
    /// How many writes were answered to anybody.
    answers: Arc<AtomicU64>,
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
    version.parse().unwrap()
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

impl Writer {
    /// Writes until the connection breaks, or it is ended.
    async fn write(&mut self, client: &Client) {
        while self.once(client).await.is_some() {}
    }

    async fn once(&mut self, client: &Client) -> Option<()> {
        self.step += 1;
        let step = self.step.to_string();
        let group = format!("w{}.example.com", self.number);
        let things = format!("/apis/{group}/v1/things");
        if self.chance.below(25) == 0 {
            return self.define(client, &group).await;
        }
        let defined = self.known.get(&format!("{DEFINITIONS}/things.{group}"));
        let custom = defined.is_some_and(Option::is_some) && self.chance.below(3) == 0;
        let (collection, api_version, kind) = match custom {
            true => (things, format!("{group}/v1"), "Thing"),
            false => (CONFIG_MAPS.to_owned(), "v1".to_owned(), "ConfigMap"),
        };
        let name = format!("w{}-{}", self.number, self.chance.below(6));
        let path = format!("{collection}/{name}");
        let known = self.known.get(&path).cloned().flatten();
        // As large as they are in clusters, now and then.
        let length = match self.chance.below(LARGE_ONE_IN) {
            0 => LARGE,
            _ => usize::try_from(self.chance.below(12)).unwrap().pow(4),
        };
        let filler = "x".repeat(length);
        let object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name},
            "data": {"step": step, "filler": filler},
        });
        let (method, at, body, step) = match (known, self.chance.below(5)) {
            (None, 0) => (
                "PATCH",
                format!("{path}?fieldManager=w&force=true"),
                object,
                Some(step),
            ),
            (None, _) => ("POST", collection, object, Some(step)),
            (Some(_), 0) => ("DELETE", path.clone(), Value::Null, None),
            (Some(_), 1) => {
                let patch = json!({"data": {"step": step}});
                ("PATCH", path.clone(), patch, Some(step))
            }
            (Some(live), 2) => {
                let mut object = object;
                object["metadata"] = live["metadata"].clone();
                ("PUT", path.clone(), object, Some(step))
            }
            (Some(_), _) => (
                "PATCH",
                format!("{path}?fieldManager=w&force=true"),
                object,
                Some(step),
            ),
        };
        self.pending = Some(Pending {
            path: path.clone(),
            step,
        });
        let (code, answer) = call(client, method, &at, &body).await?;
        self.answered(&path, method, code, answer);
        Some(())
    }

    /// Makes a definition, or deletes it with its objects.
    async fn define(&mut self, client: &Client, group: &str) -> Option<()> {
        let path = format!("{DEFINITIONS}/things.{group}");
        if !self.known.get(&path).is_some_and(Option::is_some) {
            self.pending = Some(Pending {
                path: path.clone(),
                step: Some(String::new()),
            });
            let (code, answer) = call(client, "POST", DEFINITIONS, &definition(group)).await?;
            self.answered(&path, "POST", code, answer);
            // Its status was written after it, and is not known yet.
            self.pending = Some(Pending {
                path: path.clone(),
                step: Some(String::new()),
            });
            let (code, answer) = call(client, "GET", &path, &Value::Null).await?;
            self.answered(&path, "GET", code, answer);
            return Some(());
        }
        // From here on it is not known what is left of the objects.
        let things = format!("/apis/{group}/");
        self.known.retain(|path, _| !path.starts_with(&things));
        self.pending = Some(Pending {
            path: path.clone(),
            step: None,
        });
        let (code, _) = call(client, "DELETE", &path, &Value::Null).await?;
        assert_eq!(code, 200);
        while call(client, "GET", &path, &Value::Null).await?.0 != 404 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.known.insert(path, None);
        self.pending = None;
        Some(())
    }

    fn answered(&mut self, path: &str, method: &str, code: u16, answer: Value) {
        assert!(
            (200..300).contains(&code),
            "{method} {path}: {code} {answer}"
        );
        self.pending = None;
        self.answers.fetch_add(1, Ordering::SeqCst);
        if method == "DELETE" {
            self.known.insert(path.to_owned(), None);
        } else {
            self.highest.fetch_max(version(&answer), Ordering::SeqCst);
            self.known.insert(path.to_owned(), Some(answer));
        }
    }

    /// Holds what is there against what is known.
    async fn verify(&mut self, client: &Client) {
        let pending = self.pending.take();
        let mut paths: BTreeSet<String> = self.known.keys().cloned().collect();
        paths.extend(pending.iter().map(|pending| pending.path.clone()));
        for path in paths {
            let (code, found) = get(client, &path).await;
            let found = match code {
                200 => Some(found),
                404 => None,
                _ => panic!("{path}: {code} {found}"),
            };
            let known = self.known.get(&path).cloned().flatten();
            let pending = pending.as_ref().filter(|pending| pending.path == path);
            if let Some(pending) = pending
                && path.starts_with(DEFINITIONS)
            {
                let stays = known.is_some() && pending.step.is_some();
                assert!(!stays || found.is_some(), "{path} is gone");
                self.settle_definition(client, &path, found).await;
                continue;
            }
            if found == known {
                continue;
            }
            let Some(pending) = pending else {
                panic!("{path} is not as it was answered: {known:?} became {found:?}");
            };
            match (&pending.step, &found) {
                (None, None) => {}
                (Some(step), Some(found)) => {
                    assert_eq!(found["data"]["step"], **step, "{path}");
                    let fields = found["metadata"]["managedFields"].as_array();
                    assert!(fields.is_some_and(|fields| !fields.is_empty()), "{found}");
                    if let Some(known) = known {
                        assert_eq!(found["metadata"]["uid"], known["metadata"]["uid"]);
                        assert!(version(found) > version(&known));
                    }
                }
                (step, found) => panic!("{path}: {known:?} became {found:?} by step {step:?}"),
            }
            self.known.insert(path, found);
        }
    }

    /// A definition that was being made is served; one that was being deleted ends.
    async fn settle_definition(&mut self, client: &Client, path: &str, found: State) {
        let ending = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
        let mut found = found;
        while found.as_ref().is_some_and(ending) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let (code, now) = get(client, path).await;
            found = (code == 200).then_some(now);
        }
        if let Some(found) = &found {
            let conditions = found["status"]["conditions"].as_array().unwrap();
            let served = conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True");
            assert!(served, "{found}");
            // If it was to be deleted, nobody knows of its objects any more.
            let group = found["spec"]["group"].as_str().unwrap();
            let things = format!("/apis/{group}/v1/things");
            for thing in get(client, &things).await.1["items"].as_array().unwrap() {
                let name = thing["metadata"]["name"].as_str().unwrap();
                let path = format!("{things}/{name}");
                let (_, thing) = get(client, &path).await;
                self.known.insert(path, Some(thing));
            }
        }
        self.known.insert(path.to_owned(), found);
    }
}

/// The objects of a list, by name, with its version.
async fn list(client: &Client) -> (u64, BTreeMap<String, Value>) {
    let (code, list) = get(client, CONFIG_MAPS).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    // Items of a list have no kind.
    let named = items.map(|item| {
        let name = item["metadata"]["name"].as_str().unwrap();
        (name.to_owned(), json!([item["metadata"], item["data"]]))
    });
    (version(&list), named.collect())
}

/// Watches from an older version up to the present list: it is told that the version
/// is too old, or of everything since then. Says which.
async fn resumes(client: &Client, before: &(u64, BTreeMap<String, Value>)) -> bool {
    let now = list(client).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={}",
        before.0
    );
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let mut lines = std::pin::pin!(client.request_stream(request).await.unwrap());
    let mut seen = before.1.clone();
    let mut last = before.0;
    let mut text = String::new();
    while seen != now.1 {
        text.clear();
        let read = lines.read_line(&mut text).await.unwrap();
        assert!(
            read > 0,
            "the watch from {} ends short of {}",
            before.0,
            now.0
        );
        let event: Value = serde_json::from_str(&text).unwrap();
        let object = &event["object"];
        if event["type"] == "ERROR" {
            assert_eq!(object["code"], 410, "{event}");
            return false;
        }
        assert!(version(object) > last, "{event} after {last}");
        last = version(object);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if event["type"] == "DELETED" {
            seen.remove(&name);
        } else {
            seen.insert(name, json!([object["metadata"], object["data"]]));
        }
    }
    true
}

/// What is in the folder of a state: the number of its newest snapshot, and whether there is
/// more of another one that is being made, which begins with another log and has no name before
/// it is whole.
fn snapshots(state: &Path) -> (u64, bool) {
    let (mut newest, mut newest_log, mut unfinished) = (0_u64, 0_u64, false);
    for entry in std::fs::read_dir(state).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        match name.split_once('-') {
            Some(("snapshot", _)) if name.ends_with(".new") => unfinished = true,
            _ if name.ends_with(".new") => {}
            Some(("snapshot", number)) => newest = newest.max(number.parse().unwrap()),
            Some(("log", number)) => newest_log = newest_log.max(number.parse().unwrap()),
            _ => {}
        }
    }
    (newest, unfinished || newest_log > newest)
}

/// What came of the lives of servers.
#[derive(Debug, Default)]
struct Account {
    /// How many writes were answered.
    writes: u64,
    /// How many watches went on from before a kill.
    resumed: usize,
    /// How many snapshots there were after a kill that were not there before its life.
    snapshots: usize,
    /// How many kills left one unfinished.
    unfinished: usize,
}

/// Kills the server of one folder so often.
async fn lives(folder: PathBuf, seed: u64, kills: usize) -> Account {
    let mut chance = Chance::new(seed);
    let highest = Arc::new(AtomicU64::new(0));
    let answers = Arc::new(AtomicU64::new(0));
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            chance: Chance::new(chance.number()),
            number,
            step: 0,
            known: BTreeMap::new(),
            pending: None,
            highest: highest.clone(),
            answers: answers.clone(),
        })
        .collect();
    let mut server = start(&folder);
    // The kubeconfig of the first life is good for all of them.
    let client = client(&folder.join("kubeconfig")).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (code, token) = call(&client, "POST", account, &json!({})).await.unwrap();
    assert_eq!(code, 201, "{token}");
    let state = folder.join("state");
    let mut newest = snapshots(&state).0;
    let mut account = Account::default();
    for life in 0..kills {
        let before = list(&client).await;
        let mut working = JoinSet::new();
        for mut writer in writers.drain(..) {
            let client = client.clone();
            working.spawn(async move {
                writer.write(&client).await;
                writer
            });
        }
        let enough = answers.load(Ordering::SeqCst) + chance.below(ANSWERS);
        // In each other life, a snapshot that is being made is enough.
        let meets_one = chance.below(2) == 0;
        let (_, had_more) = snapshots(&state);
        let is_met = || meets_one && !had_more && snapshots(&state).1;
        let busy = async {
            while answers.load(Ordering::SeqCst) < enough && !is_met() {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        // Writers that met a connection of before the last kill have ended early.
        let _ = tokio::time::timeout(PATIENCE, busy).await;
        tokio::time::sleep(Duration::from_micros(chance.below(MICROSECONDS))).await;
        drop(server);
        let (snapshot, left) = snapshots(&state);
        account.snapshots += usize::from(snapshot > newest);
        account.unfinished += usize::from(left && !had_more);
        newest = snapshot;
        writers = working.join_all().await;
        server = start(&folder);
        let mut verified = Vec::new();
        for writer in &mut writers {
            verified.push(writer.verify(&client));
        }
        futures::future::join_all(verified).await;
        let now = list(&client).await.0;
        let answered = highest.load(Ordering::SeqCst);
        assert!(now >= answered, "{now} after {answered} was answered");
        highest.fetch_max(now, Ordering::SeqCst);
        if life % 4 == 0 {
            account.resumed += usize::from(resumes(&client, &before).await);
        }
    }
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token["status"]["token"]},
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, review) = call(&client, "POST", path, &review).await.unwrap();
    assert_eq!(review["status"]["authenticated"], true, "{review}");
    account.writes = answers.load(Ordering::SeqCst);
    account
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_answered_is_lost_when_it_is_killed() {
    let seed = seed();
    eprintln!("seed {seed}: REEVE_SEED={seed} gives the same writes");
    let folders = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let mut all = JoinSet::new();
    for number in 0..FOLDERS {
        let folder = folders.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let seed = seed.wrapping_add(u64::try_from(number).unwrap());
        all.spawn(lives(folder, seed, KILLS / FOLDERS));
    }
    let mut sum = Account::default();
    for account in all.join_all().await {
        sum.writes += account.writes;
        sum.resumed += account.resumed;
        sum.snapshots += account.snapshots;
        sum.unfinished += account.unfinished;
    }
    let Account {
        writes,
        resumed,
        snapshots,
        unfinished,
    } = sum;
    eprintln!(
        "{KILLS} kills, {writes} writes, {resumed} watches resumed, {snapshots} snapshots and \
         {unfinished} unfinished ones, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    // Each kill waits for half of the most answers, on average.
    assert!(writes > 2000, "{writes} writes are no load");
    assert!(resumed > 0, "no watch goes on from before a kill");
    assert!(snapshots >= SNAPSHOTS, "{snapshots} snapshots are too few");
    assert!(
        unfinished >= UNFINISHED,
        "{unfinished} kills met a snapshot"
    );
}
