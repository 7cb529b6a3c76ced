//! Lists in pages, and deletions of what a list shows.

use crate::support::{CONFIG_MAPS, admin, config_map};
use serde_json::json;

#[tokio::test]
async fn lists_come_in_pages_of_one_version() {
    let (server, http) = admin();
    for name in ["a", "b", "c", "d", "e"] {
        http.post(CONFIG_MAPS, config_map(name, json!({}))).await;
    }
    let mut names = Vec::new();
    let mut path = format!("{CONFIG_MAPS}?limit=2");
    let mut versions = Vec::new();
    loop {
        let (code, page) = http.get(&path).await;
        assert_eq!(code, 200, "{page}");
        for item in page["items"].as_array().unwrap() {
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        }
        versions.push(page["metadata"]["resourceVersion"].clone());
        // What happens between the pages is not seen by them.
        http.delete(&format!("{CONFIG_MAPS}/d")).await;
        match page["metadata"]["continue"].as_str() {
            Some(token) => path = format!("{CONFIG_MAPS}?limit=2&continue={token}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    versions.dedup();
    assert_eq!(versions.len(), 1);
    server.compact();
    let (code, status) = http.get(&path).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    // It says how to go on, with what is there now.
    http.post(CONFIG_MAPS, config_map("f", json!({}))).await;
    let token = status["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = http
        .get(&format!("{CONFIG_MAPS}?limit=1&continue={token}"))
        .await;
    assert_eq!(
        (code, &rest["items"][0]["metadata"]["name"]),
        (200, &json!("e"))
    );
    let token = rest["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = http
        .get(&format!("{CONFIG_MAPS}?limit=1&continue={token}"))
        .await;
    assert_eq!(
        (code, &rest["items"][0]["metadata"]["name"]),
        (200, &json!("f"))
    );
    assert!(rest["metadata"].get("continue").is_none(), "{rest}");
}

#[tokio::test]
async fn one_object_has_no_second_page() {
    let (_server, http) = admin();
    for name in ["a", "b", "c"] {
        http.post(CONFIG_MAPS, config_map(name, json!({}))).await;
    }
    let (_, page) = http.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    assert!(page["metadata"]["continue"].is_string(), "{page}");
    let named = "fieldSelector=metadata.name%3Da&limit=1";
    let (_, page) = http.get(&format!("{CONFIG_MAPS}?{named}")).await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    assert!(page["metadata"].get("continue").is_none(), "{page}");
    // There may be one in each namespace.
    let (_, page) = http.get(&format!("/api/v1/configmaps?{named}")).await;
    assert!(page["metadata"]["continue"].is_string(), "{page}");
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let (_server, http) = admin();
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"l": label});
        http.post(CONFIG_MAPS, object).await;
    }
    let (code, list) = http
        .delete(&format!("{CONFIG_MAPS}?labelSelector=l%3D1"))
        .await;
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 2));
    let (_, list) = http.get(CONFIG_MAPS).await;
    assert_eq!(list["items"][0]["metadata"]["name"], "b");
}
