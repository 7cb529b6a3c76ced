//! What a server keeps in a folder, and what it says of folders that it cannot use.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use reeve_sim::{Config, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{CONFIG_MAPS, Http, config_map, settle};

const NAMESPACES: &str = "/api/v1/namespaces";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const PRIORITIES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn open(folder: &Path) -> (Server, Http) {
    let server = Server::open(Config::default(), folder).unwrap();
    let client = Http(server.client());
    (server, client)
}

/// Ends a server. Its client has a task of its own, which notices a little later.
async fn close(server: Server, client: Http) {
    drop((server, client));
    settle().await;
}

/// The folder as a process leaves it that is killed now.
fn killed(folder: &Path) -> TempDir {
    loop {
        let copy = tempfile::tempdir().unwrap();
        let mut entries = fs::read_dir(folder).unwrap();
        let copied = entries.try_for_each(|entry| {
            let from = entry?.path();
            fs::copy(&from, copy.path().join(from.file_name().unwrap())).map(drop)
        });
        match copied {
            Ok(()) => return copy,
            // A file went while the others were copied, which nobody sees at one moment.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
        }
    }
}

/// The file with the greatest number.
fn newest(folder: &Path, kind: &str) -> PathBuf {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let number = |name: &str| name.strip_prefix(kind)?.strip_prefix('-')?.parse().ok();
    let numbers = names.filter_map(|entry| number(&entry.file_name().to_string_lossy()));
    let newest: u64 = numbers.max().unwrap();
    folder.join(format!("{kind}-{newest}"))
}

fn definition(columns: &[&str]) -> Value {
    let fields = columns.iter().map(|field| {
        let schema = json!({"type": "string", "default": format!("the-{field}")});
        ((*field).to_owned(), schema)
    });
    let fields: serde_json::Map<String, Value> = fields.collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                }}},
            }],
        },
    })
}

/// All that these tests write to, with the version that it is at.
async fn everything(client: &Http) -> Vec<Value> {
    let mut lists = Vec::new();
    for path in [
        NAMESPACES,
        CONFIG_MAPS,
        ROLES,
        DEFINITIONS,
        WIDGETS,
        PRIORITIES,
    ] {
        let (code, list) = client.get(path).await;
        assert_eq!(code, 200, "{path}");
        lists.push(list);
    }
    lists
}

async fn filled(client: &Http) {
    let created = client.post(DEFINITIONS, definition(&["colour"])).await;
    assert_eq!(created.0, 201, "{}", created.1);
    let widget = json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {},
    });
    assert_eq!(client.post(WIDGETS, widget).await.0, 201);
    // Shown with another default from here on, and not written again.
    let patch = json!({"spec": {"versions": definition(&["colour", "size"])["spec"]["versions"]}});
    let path = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(client.call("PATCH", &path, patch).await.0, 200);
    for name in ["a", "b", "c"] {
        let map = config_map(name, json!({"of": name}));
        assert_eq!(client.post(CONFIG_MAPS, map).await.0, 201);
    }
    let applied = config_map("a", json!({"by": "apply"}));
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(
        client
            .apply(&format!("{path}?force=true"), "m", applied)
            .await
            .0,
        200
    );
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/b")).await.0, 200);
    // One that the server does not look after any more.
    let unkept = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
    let role = json!({"rules": [], "metadata": {"annotations": unkept}});
    let path = format!("{ROLES}/system:basic-user");
    assert_eq!(client.call("PATCH", &path, role).await.0, 200);
    settle().await;
}

#[tokio::test]
async fn everything_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("deep/state");
    let (server, client) = open(&state);
    assert!(!server.has_resumed());
    filled(&client).await;
    let before = everything(&client).await;
    assert_eq!(before[4]["items"][0]["spec"]["size"], "the-size");

    // As a killed process leaves it, and as one that ends.
    let copy = killed(&state);
    close(server, client).await;
    for folder in [copy.path(), &state, &state] {
        let (server, client) = open(folder);
        assert!(server.has_resumed());
        assert_eq!(everything(&client).await, before);
        settle().await;
        // Opening it is no write.
        assert_eq!(everything(&client).await, before);
        close(server, client).await;
    }

    let (_server, client) = open(&state);
    let (_, next) = client.post(CONFIG_MAPS, config_map("d", json!({}))).await;
    let version = |value: &Value| {
        let version = value["metadata"]["resourceVersion"].as_str().unwrap();
        version.parse::<u64>().unwrap()
    };
    assert_eq!(version(&next), version(&before[0]) + 1);
}

