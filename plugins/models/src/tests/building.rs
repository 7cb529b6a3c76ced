//! Jobs: what each builder is told, and with which credentials.

use reeve_sdk::prelude::*;

use super::{changed, config, digest, find, operated, run, secret, sha, spec};

/// The Job under a configuration with changes.
fn job(changes: &Value, cx: Context) -> Value {
    let config = changed(config(), &json!({"imageBuilder": changes}));
    let outcome = run("churn", &spec("m1", '1'), &config, cx).unwrap();
    let objects = outcome.objects_json();
    let job = objects.iter().find(|object| object["kind"] == "Job");
    job.unwrap_or_else(|| panic!("no Job: {}", outcome.objects_json().last().unwrap()))
        .clone()
}

fn pod(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]
}

fn pod_labels(job: &Value) -> Value {
    job["spec"]["template"]["metadata"]["labels"].clone()
}

fn builder(job: &Value) -> &Value {
    &pod(job)["containers"][0]
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// An environment variable of a container.
fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let variables = container["env"].as_array().unwrap();
    let found = variables.iter().find(|variable| variable["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name}: {container}"))["value"]
}

#[test]
fn a_job_is_named_by_its_key_and_bounded() {
    let job = job(&json!({}), operated());
    let key = job["metadata"]["labels"]["models.reeve.dev/build-key"]
        .as_str()
        .unwrap();
    assert_eq!(key.len(), 12);
    assert_eq!(job["metadata"]["name"], format!("model-build-{key}"));
    let spec = &job["spec"];
    assert_eq!(
        (&spec["backoffLimit"], &spec["activeDeadlineSeconds"]),
        (&json!(2), &json!(3600))
    );
    assert!(spec.get("ttlSecondsAfterFinished").is_none());
    // By the other label servers are found, and counted.
    assert_eq!(
        spec["template"]["metadata"]["labels"],
        json!({
            "models.reeve.dev/build-key": key,
            "models.reeve.dev/build": format!("model-build-{key}"),
        })
    );
    assert_eq!(
        spec["podFailurePolicy"]["rules"],
        json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "fetch", "operator": "In", "values": [65]}},
        ])
    );
    let pod = pod(&job);
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["serviceAccountName"],
        "datarobot-management-agent-image-builder"
    );
    // Thrice the package, and the image that it is put into.
    let disk = &builder(&job)["resources"]["requests"]["ephemeral-storage"];
    assert_eq!(disk, "12884904888");
    assert_eq!(
        builder(&job)["terminationMessagePolicy"],
        "FallbackToLogsOnError"
    );
}

#[test]
fn the_package_is_fetched_with_the_token_and_verified() {
    let job = job(&json!({}), operated());
    let fetch = &pod(&job)["initContainers"][0];
    assert_eq!(fetch["name"], "fetch");
    assert_eq!(
        variable(fetch, "PACKAGE_URL"),
        "https://app.datarobot.com/m.mlpkg"
    );
    assert_eq!(variable(fetch, "PACKAGE_SHA256"), &json!(sha('1')));
    assert_eq!(variable(fetch, "PACKAGE_FILE"), "model.mlpkg");
    assert_eq!(
        variable(fetch, "DOCKERFILE"),
        "FROM r.example.com/pps:7.0\nCOPY model.mlpkg /opt/ml/model/\n"
    );
    let token = fetch["env"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "API_TOKEN");
    assert_eq!(
        token.unwrap()["valueFrom"],
        json!({"secretKeyRef": {"name": "mlops-api-key", "key": "secret"}})
    );
    let command = texts(&fetch["command"]);
    assert_eq!(&command[..2], ["/bin/sh", "-c"]);
    let script = command[2];
    for part in ["set -eu", "--header @-", "sha256sum -c", "exit 65"] {
        assert!(script.contains(part), "{part}: {script}");
    }
}

