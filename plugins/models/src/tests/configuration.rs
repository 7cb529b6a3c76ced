//! The configuration: both spellings of all that has two, and what makes no sense.

use reeve_sdk::prelude::*;

use super::{changed, config, describe, find, operated, run, sha, spec};

/// Everything that follows from a configuration, for one deployment that serves.
fn all(config: &Value) -> Vec<Value> {
    let built = |config: &Value| {
        let outcome = run("churn", &spec("m1", '1'), config, operated()).unwrap();
        outcome.objects_json()
    };
    let objects = built(config);
    let job = objects
        .iter()
        .find(|object| object["kind"] == "Job")
        .unwrap();
    let key = job["metadata"]["labels"]["models.reeve.dev/build-key"]
        .as_str()
        .unwrap();
    let image = format!("r.example.com/mlops/frozen-models@sha256:{}", sha('a'));
    let record = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "churn-builds", "namespace": "models"},
        "data": {"images": format!("{key} {image} m1-{key}")},
    });
    let cx = operated().with_object(record);
    run("churn", &spec("m1", '1'), config, cx)
        .unwrap()
        .objects_json()
}

/// The value at a path that is made of it.
fn at(path: &str, value: &Value) -> Value {
    path.split('/')
        .filter(|key| !key.is_empty())
        .rev()
        .fold(value.clone(), |inner, key| json!({key: inner}))
}

#[test]
fn both_spellings_mean_the_same() {
    for (path, later, value) in [
        (
            "/ingress/className",
            "/predictionServer/ingressClassName",
            "nginx",
        ),
        (
            "/ingress/outfacingURLPrefix",
            "/predictionServer/outfacingUrlRoot",
            "https://example.com/d",
        ),
        (
            "/bosun/repository",
            "/managementAgent/repository",
            "r.example.com/agent",
        ),
        (
            "/tracking/image",
            "/trackingAgent/image",
            "r.example.com/tracking:1",
        ),
    ] {
        let base = changed(config(), &json!({"ingress": null}));
        let value = json!(value);
        let one = changed(base.clone(), &at(path, &value));
        let other = changed(base.clone(), &at(later, &value));
        assert_eq!(all(&one), all(&other), "{path}");
        if !path.contains("bosun") && !path.contains("className") {
            assert_ne!(all(&one), all(&base), "{path}");
        }
        let both = changed(one.clone(), &at(later, &value));
        assert_eq!(all(&both), all(&one), "{path}");
        let differing = changed(one, &at(later, &json!("other")));
        let error = describe(&differing).unwrap_err();
        assert_eq!(error.path, later);
        assert!(error.message.contains(path), "{error}");
    }
}

#[test]
fn a_class_reaches_the_ingress() {
    let objects = all(&config());
    let ingress = find(&objects, "Ingress", "churn").unwrap();
    assert_eq!(ingress["spec"]["ingressClassName"], "mlops");
}

#[test]
fn configuration_that_makes_no_sense_is_refused_with_its_path() {
    for (path, value) in [
        ("/namespaces", json!([])),
        (
            "/ingress/outfacingURLPrefix",
            json!("your-company.com/deployments"),
        ),
        (
            "/ingress/outfacingURLPrefix",
            json!("https://example.com/a b"),
        ),
        (
            "/ingress/outfacingURLPrefix",
            json!("https://example.com/(x"),
        ),
        ("/ingress/className", json!("A B")),
        ("/datarobot/url", json!("app.datarobot.com")),
        ("/datarobot/apiSecretName", json!("A")),
        ("/tracking/image", json!("r.example.com/x:")),
        ("/imageBuilder/ppsImage", json!("r.example.com/pps")),
        ("/imageBuilder/ppsImage", json!("r.example.com/pps:latest")),
        (
            "/imageBuilder/generatedImageRepository",
            json!("r.example.com/models:1"),
        ),
        (
            "/imageBuilder/cacheRepository",
            json!("r.example.com/cache:1"),
        ),
        ("/imageBuilder/fetchImage", json!("")),
        ("/imageBuilder/image", json!("A")),
        ("/imageBuilder/serviceAccount/name", json!("")),
    ] {
        let error = describe(&changed(config(), &at(path, &value))).unwrap_err();
        assert_eq!(error.path, path, "{value}: {error}");
    }
    for (path, value, at_path) in [
        ("/namespaces", json!(["models", "A"]), "/namespaces/1"),
        (
            "/datarobot/modelFormats",
            json!(["datarobot", "onnx"]),
            "/datarobot/modelFormats/1",
        ),
        (
            "/imageBuilder/insecureRegistries",
            json!(["http://r.example.com"]),
            "/imageBuilder/insecureRegistries/0",
        ),
        (
            "/imageBuilder/skipSslVerifyRegistries",
            json!(["r.example.com/x"]),
            "/imageBuilder/skipSslVerifyRegistries/0",
        ),
        (
            "/imageBuilder/extraVolumes",
            json!([{"emptyDir": {}}]),
            "/imageBuilder/extraVolumes/0/name",
        ),
        (
            "/imageBuilder/extraVolumeMounts",
            json!(["x"]),
            "/imageBuilder/extraVolumeMounts/0/name",
        ),
        (
            "/predictionServer/imagePullSecrets",
            json!(["A"]),
            "/predictionServer/imagePullSecrets/0",
        ),
    ] {
        let error = describe(&changed(config(), &at(path, &value))).unwrap_err();
        assert_eq!(error.path, at_path, "{error}");
    }
}