/// A Job is stored without some of its defaults, and the next write stores them, though it
/// changes nothing. That is so after a restart, too, from the log and from a snapshot.
#[tokio::test]
async fn what_is_stored_otherwise_than_it_is_shown_stays_so() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    let containers = json!([{"name": "c", "image": "i"}]);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let (code, made) = client.post(JOBS, job).await;
    assert_eq!(code, 201, "{made}");
    let copy = killed(folder.path());
    close(server, client).await;
    for folder in [copy.path(), folder.path()] {
        let (server, client) = open(folder);
        let path = format!("{JOBS}/a");
        let (_, found) = client.get(&path).await;
        assert_eq!(found, made);
        let (_, stored) = client.call("PATCH", &path, json!({})).await;
        let (_, again) = client.call("PATCH", &path, json!({})).await;
        let version = |job: &Value| job["metadata"]["resourceVersion"].clone();
        assert_ne!(version(&stored), version(&made));
        assert_eq!(version(&again), version(&stored));
        close(server, client).await;
    }
}

#[tokio::test]
async fn watches_and_pages_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    filled(&client).await;
    let (_, page) = client.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    let then = page["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    let map = config_map("late", json!({}));
    assert_eq!(client.post(CONFIG_MAPS, map).await.0, 201);
    assert_eq!(client.delete(&format!("{CONFIG_MAPS}/c")).await.0, 200);
    close(server, client).await;

    let (server, client) = open(folder.path());
    let rest = format!("{CONFIG_MAPS}?limit=9&continue={token}");
    let (code, page) = client.get(&rest).await;
    assert_eq!((code, page["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(page["items"][0]["metadata"]["name"], "c");
    let watch = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={then}");
    let request = http::Request::get(watch)
        .body(kube::client::Body::empty())
        .unwrap();
    let body = server.client().send(request).await.unwrap().into_body();
    let bytes = body.collect_bytes().await.unwrap();
    let events = std::str::from_utf8(&bytes).unwrap().lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    });
    let expected = [("ADDED", "late"), ("DELETED", "c")];
    let expected = expected.map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    assert_eq!(events.collect::<Vec<_>>(), expected);

    // What was compacted stays so.
    server.compact();
    close(server, client).await;
    let (_server, client) = open(folder.path());
    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={then}");
    let (_, event) = client.get(&watch).await;
    assert_eq!(event["object"]["code"], 410, "{event}");
}

#[tokio::test]
async fn tokens_certificate_and_port_stay() {
    let folder = tempfile::tempdir().unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (server, client) = open(folder.path());
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (_, request) = client.post(account, json!({})).await;
    let token = request["status"]["token"].as_str().unwrap().to_owned();
    let serving = server.serve(any).await.unwrap();
    let (kubeconfig, address) = (serving.kubeconfig(), serving.address());
    serving.shutdown().await;
    close(server, client).await;

    let (server, client) = open(folder.path());
    let serving = server.serve(any).await.unwrap();
    assert_eq!(serving.kubeconfig(), kubeconfig);
    let review = json!({"spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, review) = client.post(reviews, review).await;
    let user = "system:serviceaccount:default:default";
    assert_eq!(review["status"]["user"]["username"], user, "{review}");
    serving.shutdown().await;
    close(server, client).await;

    // Somebody else has the port now.
    let _other = tokio::net::TcpListener::bind(address).await.unwrap();
    let (server, _client) = open(folder.path());
    let serving = server.serve(any).await.unwrap();
    assert_ne!(serving.address(), address);
}

#[tokio::test]
async fn what_is_always_there_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let paths = [
        format!("{ROLES}/view"),
        format!("{group}/clusterrolebindings/system:kube-scheduler"),
        format!("{group}/namespaces/kube-system/roles/extension-apiserver-authentication-reader"),
    ];
    for path in &paths {
        assert_eq!(client.delete(path).await.0, 200);
        assert_eq!(client.get(path).await.0, 404);
    }
    close(server, client).await;
    let (server, client) = open(folder.path());
    for path in &paths {
        assert_eq!(client.get(path).await.0, 200);
    }
    let scheduler = Http(server.client_as("system:kube-scheduler", [""; 0]));
    assert_eq!(scheduler.get("/api/v1/nodes").await.0, 200);
}

#[tokio::test]
async fn roles_get_back_what_they_lack() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let scheduler = format!("{ROLES}/system:kube-scheduler");
    let binding = format!("{group}/clusterrolebindings/system:kube-scheduler");
    let own = format!("{ROLES}/system:kube-dns");
    let rule = json!({"apiGroups": ["mine"], "resources": ["things"], "verbs": ["get"]});
    for (path, change) in [
        (&scheduler, json!({"rules": [rule]})),
        (&binding, json!({"subjects": null})),
        (
            &own,
            json!({"rules": [], "metadata": {"annotations": {
            "rbac.authorization.kubernetes.io/autoupdate": "false"}}}),
        ),
    ] {
        let media = "application/merge-patch+json";
        let (code, answer) = client.call_as("PATCH", path, media, change).await;
        assert_eq!(code, 200, "{answer}");
    }
    close(server, client).await;
    let (server, client) = open(folder.path());
    let (_, role) = client.get(&scheduler).await;
    assert!(role["rules"].as_array().unwrap().contains(&rule));
    let named = Http(server.client_as("system:kube-scheduler", [""; 0]));
    assert_eq!(named.get("/api/v1/nodes").await.0, 200);
    let (_, role) = client.get(&own).await;
    assert!(role["rules"].as_array().is_none_or(Vec::is_empty), "{role}");
    // Once is enough.
    let version = client.get(&scheduler).await.1["metadata"]["resourceVersion"].clone();
    drop(named);
    close(server, client).await;
    let (_server, client) = open(folder.path());
    let (_, role) = client.get(&scheduler).await;
    assert_eq!(role["metadata"]["resourceVersion"], version);
}

#[tokio::test]
async fn rights_are_those_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    let role = json!({
        "metadata": {"name": "reads"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    assert_eq!(client.post(ROLES, role).await.0, 201);
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = json!({
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    assert_eq!(client.post(bindings, binding).await.0, 201);
    close(server, client).await;
    let (server, _client) = open(folder.path());
    let alice = Http(server.client_as("alice", Vec::<String>::new()));
    assert_eq!(alice.get(CONFIG_MAPS).await.0, 200);
    assert_eq!(alice.delete(&format!("{CONFIG_MAPS}/a")).await.0, 403);
}

#[tokio::test]
async fn a_definition_that_was_ending_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    filled(&client).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    let widget = format!("{WIDGETS}/w");
    assert_eq!(client.call("PATCH", &widget, held).await.0, 200);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(client.delete(&path).await.0, 200);
    settle().await;
    close(server, client).await;
    let (_server, client) = open(folder.path());
    let (code, found) = client.get(&widget).await;
    assert_eq!(code, 200);
    assert!(
        found["metadata"]["deletionTimestamp"].is_string(),
        "{found}"
    );
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(client.call("PATCH", &widget, free).await.0, 200);
    settle().await;
    assert_eq!(client.get(&path).await.0, 404);
    assert_eq!(client.get(WIDGETS).await.0, 404);
}

#[tokio::test]
async fn a_state_does_not_grow_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    let (_, first) = client.get(CONFIG_MAPS).await;
    let name = |step: usize| format!("m{}", step % 3);
    for step in 0..60 {
        let map = config_map(
            &name(step),
            json!({"large": "x".repeat(900_000), "step": step.to_string()}),
        );
        let path = format!("{CONFIG_MAPS}/{}", name(step));
        let (code, answer) = client.apply(&path, "m", map).await;
        assert!(code < 300, "{answer}");
    }
    let before = client.get(CONFIG_MAPS).await;
    let copy = killed(folder.path());
    close(server, client).await;
    for folder in [copy.path(), folder.path()] {
        let (_server, client) = open(folder);
        assert_eq!(client.get(CONFIG_MAPS).await, before);
        // 54 MB were written, of which 2.7 are left.
        let sizes = fs::read_dir(folder).unwrap();
        let sizes = sizes.map(|entry| entry.unwrap().metadata().unwrap().len());
        let size: u64 = sizes.sum();
        assert!(size < 30_000_000, "{size} bytes");
        let version = first["metadata"]["resourceVersion"].as_str().unwrap();
        let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}");
        let (_, event) = client.get(&watch).await;
        assert_eq!(event["object"]["code"], 410, "{event}");
    }
}

/// A state with some writes in its log, which no server uses.
async fn left() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    filled(&client).await;
    close(server, client).await;
    folder
}

fn refusal(folder: &Path) -> String {
    let error = Server::open(Config::default(), folder).unwrap_err();
    let text = error.to_string();
    text.replace(&folder.display().to_string(), "DIR")
}

#[tokio::test]
async fn unusable_folders_are_refused_and_left_as_they_are() {
    let folder = left().await;
    let log = fs::read(folder.path().join("log-1")).unwrap();
    let middle = log.len() / 2;
    let end = log.len();
    let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).unwrap();
    type Change<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Change<'_>, &str); 9] = [
        (
            "a damaged log",
            &|dir| {
                let mut log = log.clone();
                log[middle] ^= 1;
                write(&dir.join("log-1"), &log);
            },
            "DIR/log-1 is damaged at byte {at}: a record does not have its checksum; everything up to resourceVersion {version} is whole: put back a copy of the folder, or, to go on from there without what was written since, truncate --size {at} DIR/log-1",
        ),
        (
            "a damaged snapshot",
            &|dir| {
                let mut snapshot = fs::read(dir.join("snapshot-1")).unwrap();
                snapshot[1000] ^= 1;
                write(&dir.join("snapshot-1"), &snapshot);
            },
            "DIR/snapshot-1 is damaged at byte {at}: a record does not have its checksum; what comes after that is lost, so that nothing of it is used: put back a copy, or begin anew with another folder",
        ),
        (
            "a snapshot that is cut off",
            &|dir| {
                let snapshot = fs::read(dir.join("snapshot-1")).unwrap();
                write(&dir.join("snapshot-1"), &snapshot[..snapshot.len() - 1]);
            },
            "DIR/snapshot-1 is damaged at byte {at}: it is cut off; what comes after that is lost, so that nothing of it is used: put back a copy, or begin anew with another folder",
        ),
        (
            "no snapshot",
            &|dir| fs::remove_file(dir.join("snapshot-1")).unwrap(),
            "DIR/log-1 is damaged at byte 0: the snapshot that it goes on from is gone; put the snapshot back, or begin anew with another folder",
        ),
        (
            "a gap",
            &|dir| fs::rename(dir.join("log-1"), dir.join("log-2")).unwrap(),
            "DIR/log-2 is damaged at byte 0: log-1, which comes before it, is gone; put it back; without it, what was written after resourceVersion {version} is lost: to go on from there, remove log-2 and those after it",
        ),
        (
            "a log of a newer version",
            &|dir| write(&dir.join("log-1"), b"reeve-state 3 log 1\n"),
            "DIR/log-1 is of format 3, and this version reads 2 at most: a newer reeve has written it, use that one",
        ),
        (
            "something else",
            &|dir| write(&dir.join("log-1"), b"text"),
            "DIR/log-1 is damaged at byte 0: it does not begin as a log of reeve does; nothing of it can be read: name another file, or put back a copy",
        ),
        (
            "a log that goes on from elsewhere",
            &|dir| write(&dir.join("log-1"), b"reeve-state 1 log 999\n"),
            "DIR/log-1 is damaged at byte 0: it goes on from resourceVersion 999, which is not the last one; everything up to resourceVersion {version} is whole: put back a copy of the folder, or, to go on from there without what was written since, remove DIR/log-1",
        ),
        (
            "a server that cannot be known",
            &|dir| write(&dir.join("server.json"), b"{}"),
            "DIR/server.json is damaged at byte {at}: missing field `certificate` at line 1 column 2; the objects are not affected: remove this file to have another certificate and token made, which earlier kubeconfigs do not know",
        ),
    ];
    for (name, change, expected) in cases {
        let copy = killed(folder.path());
        change(copy.path());
        let again = killed(copy.path());
        let found = refusal(copy.path());
        // Numbers that follow from what was written are not of interest.
        let mut place = expected;
        let mut rest = found.as_str();
        while let Some((text, after)) = place.split_once('{') {
            rest = rest
                .strip_prefix(text)
                .unwrap_or_else(|| panic!("{name}: {found}"));
            rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
            place = after.split_once('}').unwrap().1;
        }
        assert_eq!(rest, place, "{name}: {found}");
        for file in ["log-1", "log-2", "snapshot-1", "server.json"] {
            let bytes = |dir: &TempDir| fs::read(dir.path().join(file)).ok();
            assert_eq!(bytes(&copy), bytes(&again), "{name}: {file}");
        }
    }

    // What a kill leaves half-written is no damage, wherever it is cut.
    for cut in [1, 5, 13, 200] {
        let copy = killed(folder.path());
        write(&copy.path().join("log-1"), &log[..end - cut]);
        let (server, client) = open(copy.path());
        let (code, _) = client.post(CONFIG_MAPS, config_map("z", json!({}))).await;
        assert_eq!(code, 201, "{cut}");
        close(server, client).await;
        let (_server, client) = open(copy.path());
        assert_eq!(
            client.get(&format!("{CONFIG_MAPS}/z")).await.0,
            200,
            "{cut}"
        );
    }
    // The advice works.
    let copy = killed(folder.path());
    let mut damaged = log.clone();
    damaged[middle] ^= 1;
    write(&copy.path().join("log-1"), &damaged);
    let text = refusal(copy.path());
    let at = text
        .split("--size ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    write(&copy.path().join("log-1"), &damaged[..at.parse().unwrap()]);
    open(copy.path());
}

