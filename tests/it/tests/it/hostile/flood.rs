//! A guest that floods the operator's log.

use crate::endpoints::metrics;
use crate::logged::Log;
use crate::metered::value;
use crate::told::plugin_object;
use reeve_it::{World, core_reference, guest};
use serde_json::json;
use tracing::Level;

/// A guest logs so many lines of a hundred bytes, under a limit, or under the default of
/// 64 KiB. Of these lines the operator reads the first ones, and that there were more.
async fn flood(limit: Option<u64>, lines: usize, ends: bool) {
    // What an operator reads at the usual level of detail.
    let log = Log::kept_from(Level::INFO);
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

    let said = log.with(&["target=reeve::plugin "]);
    for (number, line) in said.iter().enumerate() {
        assert!(line.contains("plugin=chameleon "), "{line}");
        assert!(line.contains(&format!("text={number:0>100} ")), "{line}");
    }
    let kept = 100 * said.len() as u64;
    let counted = r#"reeve_call_log_bytes_total{plugin="chameleon"}"#;
    assert_eq!(value(&metrics, counted), kept as f64, "{metrics}");
    let limit = limit.unwrap_or(64 << 10);
    assert!(kept <= limit, "{kept} bytes are kept");
    let dropped = log.with(&["dropped"]);
    if ends {
        // What a line costs beside its text is less than the text.
        assert!(limit < 2 * kept + 200, "only {kept} bytes are kept");
        assert_eq!(dropped.len(), 1, "{dropped:?}");
        for text in [
            "plugin=chameleon ",
            "primary=Profile trip ",
            "message=log lines dropped, the plugin's limit is reached ",
        ] {
            assert!(dropped[0].contains(text), "no `{text}` in {dropped:?}");
        }
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