#[test]
fn kubernetes_finds_no_variables_of_its_own_but_the_one_that_is_meant() {
    for builder_name in ["kaniko", "buildkit", "buildah"] {
        let job = job(&json!({"builder": builder_name}), operated());
        let pod = pod(&job);
        for container in [&pod["initContainers"][0], &pod["containers"][0]] {
            for list in ["command", "args"] {
                for text in container[list].as_array().into_iter().flatten() {
                    let text = text.as_str().unwrap();
                    let text = text.replacen("-$(POD_UID)", "", 1);
                    assert!(!text.contains("$(") && !text.contains("$$"), "{text}");
                }
            }
        }
    }
    // What people write is taken as they wrote it.
    let odd = changed(
        spec("m1", '1'),
        &json!({"model": {"package": {"url": "https://h/a?b=$(API_TOKEN)$c"}}}),
    );
    let outcome = run("churn", &odd, &config(), operated()).unwrap();
    let objects = outcome.objects_json();
    let job = objects
        .iter()
        .find(|object| object["kind"] == "Job")
        .unwrap();
    let fetch = &pod(job)["initContainers"][0];
    assert_eq!(
        variable(fetch, "PACKAGE_URL"),
        "https://h/a?b=$$(API_TOKEN)$$c"
    );
}

/// Whoever may write a ModelDeployment may name any host.
#[test]
fn the_token_is_for_datarobot_alone() {
    let datarobot = "https://app.datarobot.com";
    for (url, is_given) in [
        (format!("{datarobot}/a"), true),
        ("HTTPS://APP.DATAROBOT.COM/a".to_owned(), false),
        ("https://App.DataRobot.com/a".to_owned(), true),
        (format!("{datarobot}:8443/a"), false),
        (format!("{datarobot}.evil.example/a"), false),
        ("http://app.datarobot.com/a".to_owned(), false),
        (format!("https://evil.example/{datarobot}"), false),
    ] {
        let wanted = changed(
            spec("m1", '1'),
            &json!({"model": {"package": {"url": url}}}),
        );
        let Ok(outcome) = run("churn", &wanted, &config(), operated()) else {
            panic!("{url}");
        };
        let objects = outcome.objects_json();
        let job = objects.iter().find(|object| object["kind"] == "Job");
        // A scheme in capitals is no URL here.
        let names = job.map(|job| {
            let env = pod(job)["initContainers"][0]["env"].clone();
            let names = env.as_array().unwrap().iter();
            names.filter(|one| one["name"] == "API_TOKEN").count()
        });
        assert_eq!(names.unwrap_or_default(), usize::from(is_given), "{url}");
    }
}

#[test]
fn kaniko_is_told_everything_by_arguments() {
    let job = job(
        &json!({
            "cacheRepository": "r.example.com/cache",
            "insecureRegistries": ["a.example.com:5000"],
            "skipSslVerifyRegistries": ["b.example.com"],
            "extraArguments": ["--verbosity=debug"],
        }),
        operated(),
    );
    let key = job["metadata"]["labels"]["models.reeve.dev/build-key"]
        .as_str()
        .unwrap();
    let destination = format!("--destination=r.example.com/mlops/frozen-models:m1-{key}");
    assert_eq!(
        texts(&builder(&job)["args"]),
        [
            &format!("{destination}-$(POD_UID)"),
            &destination,
            "--context=dir:///workspace",
            "--dockerfile=/workspace/Dockerfile",
            "--digest-file=/dev/termination-log",
            "--push-ignore-immutable-tag-errors",
            "--single-snapshot",
            "--compressed-caching=false",
            "--cache=true",
            "--cache-repo=r.example.com/cache",
            "--insecure-registry=a.example.com:5000",
            "--skip-tls-verify-registry=b.example.com",
            "--verbosity=debug",
        ]
    );
    assert_eq!(builder(&job)["securityContext"]["runAsUser"], 0);
    assert!(builder(&job)["securityContext"].get("privileged").is_none());
    let image = builder(&job)["image"].as_str().unwrap();
    assert!(
        image.starts_with("ghcr.io/osscontainertools/kaniko:v"),
        "{image}"
    );
}

