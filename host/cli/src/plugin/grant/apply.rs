//! Puts a grant into a cluster, and takes out what an earlier one has left.

use anyhow::{Context as _, anyhow, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use reeve_cluster::{Apply, Cluster, Preconditions, ReadError, ResolveError, Resource};
use reeve_core::grant::{ACCOUNT_ANNOTATION, GRANT_LABEL, GRANT_NAMESPACE_LABEL, Grantee};
use reeve_core::ownership::plugin_label;
use reeve_core::{GroupVersionKind, ObjectReference};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Field manager of what is granted.
const MANAGER: &str = "reeve-grant";

/// Kinds of which a grant consists, but for the ServiceAccount, which is not taken
/// away: bindings before what they bind, so that nothing is half undone.
const KINDS: [(&str, &str, &str); 6] = [
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
    ),
];

/// Applies the objects of a grant; returns what was done, a line for each object.
///
/// The policy goes first, so that no right exists without what narrows it. Old
/// objects go last, and only when nothing is `kept`: then a version runs that asks for
/// something else, and what it was granted stays beside this.
pub(super) async fn apply(
    client: &kube::Client,
    cluster: &Cluster,
    grantee: &Grantee<'_>,
    objects: &[Value],
    kept: bool,
) -> anyhow::Result<Vec<String>> {
    let (policies, others): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(|object| {
        object["apiVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with("admissionregistration"))
    });
    let mut done = Vec::new();
    let mut asked_for = BTreeSet::new();
    for object in policies.into_iter().chain(others) {
        let (resource, reference) = reference(cluster, object).await?;
        let namespace = reference.namespace.as_deref();
        // Who is bound is for people's sake alone: who may not see it grants all the same.
        let before = match kept || object.get("subjects").is_some() {
            true => cluster.get(&resource, namespace, &reference.name).await,
            false => Ok(None),
        };
        let mut object = object.clone();
        if kept {
            let before = before.as_ref().map_err(|error| {
                anyhow!("cannot see what {reference} grants to the version that runs: {error}")
            })?;
            if let Some(before) = before {
                keep(&before.value(), &mut object);
            }
        }
        let object = &object;
        cluster
            .apply(Apply {
                resource: &resource,
                namespace,
                name: &reference.name,
                body: object.into(),
                onto: Preconditions::default(),
                manager: MANAGER,
                force: true,
                strict: true,
                dry_run: false,
                identity: None,
            })
            .await
            .with_context(|| format!("cannot apply {reference}"))?;
        let lost = match before {
            Ok(before) => unbound(before.map(|before| before.value()).as_ref(), object),
            Err(_) => "; whom it bound before could not be seen".to_owned(),
        };
        done.push(format!("applied: {reference}{lost}"));
        asked_for.insert(reference);
    }
    for (group, version, kind) in KINDS {
        let kind = GroupVersionKind::new(group, version, kind);
        let resource = match cluster.resolve(&kind).await {
            // None of a kind that is not served was ever made.
            Err(ResolveError::NotServed { .. }) => continue,
            resolved => resolved?,
        };
        for old in left_over(client, &resource, grantee, &asked_for).await? {
            if kept {
                done.push(format!("kept: {old}, for the version that runs"));
                continue;
            }
            let api = api(client, &resource, old.namespace.as_deref());
            match api.delete(&old.name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted.with_context(|| format!("cannot delete {old}"))?),
            }
            done.push(format!("deleted: {old}, which is no longer asked for"));
        }
    }
    if !kept {
        done.extend(take_back_accounts(client, grantee).await?);
    }
    Ok(done)
}

/// How a line begins about what could not be changed.
pub(super) const LEFT: &str = "left: ";

