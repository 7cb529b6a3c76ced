//! Outside documents: fetched, kept, and fed to those who read them and no others.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use parking_lot::Mutex;
use reeve_it::{NAMESPACE, World, core_reference, guest, plugin_reference};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

async fn install(world: &World, config: Value, capabilities: Value) {
    world
        .apply(&json!({
            "apiVersion": "reeve.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": "envoy", "namespace": NAMESPACE},
            "spec": {"capabilities": capabilities},
        }))
        .await;
    let component = vec![("plugin.wasm", guest("envoy"))];
    world.install("envoy", &component, Some(config)).await;
    world.tenant("alice", &[]).await;
}

/// What the guest was told.
async fn told(world: &World, field: &str) -> String {
    let report = world
        .get(&core_reference("ConfigMap", "alice", "report"))
        .await;
    let Some(report) = report else {
        let ready = world.unit_condition("envoy", "alice", "Ready").await;
        let loaded = world.plugin_condition("envoy", "Loaded").await;
        panic!("no report: {ready:?} {loaded:?}");
    };
    report["data"][field]
        .as_str()
        .unwrap_or("nothing")
        .to_owned()
}

fn notes(text: Option<&str>) -> Value {
    let mut map = core_reference("ConfigMap", "shared", "notes");
    map["data"] = match text {
        Some(text) => json!({"notes": text, "other": "x"}),
        None => json!({"other": "x"}),
    };
    map
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_a_config_map_is_a_document() {
    let world = World::started().await;
    world
        .apply(&reeve_test_support::samples::namespace("shared"))
        .await;
    install(&world, json!({"configMap": "notes"}), json!({})).await;
    world.settle().await;
    let absent = told(&world, "notes").await;
    assert!(
        absent.contains("ConfigMap shared/notes does not exist or has no entry `notes`"),
        "{absent}"
    );
    for (text, expected) in [(Some("first"), "first"), (Some("second"), "second")] {
        world.apply(&notes(text)).await;
        world.settle().await;
        assert_eq!(told(&world, "notes").await, expected);
    }
    // Another entry is none of its business.
    world.settle().await;
    let runs = || world.agent().status().borrow().runs;
    let before = runs();
    world
        .edit(&notes(None), json!({"data": {"other": "y"}}))
        .await;
    world.settle().await;
    assert_eq!(runs(), before);
}

#[tokio::test(start_paused = true)]
async fn a_file_is_read_where_its_folder_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    std::fs::write(&path, "first").unwrap();
    let config = json!({"file": path, "seconds": 10, "age": true});
    let world = World::started().await;
    install(&world, config.clone(), json!({})).await;
    world.settle().await;
    let refused = told(&world, "notes").await;
    assert!(
        refused.contains("is in no folder that is granted"),
        "{refused}"
    );
    let stale = world.plugin_condition("envoy", "SourcesStale").await;
    assert_eq!(
        (&*stale.status, &*stale.reason),
        ("True", "SourceForbidden")
    );

    install(&world, config, json!({"files": [folder.path()]})).await;
    world.settle().await;
    assert_eq!(told(&world, "notes").await, "first");
    let stale = world.plugin_condition("envoy", "SourcesStale").await;
    assert_eq!(stale.status, "", "{stale:?}");

    std::fs::write(&path, "second").unwrap();
    world.wait(Duration::from_secs(11)).await;
    assert_eq!(told(&world, "notes").await, "second");

    // The last good version stays, and grows old.
    std::fs::remove_file(&path).unwrap();
    world.wait(Duration::from_secs(61)).await;
    assert_eq!(told(&world, "notes").await, "second");
    let age: u64 = told(&world, "age").await.parse().unwrap();
    assert!((10..=60).contains(&age) && age.is_multiple_of(10), "{age}");
    let stale = world.plugin_condition("envoy", "SourcesStale").await;
    assert!(
        stale.message.contains("the last good version is used"),
        "{stale:?}"
    );
    assert_eq!(stale.reason, "SourceFailing");

    std::fs::write(&path, "third").unwrap();
    world.wait(Duration::from_secs(301)).await;
    assert_eq!(
        (told(&world, "notes").await, told(&world, "age").await),
        ("third".to_owned(), "0".to_owned())
    );
}

