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

/// What a container mounts: the volume and the path.
type Mounts<'a> = Vec<(&'a str, &'a str)>;

/// The names of the volumes of a pod, and where each of its containers mounts them.
fn mounts(spec: &Value) -> (Vec<&str>, Vec<Mounts<'_>>) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let containers = spec["containers"].as_array().into_iter().flatten();
    (
        volumes
            .filter_map(|volume| volume["name"].as_str())
            .collect(),
        containers
            .map(|container| {
                let mounts = container["volumeMounts"].as_array().into_iter().flatten();
                mounts
                    .filter_map(|m| Some((m["name"].as_str()?, m["mountPath"].as_str()?)))
                    .collect()
            })
            .collect(),
    )
}

#[tokio::test]
async fn pods_get_the_token_of_their_account() {
    let (_server, http) = admin();
    let spec = pod(&http, "a").await;
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["serviceAccount"], "default");
    let (volumes, mounted) = mounts(&spec);
    let [volume] = volumes[..] else {
        panic!("{spec}");
    };
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    let at = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert_eq!(mounted, [[(volume, at)]]);

    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "bot"},
        "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "p"}],
    });
    let bot = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "b"},
        "spec": {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]},
    });
    let (code, refusal) = http.post(PODS, bot.clone()).await;
    assert_eq!(
        (code, &refusal["message"]),
        (
            403,
            &json!(
                "pods \"b\" is forbidden: error looking up service account default/bot: serviceaccount \"bot\" not found"
            )
        )
    );
    http.post(accounts, account).await;
    let (code, made) = http.post(PODS, bot).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "p"}]));
    assert_eq!(made["spec"]["volumes"], Value::Null);
}