#[test]
fn a_config_map_and_a_secret_at_once_are_refused() {
    let both =
        json!({"imageBuilder": {"configMap": "docker-config", "secretName": "registry-creds"}});
    let error = describe(&changed(config(), &both)).unwrap_err();
    assert_eq!(error.path, "/imageBuilder/secretName");
    assert!(error.message.contains("/imageBuilder/configMap"), "{error}");
}

#[test]
fn what_is_not_configured_is_named_to_who_asks() {
    assert!(describe(&json!({})).is_ok());
    let empty = json!({"namespaces": ["models"]});
    let outcome = run("churn", &spec("m1", '1'), &empty, Context::test()).unwrap();
    let objects = outcome.objects_json();
    assert_eq!(
        objects.last().unwrap()["status"]["message"],
        "the configuration does not say /imageBuilder/ppsImage, \
         /imageBuilder/generatedImageRepository, /datarobot/apiSecretName; set it in config.yaml"
    );
}

#[test]
fn a_namespace_that_is_not_served_is_refused() {
    let elsewhere = changed(config(), &json!({"namespaces": ["a", "b"]}));
    let failure = run("churn", &spec("m1", '1'), &elsewhere, operated()).unwrap_err();
    assert_eq!(
        failure,
        Failure::terminal(
            "namespace models is not among /namespaces of the configuration (a, b); add it, or \
             deploy the model in one of them"
        )
    );
}

/// As `reeve model --wait` computes it from the object that it reads.
#[test]
fn a_status_says_of_which_spec_it_is() {
    let more = json!({"resources": {"limits": {"cpu": "1"}, "é": 0.5}});
    for (spec, expected) in [
        (spec("m1", '1'), "9f1188d3b8e9"),
        (changed(spec("m1", '1'), &more), "623bc5cfd9ff"),
    ] {
        let outcome = run("churn", &spec, &config(), operated()).unwrap();
        let status = outcome.objects_json().last().unwrap()["status"].clone();
        assert_eq!(status["observed"], expected);
    }
}

