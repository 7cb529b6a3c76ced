//! What each policy says.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use reeve_sdk::prelude::*;

use super::{EMPLOYEES, GITEA, S3, labels, run};
use crate::table::POLICIES;

/// All policies, written out as YAML would: pods, and rules of peers and ports.
#[test]
fn each_policy_has_its_content() {
    let unclassified = json!({"matchExpressions": [{
        "key": "data.statcan.gc.ca/classification", "operator": "NotIn", "values": ["protected-b"],
    }]});
    let is_notebook = json!({"key": "notebook-name", "operator": "Exists"});
    let is_protected_b = json!({
        "key": "data.statcan.gc.ca/classification", "operator": "In", "values": ["protected-b"],
    });
    let notebooks = json!({"matchExpressions": [is_notebook]});
    let pods = |labels: Value| json!({"matchLabels": labels});
    let spaces = |labels: Value| json!({"namespaceSelector": {"matchLabels": labels}});
    let within = |pods: Value, spaces: Value| json!({"namespaceSelector": {"matchLabels": spaces}, "podSelector": {"matchLabels": pods}});
    let daaas = || json!({"namespace.statcan.gc.ca/purpose": "daaas"});
    let istio = || {
        json!({
            "install.operator.istio.io/owner-name": "istio", "namespace.statcan.gc.ca/purpose": "system",
        })
    };
    let platform = || {
        vec![
            spaces(json!({"namespace.statcan.gc.ca/purpose": "system"})),
            spaces(daaas()),
        ]
    };
    let minio = || {
        spaces(
            json!({"namespace.statcan.gc.ca/purpose": "daaas", "namespace.statcan.gc.ca/use": "minio"}),
        )
    };
    let public = || {
        json!({"ipBlock": {
            "cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
        }})
    };
    let anywhere = || json!({"ipBlock": {"cidr": "0.0.0.0/0"}});
    let gitea = |classification: &str| {
        pods(json!({
            "app": "gitea", "app.kubernetes.io/instance": format!("gitea-{classification}"),
        }))
    };
    let rule = |side: &str, peers: Vec<Value>, ports: Value| {
        let ports: Vec<_> = ports
            .as_array()
            .unwrap()
            .iter()
            .map(|port| json!({"port": port, "protocol": "TCP"}))
            .collect();
        if ports.is_empty() {
            json!({side: peers})
        } else {
            json!({side: peers, "ports": ports})
        }
    };
    let ingress = |pods: &Value, peers, ports| {
        json!({
            "podSelector": pods, "policyTypes": ["Ingress"], "ingress": [rule("from", peers, ports)],
        })
    };
    let egress = |pods: &Value, peers, ports| {
        json!({
            "podSelector": pods, "policyTypes": ["Egress"], "egress": [rule("to", peers, ports)],
        })
    };
    let named = |name: &str| json!({"kubernetes.io/metadata.name": name});
    let all = || json!([]);
    let expected = [
        (
            "notebooks-allow-system-to-notebook",
            ingress(&notebooks, platform(), json!(["notebook-port"])),
        ),
        (
            "allow-ingress-from-knative-serving",
            ingress(
                &json!({"matchExpressions": [
                    {"key": "serving.knative.dev/service", "operator": "Exists"},
                    unclassified["matchExpressions"][0],
                ]}),
                vec![spaces(
                    json!({"app.kubernetes.io/component": "knative-serving-install"}),
                )],
                all(),
            ),
        ),
        (
            "allow-egress-to-cluster-local-gateway",
            egress(
                &unclassified,
                vec![within(
                    json!({"istio": "ingressgateway-kfserving"}),
                    istio(),
                )],
                all(),
            ),
        ),
        (
            "unclassified-allow-same-namespace",
            json!({
                "podSelector": unclassified,
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": unclassified}]}],
                "egress": [{"to": [{"podSelector": unclassified}]}],
            }),
        ),
        (
            "unclassified-allow-egress",
            egress(&unclassified, vec![public()], all()),
        ),
        (
            "unclassified-allow-egress-to-ingress-gateway",
            egress(
                &unclassified,
                vec![within(json!({"istio": "ingressgateway"}), istio())],
                all(),
            ),
        ),
        (
            "notebooks-protected-b-allow-https-egress",
            egress(
                &json!({"matchExpressions": [is_notebook, is_protected_b]}),
                vec![public()],
                json!([443]),
            ),
        ),
        (
            "vault-egress",
            egress(
                &json!({}),
                vec![within(
                    json!({"app.kubernetes.io/instance": "vault", "component": "server"}),
                    daaas(),
                )],
                json!([8200]),
            ),
        ),
        (
            "unclassified-elasticsearch-egress",
            egress(
                &unclassified,
                vec![within(
                    json!({"common.k8s.elastic.co/type": "elasticsearch"}),
                    daaas(),
                )],
                json!([9200]),
            ),
        ),
        (
            "allow-jfrog-egress",
            egress(
                &json!({}),
                vec![within(json!({"app": "artifactory"}), daaas())],
                json!([8081, 8082]),
            ),
        ),
        (
            "allow-gitea-to-postgres",
            egress(
                &json!({
                    "matchLabels": {"app": "gitea"},
                    "matchExpressions": [{
                        "key": "app.kubernetes.io/instance", "operator": "In",
                        "values": ["gitea-protected-b", "gitea-unclassified"],
                    }],
                }),
                vec![anywhere()],
                json!([5432]),
            ),
        ),
        (
            "gitea-allow-system-to-gitea",
            ingress(&gitea("unclassified"), platform(), json!(["http"])),
        ),
        (
            "allow-gitea-http-egress-prot-b",
            egress(
                &gitea("protected-b"),
                vec![anywhere()],
                json!([80, 3000, 22]),
            ),
        ),
        (
            "allow-gitea-http-ingress-prot-b",
            ingress(&gitea("protected-b"), vec![anywhere()], json!([3000, 22])),
        ),
        (
            "allow-employee-egress-to-cloud-main-system",
            egress(
                &notebooks,
                vec![spaces(named("cloud-main-system"))],
                json!([443, 8443, 22]),
            ),
        ),
        (
            "s3proxy-allow-ingress",
            ingress(
                &pods(json!({"app": "s3proxy"})),
                platform(),
                json!(["http"]),
            ),
        ),
        (
            "allow-egress-protb-notebook-to-trino-protb-system",
            egress(
                &pods(json!({"data.statcan.gc.ca/classification": "protected-b"})),
                vec![within(
                    json!({"component": "coordinator"}),
                    named("trino-protb-system"),
                )],
                all(),
            ),
        ),
        (
            "allow-egress-notebook-to-trino-system",
            egress(
                &notebooks,
                vec![within(json!({"release": "trino"}), named("trino-system"))],
                all(),
            ),
        ),
        (
            "unclassified-pipelines-egress",
            json!({
                "podSelector": unclassified,
                "policyTypes": ["Egress"],
                "egress": [
                    rule("to", vec![within(json!({
                        "app.kubernetes.io/name": "kubeflow-pipelines", "app.kubernetes.io/component": "ml-pipeline",
                    }), daaas())], json!([8888, 8887])),
                    rule("to", vec![within(json!({
                        "app.kubernetes.io/name": "minio", "app.kubernetes.io/component": "minio",
                    }), daaas())], json!([9000])),
                ],
            }),
        ),
        (
            "unclassified-minio-egress",
            egress(&unclassified, vec![minio()], json!([9000, 9001])),
        ),
        (
            "protected-b-minio-egress",
            egress(
                &json!({"matchExpressions": [is_protected_b]}),
                vec![minio()],
                all(),
            ),
        ),
    ];
    let every: BTreeMap<_, _> = POLICIES.iter().map(|policy| (policy.name, true)).collect();
    let open = labels(&[(GITEA, "true"), (S3, "true"), (EMPLOYEES, "false")]);
    let outcome = run(&open, &json!({"policies": every}), Context::test());
    let objects = outcome.objects_json();
    assert_eq!(objects.len(), expected.len());
    for (object, (name, spec)) in objects.iter().zip(expected) {
        assert_eq!(
            *object,
            json!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": name, "namespace": "alice"},
                "spec": spec,
            })
        );
        // No field that the kind does not have.
        let typed: NetworkPolicy = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(json!(typed), *object);
    }
}
