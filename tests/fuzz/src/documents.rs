//! Objects as text, in JSON and in YAML.

use serde_json::Value;

use crate::cluster::{Answer, Cluster};

const COLLECTIONS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps",
    "/apis/fuzz.dev/v1/namespaces/default/things",
    "/apis/apps/v1/namespaces/default/deployments",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/secrets",
    "/apis/batch/v1/namespaces/default/cronjobs",
];
const VALIDATION: &[&str] = &["Strict", "Warn", "Ignore"];

/// The first byte chooses where to and how strictly, the rest is the body of a create.
///
/// What JSON says, YAML says, of which it is a part, unless it is no Unicode, which JSON is
/// forgiven and YAML is not; and what was taken in
/// YAML is taken as JSON when it is sent again as it was stored, and is the same then.
/// How strictly fields are looked at decides whether it is taken, and not as what.
pub fn documents(input: &[u8]) {
    let Some((&choice, body)) = input.split_first() else {
        return;
    };
    let choice = usize::from(choice);
    let path = COLLECTIONS[choice % COLLECTIONS.len()];
    let validation = VALIDATION[choice / COLLECTIONS.len() % VALIDATION.len()];
    let cluster = Cluster::new();
    let send = |media: &str, validation: &str| {
        let path = format!("{path}?dryRun=All&fieldValidation={validation}");
        cluster.call("POST", &path, media, body)
    };
    let json = send("application/json", validation);
    let yaml = send("application/yaml", validation);
    if json.is_success() && std::str::from_utf8(body).is_ok() {
        assert!(yaml.is_success(), "{} is {}", json.json(), yaml.json());
        assert_eq!(without_chance(&json), without_chance(&yaml));
    }
    if !yaml.is_success() {
        return;
    }
    let ignored = send("application/yaml", "Ignore");
    assert!(ignored.is_success(), "{}", ignored.json());
    assert_eq!(without_chance(&ignored), without_chance(&yaml));

    let made = cluster.call("POST", path, "application/yaml", body);
    assert!(made.is_success(), "tried with success: {}", made.json());
    let name = made.json()["metadata"]["name"].clone();
    let path = format!("{path}/{}", name.as_str().unwrap_or_default());
    let stored = cluster.get(&path);
    assert_eq!(stored.status, 200, "{}", stored.json());
    assert_eq!(stored.json(), made.json());
    for media in ["application/json", "application/yaml"] {
        let put = cluster.call("PUT", &path, media, &stored.body);
        assert_eq!(put.status, 200, "{} of {}", put.json(), stored.json());
        assert_eq!(put.json(), stored.json(), "stored again as {media}");
    }
}

/// What was made, without what is by chance; of fields that are owned, only that they are.
fn without_chance(answer: &Answer) -> Value {
    let mut json = answer.json();
    let metadata = json["metadata"].as_object_mut();
    if let Some(metadata) = metadata {
        metadata.remove("uid");
        if metadata.contains_key("generateName") {
            metadata.remove("name");
        }
    }
    json
}
