//! Kinds that come late, go, and come back.

use anyhow::{Result, ensure};
use reeve_real::{ADMIN, eventually};
use reeve_test_support::samples;
use serde_json::{Value, json};

use crate::ground::{chameleon, check_honest, create, grant_of};
use crate::stage::{NAMESPACE, Stage};

/// A CRD for the namespaced kind Widget, under this plural.
fn crd(plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": plural, "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn establish(stage: &Stage, plural: &str) -> Result<()> {
    stage.apply(&[crd(plural)])?;
    let name = format!("crd/{plural}.example.com");
    let wait = [
        "wait",
        "--for=condition=Established",
        &name,
        "--timeout=60s",
    ];
    stage.cluster.kubectl(&wait).map(drop)
}

/// Makes a Widget under this plural, past the discovery that kubectl remembers. A
/// definition is said to be established a moment before all of the API server
/// serves it.
fn make_widget(stage: &Stage, plural: &str, name: &str) -> Result<()> {
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "workshop"},
    });
    let path = format!("/apis/example.com/v1/namespaces/workshop/{plural}");
    let create = ["create", "--raw", &path, "-f", "-"];
    eventually(&format!("{plural} are served"), || {
        let made = stage
            .cluster
            .kubectl_with(ADMIN, &create, &widget.to_string());
        made.map(drop)
    })
}

/// Rights for the guest on Widgets under either plural, and for the agent.
fn rights(stage: &Stage) -> Result<()> {
    stage.apply(&grant_of("smith", "ConfigMap")?)?;
    let agent = json!({"kind": "ServiceAccount", "name": "reeve", "namespace": NAMESPACE});
    let account = json!({"kind": "ServiceAccount", "name": "smith", "namespace": NAMESPACE});
    let api = "rbac.authorization.k8s.io/v1";
    stage.apply(&[
        samples::namespace("workshop"),
        json!({
            "apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "widgets"},
            "rules": [{
                "apiGroups": ["example.com"], "resources": ["widgets", "gadgets"],
                "verbs": ["get", "list", "watch"],
            }],
        }),
        json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": "widgets"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "widgets",
            },
            "subjects": [agent, account],
        }),
    ])
}

const ABSENT: (&str, &str, &str) = ("Ready", "False", "KindNotServed");

pub(crate) fn deliver(stage: &Stage) -> Result<()> {
    rights(stage)?;
    let config = json!({"primary": "Widget.v1.example.com", "reconcile": {"do": "echo"}});
    create(stage, &[chameleon("smith", &config)?])
}

/// A kind is waited for whenever it is absent.
pub(crate) fn check(stage: &Stage) -> Result<()> {
    let message = stage.wait_for_condition("smith", ABSENT)?;
    for text in ["Widget.v1.example.com", "starts by itself"] {
        ensure!(message.contains(text), "no {text} in: {message}");
    }

    // It comes.
    establish(stage, "widgets")?;
    make_widget(stage, "widgets", "first")?;
    let made = |name: &'static str| ("configmap", "workshop", name);
    stage.wait_for(made("chameleon-first"), "/kind", "ConfigMap")?;
    stage.wait_for_condition("smith", ("Ready", "True", "Running"))?;

    // It goes, and comes back under another name.
    let delete = ["delete", "crd", "widgets.example.com"];
    stage.cluster.kubectl(&delete)?;
    let message = stage.wait_for_condition("smith", ABSENT)?;
    for text in ["widgets.example.com", "install the CRD again"] {
        ensure!(message.contains(text), "no {text} in: {message}");
    }
    check_honest(stage, "beside-kinds")?;
    establish(stage, "gadgets")?;
    make_widget(stage, "gadgets", "second")?;
    stage.wait_for(made("chameleon-second"), "/kind", "ConfigMap")?;
    stage
        .wait_for_condition("smith", ("Ready", "True", "Running"))
        .map(drop)
}
