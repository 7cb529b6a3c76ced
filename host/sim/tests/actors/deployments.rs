//! Deployments and ReplicaSets.

use serde_json::{Value, json};

use crate::world::{World, after, conditions, has, workload};

fn deployment(name: &str, annotations: &[(&str, &str)], spec: Value) -> Value {
    workload("Deployment", name, annotations, spec)
}

async fn status(world: &World, name: &str) -> Value {
    world.get("Deployment", name).await["status"].clone()
}

/// Creates a Deployment; for each time, in seconds, the parts of its status and all
/// of its conditions.
async fn check(annotations: &[(&str, &str)], spec: Value, moments: &[(f64, Value, &[&str])]) {
    let world = World::new();
    world.create(deployment("web", annotations, spec)).await;
    let mut passed = 0.0;
    for (at, expected, expected_conditions) in moments {
        after(at - passed).await;
        passed = *at;
        let found = world.get("Deployment", "web").await;
        has(&found["status"], expected.clone());
        assert_eq!(conditions(&found), *expected_conditions, "at {at} s");
    }
}

const PROGRESSING: &[&str] = &[
    "Available=False MinimumReplicasUnavailable",
    "Progressing=True ReplicaSetUpdated",
];
const AVAILABLE: &[&str] = &[
    "Available=True MinimumReplicasAvailable",
    "Progressing=True NewReplicaSetAvailable",
];

