//! The ServiceAccount of a pod: it names one that is there, and mounts its token.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kinds::edit::{
    default_to, ensure_object, entries, items, items_mut, present, set, text, text_at,
};
use crate::rest::meta;
use crate::server::Shared;

const ACCOUNTS: &str = "serviceaccounts";
/// The account of pods that name none. Each namespace gets one.
const DEFAULT: &str = "default";
/// Marks a pod that a kubelet shows and the server does not run.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Marks an account whose pods may only use the Secrets that it lists.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
/// How the volume with the token is called, before some letters.
const VOLUME: &str = "kube-api-access-";
/// Where clients look for the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token is asked for: an hour, and a little by which tokens are told that
/// the server gives for a year to programs that read them only once.
const SECONDS: i64 = 3_607;
/// The lists of containers that get the token.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Gives a new pod its account, what the account has for it, and the token.
pub(super) fn assign(server: &Shared, pod: &mut Value) -> Result<(), String> {
    if pod.pointer("/metadata/annotations").is_some_and(is_mirror) {
        return check_mirror(pod);
    }
    let namespace = meta::text(pod, "namespace").to_owned();
    let Some(spec) = ensure_object(pod, "spec") else {
        return Ok(());
    };
    default_to(spec, "serviceAccountName", DEFAULT);
    let name = text(spec, "serviceAccountName").to_owned();
    // The old name of the field is kept beside the new one.
    set(spec, "serviceAccount", name.clone());
    let account = find(server, &namespace, &name)?;
    let wanted = spec.get("automountServiceAccountToken");
    let wanted = wanted.or_else(|| account.get("automountServiceAccountToken"));
    if wanted.and_then(Value::as_bool).unwrap_or(true) {
        mount_token(server, spec);
    }
    if present(spec, "imagePullSecrets").is_none()
        && let Some(secrets) = present(&account, "imagePullSecrets")
    {
        set(spec, "imagePullSecrets", secrets.clone());
    }
    let limited = entries(&account["metadata"], "annotations")
        .any(|(key, value)| key == ENFORCE && is_true(value));
    if limited {
        check_secrets(&account, spec)?;
    }
    Ok(())
}

fn find(server: &Shared, namespace: &str, name: &str) -> Result<Value, String> {
    let found = server.store.get(ACCOUNTS, &format!("{namespace}/{name}"));
    match found {
        Some(account) => Ok(account.value()),
        // The real server waits for the controller that makes it.
        None if name == DEFAULT => Ok(json!({})),
        None => Err(format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        )),
    }
}

fn is_mirror(annotations: &Value) -> bool {
    annotations.get(MIRROR).is_some()
}

/// What Go's `ParseBool` takes for true.
fn is_true(value: &Value) -> bool {
    matches!(
        value.as_str(),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True")
    )
}