/// Takes back that accounts are the plugin's which an earlier grant has made so, under another
/// name. The accounts stay: others may use them. Who may not list them leaves them as they are.
async fn take_back_accounts(
    client: &kube::Client,
    grantee: &Grantee<'_>,
) -> anyhow::Result<Vec<String>> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), grantee.namespace);
    let listed = match accounts.list_metadata(&ListParams::default()).await {
        Ok(listed) => listed.items,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            return Ok(vec![format!(
                "unseen: ServiceAccounts of namespace {}, which you may not list: one that was the \
                 plugin's before still is",
                grantee.namespace
            )]);
        }
        Err(error) => return Err(error).context("cannot list ServiceAccounts"),
    };
    let mut done = Vec::new();
    for account in listed {
        let name = account.name_any();
        let managers = account.metadata.managed_fields.iter().flatten();
        let ours = managers.filter_map(|entry| entry.manager.as_deref());
        let is_plugins = account
            .annotations()
            .get(ACCOUNT_ANNOTATION)
            .map(String::as_str)
            == Some(grantee.plugin);
        if !is_plugins || name == grantee.service_account || !ours.into_iter().any(|m| m == MANAGER)
        {
            continue;
        }
        let nothing = json!({"metadata": {
            "resourceVersion": account.metadata.resource_version,
            "annotations": {ACCOUNT_ANNOTATION: null},
        }});
        let patch = Patch::Merge(&nothing);
        let place = format!("ServiceAccount {}/{name}", grantee.namespace);
        let params = PatchParams::default();
        let changed = accounts.patch_metadata(&name, &params, &patch);
        // What was granted is said whatever comes of it.
        done.push(match changed.await {
            Ok(_) => format!(
                "changed: {place}, which is no longer for plugin {}",
                grantee.plugin
            ),
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => format!(
                "{LEFT}{place} still is for plugin {}, and cannot be changed: {error}; take its \
                 annotation {ACCOUNT_ANNOTATION} away",
                grantee.plugin
            ),
        });
    }
    Ok(done)
}

/// The lists of which each entry of what is granted stands for itself. The checks of a policy
/// do not: all of them must pass, so that those of one version would be in the way of another.
/// What a policy allows, it allows to both.
const LISTS: [&str; 2] = ["/rules", "/spec/matchConstraints/resourceRules"];

/// Adds what an object granted, or looked at, before to what it is to from now on.
fn keep(before: &Value, object: &mut Value) {
    for list in LISTS {
        let entries = before.pointer(list).and_then(Value::as_array);
        let new = object.pointer_mut(list).and_then(Value::as_array_mut);
        if let (Some(entries), Some(new)) = (entries, new) {
            for entry in entries {
                if !new.iter().any(|new| covers(new, entry)) {
                    new.push(entry.clone());
                }
            }
        }
    }
}

/// Whether an entry is another one, to which the API server may have added defaults.
fn covers(new: &Value, before: &Value) -> bool {
    match (new, before) {
        (Value::Object(new), Value::Object(before)) => new
            .iter()
            .all(|(key, value)| before.get(key).is_some_and(|before| covers(value, before))),
        _ => new == before,
    }
}

/// Whom a binding bound before it was applied, and does not bind now, in words. The
/// subjects of a binding are one list, so that what is applied takes the place of all.
fn unbound(before: Option<&Value>, applied: &Value) -> String {
    let subjects = |binding: &Value| -> Vec<Value> {
        let subjects = binding["subjects"].as_array();
        subjects.cloned().unwrap_or_default()
    };
    let text = |subject: &Value, field: &str| subject[field].as_str().map(str::to_owned);
    let key = |subject: &Value| ["kind", "namespace", "name"].map(|field| text(subject, field));
    let bound: BTreeSet<_> = subjects(applied).iter().map(key).collect();
    let lost = before.map(subjects).unwrap_or_default();
    let lost = lost.iter().map(key).filter(|key| !bound.contains(key));
    let names = lost.map(|key| {
        let [kind, namespace, name] = key.map(Option::unwrap_or_default);
        match namespace.as_str() {
            "" => format!("{kind} {name}"),
            _ => format!("{kind} {namespace}/{name}"),
        }
    });
    let names: Vec<String> = names.collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(", which no longer binds {}", names.join(", ")),
    }
}

/// An account that is another plugin's is not taken. Who only prints a grant need not be
/// allowed to see it: then the caution is returned that belongs to it.
pub(super) async fn check_account(
    cluster: &Cluster,
    grantee: &Grantee<'_>,
    must_see: bool,
) -> anyhow::Result<Option<String>> {
    let kind = GroupVersionKind::new("", "v1", "ServiceAccount");
    let resource = cluster.resolve(&kind).await?;
    let (namespace, name) = (grantee.namespace, grantee.service_account);
    let found = match cluster.get(&resource, Some(namespace), name).await {
        Err(ReadError::Forbidden { .. }) if !must_see => {
            return Ok(Some(format!(
                "you may not see ServiceAccount {namespace}/{name}: look whether its annotation \
                 {ACCOUNT_ANNOTATION} names another plugin before this is applied, which would \
                 take it from that"
            )));
        }
        found => found?,
    };
    let other = found.and_then(|account| {
        let other = account.annotation(ACCOUNT_ANNOTATION);
        other.filter(|other| other != grantee.plugin)
    });
    if let Some(other) = other {
        bail!(
            "ServiceAccount {namespace}/{name} is for plugin {other}; name another with --service-account"
        );
    }
    Ok(None)
}

