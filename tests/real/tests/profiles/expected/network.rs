//! NetworkPolicies, as the table of the controllers has them.

use serde_json::{Value, json};

use reeve_test_platform::Preset;
use reeve_test_platform::Tenant;
use reeve_test_platform::tenants::{GUESTS, S3, SOURCE_CONTROL};

const CLASSIFICATION: &str = "data.statcan.gc.ca/classification";
const PURPOSE: &str = "namespace.statcan.gc.ca/purpose";
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Names and specs of the policies of a Profile.
pub(super) fn policies(tenant: &Tenant, preset: Preset) -> Vec<(&'static str, Value)> {
    let mut policies = always();
    let main = preset == Preset::Main;
    let gitea = |instance: &str| labels(&[("app", "gitea"), (INSTANCE, instance)]);
    if tenant.flag(SOURCE_CONTROL) == Some(true) {
        let system = ingress(gitea("gitea-unclassified"), platform(), &[json!("http")]);
        policies.push(("gitea-allow-system-to-gitea", system));
        if main {
            let both = json!({
                "matchLabels": {"app": "gitea"},
                "matchExpressions": [{
                    "key": INSTANCE, "operator": "In",
                    "values": ["gitea-protected-b", "gitea-unclassified"],
                }],
            });
            let protected_b = || gitea("gitea-protected-b");
            let web = [json!(80), json!(3000), json!(22)];
            policies.extend([
                (
                    "allow-gitea-to-postgres",
                    egress(both, anywhere(), &[json!(5432)]),
                ),
                (
                    "allow-gitea-http-egress-prot-b",
                    egress(protected_b(), anywhere(), &web),
                ),
                (
                    "allow-gitea-http-ingress-prot-b",
                    ingress(protected_b(), anywhere(), &web[1..]),
                ),
            ]);
        }
    }
    if main {
        policies.extend(of_main(tenant));
    } else {
        policies.push(("unclassified-pipelines-egress", pipelines()));
    }
    policies
}

/// Those that every Profile has, by either description.
fn always() -> Vec<(&'static str, Value)> {
    let istio = |gateway: &str| {
        let namespaces = labels(&[
            ("install.operator.istio.io/owner-name", "istio"),
            (PURPOSE, "system"),
        ]);
        json!([{
            "namespaceSelector": namespaces, "podSelector": labels(&[("istio", gateway)]),
        }])
    };
    let served = json!({"matchExpressions": [
        exists("serving.knative.dev/service"), is_not_protected_b(),
    ]});
    let knative = labels(&[("app.kubernetes.io/component", "knative-serving-install")]);
    let protected_b_notebooks = json!({"matchExpressions": [
        exists("notebook-name"),
        {"key": CLASSIFICATION, "operator": "In", "values": ["protected-b"]},
    ]});
    let same = json!([{"podSelector": unclassified()}]);
    let vault = labels(&[(INSTANCE, "vault"), ("component", "server")]);
    let elastic = labels(&[("common.k8s.elastic.co/type", "elasticsearch")]);
    let artifactory = labels(&[("app", "artifactory")]);
    vec![
        (
            "notebooks-allow-system-to-notebook",
            ingress(notebooks(), platform(), &[json!("notebook-port")]),
        ),
        (
            "allow-ingress-from-knative-serving",
            ingress(served, json!([{"namespaceSelector": knative}]), &[]),
        ),
        (
            "allow-egress-to-cluster-local-gateway",
            egress(unclassified(), istio("ingressgateway-kfserving"), &[]),
        ),
        (
            "unclassified-allow-same-namespace",
            json!({
                "podSelector": unclassified(),
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": same}],
                "egress": [{"to": same}],
            }),
        ),
        (
            "unclassified-allow-egress",
            egress(unclassified(), public(), &[]),
        ),
        (
            "unclassified-allow-egress-to-ingress-gateway",
            egress(unclassified(), istio("ingressgateway"), &[]),
        ),
        (
            "notebooks-protected-b-allow-https-egress",
            egress(protected_b_notebooks, public(), &[json!(443)]),
        ),
        (
            "vault-egress",
            egress(json!({}), service(&vault), &[json!(8200)]),
        ),
        (
            "unclassified-elasticsearch-egress",
            egress(unclassified(), service(&elastic), &[json!(9200)]),
        ),
        (
            "allow-jfrog-egress",
            egress(
                json!({}),
                service(&artifactory),
                &[json!(8081), json!(8082)],
            ),
        ),
    ]
}