#[tokio::test]
async fn a_folder_has_one_server_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = open(folder.path());
    assert_eq!(
        refusal(folder.path()),
        format!(
            "state folder DIR is in use by process {}; stop that server, or name another folder",
            std::process::id()
        )
    );
    close(server, client).await;
    open(folder.path());

    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(
        refusal(home.path()),
        "DIR is no state folder: it holds notes.txt; name an empty folder, or one that this command made"
    );
    let files: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing is put beside it");

    let file = home.path().join("notes.txt");
    assert_eq!(
        refusal(&file),
        "cannot make folder DIR; the state needs a folder that you may write to"
    );
}

#[tokio::test]
async fn a_snapshot_that_was_not_finished_is_not_needed() {
    let folder = left().await;
    let (server, client) = open(folder.path());
    let before = everything(&client).await;
    close(server, client).await;
    let version = before[0]["metadata"]["resourceVersion"].as_str().unwrap();
    // The next log was begun, and its snapshot is half there.
    let line = format!("reeve-state 1 log {version}\n");
    fs::write(folder.path().join("log-2"), line).unwrap();
    fs::write(folder.path().join("snapshot-2.new"), "reeve-state 1 sna").unwrap();
    // A name that takes more than a few bytes to count.
    let role = json!({"metadata": {"name": "r".repeat(70_000)}});
    for _ in 0..2 {
        let (server, client) = open(folder.path());
        assert_eq!(client.get(WIDGETS).await.1["items"], before[4]["items"]);
        let (code, answer) = client.post(ROLES, role.clone()).await;
        assert!(code == 201 || code == 409, "{answer}");
        close(server, client).await;
    }
    let newest = fs::read(newest(folder.path(), "log")).unwrap();
    assert!(newest.len() > 70_000, "writes go on in the newest log");
    assert!(folder.path().join("log-1").exists(), "it is still needed");
    let left = folder.path().join("snapshot-2.new");
    assert!(!left.exists(), "it would stay for ever");
}

/// A folder of the first format is read, and nothing of the second is written into its files.
#[tokio::test]
async fn a_folder_of_an_older_format_goes_on_in_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (server, http) = open(folder.path());
    let (code, made) = http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    assert_eq!(code, 201, "{made}");
    close(server, http).await;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        if bytes.starts_with(b"reeve-state 2 ") {
            fs::write(&path, [b"reeve-state 1 ", &bytes[14..]].concat()).unwrap();
        }
    }
    let old = newest(folder.path(), "log");
    let before = fs::read(&old).unwrap();
    let (server, http) = open(folder.path());
    let (code, made) = http.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    assert_eq!(code, 201, "{made}");
    close(server, http).await;
    let new = newest(folder.path(), "log");
    assert_ne!(new, old);
    assert!(fs::read(&new).unwrap().starts_with(b"reeve-state 2 log "));
    // Unless it has gone with a snapshot meanwhile.
    assert_eq!(fs::read(&old).unwrap_or_else(|_| before.clone()), before);
    let (server, http) = open(folder.path());
    for name in ["a", "b"] {
        let (code, found) = http.get(&format!("{CONFIG_MAPS}/{name}")).await;
        assert_eq!(code, 200, "{found}");
    }
    close(server, http).await;
}
