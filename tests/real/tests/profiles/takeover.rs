//! What the controllers have made goes over to the plugins as it is.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{ADMIN, Azurite, eventually};
use reeve_test_platform::buckets::{MISNAMED, of_gateways};
use reeve_test_platform::tenants::every_gate;
use reeve_test_platform::{Preset, Tenant, World};
use serde_json::{Value, json};

use crate::expected::{self, CLAIMS, KINDS, SECRETS, Wanted};
use crate::stage::{Stage, text};
use crate::{databases, databases_open, definitions, storage, what_is_wrong_is_told};

/// The field manager of the controllers.
const CONTROLLERS: &str = "profiles-controller";

/// The password that a controller had generated.
const FORMER: &str = "what-a-controller-had-generated";

/// By which it is told whether objects are still the same: by kind, namespace and name.
type Uids = BTreeMap<(&'static str, String, String), String>;

#[test]
fn what_the_controllers_have_made_is_taken_over() -> Result<()> {
    let Some(definitions) = definitions() else {
        return Ok(());
    };
    let mut stage = Stage::new(&definitions)?;
    let tenants = every_gate();
    // The one that cannot be used says so, which is tried elsewhere.
    let mut buckets = of_gateways(&tenants);
    buckets.retain(|bucket| bucket.container != MISNAMED.0);
    let (_registry, artifacts) = stage.platform.push_components()?;
    let world = World {
        preset: Preset::Readme,
        buckets,
        ports: stage.platform.ports(),
        groups: &["support"],
        editors: Vec::new(),
        plugin: json!({"adoption": "IfUnowned", "adoptFrom": [CONTROLLERS]}),
        artifacts,
    };
    stage.platform.add(&tenants)?;
    let made = the_controllers_have_been_here(&stage, &tenants, &world)?;
    eprintln!(
        "{} objects of {} Profiles are theirs",
        made.len(),
        tenants.len()
    );

    stage.install(&world)?;
    stage.wait_until_as_specified(&tenants, &world)?;
    stage.play_argocd()?;
    what_is_wrong_is_told(&stage, &tenants, 0)?;
    let now = uids(&stage, made.keys())?;
    ensure!(now == made, "something is not the one that it was");
    stage.explained(eventually("nothing is theirs any more", || {
        for kind in KINDS {
            for (key, object) in stage.objects_of_plugins(kind)? {
                let managers = object["metadata"]["managedFields"].as_array();
                let mut managers = managers.into_iter().flatten();
                let theirs = managers.any(|entry| entry["manager"] == CONTROLLERS);
                ensure!(!theirs, "of {kind} {key:?}");
            }
        }
        Ok(())
    }))?;
    databases_open(&stage, &tenants)?;
    what_was_in_databases_is_there(&stage, &tenants)?;
    for account in [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT] {
        let expected = tenants
            .iter()
            .map(|tenant| (tenant.container(), tenant.name.clone()));
        let found = storage::containers(&stage, account)?;
        ensure!(found == expected.collect(), "{account}: {found:?}");
    }
    nothing_was_deleted_or_restarted(&stage)
}

/// All that a Profile should have, and what belongs to it outside of the cluster. Returns
/// what tells whether the objects stay the same.
fn the_controllers_have_been_here(
    stage: &Stage,
    tenants: &[Tenant],
    world: &World,
) -> Result<Uids> {
    let mut objects = Vec::new();
    let mut keys = Vec::new();
    for tenant in tenants {
        let profile = stage
            .platform
            .cluster
            .get("profiles.kubeflow.org", "", &tenant.name)?;
        let uid = &profile.context("no Profile")?["metadata"]["uid"];
        // Their Secrets are deleted, as the documentation says: as if there had been none.
        let wanted = expected::of(tenant, world);
        for wanted in wanted.into_iter().filter(|wanted| wanted.kind != SECRETS) {
            objects.push(written(&wanted, tenant, uid)?);
            keys.push((wanted.kind, wanted.namespace, wanted.name));
        }
        for account in [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT] {
            storage::make(stage, account, &tenant.container())?;
        }
        if tenant.has_gitea() {
            make_databases(stage, tenant)?;
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let manager = format!("--field-manager={CONTROLLERS}");
    let create = ["create", "-f", "-", &manager];
    stage.platform.cluster.kubectl_with(ADMIN, &create, &list)?;
    // Workloads use them.
    eventually("all claims are bound", || {
        for claim in stage.platform.cluster.list(CLAIMS, "")? {
            ensure!(claim["status"]["phase"] == "Bound", "{claim}");
        }
        Ok(())
    })?;
    uids(stage, keys.iter())
}

/// An object as the controllers wrote it: by an update, with the Profile as its controller,
/// and without a label of ours.
fn written(wanted: &Wanted, tenant: &Tenant, uid: &Value) -> Result<Value> {
    let mut object = wanted.whole();
    let (api_version, kind) = expected::type_of(wanted.kind).context("an unknown kind")?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!(wanted.name);
    if !wanted.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(wanted.namespace);
    }
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": tenant.name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    Ok(object)
}

/// A role and its database with something in it, on both servers.
fn make_databases(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let name = tenant.database();
    for server in &stage.platform.databases {
        server.admin(&format!("CREATE ROLE {name} LOGIN PASSWORD '{FORMER}';"))?;
        server.admin(&format!("CREATE DATABASE {name} OWNER {name};"))?;
        server.as_user(
            &name,
            FORMER,
            &name,
            "CREATE TABLE kept AS SELECT 42 AS answer",
        )?;
    }
    Ok(())
}

fn what_was_in_databases_is_there(stage: &Stage, tenants: &[Tenant]) -> Result<()> {
    let mut count = 0;
    for tenant in tenants.iter().filter(|tenant| tenant.has_gitea()) {
        for login in databases::logins(stage, tenant)? {
            let said = login.asks(stage, "SELECT answer FROM kept")?;
            ensure!(said.trim() == "42", "{said}");
            count += 1;
        }
    }
    ensure!(count > 0, "nobody has a database");
    Ok(())
}

/// By anybody but who made the Profiles: what the API server has noted.
fn nothing_was_deleted_or_restarted(stage: &Stage) -> Result<()> {
    let mut writes = 0;
    for event in stage.platform.cluster.audit_log()? {
        let word = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let Some(plugin) = word("/impersonatedUser/username") else {
            continue;
        };
        writes += 1;
        let verb = word("/verb").unwrap_or_default();
        let resource = word("/objectRef/resource").unwrap_or_default();
        ensure!(
            !verb.starts_with("delete") && resource != "pods",
            "{plugin}: {verb} of {}",
            event["objectRef"]
        );
    }
    ensure!(writes > 0, "no plugin has written anything");
    Ok(())
}

fn uids<'a>(
    stage: &Stage,
    keys: impl Iterator<Item = &'a (&'static str, String, String)>,
) -> Result<Uids> {
    let mut uids = Uids::new();
    for key in keys {
        let (kind, namespace, name) = key;
        let found = stage.platform.cluster.get(kind, namespace, name)?;
        let found = found.with_context(|| format!("{kind} {namespace}/{name} is gone"))?;
        uids.insert(key.clone(), text(&found["metadata"]["uid"]));
    }
    Ok(uids)
}
