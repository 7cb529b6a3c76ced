//! What other objects have to say of one. What a real server answers in the same
//! cases is looked at in `tests/real`; here is what would change the priority of
//! all pods there.

use crate::support::{Http, admin};
use serde_json::{Value, json};

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn class(name: &str, value: i64) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": true,
    })
}

async fn pod(http: &Http, name: &str) -> Value {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let (code, made) = http.post(PODS, pod).await;
    assert_eq!(code, 201, "{made}");
    made["spec"].clone()
}

#[tokio::test]
async fn pods_without_a_class_are_of_the_default_one() {
    let (_server, http) = admin();
    let before = pod(&http, "before").await;
    assert_eq!(before["priority"], 0);
    assert_eq!(before["preemptionPolicy"], "PreemptLowerPriority");
    let (code, made) = http.post(CLASSES, class("usual", 7)).await;
    assert_eq!(code, 201, "{made}");
    let after = pod(&http, "after").await;
    assert_eq!(after["priority"], 7);
    assert_eq!(after["priorityClassName"], "usual");
}

#[tokio::test]
async fn only_one_class_is_the_default() {
    let (_server, http) = admin();
    http.post(CLASSES, class("usual", 7)).await;
    let (code, refusal) = http.post(CLASSES, class("other", 8)).await;
    assert_eq!(
        (code, &refusal["message"]),
        (
            403,
            &json!(
                "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is already marked as default. Only one default can exist"
            )
        )
    );
    // The one that is may be written again.
    let path = format!("{CLASSES}/usual");
    let mut usual = class("usual", 7);
    usual["description"] = json!("seven");
    let (code, written) = http.apply(&path, "m", usual).await;
    assert_eq!(code, 200, "{written}");
}
