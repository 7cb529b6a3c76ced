//! Watches, through `kube::Client`.

use std::time::{Duration, UNIX_EPOCH};

use crate::support::{CONFIG_MAPS, Http, admin, config_map};
use http::Request;
use http_body_util::BodyExt;
use reeve_sim::{Clock, Config, Outage, Server};
use serde_json::{Value, json};

/// An open watch, read event by event.
pub(crate) struct Watch {
    body: kube::client::Body,
    lines: Vec<Value>,
}

impl Watch {
    pub(crate) async fn open(http: &Http, path: &str) -> Self {
        let request = Request::get(path)
            .body(kube::client::Body::empty())
            .unwrap();
        let answer = http.0.send(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        Watch {
            body: answer.into_body(),
            lines: Vec::new(),
        }
    }

    /// The next event; `None` at the end, an error when the watch breaks.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, String> {
        if self.lines.is_empty() {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap();
                    let lines = bytes
                        .split(|byte| *byte == b'\n')
                        .filter(|line| !line.is_empty());
                    self.lines = lines
                        .map(|line| serde_json::from_slice(line).unwrap())
                        .collect();
                }
            }
        }
        Ok(Some(self.lines.remove(0)))
    }

    /// Type and name of the next event.
    async fn brief(&mut self) -> (String, String) {
        let event = self.next().await.unwrap().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}

fn brief(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

fn labelled(name: &str, label: &str) -> Value {
    let mut object = config_map(name, json!({}));
    object["metadata"]["labels"] = json!({"l": label});
    object
}

#[tokio::test]
async fn present_objects_come_first_then_changes() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let mut watch = Watch::open(&http, &format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
    http.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    assert_eq!(watch.brief().await, brief("ADDED", "b"));
    http.call(
        "PATCH",
        &format!("{CONFIG_MAPS}/b"),
        json!({"data": {"x": "1"}}),
    )
    .await;
    assert_eq!(watch.brief().await, brief("MODIFIED", "b"));
    http.delete(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(watch.brief().await, brief("DELETED", "a"));
}

#[tokio::test]
async fn a_watch_starts_after_a_version() {
    let (_server, http) = admin();
    let (_, a) = http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    http.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    let version = a["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::open(
        &http,
        &format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}"),
    )
    .await;
    assert_eq!(watch.brief().await, brief("ADDED", "b"));
}

#[tokio::test]
async fn an_object_that_stops_matching_is_deleted() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, labelled("a", "1")).await;
    let mut watch = Watch::open(&http, &format!("{CONFIG_MAPS}?watch=1&labelSelector=l%3D1")).await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
    let (_, moved) = http
        .call(
            "PATCH",
            &format!("{CONFIG_MAPS}/a"),
            json!({"metadata": {"labels": {"l": "2"}}}),
        )
        .await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(
        event["object"]["metadata"]["labels"]["l"], "1",
        "the last state that matched"
    );
    assert_eq!(
        event["object"]["metadata"]["resourceVersion"],
        moved["metadata"]["resourceVersion"]
    );
    http.call(
        "PATCH",
        &format!("{CONFIG_MAPS}/a"),
        json!({"metadata": {"labels": {"l": "1"}}}),
    )
    .await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_and_ends_come_by_the_clock() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=90"
    );
    let start = tokio::time::Instant::now();
    let mut watch = Watch::open(&http, &path).await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
    let end = watch.next().await.unwrap().unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(
        end["object"]["metadata"]["annotations"],
        json!({"k8s.io/initial-events-end": "true"})
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
    let later = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (
            &later["type"],
            later["object"]["metadata"].get("annotations")
        ),
        (&json!("BOOKMARK"), None)
    );
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    assert_eq!(watch.next().await, Ok(None));
    assert_eq!(start.elapsed(), Duration::from_secs(90));
}