/// So none meets a tag that is there, which could not be changed or would be taken from an
/// image in use, and what a builder says of its image is true of the registry.
#[test]
fn each_pod_of_a_build_has_a_tag_of_its_own() {
    for builder_name in ["kaniko", "buildkit", "buildah"] {
        let job = job(&json!({"builder": builder_name}), operated());
        let key = job["metadata"]["labels"]["models.reeve.dev/build-key"].as_str();
        let container = builder(&job);
        assert_eq!(
            container["env"][0],
            json!({"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})
        );
        let pushed = format!("r.example.com/mlops/frozen-models:m1-{}", key.unwrap());
        let own = format!("{pushed}-$(POD_UID)");
        match builder_name {
            // It ends with the first tag that is refused, so its own comes before.
            "kaniko" => assert_eq!(
                texts(&container["args"])[..2],
                [own, pushed].map(|tag| format!("--destination={tag}"))
            ),
            _ => {
                assert_eq!(variable(container, "OWN"), &own);
                assert_eq!(variable(container, "DESTINATION"), &pushed);
            }
        }
    }
    // The longest id that there may be.
    let outcome = run("churn", &spec(&"a".repeat(115), '1'), &config(), operated()).unwrap();
    let objects = outcome.objects_json();
    let job = objects.iter().find(|object| object["kind"] == "Job");
    let argument = texts(&builder(job.unwrap())["args"])[0];
    let (_, tag) = argument.rsplit_once(':').unwrap();
    let uid = "01234567-89ab-cdef-0123-456789abcdef";
    assert_eq!(tag.replace("$(POD_UID)", uid).len(), 128);
}

#[test]
fn buildkit_runs_rootless_or_in_a_user_namespace() {
    let changes = json!({
        "builder": "buildkit",
        "cacheRepository": "r.example.com/cache",
        "insecureRegistries": ["r.example.com"],
        "skipSslVerifyRegistries": ["r.example.com", "b.example.com"],
    });
    let job = self::job(&changes, operated());
    let container = builder(&job);
    assert_eq!(
        variable(container, "OUTPUT_OPTIONS"),
        ",registry.insecure=true"
    );
    assert_eq!(
        variable(container, "BUILDKITD_FLAGS"),
        "--oci-worker-no-process-sandbox --config=/workspace/buildkitd.toml"
    );
    assert_eq!(
        variable(&pod(&job)["initContainers"][0], "BUILDKITD_TOML"),
        "[registry.\"b.example.com\"]\ninsecure = true\n[registry.\"r.example.com\"]\nhttp = true\ninsecure = true\n"
    );
    let command = texts(&container["command"]);
    assert_eq!(
        &command[3..],
        [
            "build",
            "--export-cache=type=registry,ref=r.example.com/cache",
            "--import-cache=type=registry,ref=r.example.com/cache",
        ]
    );
    for part in [
        "--metadata-file=",
        "name=$names",
        "build \"$OWN,$DESTINATION\"",
        "/dev/termination-log",
    ] {
        assert!(command[2].contains(part), "{part}");
    }
    assert_eq!(
        container["securityContext"],
        json!({
            "runAsUser": 1000, "runAsGroup": 1000,
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        })
    );
    assert!(pod(&job).get("hostUsers").is_none());

    let job = self::job(
        &json!({"builder": "buildkit", "userNamespaces": true}),
        operated(),
    );
    assert_eq!(pod(&job)["hostUsers"], false);
    let container = builder(&job);
    assert_eq!(container["securityContext"], json!({"privileged": true}));
    assert_eq!(variable(container, "BUILDKITD_FLAGS"), "");
    assert_eq!(variable(container, "OUTPUT_OPTIONS"), "");
    let image = container["image"].as_str().unwrap();
    assert!(!image.contains("rootless"), "{image}");
}

#[test]
fn buildah_builds_and_then_pushes() {
    let changes = json!({"builder": "buildah", "extraArguments": ["--squash"]});
    let job = self::job(&changes, operated());
    let container = builder(&job);
    assert_eq!(variable(container, "BUILDAH_ISOLATION"), "chroot");
    for name in ["BUILD_TLS", "PUSH_TLS"] {
        assert_eq!(variable(container, name), "");
    }
    let command = texts(&container["command"]);
    assert_eq!(&command[3..], ["build", "--squash"]);
    for part in [
        "buildah build",
        "buildah push",
        "--digestfile=",
        "/dev/termination-log",
    ] {
        assert!(command[2].contains(part), "{part}");
    }
    let variables = container["env"].as_array().unwrap();
    assert!(
        !variables
            .iter()
            .any(|one| one["name"] == "REGISTRY_AUTH_FILE")
    );
    let lax = json!({"builder": "buildah", "insecureRegistries": ["r.example.com"]});
    let job = self::job(&lax, operated());
    for name in ["BUILD_TLS", "PUSH_TLS"] {
        assert_eq!(variable(builder(&job), name), "--tls-verify=false");
    }
    // Each registry is verified or not as it is said of it.
    let mut apart = json!({
        "builder": "buildah",
        "ppsImage": "base.example.com/pps:7.0",
        "cacheRepository": "cache.example.com/layers",
    });
    for (lax, base, cache) in [
        ("base.example.com", "--tls-verify=false", ""),
        ("cache.example.com", "", "--tls-verify=false"),
    ] {
        apart["skipSslVerifyRegistries"] = json!([lax]);
        let job = self::job(&apart, operated());
        let container = builder(&job);
        let found = ["BASE_TLS", "BUILD_TLS", "PUSH_TLS"].map(|name| variable(container, name));
        assert_eq!(found, [base, cache, ""], "{lax}");
        assert_eq!(variable(container, "BASE"), "base.example.com/pps:7.0");
        let script = texts(&container["command"])[2];
        assert!(
            script.contains("buildah pull --quiet $BASE_TLS \"$BASE\""),
            "{script}"
        );
    }
}

#[test]
fn each_kind_of_registry_has_its_credentials() {
    let docker = || secret("registry-creds", "kubernetes.io/dockerconfigjson");
    let by_secret = json!({"name": "registry", "secret": {
        "secretName": "registry-creds",
        "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
    }});
    let by_config_map = json!({"name": "registry", "configMap": {
        "name": "docker-config", "items": [{"key": "config.json", "path": "config.json"}],
    }});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "docker-config", "namespace": "models"},
        "data": {"config.json": "{\"credsStore\": \"ecr-login\"}"},
    });
    for (builder_name, place) in [
        ("kaniko", "/kaniko/.docker"),
        ("buildkit", "/registry"),
        ("buildah", "/registry"),
    ] {
        for (what, changes, volume) in [
            (
                "generic, Docker Hub and ACR",
                json!({"secretName": "registry-creds"}),
                Some(&by_secret),
            ),
            (
                "ECR",
                json!({"configMap": "docker-config"}),
                Some(&by_config_map),
            ),
            (
                "GCR",
                json!({"serviceAccount": {"annotations": {"iam.gke.io/gcp-service-account": "a@b"}}}),
                None,
            ),
        ] {
            let changes = changed(changes, &json!({"builder": builder_name}));
            let cx = operated().with_object(docker()).with_object(&map);
            let job = job(&changes, cx);
            let volumes = pod(&job)["volumes"].as_array().unwrap();
            let found = volumes.iter().find(|one| one["name"] == "registry");
            assert_eq!(found, volume, "{builder_name}, {what}");
            let mounts = builder(&job)["volumeMounts"].as_array().unwrap();
            let mount = mounts.iter().find(|one| one["name"] == "registry");
            let expected =
                volume.map(|_| json!({"name": "registry", "mountPath": place, "readOnly": true}));
            assert_eq!(mount, expected.as_ref(), "{builder_name}, {what}");
        }
    }
}

