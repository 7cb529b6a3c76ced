//! A plugin that returns one object for each tenant, as the test tells it.

use reeve_it::{World, guest, profile_reference};
use serde_json::{Value, json};

/// Its name.
pub(crate) const PLUGIN: &str = "told";

/// A cluster with the plugin, which writes objects of one kind in the namespaces of
/// tenants (or anywhere), under this policy.
pub(crate) async fn world(writes: &str, policy: &Value) -> World {
    let mut world = World::new().await;
    world.apply(&plugin_object(PLUGIN, policy)).await;
    install(&world, PLUGIN, writes).await;
    world.start();
    world.settle().await;
    world
}

/// A Plugin with a policy.
pub(crate) fn plugin_object(name: &str, policy: &Value) -> Value {
    let mut plugin = reeve_it::plugin_reference(name);
    plugin["spec"] = policy.clone();
    plugin
}

/// Installs the plugin once more, under a name. It writes these kinds, with commas
/// between them.
pub(crate) async fn install(world: &World, name: &str, writes: &str) {
    let writes: Vec<&str> = writes.split(',').collect();
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "writes": writes, "scope": "cluster",
        "reconcile": {"do": "nothing", "meant": true},
    });
    let component = vec![("plugin.wasm", guest("chameleon"))];
    world.install(name, &component, Some(config)).await;
}

/// Has the plugin return this object for a tenant, from the next run on; `Null` for
/// none.
pub(crate) async fn tell(world: &World, tenant: &str, object: &Value) {
    let deed = match object {
        Value::Null => json!({"do": "nothing", "meant": true}),
        object => json!({"do": "raw", "text": object.to_string()}),
    };
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    world.edit(&profile_reference(tenant), patch).await;
    world.settle().await;
}

/// A ConfigMap of a tenant.
pub(crate) fn config_map(tenant: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": tenant}, "data": data})
}

/// An object with an annotation more.
pub(crate) fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

/// Who owns what of an object, as `manager operation fields`.
pub(crate) fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    entries
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("manager"), text("operation"))
        })
        .collect()
}

/// The journal: operation, object and reason of each entry, oldest first.
pub(crate) async fn journal(world: &World) -> Vec<(String, String, String)> {
    let api: kube::Api<reeve_api::JournalEntry> =
        kube::Api::namespaced(world.admin.clone(), reeve_it::NAMESPACE);
    let entries = api.list(&kube::api::ListParams::default()).await.unwrap();
    let entries = entries.items.into_iter().map(|entry| {
        let spec = entry.spec;
        (
            format!("{:?}", spec.operation),
            spec.object.name,
            spec.reason,
        )
    });
    entries.collect()
}
