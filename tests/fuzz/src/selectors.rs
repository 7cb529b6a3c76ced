//! Selectors, which come in queries, manifests and objects.

use reeve_core::selector::Selector;
use reeve_sim::selector::{FieldLabels, FieldSelector, LabelSelector};
use serde_json::json;

/// The input is the text of a selector. What is accepted is printed as a selector
/// that means the same; and the API server and the agent agree on what it selects.
/// Terms on fields are put in order as they are written, so that `a==b` may change places
/// when it is printed as `a=b`; but only once.
pub fn selectors(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    label_selector(text);
    let labels = FieldLabels::custom(["spec.a", "status.b"], true);
    if let Ok(selector) = FieldSelector::parse(text, &labels) {
        let printed = selector.to_string();
        let again = FieldSelector::parse(&printed, &labels);
        assert!(again.is_ok(), "{text:?} is printed as {printed:?}");
        let once_more = again
            .as_ref()
            .ok()
            .and_then(|again| FieldSelector::parse(&again.to_string(), &labels).ok());
        assert_eq!(
            again.as_ref().ok(),
            once_more.as_ref(),
            "{text:?}: {printed:?}"
        );
        for object in [
            json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"a": "x"}}),
            json!({"metadata": {"name": "b", "namespace": "b"}, "status": {"b": ""}}),
        ] {
            assert_eq!(
                again
                    .as_ref()
                    .is_ok_and(|again| again.matches(&object, &labels)),
                selector.matches(&object, &labels),
                "{text:?} printed as {printed:?}, on {object}"
            );
        }
    }
}

fn label_selector(text: &str) {
    let server = LabelSelector::parse(text);
    let agent = text.parse::<Selector>();
    if let Ok(selector) = &server {
        let printed = selector.to_string();
        let again = LabelSelector::parse(&printed);
        assert_eq!(again.as_ref().ok(), Some(selector), "{text:?}: {printed:?}");
    }
    let Ok(agent) = agent else {
        return;
    };
    // What the agent accepts it sends to a server.
    assert!(server.is_ok(), "{text:?}: {server:?}");
    let printed = agent.to_string();
    assert_eq!(printed.parse().ok().as_ref(), Some(&agent), "{printed:?}");
    let Ok(server) = server else {
        return;
    };
    for labels in [
        json!({}),
        json!({"a": ""}),
        json!({"a": "x"}),
        json!({"a": "y", "b": "x"}),
        json!({"a/b": "1", "app": "a"}),
    ] {
        let map = labels.as_object();
        let theirs = server.matches(map);
        let ours = agent.matches(|key| labels[key].as_str());
        assert_eq!(ours, theirs, "{text:?} on {labels}");
    }
}
