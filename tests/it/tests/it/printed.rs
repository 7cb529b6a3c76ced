//! What a plugin says is shown as text, whatever is in it.

use reeve_it::{World, guest};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn nothing_that_a_plugin_says_looks_like_the_agents_own_words() {
    let forged = "x\n2026-01-01T00:00:00Z INFO forged\u{1b}[8m\u{202e}";
    let shown = r"x\n2026-01-01T00:00:00Z INFO forged\u{1b}[8m\u{202e}";
    for reconcile in [
        json!({"do": "fail", "how": "terminal", "text": forged}),
        json!({"do": "panic", "text": forged}),
        json!({"do": "raw", "text": json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": forged, "namespace": "alice"},
        }).to_string()}),
    ] {
        let mut world = World::new().await;
        world.tenant("alice", &[]).await;
        world.allow("chameleon").await;
        let config = json!({
            "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
            "reconcile": reconcile,
        });
        let component = vec![("plugin.wasm", guest("chameleon"))];
        world.deliver("chameleon", &component, Some(config)).await;
        world.start();
        world.settle().await;
        let unit = world.unit("chameleon", "alice").await.unwrap();
        let mut texts = Vec::new();
        collect(&unit["status"], &mut texts);
        assert!(texts.iter().any(|text| text.contains(shown)), "{unit}");
        let hidden = |text: &&String| text.contains(|c: char| c.is_control() || c == '\u{202e}');
        assert_eq!(texts.iter().find(hidden), None, "{reconcile}");
        world.stop().await;
    }
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}
