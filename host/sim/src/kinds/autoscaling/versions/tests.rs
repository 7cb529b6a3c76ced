//! Each sort of metric, in both directions, and what is in annotations.

use super::*;

/// An autoscaler of v2 with this spec, and what is measured.
#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn v2(spec: Value, status: Value) -> Value {
    let mut whole = json!({"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 3});
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"}, "spec": whole, "status": status,
    })
}

fn annotation<'a>(autoscaler: &'a Value, name: &str) -> &'a str {
    let annotations = &autoscaler["metadata"]["annotations"];
    annotations[format!("autoscaling.alpha.kubernetes.io/{name}")]
        .as_str()
        .unwrap_or_default()
}

/// The metric in the annotation of v1; it comes back as it was, too.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn check_metric(metric: Value, expected: &str) {
    let before = v2(
        json!({"metrics": [metric]}),
        json!({"currentMetrics": null, "desiredReplicas": 0}),
    );
    let v1 = to_v1(&before);
    assert_eq!(annotation(&v1, "metrics"), expected);
    assert_eq!(v1["spec"].get("metrics"), None);
    assert_eq!(to_v2(&v1), before);
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn check_measured(metric: Value, expected: &str) {
    let before = v2(
        json!({"metrics": [cpu(&json!(50))]}),
        json!({"currentMetrics": [metric], "desiredReplicas": 2, "currentReplicas": 1}),
    );
    let v1 = to_v1(&before);
    assert_eq!(annotation(&v1, "current-metrics"), expected);
    assert_eq!(to_v2(&v1), before);
}

#[test]
fn the_share_of_cpu_is_a_field_of_v1() {
    let before = v2(
        json!({"metrics": [cpu(&json!(50))]}),
        json!({"currentMetrics": null, "desiredReplicas": 0}),
    );
    let v1 = to_v1(&before);
    assert_eq!(
        v1,
        json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
            },
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        })
    );
    assert_eq!(to_v2(&v1), before);
}

#[test]
fn each_type_of_metric_is_kept_in_the_words_of_v1() {
    check_metric(
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}}}),
        r#"[{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"500m"}}]"#,
    );
    check_metric(
        json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}}),
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":70}}]"#,
    );
    check_metric(
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 60}}}),
        r#"[{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":60,"container":"c"}}]"#,
    );
    check_metric(
        json!({"type": "Pods", "pods": {
            "metric": {"name": "rate", "selector": {"matchLabels": {"b": "<1>", "a": "2"}}},
            "target": {"type": "AverageValue", "averageValue": "1k"},
        }}),
        r#"[{"type":"Pods","pods":{"metricName":"rate","targetAverageValue":"1k","selector":{"matchLabels":{"a":"2","b":"\u003c1\u003e"}}}}]"#,
    );
    let described = json!({"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"});
    check_metric(
        json!({"type": "Object", "object": {
            "describedObject": described, "metric": {"name": "rate"},
            "target": {"type": "Value", "value": "10"},
        }}),
        r#"[{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},"metricName":"rate","targetValue":"10"}}]"#,
    );
    // Which has no value: v1 says zero.
    check_metric(
        json!({"type": "Object", "object": {
            "describedObject": {"kind": "Pod", "name": "p"}, "metric": {"name": "rate"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        }}),
        r#"[{"type":"Object","object":{"target":{"kind":"Pod","name":"p"},"metricName":"rate","targetValue":"0","averageValue":"10"}}]"#,
    );
    check_metric(
        json!({"type": "External", "external": {
            "metric": {"name": "queue", "selector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}},
            "target": {"type": "AverageValue", "averageValue": "30"},
        }}),
        r#"[{"type":"External","external":{"metricName":"queue","metricSelector":{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]},"targetAverageValue":"30"}}]"#,
    );
    check_metric(
        json!({"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}}),
        r#"[{"type":"External","external":{"metricName":"queue","targetValue":"30"}}]"#,
    );
}

#[test]
fn what_was_measured_is_kept_whatever_it_is() {
    check_measured(
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "100m", "averageUtilization": 40}}}),
        r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"100m"}}]"#,
    );
    check_measured(
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "current": {"averageValue": "0"}}}),
        r#"[{"type":"ContainerResource","containerResource":{"name":"cpu","currentAverageValue":"0","container":"c"}}]"#,
    );
    check_measured(
        json!({"type": "Pods", "pods": {"metric": {"name": "rate"}, "current": {"averageValue": "5"}}}),
        r#"[{"type":"Pods","pods":{"metricName":"rate","currentAverageValue":"5"}}]"#,
    );
    check_measured(
        json!({"type": "Object", "object": {
            "metric": {"name": "rate"}, "current": {"value": "5", "averageValue": "1"},
            "describedObject": {"kind": "Pod", "name": "p"},
        }}),
        r#"[{"type":"Object","object":{"target":{"kind":"Pod","name":"p"},"metricName":"rate","currentValue":"5","averageValue":"1"}}]"#,
    );
    check_measured(
        json!({"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": "5"}}}),
        r#"[{"type":"External","external":{"metricName":"queue","currentValue":"5"}}]"#,
    );
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "0", "averageUtilization": 40}}});
    let measured = v2(
        json!({"metrics": [super::cpu(&json!(50))]}),
        json!({"currentMetrics": [cpu], "desiredReplicas": 1}),
    );
    assert_eq!(
        to_v1(&measured)["status"],
        json!({"currentReplicas": 0, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 40})
    );
}

