//! Lists with pages, and watches: their tokens, versions and limits.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Uri;
use serde_json::{Value, json};

use crate::cluster::{Answer, Cluster};

/// What is listed, and the namespace that all of it is in.
const COLLECTIONS: &[(&str, Option<&str>)] = &[
    ("/api/v1/namespaces/default/configmaps", Some("default")),
    ("/api/v1/configmaps", None),
    (
        "/apis/fuzz.dev/v1/namespaces/default/things",
        Some("default"),
    ),
    ("/api/v1/namespaces", None),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", None),
    (
        "/api/v1/namespaces/kube-system/configmaps",
        Some("kube-system"),
    ),
];

/// The first byte chooses a collection. The first line is parameters of a request, as they
/// stand in a query; the second is a token for a further page: as it is, or where
/// it begins with a brace, what it holds.
///
/// Whatever is asked for, what comes is in order, there once, within the limit and of the
/// namespace that was asked about, and nothing but what was there at some time. Pages
/// together are the list as it was at the first page, however it changes meanwhile, and a
/// watch goes forward.
pub fn lists(input: &[u8]) {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let (collection, namespace) = COLLECTIONS[usize::from(choice) % COLLECTIONS.len()];
    let (query, token) = text.split_once('\n').unwrap_or((text, ""));
    let is_query = format!("{collection}?{query}").parse::<Uri>().is_ok();
    if !is_query || query.contains('#') {
        return;
    }
    let cluster = Cluster::new();
    prepare(&cluster);

    let before = cluster.get(collection);
    let all = names(&before, namespace);
    let first = ask(&cluster, collection, query, None);
    if is_watch(query) {
        forward(&first, namespace);
        return;
    }
    let mut known = all.clone();
    if first.is_success() {
        let mut found = page(&first, namespace, limit(query));
        assert!(
            found.iter().all(|name| known.contains(name)),
            "{query}: {found:?}"
        );
        let mut next = further(&first);
        change(&cluster);
        while let Some(token) = next {
            let query = kept(query);
            let answer = ask(&cluster, collection, &query, Some(&token));
            assert_eq!(answer.status, 200, "{query}: {}", answer.json());
            let more = page(&answer, namespace, limit(&query));
            next = further(&answer);
            // What a selector takes away of the last page may be all of it, as in the real
            // server.
            let may_be_empty = next.is_none() && query.contains("Selector");
            assert!(
                may_be_empty || !more.is_empty(),
                "{query}: an empty page: {}",
                answer.json()
            );
            let follows = more.is_empty() || found.last() < more.first();
            assert!(follows, "{query}: {found:?}, {more:?}");
            found.extend(more);
        }
        let selects = ["Selector", "resourceVersion", "continue"];
        if !selects.iter().any(|word| query.contains(word)) && !query.contains('%') {
            assert_eq!(found, all, "{query}");
        }
    } else {
        change(&cluster);
    }
    known.extend(names(&cluster.get(collection), namespace));
    let token = match token.starts_with('{') {
        true => BASE64_URL_SAFE_NO_PAD.encode(token),
        false => token.to_owned(),
    };
    let forged = ask(&cluster, collection, &kept(query), Some(&token));
    if forged.is_success() {
        let found = page(&forged, namespace, limit(query));
        assert!(
            found.iter().all(|name| known.contains(name)),
            "{token}: {found:?}"
        );
    }
}

/// Objects beside those that are always there, in both namespaces.
fn prepare(cluster: &Cluster) {
    for (namespace, names) in [
        ("default", &["b", "c", "d", "a.b"][..]),
        ("kube-system", &["a"]),
    ] {
        for name in names {
            let map = json!({"metadata": {"name": name, "labels": {"n": name}}}).to_string();
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            let made = cluster.call("POST", &path, "application/json", map.as_bytes());
            assert_eq!(made.status, 201, "{}", made.json());
        }
    }
}

/// What happens between two pages.
fn change(cluster: &Cluster) {
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.call("DELETE", &format!("{maps}/c"), "", b"");
    let map = json!({"metadata": {"name": "bb"}}).to_string();
    cluster.call("POST", maps, "application/json", map.as_bytes());
}

fn ask(cluster: &Cluster, collection: &str, query: &str, token: Option<&str>) -> Answer {
    let mut path = format!("{collection}?{query}");
    if let Some(token) = token {
        let token = token.bytes().map(|byte| format!("%{byte:02X}"));
        path.push_str(&format!("&continue={}", token.collect::<String>()));
    }
    cluster.get(&path)
}

/// A query without what goes only with the first page.
fn kept(query: &str) -> String {
    let first = |part: &&str| {
        !["resourceVersion", "continue", "sendInitialEvents"]
            .iter()
            .any(|name| part.starts_with(name))
    };
    query.split('&').filter(first).collect::<Vec<_>>().join("&")
}

/// Whether something other than a list may be asked for, however that is spelled.
fn is_watch(query: &str) -> bool {
    query.contains("watch") || query.contains('%')
}

/// The most that may come in a page: the first value counts, unless any version is asked for,
/// which the real server has in its cache, without pages.
fn limit(query: &str) -> usize {
    let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
    if value("resourceVersion=") == Some("0") {
        return usize::MAX;
    }
    let limit = value("limit=").and_then(|limit| limit.parse().ok());
    limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX)
}

fn further(answer: &Answer) -> Option<String> {
    let json = answer.json();
    let token = json["metadata"]["continue"].as_str()?;
    (!token.is_empty()).then(|| token.to_owned())
}

/// The names in a page, each behind its namespace.
fn page(answer: &Answer, namespace: Option<&str>, limit: usize) -> Vec<(String, String)> {
    let found = names(answer, namespace);
    assert!(found.len() <= limit, "{limit} at most: {found:?}");
    assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
    found
}

fn names(answer: &Answer, namespace: Option<&str>) -> Vec<(String, String)> {
    let json = answer.json();
    let items = json["items"].as_array().into_iter().flatten();
    items.map(|item| name(item, namespace)).collect()
}

fn name(item: &Value, namespace: Option<&str>) -> (String, String) {
    let text = |field: &str| {
        item["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (within, name) = (text("namespace"), text("name"));
    assert!(
        namespace.is_none_or(|namespace| namespace == within),
        "{within}/{name}"
    );
    (within, name)
}

/// What a watch says comes in the order in which it happened, but for what was there at its
/// beginning.
fn forward(answer: &Answer, namespace: Option<&str>) {
    let mut last = None;
    for event in serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>() {
        let Ok(event) = event else { return };
        let object = &event["object"];
        match event["type"].as_str() {
            Some("MODIFIED" | "DELETED") => {
                name(object, namespace);
                let version = object["metadata"]["resourceVersion"].as_str();
                let version = version.and_then(|version| version.parse::<u64>().ok());
                assert!(version.is_some() && version >= last, "{last:?}: {event}");
                last = version;
            }
            Some("ADDED") => drop(name(object, namespace)),
            Some("BOOKMARK" | "ERROR") => {}
            _ => return,
        }
    }
}
