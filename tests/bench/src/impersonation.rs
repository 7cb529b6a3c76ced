//! What impersonation costs: the same applies by the agent's user itself and as an account,
//! which have the same rights, on a real API server.

use crate::figure::{Figures, median};
use crate::process::client;
use crate::setup::{control_plane, spread};
use crate::world::{AGENT, apply};
use anyhow::Result;
use reeve_cluster::{Apply, Cluster, Identity, Preconditions, Resource};
use reeve_core::GroupVersionKind;
use serde_json::{Value, json};
use std::time::Instant;

const APPLIES: usize = 1_000;
const ROUNDS: usize = 9;
const NAMESPACE: &str = "default";
const ACCOUNT: &str = "writer";

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = control_plane(false).await?;
    let admin = Cluster::new(client(&server.kubeconfig()).await?);
    for object in rights() {
        apply(&admin, &object).await?;
    }
    let agent = Cluster::new(client(&server.kubeconfig_of(AGENT)?).await?);
    let account = Some(Identity::service_account(NAMESPACE, ACCOUNT));
    let (mut plain, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        // What comes second finds a warmer server, so they take turns.
        let (itself, as_account) = if round % 2 == 0 {
            let itself = send(&agent, None, 2 * round).await?;
            (itself, send(&agent, account.clone(), 2 * round + 1).await?)
        } else {
            let as_account = send(&agent, account.clone(), 2 * round).await?;
            (send(&agent, None, 2 * round + 1).await?, as_account)
        };
        // The first round makes the objects.
        if round > 0 {
            plain.push(itself);
            ratios.push(as_account / itself);
        }
    }
    figures.plain(
        &format!("{APPLIES} applies by the agent's user, median"),
        median(&mut plain),
        "s",
    );
    figures.limited(
        "impersonated applies / plain ones, median of the rounds",
        median(&mut ratios),
        "",
        1.05,
    );
    tokio::task::spawn_blocking(move || drop(server)).await?;
    Ok(())
}

/// Applies each object with a value of this turn, and returns how many seconds that took.
async fn send(cluster: &Cluster, identity: Option<Identity>, turn: usize) -> Result<f64> {
    let begun = Instant::now();
    let shared = (cluster.clone(), identity);
    let send = move |(cluster, identity): (Cluster, Option<Identity>), number: usize| async move {
        let name = format!("object-{number}");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"turn": turn.to_string()},
        });
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        cluster
            .apply(Apply {
                resource: &resource,
                namespace: Some(NAMESPACE),
                name: &name,
                body: (&body).into(),
                onto: Preconditions::default(),
                manager: "bench",
                force: false,
                strict: true,
                dry_run: false,
                identity: identity.as_ref(),
            })
            .await?;
        Ok(())
    };
    spread(APPLIES, shared, send).await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The same rights for both, and that one may act as the other.
fn rights() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": group});
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE});
    let write = json!({
        "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "patch"],
    });
    let act = json!({
        "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [ACCOUNT],
        "verbs": ["impersonate"],
    });
    let grants = [
        ("bench-writes", write, json!([agent, account])),
        ("bench-acts", act, json!([agent])),
    ];
    let objects = grants.into_iter().flat_map(|(name, rule, subjects)| {
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [rule],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        });
        [role, binding]
    });
    objects.collect()
}