#[test]
fn conditions_and_behavior_are_kept() {
    let before = v2(
        json!({
            "metrics": [cpu(&json!(50))],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
                "scaleDown": {"selectPolicy": "Disabled", "tolerance": "50m"},
            },
        }),
        json!({
            "currentMetrics": null, "desiredReplicas": 0,
            "conditions": [
                {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": "a & b"},
                {"type": "ScalingActive", "status": "False", "lastTransitionTime": null},
            ],
        }),
    );
    let v1 = to_v1(&before);
    assert_eq!(
        annotation(&v1, "behavior"),
        r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Disabled","Policies":null,"Tolerance":"50m"}}"#
    );
    assert_eq!(
        annotation(&v1, "conditions"),
        r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"a \u0026 b"},{"type":"ScalingActive","status":"False","lastTransitionTime":null}]"#
    );
    assert_eq!(v1["status"].get("conditions"), None);
    assert_eq!(to_v2(&v1), before);
}

/// The metrics and the behavior of an object of v1 with this spec and these annotations.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn check_read(spec: Value, annotations: Value, metrics: Value, behavior: Value) {
    let v2 = to_v2(&json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": annotations}, "spec": spec,
    }));
    assert_eq!(v2["spec"]["metrics"], metrics);
    assert_eq!(
        v2["spec"].get("behavior"),
        Some(&behavior).filter(|b| !b.is_null())
    );
    assert_eq!(v2["metadata"], json!({"name": "a"}));
}

#[test]
fn annotations_are_read_as_go_reads_them() {
    let memory = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}});
    // Without any metric it goes by its CPU.
    check_read(json!({}), json!({}), json!([cpu(&json!(80))]), Value::Null);
    let text = r#"[{"Type":"Resource","RESOURCE":{"name":"memory","targetaverageutilization":70,"x":1,"targetAverageValue":null}}]"#;
    check_read(
        json!({}),
        json!({METRICS: text}),
        json!([memory]),
        Value::Null,
    );
    // The field of v1 comes last.
    check_read(
        json!({"targetCPUUtilizationPercentage": 50}),
        json!({METRICS: text}),
        json!([memory, cpu(&json!(50))]),
        Value::Null,
    );
    // What cannot be read is nothing.
    for wrong in [
        "",
        "{}",
        "[1]",
        r#"[{"type":1}]"#,
        r#"[{"type":"Pods","pods":{"targetAverageValue":"x"}}]"#,
    ] {
        check_read(
            json!({}),
            json!({METRICS: wrong, BEHAVIOR: wrong}),
            json!([cpu(&json!(80))]),
            Value::Null,
        );
    }
    check_read(
        json!({}),
        json!({METRICS: r#"[{"type":"Pods","pods":{"targetAverageValue":1000}}]"#}),
        json!([{"type": "Pods", "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue", "averageValue": "1k"}}}]),
        Value::Null,
    );
    check_read(
        json!({}),
        json!({BEHAVIOR: r#"{"scaleup":{"selectPolicy":"Min","policies":[{"type":"Pods"}]},"ScaleDown":null}"#}),
        json!([cpu(&json!(80))]),
        json!({"scaleUp": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 0, "periodSeconds": 0}]}}),
    );
    check_read(
        json!({}),
        json!({BEHAVIOR: r#"{"ScaleUp":null}"#}),
        json!([cpu(&json!(80))]),
        Value::Null,
    );
}

#[test]
fn annotations_of_v1_mean_nothing_in_v2() {
    let mut autoscaler = v2(json!({}), json!({}));
    autoscaler["metadata"]["annotations"] = json!({METRICS: "[]", "mine": "x"});
    drop_annotations(&mut autoscaler);
    assert_eq!(autoscaler["metadata"]["annotations"], json!({"mine": "x"}));
    autoscaler["metadata"]["annotations"] = json!({CONDITIONS: "[]"});
    drop_annotations(&mut autoscaler);
    assert_eq!(autoscaler["metadata"], json!({"name": "a"}));
}