/// A server of one document.
#[derive(Clone, Default)]
struct Page {
    /// None is an error.
    text: Arc<Mutex<Option<String>>>,
    /// Statuses that were answered.
    answered: Arc<Mutex<Vec<u16>>>,
}

impl Page {
    async fn serve(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .route("/v1/notes", get(answer))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        port
    }

    fn set(&self, text: Option<&str>) {
        *self.text.lock() = text.map(str::to_owned);
    }
}

async fn answer(State(page): State<Page>, headers: HeaderMap) -> impl IntoResponse {
    let text = page.text.lock().clone();
    let (status, tag, body) = match text {
        None => (
            StatusCode::INTERNAL_SERVER_ERROR,
            String::new(),
            String::new(),
        ),
        Some(text) => {
            let tag = format!("\"{text}\"");
            match headers
                .get("if-none-match")
                .is_some_and(|known| *known == *tag)
            {
                true => (StatusCode::NOT_MODIFIED, tag, String::new()),
                false => (StatusCode::OK, tag, text),
            }
        }
    };
    page.answered.lock().push(status.as_u16());
    (status, [("etag", tag)], body)
}

/// Waits on real time, since a socket does.
async fn until(world: &World, field: &str, expected: &str) {
    for _ in 0..200 {
        let report = world
            .get(&core_reference("ConfigMap", "alice", "report"))
            .await;
        if report.is_some_and(|report| report["data"][field] == expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{field} is {} and not {expected}", told(world, field).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_polled_and_its_last_good_version_kept() {
    let page = Page::default();
    page.set(Some("first"));
    let port = page.serve().await;
    let url = format!("http://127.0.0.1:{port}/v1/");
    let world = World::started().await;
    let config = json!({"url": format!("{url}notes"), "seconds": 1});
    install(
        &world,
        config,
        json!({"http": [{"url": url, "methods": ["GET"]}]}),
    )
    .await;
    until(&world, "notes", "first").await;
    page.set(None);
    for _ in 0..100 {
        if world.plugin_condition("envoy", "SourcesStale").await.status == "True" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let stale = world.plugin_condition("envoy", "SourcesStale").await;
    assert!(stale.message.contains("/v1/notes answers 500"), "{stale:?}");
    assert_eq!(told(&world, "notes").await, "first");
    page.set(Some("second"));
    until(&world, "notes", "second").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let answered = page.answered.lock().clone();
    assert_eq!(answered.first(), Some(&200));
    assert!(
        answered.contains(&304),
        "what has not changed is not sent again: {answered:?}"
    );
}

/// Who has mended what serves a document need not wait for the next look.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_a_page_looked_at_that_could_not_be_had() {
    let page = Page::default();
    page.set(None);
    let port = page.serve().await;
    let url = format!("http://127.0.0.1:{port}/v1/");
    let world = World::started().await;
    let config = json!({"url": format!("{url}notes"), "seconds": 600});
    let granted = json!({"http": [{"url": url, "methods": ["GET"]}]});
    install(&world, config, granted).await;
    for _ in 0..100 {
        if page.answered.lock().contains(&500) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    page.set(Some("first"));
    // So often as to be heard also if the first look is not noted yet.
    for number in 0..20 {
        let request = json!({"reeve.dev/reconcile-at": number.to_string()});
        let request = json!({"metadata": {"annotations": request}});
        world.edit(&plugin_reference("envoy"), request).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        if page.answered.lock().contains(&200) {
            break;
        }
    }
    until(&world, "notes", "first").await;
}
