//! Pods: scheduling, and what a kubelet says of them.

use serde_json::{Value, json};

use crate::world::{World, addressed, after, conditions, has, workload};

fn pod(annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": addressed(annotations)},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
    });
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// Creates a pod; for each time, in seconds, the parts of its status.
async fn check(annotations: &[(&str, &str)], spec: Value, moments: &[(f64, Value)]) -> World {
    let world = World::new();
    world.create(pod(annotations, spec)).await;
    let mut passed = 0.0;
    for (at, expected) in moments {
        after(at - passed).await;
        passed = *at;
        has(&world.get("Pod", "a").await["status"], expected.clone());
    }
    world
}

#[tokio::test(start_paused = true)]
async fn pods_run_and_become_ready() {
    let world = check(
        &[],
        json!({}),
        &[
            (
                0.5,
                json!({"phase": "Running", "observedGeneration": 1, "containerStatuses": [
            {"name": "main", "ready": false, "started": true, "restartCount": 0}]}),
            ),
            (
                1.1,
                json!({"phase": "Running", "podIP": "10.128.0.1", "hostIP": "172.18.0.2",
            "startTime": "2026-01-01T00:00:00Z", "qosClass": "BestEffort", "containerStatuses": [
            {"name": "main", "ready": true, "started": true, "image": "example.com/app:1",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}),
            ),
        ],
    )
    .await;
    let found = world.get("Pod", "a").await;
    assert_eq!(found["spec"]["nodeName"], "node-1");
    assert_eq!(
        conditions(&found),
        [
            "PodReadyToStartContainers=True",
            "Initialized=True",
            "Ready=True",
            "ContainersReady=True",
            "PodScheduled=True",
        ]
    );
    let mut events = world.events("a").await;
    events.sort();
    assert_eq!(
        events,
        [
            "Created: Container created: main",
            "Pulled: Container image \"example.com/app:1\" already present on machine",
            "Scheduled: Successfully assigned default/a to node-1",
            "Started: Container started: main",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_fail_as_they_are_asked_to() {
    let waiting =
        |reason: &str| json!([{"ready": false, "state": {"waiting": {"reason": reason}}}]);
    check(&[("fail", "image-pull")], json!({}), &[
        (1.0, json!({"phase": "Pending", "podIP": null, "containerStatuses": waiting("ErrImagePull")})),
        (11.0, json!({"phase": "Pending", "containerStatuses": waiting("ImagePullBackOff")})),
    ])
    .await;
    check(
        &[("fail", "crash-loop")],
        json!({}),
        &[
            (
                2.0,
                json!({"phase": "Running", "containerStatuses": [{"ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
            ),
            (
                13.0,
                json!({"containerStatuses": [{"restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            ),
        ],
    )
    .await;
    let world = check(&[("fail", "schedule")], json!({}), &[
        (1.0, json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available: 1 node(s) didn't match."}]})),
    ])
    .await;
    // What is not asked for any more is made good.
    world.annotate("Pod", "a", "fail", None).await;
    after(2.0).await;
    has(
        &world.get("Pod", "a").await["status"],
        json!({"phase": "Running"}),
    );
    check(
        &[("complete-after", "5s")],
        json!({"restartPolicy": "Never"}),
        &[
            (4.0, json!({"phase": "Running"})),
            (
                6.0,
                json!({"phase": "Succeeded", "containerStatuses": [{"ready": false, "state": {
            "terminated": {"exitCode": 0, "reason": "Completed",
                "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"}}}]}),
            ),
        ],
    )
    .await;
    check(&[("fail", "exit")], json!({"restartPolicy": "Never"}), &[
        (2.0, json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1}}}]})),
    ])
    .await;
}

/// The program of one container, and the others.
#[tokio::test(start_paused = true)]
async fn one_container_fails() {
    let two = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "first", "image": "i"}, {"name": "fetch", "image": "i"}, {"name": "last", "image": "i"}],
        "containers": [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}],
    });
    let said = |name| {
        [
            ("fail", "exit"),
            ("exit-code", "65"),
            ("fail-container", name),
            ("termination-message", "no disk"),
            ("complete-after", "5s"),
        ]
    };
    let done = json!({"ready": true, "state": {"terminated": {"exitCode": 0, "message": null}}});
    let initializing = json!({"ready": false, "state": {"waiting": {"reason": "PodInitializing"}}});
    let failed = json!({"ready": false, "state": {"terminated": {"exitCode": 65, "reason": "Error", "message": "no disk"}}});
    let world = check(
        &said("fetch"),
        two.clone(),
        &[
            (
                4.0,
                json!({"phase": "Pending",
                    "initContainerStatuses": [done, {"ready": false, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}, initializing],
                    "containerStatuses": [initializing, initializing]}),
            ),
            (
                6.0,
                json!({"phase": "Failed",
                    "initContainerStatuses": [done, failed, initializing],
                    "containerStatuses": [initializing, initializing]}),
            ),
        ],
    )
    .await;
    assert_eq!(
        conditions(&world.get("Pod", "a").await),
        [
            "PodReadyToStartContainers=False",
            "Initialized=False PodFailed",
            "Ready=False PodFailed",
            "ContainersReady=False PodFailed",
            "PodScheduled=True",
        ]
    );
    let well =
        json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": null}}});
    check(
        &said("side"),
        two.clone(),
        &[(6.0, json!({"phase": "Failed", "initContainerStatuses": [done, done, done], "containerStatuses": [well, failed]}))],
    )
    .await;
    // Whose pod has no such container does not fail, and everybody says so.
    let told = json!({"state": {"terminated": {"exitCode": 0, "message": "no disk"}}});
    check(
        &said("other"),
        two,
        &[(
            6.0,
            json!({"phase": "Succeeded", "containerStatuses": [told, told]}),
        )],
    )
    .await;
    // One that is started again, beside one that runs.
    check(
        &[("fail", "crash-loop"), ("fail-container", "side"), ("exit-code", "2")],
        json!({"containers": [{"name": "main", "image": "i"}, {"name": "side", "image": "i"}]}),
        &[(13.0, json!({"phase": "Running", "containerStatuses": [
            {"ready": true, "restartCount": 0, "state": {"running": {}}},
            {"ready": false, "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 2}}},
        ]}))],
    )
    .await;
    check(
        &[("fail", "crash-loop"), ("fail-container", "fetch")],
        json!({"initContainers": [{"name": "fetch", "image": "i"}]}),
        &[(13.0, json!({"phase": "Pending",
            "initContainerStatuses": [{"restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            "containerStatuses": [initializing]}))],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_for_the_sake_of_their_node() {
    let world = check(
        &[("fail", "evict"), ("complete-after", "5s"), ("termination-message", "never said")],
        json!({}),
        &[
            (4.0, json!({"phase": "Running", "reason": null})),
            (
                6.0,
                json!({"phase": "Failed", "reason": "Evicted",
                    "message": "The node was low on resource: ephemeral-storage.",
                    "containerStatuses": [{"ready": false, "state": {"terminated": {"exitCode": 137, "message": null}}}]}),
            ),
        ],
    )
    .await;
    let found = world.get("Pod", "a").await;
    assert!(
        conditions(&found).contains(&"DisruptionTarget=True TerminationByKubelet".to_owned()),
        "{found:#}"
    );
    let events = world.events("a").await;
    assert!(
        events.contains(&"Evicted: The node was low on resource: ephemeral-storage.".to_owned()),
        "{events:?}"
    );
    // The next one of its controller stays.
    let world = World::new();
    let annotations = [
        ("fail", "evict"),
        ("fail-times", "1"),
        ("complete-after", "5s"),
    ];
    world
        .create(workload("Deployment", "web", &annotations, json!({})))
        .await;
    after(60.0).await;
    let phases = world.list("Pod").await;
    let mut phases: Vec<&str> = phases
        .iter()
        .map(|pod| pod["status"]["phase"].as_str().unwrap())
        .collect();
    phases.sort_unstable();
    assert_eq!(phases, ["Failed", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn pods_go_where_they_may() {
    let unschedulable = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "reason": "Unschedulable"}]});
    check(
        &[],
        json!({"nodeSelector": {"disk": "ssd"}}),
        &[(1.0, unschedulable.clone())],
    )
    .await;
    check(
        &[],
        json!({"schedulingGates": [{"name": "example.com/x"}]}),
        &[(
            1.0,
            json!({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
        )],
    )
    .await;
    check(
        &[],
        json!({"schedulerName": "other"}),
        &[(1.0, json!({"phase": "Pending", "conditions": null}))],
    )
    .await;

    let world = check(
        &[],
        json!({"nodeSelector": {"disk": "ssd"}}),
        &[(1.0, unschedulable)],
    )
    .await;
    world
        .patch(
            "Node",
            "node-1",
            json!({"metadata": {"labels": {"disk": "ssd"}}}),
        )
        .await;
    after(2.0).await;
    has(
        &world.get("Pod", "a").await["status"],
        json!({"phase": "Running"}),
    );
}

#[tokio::test(start_paused = true)]
async fn bindings_give_pods_their_node_once() {
    let world = World::new();
    world
        .create(pod(&[], json!({"schedulerName": "other"})))
        .await;
    let path = "/api/v1/namespaces/default/pods/a/binding";
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}});
    let (code, answer) = world
        .send("POST", path, "application/json", binding.clone())
        .await;
    assert_eq!(
        (code, &answer["status"]),
        (201, &json!("Success")),
        "{answer}"
    );
    after(2.0).await;
    has(
        &world.get("Pod", "a").await,
        json!({"spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}}),
    );
    let (code, answer) = world.send("POST", path, "application/json", binding).await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (
            409,
            "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"node-1\""
        )
    );
}

#[tokio::test(start_paused = true)]
async fn annotations_that_cannot_be_used_are_said_once() {
    let world = World::new();
    world
        .create(pod(&[("ready-after", "soon")], json!({})))
        .await;
    after(5.0).await;
    let mut events = world.events("a").await;
    events.retain(|event| event.starts_with("Unusable"));
    assert_eq!(
        events,
        [
            "UnusableAnnotation: annotation actor.reeve.dev/ready-after is left out of account: \
        \"soon\" is no span of time; write numbers with units, such as 5s, 1m30s, 250ms or 0s"
        ]
    );
    has(
        &world.get("Pod", "a").await["status"],
        json!({"containerStatuses": [{"ready": true}]}),
    );
}