/// A mirror pod belongs to its node, which has nothing of the cluster's.
fn check_mirror(pod: &Value) -> Result<(), String> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if !text(spec, "serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let volumes = || items(spec, "volumes");
    let in_containers = CONTAINERS
        .iter()
        .flat_map(|list| items(spec, list))
        .any(|container| secrets_of(container).next().is_some());
    let in_volumes = volumes().any(|volume| volume.get("secret").is_some())
        || sources(spec).any(|source| source.get("secret").is_some());
    if in_containers || in_volumes || present(spec, "imagePullSecrets").is_some() {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    if sources(spec).any(|source| source.get("serviceAccountToken").is_some()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

/// What the projected volumes of a pod are made of.
fn sources(spec: &Value) -> impl Iterator<Item = &Value> {
    let projected = items(spec, "volumes").filter_map(|volume| volume.get("projected"));
    projected.flat_map(|projected| items(projected, "sources"))
}

/// The Secrets that a container's environment names, with the variable; without one
/// where a whole Secret is taken.
fn secrets_of(container: &Value) -> impl Iterator<Item = (Option<&str>, &str)> {
    let variables = items(container, "env").filter_map(|variable| {
        let reference = variable.pointer("/valueFrom/secretKeyRef")?;
        Some((Some(text(variable, "name")), text(reference, "name")))
    });
    let whole = items(container, "envFrom").filter_map(|from| from.get("secretRef"));
    variables.chain(whole.map(|reference| (None, text(reference, "name"))))
}

/// Refuses Secrets that an account does not list.
fn check_secrets(account: &Value, spec: &Value) -> Result<(), String> {
    let named = |list: &str| -> BTreeSet<String> {
        let names = items(account, list).map(|reference| text(reference, "name").to_owned());
        names.collect()
    };
    let owner = text_at(account, "/metadata/name");
    let secrets = named("secrets");
    for volume in items(spec, "volumes").filter_map(|volume| volume.get("secret")) {
        let name = text(volume, "secretName");
        if !secrets.contains(name) {
            return Err(format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    for (list, called) in [
        ("initContainers", "init container"),
        ("containers", "container"),
    ] {
        for container in items(spec, list) {
            for (variable, name) in secrets_of(container) {
                if secrets.contains(name) {
                    continue;
                }
                let place = match variable {
                    Some(variable) => format!("envVar {variable}"),
                    None => "envFrom".to_owned(),
                };
                let container = text(container, "name");
                return Err(format!(
                    "{called} {container} with {place} referencing secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
                ));
            }
        }
    }
    let pulled = named("imagePullSecrets");
    for (index, reference) in items(spec, "imagePullSecrets").enumerate() {
        let name = text(reference, "name");
        if !pulled.contains(name) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{name}\" is not allowed because service account {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Mounts the token where nothing is mounted in its place.
fn mount_token(server: &Shared, spec: &mut Value) {
    let there = items(spec, "volumes")
        .map(|volume| text(volume, "name").to_owned())
        .find(|name| name.starts_with(VOLUME));
    let has_volume = there.is_some();
    let name = there.unwrap_or_else(|| meta::generate(VOLUME, server));
    let mut mounted = false;
    for list in CONTAINERS {
        for container in items_mut(spec, list) {
            let taken = items(container, "volumeMounts")
                .any(|mount| text(mount, "mountPath") == MOUNT_PATH);
            if !taken {
                let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
                append(container, "volumeMounts", mount);
                mounted = true;
            }
        }
    }
    if mounted && !has_volume {
        append(spec, "volumes", volume(&name));
    }
}

/// A volume with the token, the certificates to trust, and the namespace.
fn volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}

/// Adds an item to the list in `field`.
fn append(value: &mut Value, field: &str, item: Value) {
    let mut list: Vec<Value> = items(value, field).cloned().collect();
    list.push(item);
    set(value, field, list);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_enforces_it_limits_secrets() {
        let account = json!({
            "metadata": {"name": "a"},
            "secrets": [{"name": "s"}],
            "imagePullSecrets": [{"name": "p"}],
        });
        let check = |spec: Value, expected: &str| {
            let why = check_secrets(&account, &spec).err().unwrap_or_default();
            assert_eq!(why, expected, "{spec}");
        };
        let variable =
            |name: &str| json!({"name": "E", "valueFrom": {"secretKeyRef": {"name": name}}});
        check(json!({}), "");
        check(
            json!({
                "volumes": [{"secret": {"secretName": "s"}}, {"emptyDir": {}}],
                "containers": [{"name": "c", "env": [variable("s"), {"name": "F"}]}],
                "imagePullSecrets": [{"name": "p"}],
            }),
            "",
        );
        check(
            json!({"volumes": [{"secret": {"secretName": "t"}}]}),
            "volume with secret.secretName=\"t\" is not allowed because service account a does not reference that secret",
        );
        check(
            json!({"initContainers": [{"name": "c", "env": [variable("t")]}]}),
            "init container c with envVar E referencing secret.secretName=\"t\" is not allowed because service account a does not reference that secret",
        );
        check(
            json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "t"}}]}]}),
            "container c with envFrom referencing secret.secretName=\"t\" is not allowed because service account a does not reference that secret",
        );
        check(
            json!({"imagePullSecrets": [{"name": "p"}, {"name": "s"}]}),
            "imagePullSecrets[1].name=\"s\" is not allowed because service account a does not reference that imagePullSecret",
        );
    }

    #[test]
    fn a_mirror_pod_has_nothing_of_the_cluster() {
        let check = |spec: Value, expected: &str| {
            let pod = json!({"spec": spec});
            let why = check_mirror(&pod).err().unwrap_or_default();
            assert_eq!(why, expected, "{pod}");
        };
        check(json!({"containers": [{"name": "c"}]}), "");
        check(
            json!({"serviceAccountName": "a"}),
            "a mirror pod may not reference service accounts",
        );
        check(
            json!({"volumes": [{"secret": {"secretName": "s"}}]}),
            "a mirror pod may not reference secrets",
        );
        check(
            json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]}),
            "a mirror pod may not use ServiceAccountToken volume projections",
        );
    }
}
