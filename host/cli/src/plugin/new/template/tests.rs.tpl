//! Profile and configuration in, ConfigMap out.

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

#[test]
fn a_profile_is_greeted_in_its_namespace() {
    let profile = json!({"metadata": {"name": "alice", "uid": "1"}}).to_string();
    for (config, text) in [("{}", "hello"), (r#"{"text": "good day"}"#, "good day")] {
        let cx = Context::test();
        let outcome = ReevePlugin::reconcile(profile.as_bytes(), config.as_bytes(), &cx).unwrap();
        let expected = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "{{name}}", "namespace": "alice"},
            "data": {"text": text},
        });
        assert_eq!(outcome.objects_json(), [expected]);
    }
}
