//! A guest that floods the operator's log.

use crate::endpoints::metrics;
use crate::metered::value;
use crate::told::plugin_object;
use parking_lot::Mutex;
use reeve_it::{World, core_reference, guest};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What an operator reads at the usual level of detail.
#[derive(Debug, Default)]
struct Read {
    /// Lines of plugins: who says what, as `plugin: text`.
    said: Vec<String>,
    /// Warnings of the agent itself.
    warnings: Vec<String>,
}

#[derive(Clone, Default)]
struct Operator(Arc<Mutex<Read>>);

/// One line of the log: its message, and fields by their names.
struct Line(Value);

impl Line {
    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0[field.name()] = json!(value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0[field.name()] = json!(format!("{value:?}"));
    }
}

impl Subscriber for Operator {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(json!({}));
        event.record(&mut line);
        let mut read = self.0.lock();
        if event.metadata().target() == "reeve::plugin" {
            let said = format!("{}: {}", line.text("plugin"), line.text("text"));
            read.said.push(said);
        } else if *event.metadata().level() <= Level::WARN {
            let (message, plugin) = (line.text("message"), line.text("plugin"));
            let warning = format!("{plugin} on {}: {message}", line.text("primary"));
            read.warnings.push(warning);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A guest logs so many lines of a hundred bytes, under a limit, or under the default of
/// 64 KiB. Of these lines the operator reads the first ones, and that there were more.
async fn flood(limit: Option<u64>, lines: usize, ends: bool) {
    let operator = Operator::default();
    let _reading = tracing::subscriber::set_default(operator.clone());
    let mut world = World::new().await;
    let limits = limit.map_or(json!({}), |limit| json!({"logBytes": limit}));
    world
        .apply(&plugin_object("chameleon", &json!({"limits": limits})))
        .await;
    world.start();
    world.tenant("trip", &[]).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "log-flood", "lines": lines},
    });
    let component = [("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
    world.settle().await;

    // It is no fault: the call goes on, and comes to its end.
    assert_eq!(world.unit("chameleon", "trip").await, None, "it is well");
    let made = core_reference("ConfigMap", "trip", "chameleon-trip");
    assert!(world.get(&made).await.is_some());
    let metrics = metrics(&world).await;
    let calls = r#"reeve_call_seconds_count{plugin="chameleon"}"#;
    assert_eq!(value(&metrics, calls), 1.0, "{metrics}");
    assert!(!metrics.contains("reeve_calls_over_limit"), "{metrics}");

    let read = operator.0.lock();
    for (number, said) in read.said.iter().enumerate() {
        assert_eq!(*said, format!("chameleon: {number:0>100}"));
    }
    let kept = 100 * read.said.len() as u64;
    let counted = r#"reeve_call_log_bytes_total{plugin="chameleon"}"#;
    assert_eq!(value(&metrics, counted), kept as f64, "{metrics}");
    let limit = limit.unwrap_or(64 << 10);
    assert!(kept <= limit, "{kept} bytes are kept");
    let dropped: Vec<_> = read
        .warnings
        .iter()
        .filter(|warning| warning.contains("dropped"))
        .collect();
    if ends {
        // What a line costs beside its text is less than the text.
        assert!(limit < 2 * kept + 200, "only {kept} bytes are kept");
        let expected =
            "chameleon on Profile trip: log lines dropped, the plugin's limit is reached";
        assert_eq!(dropped, [expected]);
    } else {
        assert_eq!(kept, 100 * lines as u64);
        assert_eq!(dropped, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_in_the_log_ends_where_the_limit_is() {
    flood(None, 50_000, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_in_the_log_ends_where_its_policy_says() {
    flood(Some(1_000), 50_000, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_keep_nothing_of_a_log() {
    flood(Some(0), 1, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_few_lines_are_kept_and_nothing_is_said_of_them() {
    flood(None, 3, false).await;
}
