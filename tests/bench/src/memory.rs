//! Resident memory of an agent with many registrations of one component, and with many
//! components.
//!
//! The agent and the API server are processes of their own, so that the figure is
//! the agent's alone.

use crate::figure::Figures;
use crate::process::{ClusterProcess, Process, reeve};
use crate::setup::plugin;
use crate::wasm::another;
use anyhow::{Context as _, Result, bail};
use k8s_openapi::ByteString;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use reeve_core::grant::ACCOUNT_ANNOTATION;
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::time::Duration;

const NAMESPACE: &str = "reeve-system";
const MIB: f64 = 1024.0 * 1024.0;

/// What an agent may take with nothing to do, in MiB: an eighth of the memory that its
/// chart requests.
const BASELINE: f64 = 32.0;
/// How much more, in MiB, so many registrations of one component may take. The first
/// brings all that is there once: the compiled component, watches, threads.
const REGISTRATIONS: [(usize, f64); 4] = [(1, 20.0), (10, 30.0), (100, 50.0), (1_000, 150.0)];

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let bytes = plugin("limitranges")?;
    let same = |_| bytes.to_vec();
    let baseline = taken(0, same).await?;
    let what = "agent resident, without plugins";
    figures.limited(what, baseline.resident, "MiB", BASELINE);
    for (count, limit) in REGISTRATIONS {
        let more = taken(count, same).await?.resident - baseline.resident;
        let what = format!("more with {count} registrations of limitranges");
        figures.limited(&what, more, "MiB", limit);
    }
    let others = |number| another(&bytes, number, DISTINCT_BYTES);
    let more = taken(100, others).await?;
    let what = "more with 100 components of 190 KB";
    figures.limited(what, more.resident - baseline.resident, "MiB", 50.0);
    let what = "of which is no copy of a file";
    figures.plain(what, more.anonymous - baseline.anonymous, "MiB");
    Ok(())
}

/// How large components are where each is another.
const DISTINCT_BYTES: usize = 190 << 10;

/// Memory of an agent, in MiB.
struct Taken {
    resident: f64,
    anonymous: f64,
}

/// Until code is given back that ran while the last plugin was loaded: the engine looks each
/// second, and keeps what was used since the look before.
const REST: Duration = Duration::from_secs(3);

/// What an agent with so many plugins takes once they are ready and it has nothing to do.
async fn taken(count: usize, component: impl Fn(usize) -> Vec<u8>) -> Result<Taken> {
    let cluster = ClusterProcess::start()?;
    let client = cluster.client().await?;
    for crd in reeve_api::crds() {
        apply(&client, &serde_json::to_value(crd)?).await?;
    }
    apply(&client, &samples::profile_crd()).await?;
    apply(&client, &samples::namespace(NAMESPACE)).await?;
    for number in 0..count {
        let name = format!("plugin-{number}");
        install(&client, &name, &component(number)).await?;
    }
    // As the chart runs it: compiled code is mapped from the folder, and the allocator has
    // one heap.
    // Beside this program, since from there programs are run.
    let program = std::env::current_exe()?;
    let cache = tempfile::tempdir_in(program.parent().context("a folder")?)?;
    let agent = Process::start(
        reeve()?
            .args(["run", "--health-address", "127.0.0.1:0", "--kubeconfig"])
            .arg(cluster.kubeconfig())
            .arg("--cache")
            .arg(cache.path().join("components"))
            .env("RUST_LOG", "error"),
    )?;
    // Each component is compiled, one after the other, in a process of its own.
    for _ in 0..6_000 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if ready(&client).await? == count {
            tokio::time::sleep(REST).await;
            return Ok(Taken {
                resident: agent.resident()? / MIB,
                anonymous: agent.anonymous()? / MIB,
            });
        }
    }
    bail!("{count} plugins were not ready within ten minutes")
}

async fn install(client: &kube::Client, name: &str, component: &[u8]) -> Result<()> {
    let metadata = json!({
        "name": name, "namespace": NAMESPACE,
        "labels": {"reeve.dev/plugin": "true"},
        "annotations": {ACCOUNT_ANNOTATION: name},
    });
    apply(
        client,
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
    )
    .await?;
    apply(client, &json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }))
    .await?;
    apply(
        client,
        &json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "binaryData": {"plugin.wasm": ByteString(component.to_vec())},
        }),
    )
    .await
}

async fn apply(client: &kube::Client, object: &Value) -> Result<()> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").context("apiVersion")?;
    let kind = text("/kind").context("kind")?;
    let name = text("/metadata/name").context("name")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = format!("{}s", kind.to_lowercase());
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("bench").force();
    api.patch(name, &params, &Patch::Apply(object))
        .await
        .with_context(|| format!("{kind} {name}"))?;
    Ok(())
}

async fn ready(client: &kube::Client) -> Result<usize> {
    let plugins: Api<reeve_api::Plugin> = Api::namespaced(client.clone(), NAMESPACE);
    let plugins = plugins.list(&ListParams::default()).await?;
    let ready = plugins.items.iter().filter(|plugin| {
        let conditions = plugin.status.iter().flat_map(|status| &status.conditions);
        conditions
            .clone()
            .any(|c| c.type_ == "Ready" && c.status == "True")
    });
    Ok(ready.count())
}