#[test]
fn more_volumes_reach_the_builder() {
    let changes = json!({
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/kaniko/ssl/certs"}],
    });
    let job = job(&changes, operated());
    assert!(
        pod(&job)["volumes"]
            .as_array()
            .unwrap()
            .contains(&changes["extraVolumes"][0])
    );
    let mounts = builder(&job)["volumeMounts"].as_array().unwrap();
    assert!(mounts.contains(&changes["extraVolumeMounts"][0]));
}

#[test]
fn what_makes_another_image_makes_another_key() {
    let key = |changes: &Value, spec: &Value| {
        let config = changed(config(), &json!({"imageBuilder": changes}));
        let outcome = run("churn", spec, &config, operated()).unwrap();
        let objects = outcome.objects_json();
        let job = objects
            .iter()
            .find(|object| object["kind"] == "Job")
            .unwrap();
        job["metadata"]["labels"]["models.reeve.dev/build-key"].clone()
    };
    let first = spec("m1", '1');
    let before = key(&json!({}), &first);
    for changes in [
        json!({"ppsImage": "r.example.com/pps:7.1"}),
        json!({"builder": "buildah"}),
        json!({"extraArguments": ["--squash"]}),
        json!({"generatedImageRepository": "r.example.com/other"}),
    ] {
        assert_ne!(key(&changes, &first), before, "{changes}");
    }
    assert_ne!(key(&json!({}), &spec("m1", '2')), before);
    for changes in [
        json!({"image": "r.example.com/kaniko:9"}),
        json!({"insecureRegistries": ["r.example.com"]}),
        json!({"serviceAccount": {"name": "other"}}),
    ] {
        assert_eq!(key(&changes, &first), before, "{changes}");
    }
    assert_eq!(key(&json!({}), &spec("m2", '1')), before);
    let elsewhere = changed(
        spec("m1", '1'),
        &json!({"model": {"package": {"url": "https://other.example.com/m"}}}),
    );
    assert_eq!(key(&json!({}), &elsewhere), before);
}

