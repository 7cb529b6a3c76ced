//! HTTP requests to the API server.

use std::collections::BTreeSet;

use http::Request;

use crate::cluster::{Cluster, OBJECTS};

/// Enough to make something, change it and take it away again.
const MAX_REQUESTS: usize = 8;
/// Between requests.
const SEPARATOR: &[u8] = b"\n%%\n";

/// Lists that have to stay readable whatever was written.
const LISTS: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
];

/// The input is a sequence of requests, each as it would be written by hand:
/// method and path, headers, an empty line, the body; a line `%%` between two.
///
/// Every one gets an answer in the server's form, and what is stored afterwards can
/// be read, listed and told apart.
pub fn requests(input: &[u8]) {
    let requests = parse(input);
    if requests.is_empty() {
        return;
    }
    let cluster = Cluster::new();
    for request in requests {
        cluster.send(request);
    }
    for path in LISTS {
        let list = cluster.get(path);
        assert_eq!(list.status, 200, "{path}: {}", list.json());
        let list = list.json();
        let mut seen = BTreeSet::new();
        for item in list["items"].as_array().into_iter().flatten() {
            let metadata = &item["metadata"];
            let key = (
                metadata["namespace"].to_string(),
                metadata["name"].to_string(),
            );
            assert!(seen.insert(key), "{path}: twice {metadata}");
            for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
                let text = metadata[field].as_str();
                assert!(text.is_some_and(|text| !text.is_empty()), "{path}: {item}");
            }
        }
    }
    for path in OBJECTS {
        let object = cluster.get(path);
        assert!(matches!(object.status, 200 | 404), "{path}: {object:?}");
    }
}

fn parse(input: &[u8]) -> Vec<Request<Vec<u8>>> {
    let mut out = Vec::new();
    let mut rest = input;
    while out.len() < MAX_REQUESTS && !rest.is_empty() {
        let (one, next) = match find(rest, SEPARATOR) {
            Some(at) => (&rest[..at], &rest[at + SEPARATOR.len()..]),
            None => (rest, &rest[rest.len()..]),
        };
        out.extend(request(one));
        rest = next;
    }
    out
}

fn request(text: &[u8]) -> Option<Request<Vec<u8>>> {
    let (head, body) = match find(text, b"\n\n") {
        Some(at) => (&text[..at], &text[at + 2..]),
        None => (text, &text[text.len()..]),
    };
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, uri) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(uri);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    let request = request.body(body.to_vec()).ok()?;
    request.uri().path().starts_with('/').then_some(request)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
