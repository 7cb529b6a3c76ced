//! What serves a model, as a whole.

use reeve_sdk::prelude::*;

use super::world::World;
use super::{changed, config, digest, mounted, sha, spec};

fn serving(config: Value, spec: Value) -> World {
    let mut world = World::new(config);
    world.wants("churn", spec);
    world.completes("churn", 'a');
    world
}

#[test]
fn a_deployment_serves_a_digest_with_probes_and_without_a_gap() {
    let world = serving(config(), spec("m1", '1'));
    let deployment = world.get("Deployment", "churn").unwrap();
    let key = world.status("churn")["buildKey"].clone();
    let image = format!("r.example.com/mlops/frozen-models@{}", digest('a'));
    let labels = json!({
        "models.reeve.dev/deployment": "churn",
        "models.reeve.dev/build-key": key,
        "models.reeve.dev/image-digest": sha('a')[..63],
    });
    let annotations = json!({
        "models.reeve.dev/model-id": "m1",
        "models.reeve.dev/package-digest": digest('1'),
        "models.reeve.dev/base-image": "r.example.com/pps:7.0",
        "models.reeve.dev/image": image,
    });
    let environment = json!({
        "models.reeve.dev/prediction-environment": "env-1",
        "reeve.dev/wave-timeout": "1560s",
    });
    let ping = json!({"path": "/ping", "port": "http"});
    assert_eq!(deployment["metadata"]["labels"], labels);
    assert_eq!(
        deployment["metadata"]["annotations"],
        changed(annotations.clone(), &environment)
    );
    assert_eq!(
        deployment["spec"],
        json!({
            "revisionHistoryLimit": 2,
            "progressDeadlineSeconds": 1500,
            "selector": {"matchLabels": {"models.reeve.dev/deployment": "churn"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "automountServiceAccountToken": false,
                    "volumes": [],
                    "containers": [{
                        "name": "server",
                        "image": image,
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "env": [{"name": "MLOPS_DEPLOYMENT_ID", "value": "64f0"}],
                        "startupProbe": {"httpGet": ping, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 60},
                        "readinessProbe": {"httpGet": ping, "periodSeconds": 10, "timeoutSeconds": 5},
                        "livenessProbe": {"httpGet": ping, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
                        "volumeMounts": [],
                    }],
                },
            },
        })
    );
    let service = world.get("Service", "churn").unwrap();
    assert_eq!(
        service["spec"],
        json!({
            "selector": {"models.reeve.dev/deployment": "churn"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        })
    );
}

#[test]
fn an_ingress_leads_to_the_server_and_cuts_its_path_off() {
    for (root, host, path) in [
        (
            "http://your-company.com/deployments/",
            json!("your-company.com"),
            "/deployments/64f0(/|$)(.*)",
        ),
        (
            "https://example.com",
            json!("example.com"),
            "/64f0(/|$)(.*)",
        ),
        // Of an address an Ingress may not say that it is a host.
        (
            "http://203.0.113.7:8080/deployments/",
            Value::Null,
            "/deployments/64f0(/|$)(.*)",
        ),
        (
            "https://example.com:8443/v1.2/d",
            json!("example.com"),
            "/v1\\.2/d/64f0(/|$)(.*)",
        ),
    ] {
        let config = changed(config(), &json!({"ingress": {"outfacingURLPrefix": root}}));
        let world = serving(config, spec("m1", '1'));
        let ingress = world.get("Ingress", "churn").unwrap();
        assert_eq!(
            ingress["metadata"]["annotations"],
            json!({
                "nginx.ingress.kubernetes.io/use-regex": "true",
                "nginx.ingress.kubernetes.io/rewrite-target": "/$2",
                "nginx.ingress.kubernetes.io/proxy-body-size": "51m",
                "nginx.ingress.kubernetes.io/proxy-read-timeout": "605",
                "nginx.ingress.kubernetes.io/proxy-send-timeout": "605",
            })
        );
        let mut expected = json!({
            "ingressClassName": "mlops",
            "rules": [{"http": {"paths": [{
                "path": path,
                "pathType": "ImplementationSpecific",
                "backend": {"service": {"name": "churn", "port": {"name": "http"}}},
            }]}}],
        });
        if host.is_string() {
            expected["rules"][0]["host"] = host;
        }
        assert_eq!(ingress["spec"], expected);
        let root = root.trim_end_matches('/');
        assert_eq!(
            world.status("churn")["predictionUrl"],
            format!("{root}/64f0/predictions")
        );
    }
    let inside = changed(config(), &json!({"ingress": null}));
    let world = serving(inside, spec("m1", '1'));
    assert!(world.names("Ingress").is_empty());
    assert!(world.status("churn").get("predictionUrl").is_none());
}

#[test]
fn the_monitoring_agent_reads_what_the_server_spools() {
    let config = changed(
        config(),
        &json!({
            "tracking": {"image": "r.example.com/tracking:1"},
            "datarobot": {"url": "https://eu.example.com"},
        }),
    );
    let world = serving(config, spec("m1", '1'));
    let pod = &world.get("Deployment", "churn").unwrap()["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([{"name": "spool", "emptyDir": {}}]));
    let mount = json!([{"name": "spool", "mountPath": "/var/spool/mlops"}]);
    assert_eq!(
        pod["containers"][1],
        json!({
            "name": "tracking",
            "image": "r.example.com/tracking:1",
            "env": [
                {"name": "MLOPS_SERVICE_URL", "value": "https://eu.example.com"},
                {"name": "MLOPS_API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "mlops-api-key", "key": "secret"}}},
                {"name": "MLOPS_SPOOLER_TYPE", "value": "FILESYSTEM"},
                {"name": "MLOPS_FILESYSTEM_DIRECTORY", "value": "/var/spool/mlops"},
            ],
            "volumeMounts": mount,
        })
    );
    let server = &pod["containers"][0];
    assert_eq!(server["volumeMounts"], mount);
    assert_eq!(
        server["env"],
        json!([
            {"name": "MLOPS_DEPLOYMENT_ID", "value": "64f0"},
            {"name": "MLOPS_MODEL_ID", "value": "m1"},
            {"name": "PREDICTION_API_MONITORING_ENABLED", "value": "true"},
            {"name": "PREDICTION_API_MONITORING_SETTINGS", "value": "spooler_type=filesystem;directory=/var/spool/mlops;max_files=50;file_max_size=10240000;model_id=m1;deployment_id=64f0"},
        ])
    );
}

#[test]
fn what_a_deployment_says_of_its_servers_reaches_them() {
    let more = json!({
        "replicas": 3,
        "resources": {"requests": {"memory": "6Gi"}},
        "startupSeconds": 1205,
    });
    let config = changed(
        config(),
        &json!({"predictionServer": {"imagePullSecrets": ["pull"]}}),
    );
    let mut world = World::new(config);
    world.put(super::secret("pull", "kubernetes.io/dockerconfigjson"));
    world.wants("churn", changed(spec("m1", '1'), &more));
    let job = world.active_job();
    world.succeeds(&job, &digest('a'));
    let spec = &world.get("Deployment", "churn").unwrap()["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["progressDeadlineSeconds"], 2105);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(pod["containers"][0]["resources"], more["resources"]);
    assert_eq!(
        pod["containers"][0]["startupProbe"]["failureThreshold"],
        121
    );
}

#[test]
fn what_servers_need_is_looked_for_also_where_nothing_is_built() {
    let base = format!("r.example.com/pps@{}", digest('f'));
    let mounts = json!({
        "imageBuilder": {"builder": "mount", "ppsImage": base},
        "predictionServer": {"imagePullSecrets": ["pull"]},
    });
    let mut world = World::new(changed(config(), &mounts));
    world.wants("churn", mounted("m1", '1'));
    let missing = ("Errored", "failing", "PrerequisiteMissing");
    assert_eq!(world.told("churn"), missing);
    let message = &world.status("churn")["message"];
    assert!(
        message
            .as_str()
            .unwrap()
            .starts_with("Secret models/pull does not exist")
    );
    assert!(world.get("Deployment", "churn").is_none());
    // As a kubelet takes them, one of the older type is as good.
    world.put(super::secret("pull", "kubernetes.io/dockercfg"));
    world.settle();
    assert_eq!(world.told("churn").0, "Deploying");
    world.delete("Secret", "pull");
    world.settle();
    assert_eq!(world.told("churn"), missing);
    assert!(world.get("Deployment", "churn").is_some());
    world.put(super::secret("pull", "kubernetes.io/dockercfg"));
    world.rolls_out("churn");
    assert_eq!(world.told("churn").0, "Ready");

    // A start after a stop, with the monitoring agent.
    let mut world = World::new(changed(
        config(),
        &json!({"tracking": {"image": "r.example.com/tracking:1"}}),
    ));
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    // What serves goes on without.
    world.delete("Secret", "mlops-api-key");
    world.settle();
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    world.wants("churn", changed(spec("m1", '1'), &json!({"stopped": true})));
    for set in world.names("ReplicaSet") {
        world.delete("ReplicaSet", &set);
    }
    world.wants("churn", spec("m1", '1'));
    assert_eq!(world.told("churn"), missing);
}