#[test]
fn the_account_is_made_once_and_stays() {
    let account = |cx: Context, changes: &Value| {
        let config = changed(
            config(),
            &json!({"imageBuilder": {"serviceAccount": changes}}),
        );
        let outcome = run("churn", &spec("m1", '1'), &config, cx).unwrap();
        let objects = outcome.objects_json();
        let found = find(
            &objects,
            "ServiceAccount",
            "datarobot-management-agent-image-builder",
        )
        .cloned();
        let status = objects.last().unwrap()["status"].clone();
        (found, status, outcome)
    };
    let annotation = json!({"annotations": {"iam.gke.io/gcp-service-account": "push@p"}});
    let (made, _, _) = account(operated(), &annotation);
    let made = made.unwrap();
    assert_eq!(
        made["metadata"]["annotations"]["iam.gke.io/gcp-service-account"],
        "push@p"
    );
    assert_eq!(made["metadata"]["annotations"]["reeve.dev/delete"], "never");
    assert_eq!(made["automountServiceAccountToken"], false);
    // Ours is kept as it should be; that of another deployment is left alone.
    let (kept, _, _) = account(operated().with_object(&made), &annotation);
    assert_eq!(kept, Some(made.clone()));
    let of = |name: &str| {
        changed(
            made.clone(),
            &json!({"metadata": {"labels": {"models.reeve.dev/deployment": name}}}),
        )
    };
    let (kept, _, outcome) = account(operated().with_object(of("copy")), &annotation);
    assert!(kept.is_none() && outcome.conditions().is_empty());
    let (_, _, outcome) = account(
        operated().with_object(of("copy")),
        &json!({"annotations": {"iam.gke.io/gcp-service-account": "other@p"}}),
    );
    assert_eq!(outcome.conditions()[0].kind, "AccountUsable");
    assert!(
        outcome.conditions()[0]
            .message
            .contains("iam.gke.io/gcp-service-account")
    );
    // Somebody else has to make it, and has not.
    let (none, status, _) = account(operated(), &json!({"create": false}));
    assert!(none.is_none());
    assert_eq!(
        status["message"],
        "ServiceAccount models/datarobot-management-agent-image-builder does not exist; make it, \
         or set /imageBuilder/serviceAccount/create"
    );
}