#[tokio::test(start_paused = true)]
async fn deployments_become_available() {
    let three = || json!({"replicas": 3});
    check(
        &[],
        three(),
        &[
            (
                0.5,
                json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": null, "unavailableReplicas": 3}),
                PROGRESSING,
            ),
            (
                1.1,
                json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": 3, "availableReplicas": 3, "unavailableReplicas": null}),
                AVAILABLE,
            ),
        ],
    )
    .await;
    check(
        &[("ready-after", "5s")],
        three(),
        &[
            (4.9, json!({"availableReplicas": null}), PROGRESSING),
            (5.1, json!({"availableReplicas": 3}), AVAILABLE),
        ],
    )
    .await;
    check(
        &[],
        json!({"replicas": 1, "minReadySeconds": 10}),
        &[
            (
                10.0,
                json!({"readyReplicas": 1, "availableReplicas": null}),
                PROGRESSING,
            ),
            (
                12.0,
                json!({"readyReplicas": 1, "availableReplicas": 1}),
                AVAILABLE,
            ),
        ],
    )
    .await;
    check(
        &[],
        json!({"replicas": 0}),
        &[(
            0.5,
            json!({"observedGeneration": 1, "replicas": null, "availableReplicas": null}),
            AVAILABLE,
        )],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn deployments_stall_degrade_and_recover() {
    check(
        &[("stall", "true")],
        json!({"replicas": 1, "progressDeadlineSeconds": 60}),
        &[
            (59.0, json!({"availableReplicas": null}), PROGRESSING),
            (
                62.0,
                json!({"unavailableReplicas": 1}),
                &[
                    "Available=False MinimumReplicasUnavailable",
                    "Progressing=False ProgressDeadlineExceeded",
                ],
            ),
        ],
    )
    .await;
    check(
        &[("degrade-after", "30s"), ("recover-after", "10s")],
        json!({"replicas": 1}),
        &[
            (30.0, json!({"availableReplicas": 1}), AVAILABLE),
            (
                32.0,
                json!({"availableReplicas": null}),
                &[
                    "Progressing=True NewReplicaSetAvailable",
                    "Available=False MinimumReplicasUnavailable",
                ],
            ),
            (
                42.0,
                json!({"availableReplicas": 1}),
                &[
                    "Progressing=True NewReplicaSetAvailable",
                    "Available=True MinimumReplicasAvailable",
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_the_deployment_reaches_its_pods_and_back() {
    let world = World::new();
    world
        .create(deployment("web", &[], json!({"replicas": 2})))
        .await;
    after(2.0).await;
    has(&status(&world, "web").await, json!({"readyReplicas": 2}));
    world
        .annotate("Deployment", "web", "stall", Some("true"))
        .await;
    world.settle().await;
    has(
        &status(&world, "web").await,
        json!({"readyReplicas": null, "observedGeneration": 2}),
    );
    world.annotate("Deployment", "web", "stall", None).await;
    world.settle().await;
    has(
        &status(&world, "web").await,
        json!({"readyReplicas": 2, "observedGeneration": 3}),
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_out_within_bounds() {
    let world = World::new();
    world
        .create(deployment("web", &[], json!({"replicas": 4})))
        .await;
    after(2.0).await;
    let first = world.names("ReplicaSet").await;
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "example.com/app:2"},
    ]}}}});
    let changed = world.patch("Deployment", "web", image).await;
    assert_eq!(changed["metadata"]["generation"], 2);
    // One more and one less than four, until all are of the new template.
    for _ in 0..100 {
        world.settle().await;
        let status = status(&world, "web").await;
        assert!(status["replicas"].as_i64().unwrap() <= 5, "{status}");
        assert!(
            status["availableReplicas"].as_i64().unwrap() >= 3,
            "{status}"
        );
        after(0.1).await;
    }
    let found = world.get("Deployment", "web").await;
    has(
        &found["status"],
        json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 4,
        "availableReplicas": 4}),
    );
    let annotations = &found["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "2");
    let mut sizes: Vec<(bool, i64, String)> = Vec::new();
    for set in world.list("ReplicaSet").await {
        let old = first.contains(&set["metadata"]["name"].as_str().unwrap().to_owned());
        let revision = &set["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
        let size = set["spec"]["replicas"].as_i64().unwrap();
        sizes.push((old, size, revision.as_str().unwrap().to_owned()));
    }
    sizes.sort();
    assert_eq!(
        sizes,
        [(false, 4, "2".to_owned()), (true, 0, "1".to_owned())]
    );

    // The first template again is the first ReplicaSet again.
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "example.com/app:1"},
    ]}}}});
    world.patch("Deployment", "web", image).await;
    after(10.0).await;
    assert_eq!(world.names("ReplicaSet").await.len(), 2);
    let again = world.get("ReplicaSet", &first[0]).await;
    has(
        &again,
        json!({"spec": {"replicas": 4}, "metadata": {"annotations": {
        "deployment.kubernetes.io/revision": "3"}}}),
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_cannot_go_on_stops_within_bounds() {
    let world = World::new();
    world
        .create(deployment(
            "web",
            &[],
            json!({"replicas": 4, "progressDeadlineSeconds": 30}),
        ))
        .await;
    after(2.0).await;
    let broken = json!({"spec": {"template": {"metadata": {"annotations": {
        "actor.reeve.dev/fail": "image-pull"}}}}});
    world.patch("Deployment", "web", broken).await;
    after(40.0).await;
    let found = world.get("Deployment", "web").await;
    has(
        &found["status"],
        json!({"replicas": 5, "updatedReplicas": 2, "availableReplicas": 3}),
    );
    assert_eq!(
        conditions(&found),
        [
            "Available=True MinimumReplicasAvailable",
            "Progressing=False ProgressDeadlineExceeded",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn recreated_pods_are_gone_first() {
    let world = World::new();
    let spec = json!({"replicas": 2, "strategy": {"type": "Recreate"}});
    world.create(deployment("web", &[], spec)).await;
    after(2.0).await;
    let before = world.names("Pod").await;
    let patch = json!({"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}});
    world.patch("Deployment", "web", patch).await;
    world.settle().await;
    let now = world.names("Pod").await;
    assert_eq!(now.len(), 2);
    assert!(now.iter().all(|name| !before.contains(name)), "{now:?}");
    has(
        &status(&world, "web").await,
        json!({"availableReplicas": null, "updatedReplicas": 2}),
    );
}

#[tokio::test(start_paused = true)]
async fn paused_deployments_scale_but_do_not_roll() {
    let world = World::new();
    world
        .create(deployment("web", &[], json!({"replicas": 1})))
        .await;
    after(2.0).await;
    world
        .patch(
            "Deployment",
            "web",
            json!({"spec": {"paused": true, "replicas": 3,
        "template": {"metadata": {"labels": {"version": "2"}}}}}),
        )
        .await;
    after(2.0).await;
    assert_eq!(world.names("ReplicaSet").await.len(), 1);
    let found = world.get("Deployment", "web").await;
    has(
        &found["status"],
        json!({"replicas": 3, "availableReplicas": 3, "updatedReplicas": null}),
    );
    assert!(conditions(&found).contains(&"Progressing=Unknown DeploymentPaused".to_owned()));
    world
        .patch("Deployment", "web", json!({"spec": {"paused": false}}))
        .await;
    after(5.0).await;
    let found = world.get("Deployment", "web").await;
    has(
        &found["status"],
        json!({"replicas": 3, "availableReplicas": 3, "updatedReplicas": 3}),
    );
    assert!(conditions(&found).contains(&"Progressing=True NewReplicaSetAvailable".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn replica_sets_are_named_and_labelled_after_their_template() {
    let world = World::new();
    world
        .create(deployment("web", &[], json!({"replicas": 1})))
        .await;
    after(2.0).await;
    let set = &world.list("ReplicaSet").await[0];
    let hash = set["metadata"]["labels"]["pod-template-hash"]
        .as_str()
        .unwrap();
    has(
        set,
        json!({
            "metadata": {
                "name": format!("web-{hash}"),
                "annotations": {
                    "deployment.kubernetes.io/desired-replicas": "1",
                    "deployment.kubernetes.io/max-replicas": "2",
                    "deployment.kubernetes.io/revision": "1",
                },
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}],
            },
            "spec": {"selector": {"matchLabels": {"app": "web", "pod-template-hash": hash}}},
            "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "fullyLabeledReplicas": 1, "observedGeneration": 1},
        }),
    );
    let pod = &world.list("Pod").await[0];
    let name = pod["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with(&format!("web-{hash}-")), "{name}");
    assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], hash);
    assert_eq!(
        world.events("web").await,
        [format!(
            "ScalingReplicaSet: Scaled up replica set web-{hash} from 0 to 1"
        ),]
    );
    let managers: Vec<(&str, &str)> = pod["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["manager"].as_str().unwrap(),
                entry["subresource"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(
        managers,
        [("kube-controller-manager", ""), ("kubelet", "status")]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_that_go_come_again_and_end_with_their_deployment() {
    let world = World::new();
    world
        .create(deployment("web", &[], json!({"replicas": 2})))
        .await;
    after(2.0).await;
    let before = world.names("Pod").await;
    world.delete("Pod", &before[0]).await;
    world.settle().await;
    has(
        &status(&world, "web").await,
        json!({"replicas": 2, "availableReplicas": 1}),
    );
    after(2.0).await;
    has(
        &status(&world, "web").await,
        json!({"replicas": 2, "availableReplicas": 2}),
    );
    world.delete("Deployment", "web").await;
    world.settle().await;
    assert_eq!(world.names("Pod").await, [""; 0]);
    assert_eq!(world.names("ReplicaSet").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn nobody_acts_where_nobody_is_asked_for() {
    let world = World::new();
    world.server.set_actors(None);
    world
        .create(deployment("web", &[], json!({"replicas": 1})))
        .await;
    after(5.0).await;
    assert_eq!(world.get("Deployment", "web").await["status"], json!({}));
    // They take up what they find.
    world.server.set_actors(Some(reeve_sim::Actors::default()));
    has(&status(&world, "web").await, json!({}));
    after(2.0).await;
    has(
        &status(&world, "web").await,
        json!({"availableReplicas": 1}),
    );
}

#[tokio::test(start_paused = true)]
async fn pods_are_made_as_soon_as_their_account_is_there() {
    let world = World::new();
    let spec = json!({"template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]},
    }});
    world.create(deployment("web", &[], spec)).await;
    after(5.0).await;
    let found = world.get("Deployment", "web").await;
    let failed = |condition: &String| condition == "ReplicaFailure=True FailedCreate";
    assert!(conditions(&found).iter().any(failed), "{found}");
    world
        .create(json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"},
        }))
        .await;
    after(2.0).await;
    let found = world.get("Deployment", "web").await;
    assert_eq!(conditions(&found), AVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_refused_is_made_once_there_is_room() {
    let world = World::new();
    let quota = |pods: &str| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "few"}, "spec": {"hard": {"pods": pods}},
        })
    };
    world.create(quota("2")).await;
    world
        .create(deployment("web", &[], json!({"replicas": 3})))
        .await;
    after(5.0).await;
    has(
        &status(&world, "web").await,
        json!({"replicas": 2, "readyReplicas": 2}),
    );
    world
        .patch(
            "ResourceQuota",
            "few",
            json!({"spec": {"hard": {"pods": "3"}}}),
        )
        .await;
    after(5.0).await;
    has(
        &status(&world, "web").await,
        json!({"replicas": 3, "readyReplicas": 3}),
    );
}