/// What only the code has. Those to Trino name its namespaces, without which they reach
/// nothing.
fn of_main(tenant: &Tenant) -> Vec<(&'static str, Value)> {
    let named = |name: &str| labels(&[("kubernetes.io/metadata.name", name)]);
    let trino = |namespace: &str, pods: Value| json!([{"namespaceSelector": named(namespace), "podSelector": pods}]);
    let mut policies = vec![
        (
            "allow-egress-protb-notebook-to-trino-protb-system",
            egress(
                labels(&[(CLASSIFICATION, "protected-b")]),
                trino(
                    "trino-protb-system",
                    labels(&[("component", "coordinator")]),
                ),
                &[],
            ),
        ),
        (
            "allow-egress-notebook-to-trino-system",
            egress(
                notebooks(),
                trino("trino-system", labels(&[("release", "trino")])),
                &[],
            ),
        ),
    ];
    // Garbage in the label lets nobody through.
    if tenant.flag(GUESTS) == Some(false) {
        let cloud_main = json!([{"namespaceSelector": named("cloud-main-system")}]);
        policies.push((
            "allow-employee-egress-to-cloud-main-system",
            egress(
                notebooks(),
                cloud_main,
                &[json!(443), json!(8443), json!(22)],
            ),
        ));
    }
    if tenant.flag(S3) == Some(true) {
        let proxy = labels(&[("app", "s3proxy")]);
        policies.push((
            "s3proxy-allow-ingress",
            ingress(proxy, platform(), &[json!("http")]),
        ));
    }
    policies
}

/// What the description still has, and the code no more.
fn pipelines() -> Value {
    let named = |name: &str, component: &str| {
        service(&labels(&[
            ("app.kubernetes.io/name", name),
            ("app.kubernetes.io/component", component),
        ]))
    };
    json!({
        "podSelector": unclassified(),
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": named("kubeflow-pipelines", "ml-pipeline"),
                "ports": ports(&[json!(8888), json!(8887)]),
            },
            {"to": named("minio", "minio"), "ports": ports(&[json!(9000)])},
        ],
    })
}

fn ingress(pods: Value, peers: Value, numbers: &[Value]) -> Value {
    let rule = rule("from", peers, numbers);
    let mut policy = json!({"policyTypes": ["Ingress"], "ingress": [rule]});
    policy["podSelector"] = pods;
    policy
}

fn egress(pods: Value, peers: Value, numbers: &[Value]) -> Value {
    let rule = rule("to", peers, numbers);
    let mut policy = json!({"policyTypes": ["Egress"], "egress": [rule]});
    policy["podSelector"] = pods;
    policy
}

fn rule(side: &str, peers: Value, numbers: &[Value]) -> Value {
    let mut rule = json!({});
    rule[side] = peers;
    if !numbers.is_empty() {
        rule["ports"] = ports(numbers);
    }
    rule
}

fn ports(numbers: &[Value]) -> Value {
    let port = |number: &Value| json!({"port": number, "protocol": "TCP"});
    numbers.iter().map(port).collect()
}

fn labels(labels: &[(&str, &str)]) -> Value {
    let mut all = json!({});
    for (key, value) in labels {
        all[key] = json!(value);
    }
    json!({"matchLabels": all})
}

fn exists(label: &str) -> Value {
    json!({"key": label, "operator": "Exists"})
}

fn is_not_protected_b() -> Value {
    json!({"key": CLASSIFICATION, "operator": "NotIn", "values": ["protected-b"]})
}

fn unclassified() -> Value {
    json!({"matchExpressions": [is_not_protected_b()]})
}

fn notebooks() -> Value {
    json!({"matchExpressions": [exists("notebook-name")]})
}

/// The system, or the services of the platform.
fn platform() -> Value {
    json!([
        {"namespaceSelector": labels(&[(PURPOSE, "system")])},
        {"namespaceSelector": labels(&[(PURPOSE, "daaas")])},
    ])
}

/// Pods of a service of the platform.
fn service(pods: &Value) -> Value {
    json!([{"namespaceSelector": labels(&[(PURPOSE, "daaas")]), "podSelector": pods}])
}

fn public() -> Value {
    let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
    json!([{"ipBlock": {"cidr": "0.0.0.0/0", "except": private}}])
}

fn anywhere() -> Value {
    json!([{"ipBlock": {"cidr": "0.0.0.0/0"}}])
}
