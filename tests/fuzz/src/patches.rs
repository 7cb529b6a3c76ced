//! Patches of the objects of a cluster, in all four languages.

use serde_json::Value;

use crate::cluster::{Answer, Cluster, OBJECTS};

const LANGUAGES: &[&str] = &[
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
];

/// What no patch changes.
const FIXED: &[&str] = &["name", "namespace", "uid", "creationTimestamp"];

/// The first byte chooses the language, the object and whether an apply is forced;
/// the rest is the patch.
///
/// Who an object is stays; a patch that says what should be (all but JSON patches,
/// which say what to do) changes nothing the second time; a dry run changes
/// nothing at all.
pub fn patches(input: &[u8]) {
    let Some((&choice, patch)) = input.split_first() else {
        return;
    };
    let choice = usize::from(choice);
    let language = LANGUAGES[choice % LANGUAGES.len()];
    let path = OBJECTS[choice / LANGUAGES.len() % OBJECTS.len()];
    let force = choice < LANGUAGES.len() * OBJECTS.len();
    let cluster = Cluster::new();

    let before = cluster.get(path);
    let send = |query: &str| {
        let forced = match language {
            "application/apply-patch+yaml" if force => "&force=true",
            _ => "",
        };
        let path = format!("{path}?fieldManager=fuzz{forced}{query}");
        cluster.call("PATCH", &path, language, patch)
    };
    let tried = send("&dryRun=All");
    assert_eq!(
        cluster.get(path).body,
        before.body,
        "a dry run changed {path}"
    );
    let once = send("");
    assert_eq!(
        tried.status,
        once.status,
        "{} {}",
        tried.json(),
        once.json()
    );
    let after = cluster.get(path);
    if !once.is_success() {
        assert_eq!(after.body, before.body, "refused, yet {path} changed");
        return;
    }
    // A patch may take away the last thing that kept a deleted object.
    if after.status == 404 {
        return;
    }
    for field in FIXED {
        assert_eq!(metadata(&after, field), metadata(&before, field), "{field}");
    }
    if language == "application/json-patch+json" {
        return;
    }
    let twice = send("");
    assert_eq!(twice.status, 200, "the second time: {}", twice.json());
    assert_eq!(
        twice.json(),
        after.json(),
        "changed again the second time, by {}",
        String::from_utf8_lossy(patch)
    );
}

fn metadata(answer: &Answer, field: &str) -> Value {
    answer.json()["metadata"][field].clone()
}