async fn reference(
    cluster: &Cluster,
    object: &Value,
) -> anyhow::Result<(Resource, ObjectReference)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    let version = text("/apiVersion").unwrap_or_default();
    let kind = GroupVersionKind::from_fields(version, text("/kind").unwrap_or_default())
        .with_context(|| format!("{version} is no API version"))?;
    let resource = match cluster.resolve(&kind).await {
        Err(error @ ResolveError::NotServed { .. }) if kind.group.starts_with("admission") => {
            return Err(error).context(
                "the cluster has no ValidatingAdmissionPolicy, which Kubernetes 1.30 brings; --without-policy leaves it out, and the agent's own check is then the only narrower layer",
            );
        }
        resolved => resolved?,
    };
    let reference = resource.reference(text("/metadata/namespace"), name);
    Ok((resource, reference))
}

/// What an earlier grant to this plugin made, and this one does not ask for.
async fn left_over(
    client: &kube::Client,
    resource: &Resource,
    grantee: &Grantee<'_>,
    kept: &BTreeSet<ObjectReference>,
) -> anyhow::Result<Vec<ObjectReference>> {
    let labels = format!(
        "{GRANT_LABEL}={},{GRANT_NAMESPACE_LABEL}={}",
        plugin_label(grantee.plugin),
        grantee.namespace
    );
    let listed = api(client, resource, None)
        .list(&ListParams::default().labels(&labels))
        .await
        .with_context(|| format!("cannot list {resource} that were granted before"))?;
    let references = listed.items.into_iter().map(|object| {
        let name = object.metadata.name.unwrap_or_default();
        resource.reference(object.metadata.namespace.as_deref(), &name)
    });
    Ok(references
        .filter(|old| grantee.may_own(&old.name) && !kept.contains(old))
        .collect())
}

fn api(client: &kube::Client, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
    let kind = kube::core::GroupVersionKind::gvk(
        &resource.kind.group,
        &resource.kind.version,
        &resource.kind.kind,
    );
    let api_resource = ApiResource::from_gvk_with_plural(&kind, &resource.plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &api_resource),
        None => Api::all_with(client.clone(), &api_resource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_running_version_has_is_kept_once() {
        let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["patch"]});
        let mut role = json!({"rules": [rule("services")]});
        let before = json!({"rules": [rule("configmaps"), rule("services")]});
        keep(&before, &mut role);
        assert_eq!(
            role,
            json!({"rules": [rule("services"), rule("configmaps")]})
        );

        // The API server has added what nobody wrote.
        let check = |text: &str| json!({"expression": text, "reason": "Forbidden"});
        let policy = |rules: Value, checks: Value| {
            json!({"spec": {
                "matchConstraints": {"resourceRules": rules}, "validations": checks,
            }})
        };
        let mut new = policy(json!([rule("services")]), json!([check("a"), check("b")]));
        let mut defaulted = rule("services");
        defaulted["scope"] = json!("*");
        keep(
            &policy(json!([defaulted, rule("configmaps")]), json!([check("c")])),
            &mut new,
        );
        let rules = json!([rule("services"), rule("configmaps")]);
        let checks = json!([check("a"), check("b")]);
        assert_eq!(new, policy(rules, checks));

        let mut binding = json!({"subjects": []});
        keep(&json!({"subjects": [1]}), &mut binding);
        assert_eq!(binding, json!({"subjects": []}));
    }

    #[test]
    fn whoever_loses_a_binding_is_named() {
        let account = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
        let user = json!({"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"});
        let binding = |subjects: &[Value]| json!({"subjects": subjects});
        let ours = binding(&[account("a", "quotas")]);
        for (before, expected) in [
            (None, ""),
            (Some(json!({})), ""),
            (Some(ours.clone()), ""),
            (
                Some(binding(&[
                    account("b", "quotas"),
                    account("a", "quotas"),
                    user,
                ])),
                ", which no longer binds ServiceAccount b/quotas, User eve",
            ),
        ] {
            assert_eq!(unbound(before.as_ref(), &ours), expected, "{before:?}");
        }
    }
}