/// Whoever deletes a Job by the API leaves its pods, unless he says otherwise.
#[test]
fn the_pod_of_a_job_that_had_the_name_before_says_nothing() {
    let mut made = job(&json!({}), operated());
    made["metadata"]["uid"] = json!("second");
    made["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let pod = |uid: &str, digit: char| {
        let mut labels = pod_labels(&made);
        labels["batch.kubernetes.io/controller-uid"] = json!(uid);
        let terminated = json!({"exitCode": 0, "message": digest(digit)});
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{uid}"), "namespace": "models", "labels": labels},
            "status": {"phase": "Succeeded", "containerStatuses": [
                {"name": "build", "state": {"terminated": terminated}},
            ]},
        })
    };
    for pods in [
        vec![pod("first", 'a')],
        vec![pod("second", 'b'), pod("third", 'a')],
    ] {
        let cx = pods.iter().fold(operated(), Context::with_object);
        let outcome = run("churn", &spec("m1", '1'), &config(), cx.with_object(&made));
        let objects = outcome.unwrap().objects_json();
        let deployment = find(&objects, "Deployment", "churn");
        match pods.len() {
            1 => assert_eq!(deployment, None),
            _ => assert!(deployment.unwrap().to_string().contains(&digest('b'))),
        }
    }
}

#[test]
fn a_config_map_without_the_key_that_is_mounted_is_of_no_use() {
    let config = changed(
        config(),
        &json!({"imageBuilder": {"configMap": "docker-config"}}),
    );
    let credentials = |entries: Value| {
        let mut map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "docker-config", "namespace": "models"},
        });
        super::merge(&mut map, &entries);
        let cx = operated().with_object(map);
        let outcome = run("churn", &spec("m1", '1'), &config, cx).unwrap();
        let status = outcome.objects_json().last().unwrap()["status"].clone();
        (status["phase"].clone(), status["message"].clone())
    };
    for entries in [json!({}), json!({"data": {"config": "{}"}})] {
        assert_eq!(
            credentials(entries).1,
            "ConfigMap models/docker-config has no key config.json; add it, with what registries \
             are logged in to"
        );
    }
    for entries in [
        json!({"data": {"config.json": "{}"}}),
        json!({"binaryData": {"config.json": "e30="}}),
    ] {
        assert_eq!(credentials(entries).0, "Pending");
    }
}

#[test]
fn a_secret_of_another_type_is_of_no_use() {
    let config = changed(
        config(),
        &json!({"imageBuilder": {"secretName": "registry-creds"}}),
    );
    let cx = operated().with_object(secret("registry-creds", "kubernetes.io/dockercfg"));
    let outcome = run("churn", &spec("m1", '1'), &config, cx).unwrap();
    let objects = outcome.objects_json();
    assert!(!objects.iter().any(|object| object["kind"] == "Job"));
    assert_eq!(
        objects.last().unwrap()["status"]["message"],
        "Secret models/registry-creds is of type kubernetes.io/dockercfg; for a registry it has \
         to be of type kubernetes.io/dockerconfigjson, as kubectl create secret docker-registry \
         makes it"
    );
}
