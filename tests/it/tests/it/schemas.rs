//! Whether a definition has changed is told by one small document.

use crate::widgets::crd;
use reeve_cluster::Cluster;
use reeve_core::GroupVersionKind;
use reeve_it::World;
use serde_json::json;
use std::collections::BTreeSet;

#[tokio::test(start_paused = true)]
async fn a_schema_that_changes_has_another_version() {
    let world = World::new().await;
    let mut definition = crd("widgets");
    world.apply(&definition).await;
    let cluster = Cluster::new(world.admin.clone());
    let widget = GroupVersionKind::new("example.com", "v1", "Widget");
    let profile = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    let unknown = GroupVersionKind::new("example.org", "v1", "Unknown");
    let kinds = BTreeSet::from([widget.clone(), profile.clone(), unknown]);
    let versions = async || cluster.schema_versions(&kinds).await.unwrap();
    let before = versions().await;
    assert_eq!(before.len(), 2, "what is not served has none: {before:?}");
    assert_eq!(versions().await, before);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"] = json!({"spec": {"type": "object", "properties": {
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    }}});
    world.apply(&definition).await;
    let after = versions().await;
    let changed: Vec<&String> = after
        .keys()
        .filter(|path| after.get(*path) != before.get(*path))
        .collect();
    assert_eq!(changed, ["apis/example.com/v1"], "{before:?} {after:?}");
    assert_eq!(
        cluster
            .schema_versions(&BTreeSet::new())
            .await
            .unwrap()
            .len(),
        0
    );
}