#[test]
fn a_spec_is_told_all_that_is_wrong_with_it() {
    for (name, spec, expected) in [
        ("Churn", spec("m1", '1'), "metadata.name: `Churn`"),
        ("1churn", spec("m1", '1'), "metadata.name: `1churn`"),
        (&"a".repeat(53), spec("m1", '1'), "metadata.name"),
        ("churn", spec("a/b", '1'), "spec.model.id: `a/b`"),
        ("churn", spec("", '1'), "spec.model.id: ``"),
        (
            "churn",
            spec(&"a".repeat(116), '1'),
            "use at most 115 letters",
        ),
        (
            "churn",
            changed(spec("m1", '1'), &json!({"deploymentId": "a.*"})),
            "spec.deploymentId: `a.*`",
        ),
        (
            "churn",
            changed(spec("m1", '1'), &json!({"deploymentId": ""})),
            "spec.deploymentId: ``",
        ),
        ("churn", spec("m1", 'x'), "spec.model.package.sha256"),
        (
            "churn",
            changed(
                spec("m1", '1'),
                &json!({"model": {"package": {"url": "ftp://x/y"}}}),
            ),
            "spec.model.package.url: `ftp://x/y`",
        ),
        (
            "churn",
            changed(
                spec("m1", '1'),
                &json!({"model": {"format": "datarobotScoringCode"}}),
            ),
            "spec.model.format: `datarobotScoringCode` is not accepted here; accepted is datarobot",
        ),
        (
            "churn",
            changed(spec("m1", '1'), &json!({"model": {"package": null}})),
            "spec.model.package: missing",
        ),
        (
            "churn",
            super::mounted("m1", '1'),
            "spec.model.artifact: set, but models are built",
        ),
        (
            "churn",
            changed(spec("m1", '1'), &json!({"model": {"artifact": "r/x"}})),
            "spec.model.artifact: set, as is spec.model.package",
        ),
    ] {
        let outcome = run(name, &spec, &config(), operated()).unwrap();
        let objects = outcome.objects_json();
        let status = &objects.last().unwrap()["status"];
        assert_eq!(
            (&status["phase"], &status["reason"]),
            (&json!("Errored"), &json!("Invalid"))
        );
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let three = changed(spec("a/b", 'x'), &json!({"deploymentId": "/"}));
    let outcome = run("churn", &three, &config(), operated()).unwrap();
    let message = outcome.objects_json().last().unwrap()["status"]["message"].clone();
    for field in [
        "spec.deploymentId",
        "spec.model.id",
        "spec.model.package.sha256",
    ] {
        assert!(message.as_str().unwrap().contains(field), "{message}");
    }
}

#[test]
fn mounting_needs_digests() {
    let mounts = |base: &str| {
        changed(
            config(),
            &json!({"imageBuilder": {"builder": "mount", "ppsImage": base}}),
        )
    };
    let by_digest = format!("r.example.com/pps@sha256:{}", sha('f'));
    for (config, spec, expected) in [
        (
            mounts("r.example.com/pps:7.0"),
            super::mounted("m1", '1'),
            "/imageBuilder/ppsImage",
        ),
        (
            mounts(&by_digest),
            spec("m1", '1'),
            "spec.model.artifact: missing",
        ),
        (
            mounts(&by_digest),
            json!({"model": {"id": "m1", "artifact": "r.example.com/a:1"}}),
            "has no digest",
        ),
    ] {
        let outcome = run("churn", &spec, &config, operated()).unwrap();
        let message = outcome.objects_json().last().unwrap()["status"]["message"].clone();
        assert!(message.as_str().unwrap().contains(expected), "{message}");
    }
}

#[test]
fn another_format_can_be_accepted() {
    let config = changed(
        config(),
        &json!({"datarobot": {"modelFormats": ["datarobot", "datarobotScoringCode"]}}),
    );
    let spec = changed(
        spec("m1", '1'),
        &json!({"model": {"format": "datarobotScoringCode"}}),
    );
    let outcome = run("churn", &spec, &config, operated()).unwrap();
    let objects = outcome.objects_json();
    let job = objects
        .iter()
        .find(|object| object["kind"] == "Job")
        .unwrap();
    let text = job.to_string();
    assert!(text.contains("COPY model.jar /opt/ml/model/"), "{text}");
}

#[test]
fn the_manifest_names_the_secrets_that_it_reads_and_nothing_of_other_namespaces() {
    let place = || Scope::Namespaces(vec!["models".to_owned()]);
    let named = changed(
        config(),
        &json!({
            "imageBuilder": {"secretName": "registry-creds"},
            "predictionServer": {"imagePullSecrets": ["pull", "registry-creds"]},
        }),
    );
    let mut expected =
        Manifest::controller(Kind::new("models.reeve.dev/v1alpha1", "ModelDeployment"))
            .projection(["/spec"]);
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("batch/v1", "Job"),
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "ServiceAccount"),
    ] {
        expected = expected.reads((Kind::new(api_version, kind), place()));
    }
    for name in ["mlops-api-key", "pull", "registry-creds"] {
        let rule = ReadRule::new(Kind::new("v1", "Secret"), place());
        expected = expected.reads(rule.names([name]));
    }
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("batch/v1", "Job"),
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("networking.k8s.io/v1", "Ingress"),
        ("v1", "ServiceAccount"),
        ("models.reeve.dev/v1alpha1", "ModelDeployment"),
    ] {
        expected = expected.writes(Kind::new(api_version, kind), place());
    }
    assert_eq!(describe(&named), Ok(expected));
}
