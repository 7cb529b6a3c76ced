//! What the controllers have made goes over to the plugins as it is.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{ADMIN, Azurite, eventually};
use reeve_test_platform::buckets::{
    MISNAMED, PROTECTED_B, UNCLASSIFIED, of_config_map, of_gateways,
};
use reeve_test_platform::tenants::every_gate;
use reeve_test_platform::{Preset, Tenant, World};
use serde_json::{Value, json};

use crate::expected::{self, APPLICATIONS, CLAIMS, KINDS, SECRETS, Wanted};
use crate::preset_main::store_buckets;
use crate::stage::{Stage, text};
use crate::{databases, databases_open, definitions, storage, what_is_wrong_is_told};

/// The field manager of the controllers.
const CONTROLLERS: &str = "profiles-controller";

/// The field manager of the one that blocks up- and download of notebooks.
const NOTEBOOKS: &str = "prob-notebook-controller";

/// The password that a controller had generated, in the way of its library: 32 bytes in the
/// URL-safe alphabet of base64, with what fills it up.
const FORMER: &str = "d2hhdC1hLWNvbnRyb2xsZXItaGFkLWdlbmVyYXRlZC0=";

/// By which it is told whether objects are still the same: by kind, namespace and name.
type Uids = BTreeMap<(&'static str, String, String), String>;

#[test]
fn what_the_controllers_have_made_is_taken_over() -> Result<()> {
    taken_over(Preset::Readme)
}

/// What that preset deletes of others is nothing of theirs.
#[test]
fn it_is_taken_over_by_the_preset_of_their_code() -> Result<()> {
    taken_over(Preset::Main)
}

fn taken_over(preset: Preset) -> Result<()> {
    let Some(definitions) = definitions() else {
        return Ok(());
    };
    let mut stage = Stage::new(&definitions)?;
    let tenants = every_gate();
    // The one that cannot be used says so, which is tried elsewhere.
    let mut buckets = match preset {
        Preset::Readme => of_gateways(&tenants),
        Preset::Main => of_config_map(&tenants),
    };
    buckets.retain(|bucket| bucket.container != MISNAMED.0);
    let (_registry, artifacts) = stage.platform.push_components()?;
    let world = World {
        preset,
        buckets,
        ports: stage.platform.ports(),
        groups: &["support"],
        editors: Vec::new(),
        plugin: json!({"adoption": "IfUnowned", "adoptFrom": [CONTROLLERS, NOTEBOOKS]}),
        artifacts,
    };
    if preset == Preset::Main {
        store_buckets(&stage, &world)?;
    }
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
        // A login says the same as before, and who wrote it has still written it.
        for kind in KINDS.into_iter().filter(|kind| *kind != SECRETS) {
            for (key, object) in stage.objects_of_plugins(kind)? {
                let managers = object["metadata"]["managedFields"].as_array();
                let mut managers = managers.into_iter().flatten();
                let theirs = managers
                    .any(|entry| entry["manager"] == CONTROLLERS || entry["manager"] == NOTEBOOKS);
                ensure!(!theirs, "of {kind} {key:?}");
                let owners = object["metadata"]["ownerReferences"].as_array();
                let mut owners = owners.into_iter().flatten();
                let other = owners.find(|owner| owner["kind"] != "Profile");
                ensure!(other.is_none(), "{other:?} owns {kind} {key:?}");
            }
        }
        Ok(())
    }))?;
    databases_open(&stage, &tenants)?;
    what_was_in_databases_is_there(&stage, &tenants)?;
    // Without an endpoint nobody looks at them.
    let owner = |tenant: &Tenant| match preset {
        Preset::Readme => tenant.name.clone(),
        Preset::Main => String::new(),
    };
    for account in [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT] {
        let expected = tenants
            .iter()
            .map(|tenant| (tenant.container(), owner(tenant)));
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
    let (mut objects, mut blocks) = (Vec::new(), Vec::new());
    let mut keys = Vec::new();
    for tenant in tenants {
        let profile = stage
            .platform
            .cluster
            .get("profiles.kubeflow.org", "", &tenant.name)?;
        let uid = &profile.context("no Profile")?["metadata"]["uid"];
        for wanted in expected::of(tenant, world) {
            let object = written(stage, &wanted, tenant, uid)?;
            match wanted.name.strip_suffix(BLOCK) {
                Some(_) => blocks.push(object),
                None => objects.push(object),
            }
            keys.push((wanted.kind, wanted.namespace, wanted.name));
        }
        for account in [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT] {
            storage::make(stage, account, &tenant.container())?;
        }
        if tenant.has_gitea() {
            make_databases(stage, tenant)?;
        }
    }
    for (manager, objects) in [(CONTROLLERS, objects), (NOTEBOOKS, blocks)] {
        ensure!(!objects.is_empty(), "{manager} has made nothing");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let manager = format!("--field-manager={manager}");
        let create = ["create", "-f", "-", &manager];
        stage.platform.cluster.kubectl_with(ADMIN, &create, &list)?;
    }
    // Workloads use them.
    eventually("all claims are bound", || {
        for claim in stage.platform.cluster.list(CLAIMS, "")? {
            ensure!(claim["status"]["phase"] == "Bound", "{claim}");
        }
        Ok(())
    })?;
    uids(stage, keys.iter())
}

/// An object as the controllers wrote it: by an update and without a label of ours. What
/// blocks a Notebook belongs to that, two kinds to nobody, and all else to the Profile.
fn written(stage: &Stage, wanted: &Wanted, tenant: &Tenant, uid: &Value) -> Result<Value> {
    let mut object = wanted.whole();
    let (api_version, kind) = expected::type_of(wanted.kind).context("an unknown kind")?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"]["name"] = json!(wanted.name);
    if !wanted.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(wanted.namespace);
    }
    if wanted.kind == SECRETS {
        object["stringData"] = json!({"database": login(stage, wanted, tenant)?});
    }
    let owner = match wanted.name.strip_suffix(BLOCK) {
        Some(notebook) => {
            let found =
                stage
                    .platform
                    .cluster
                    .get("notebooks.kubeflow.org", &tenant.name, notebook)?;
            let found = found.context("no Notebook")?;
            json!({"apiVersion": found["apiVersion"], "kind": "Notebook", "name": notebook,
                "uid": found["metadata"]["uid"]})
        }
        None if wanted.name == "namespace-owner-access-istio" => return Ok(object),
        None if wanted.kind == APPLICATIONS => return Ok(object),
        None => json!({"apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": tenant.name,
            "uid": uid}),
    };
    object["metadata"]["ownerReferences"] = json!([owner]);
    for field in ["controller", "blockOwnerDeletion"] {
        object["metadata"]["ownerReferences"][0][field] = json!(true);
    }
    Ok(object)
}

/// How the name of what blocks a Notebook ends.
const BLOCK: &str = "-protected-b-block";

/// What a Gitea reads.
fn login(stage: &Stage, wanted: &Wanted, tenant: &Tenant) -> Result<String> {
    let classes = [UNCLASSIFIED, PROTECTED_B];
    let server = classes
        .iter()
        .position(|class| wanted.name.ends_with(class));
    let port = stage.platform.ports()[server.context("of no class")?];
    let name = tenant.database();
    Ok(format!(
        "DB_TYPE=postgres\nSSL_MODE=require\nNAME={name}\nHOST=localhost:{port}\nUSER={name}\nPASSWD={FORMER}\n"
    ))
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
            ensure!(
                login.password == FORMER,
                "a Gitea has to be told another password"
            );
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