#[tokio::test]
async fn old_versions_expire() {
    let (server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    server.compact();
    let mut watch = Watch::open(&http, &format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (
            &event["type"],
            &event["object"]["code"],
            &event["object"]["reason"]
        ),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, Ok(None));
}

#[tokio::test]
async fn watches_break_when_they_are_dropped() {
    let (server, http) = admin();
    let mut watch = Watch::open(&http, &format!("{CONFIG_MAPS}?watch=1")).await;
    server.faults().drop_watches();
    assert!(watch.next().await.is_err());

    let mut watch = Watch::open(&http, &format!("{CONFIG_MAPS}?watch=1")).await;
    server.faults().set_outage(Outage::Refused);
    assert!(watch.next().await.is_err());
    let request = Request::get(CONFIG_MAPS)
        .body(kube::client::Body::empty())
        .unwrap();
    assert!(http.0.send(request).await.is_err());
    server.faults().set_outage(Outage::Unavailable);
    assert_eq!(http.get(CONFIG_MAPS).await.0, 503);
    server.faults().set_outage(Outage::None);
    assert_eq!(http.get(CONFIG_MAPS).await.0, 200);
}

/// The definition of Widgets, with this description.
fn widgets(description: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "description": description}},
            }],
        },
    })
}

/// The real server closes the storage of a definition a second after it has gone or
/// changed, and with it the watches; what happens until then they still tell.
#[tokio::test(start_paused = true)]
async fn watches_end_with_the_definition_of_their_kind() {
    const DEFINITION: &str =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let (_server, http) = admin();
    let (code, made) = http.apply(DEFINITION, "test", widgets("first")).await;
    assert_eq!(code, 201, "{made}");
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    assert_eq!(http.post(WIDGETS, widget).await.0, 201);
    let path = format!("{WIDGETS}?watch=1");

    // A label on the definition changes nothing.
    let mut watch = Watch::open(&http, &path).await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
    let mut labelled = widgets("first");
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(http.apply(DEFINITION, "test", labelled).await.0, 200);
    let next = tokio::time::timeout(Duration::from_secs(60), watch.next());
    assert!(next.await.is_err(), "nothing happens");

    let changed = tokio::time::Instant::now();
    assert_eq!(
        http.apply(DEFINITION, "test", widgets("second")).await.0,
        200
    );
    assert_eq!(watch.next().await, Ok(None));
    assert_eq!(changed.elapsed().as_secs(), 1);

    let mut watch = Watch::open(&http, &path).await;
    assert_eq!(watch.brief().await, brief("ADDED", "a"));
    assert_eq!(http.delete(DEFINITION).await.0, 200);
    assert_eq!(watch.brief().await, brief("DELETED", "a"));
    assert_eq!(watch.next().await, Ok(None));
    assert_eq!(http.get(&path).await.0, 404);
}

/// The clock stands still for as long as nobody moves it, in whatever time a test lives.
#[tokio::test]
async fn watches_last_and_history_grows_old_by_the_clock_of_the_server() {
    let (clock, hand) = Clock::by_hand(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let server = Server::new(Config {
        clock,
        ..Config::default()
    });
    let http = Http(server.client());
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let (_, b) = http.post(CONFIG_MAPS, config_map("b", json!({}))).await;
    let first = b["metadata"]["resourceVersion"].as_str().unwrap();
    let (_, page) = http.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    let path = format!(
        "{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={first}&timeoutSeconds=150"
    );
    let mut watch = Watch::open(&http, &path).await;
    for _ in 0..2 {
        hand.advance(Duration::from_secs(60));
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event["type"], "BOOKMARK");
    }
    http.post(CONFIG_MAPS, config_map("c", json!({}))).await;
    assert_eq!(watch.brief().await, brief("ADDED", "c"));
    hand.advance(Duration::from_secs(30));
    assert_eq!(watch.next().await, Ok(None));
    // Five minutes later the past is as it was, and after ten it is not.
    let path = format!("{CONFIG_MAPS}?limit=1&continue={token}");
    hand.advance(Duration::from_secs(150));
    assert_eq!(http.get(&path).await.0, 200);
    hand.advance(Duration::from_secs(300));
    let (code, status) = http.get(&path).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    // Who saw all but the last change is told of that, however long ago it was.
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={first}");
    let mut watch = Watch::open(&http, &path).await;
    assert_eq!(watch.brief().await, brief("ADDED", "c"));
    // Of many changes those that are old are forgotten.
    for number in 0..150 {
        let data = json!({"data": {"number": number.to_string()}});
        http.call("PATCH", &format!("{CONFIG_MAPS}/a"), data).await;
    }
    hand.advance(Duration::from_secs(301));
    http.post(CONFIG_MAPS, config_map("d", json!({}))).await;
    let mut late = Watch::open(&http, &path).await;
    let event = late.next().await.unwrap().unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
}
