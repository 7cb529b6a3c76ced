//! Hand edits and deletions, of each kind that plugins own.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::{Ahead, Clocks, eventually};
use serde_json::{Value, json};

use crate::databases;
use crate::expected::{
    APPLICATIONS, AUTHORIZATION_POLICIES, CLAIMS, CONFIG_MAPS, DESTINATION_RULES, KINDS,
    LIMIT_RANGES, NETWORK_POLICIES, POD_DEFAULTS, QUOTAS, ROLE_BINDINGS, ROLES, SECRETS,
    SERVICE_ENTRIES, VIRTUAL_SERVICES, VOLUMES,
};
use crate::stage::{Stage, text};
use reeve_test_platform::buckets::{PROTECTED_B, UNCLASSIFIED};
use reeve_test_platform::values::ARGOCD;
use reeve_test_platform::{Tenant, World};

/// A Profile that has something of every kind.
pub(crate) const WHOLE: &str = "team-16";

/// One of each kind of what it has, and what somebody does to it: kind, namespace, name and
/// a patch.
fn edits() -> Vec<(&'static str, &'static str, String, Value)> {
    let here = |kind, name: &str, patch| (kind, WHOLE, name.to_owned(), patch);
    let volume = format!("{WHOLE}-standard");
    vec![
        here(QUOTAS, "quotas", json!({"spec": {"hard": {"pods": "1"}}})),
        here(
            LIMIT_RANGES,
            "default-container-limits",
            json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
        ),
        here(
            NETWORK_POLICIES,
            "vault-egress",
            json!({"spec": {"egress": [{}]}}),
        ),
        here(ROLES, "profile", json!({"rules": []})),
        here(ROLE_BINDINGS, "profile-support", json!({"subjects": []})),
        here(
            POD_DEFAULTS,
            "protected-b",
            json!({"spec": {"desc": "theirs"}}),
        ),
        here(
            AUTHORIZATION_POLICIES,
            "lab-protected-b-block",
            json!({"spec": {"action": "ALLOW"}}),
        ),
        (
            VOLUMES,
            "",
            volume,
            json!({"spec": {"mountOptions": ["-o ro"]}}),
        ),
        here(
            CLAIMS,
            "unclassified-ro",
            json!({"metadata": {"labels": {"blob.aaw.statcan.gc.ca/automount": "false"}}}),
        ),
        here(
            CONFIG_MAPS,
            "gitea-banner-unclassified",
            json!({"data": {"body_inner_pre.tmpl": "theirs"}}),
        ),
        here(
            VIRTUAL_SERVICES,
            "gitea-virtualservice-unclassified",
            json!({"spec": {"hosts": ["example.com"]}}),
        ),
        here(
            SERVICE_ENTRIES,
            "cloud-main-hosts",
            json!({"spec": {"hosts": ["example.com"]}}),
        ),
        here(
            DESTINATION_RULES,
            "direct-through-cloud-main-egress-gateway",
            json!({"spec": {"host": "example.com"}}),
        ),
        (
            APPLICATIONS,
            ARGOCD,
            format!("gitea-{WHOLE}-protected-b"),
            json!({"spec": {"project": "theirs"}}),
        ),
    ]
}

pub(crate) fn all_is_put_back(stage: &Stage, tenants: &[Tenant], world: &World) -> Result<()> {
    let edits = edits();
    let mut kinds: BTreeSet<&str> = edits.iter().map(|(kind, ..)| *kind).collect();
    // Logins are seen to in another way.
    kinds.insert(SECRETS);
    ensure!(kinds == BTreeSet::from(KINDS), "{kinds:?}");
    let tenant = tenants.iter().find(|tenant| tenant.name == WHOLE);
    let tenant = tenant.context("no such Profile")?;
    let logins = databases::logins(stage, tenant)?;

    for (kind, namespace, name, patch) in &edits {
        stage.patch((kind, namespace, name), patch)?;
    }
    stage.wait_until_as_specified(tenants, world)?;

    let before: Vec<String> = edits
        .iter()
        .map(|(kind, namespace, name, _)| uid(stage, (kind, namespace, name)))
        .collect::<Result<_>>()?;
    for (kind, namespace, name, _) in &edits {
        // A volume that is claimed stays for as long as its claim does.
        stage.delete((kind, namespace, name))?;
    }
    for ((kind, namespace, name, _), before) in edits.iter().zip(&before) {
        let made_anew = eventually(&format!("{kind} {name} is made anew"), || {
            let now = uid(stage, (kind, namespace, name))?;
            ensure!(now != *before, "it is the one that was deleted");
            Ok(())
        });
        stage.explained(made_anew)?;
    }
    stage.wait_until_as_specified(tenants, world)?;
    // Neither an edit of an Application nor its end is a reason for another password.
    ensure!(
        databases::logins(stage, tenant)? == logins,
        "a login is another"
    );
    eprintln!("{} edits and as many deletions are made good", edits.len());
    logins_are_made_good(stage, tenant)
}

/// Whether a login is still there is looked at with its database: when a clock says that ten
/// minutes have passed, and there is something else to run for. Of the two, somebody spoils
/// one and deletes the other.
fn logins_are_made_good(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let Some(clocks) = Clocks::possible() else {
        return Ok(());
    };
    let before = databases::logins(stage, tenant)?;
    let [spoilt, deleted] = [UNCLASSIFIED, PROTECTED_B];
    let theirs = json!({"data": {"database": STANDARD.encode("theirs")}});
    let secret = |class: &str| format!("gitea-postgresql-secret-{class}");
    stage.patch((SECRETS, WHOLE, &secret(spoilt)), &theirs)?;
    stage.delete((SECRETS, WHOLE, &secret(deleted)))?;
    let later = Ahead {
        wall: 11 * 60,
        boot: 0,
    };
    stage.agent()?.set_clocks(clocks, later)?;
    for class in [spoilt, deleted] {
        let banner = format!("gitea-banner-{class}");
        stage.patch((CONFIG_MAPS, WHOLE, &banner), &json!({"data": null}))?;
    }
    let made = eventually("new logins open the databases", || {
        let now = databases::logins(stage, tenant)?;
        for (login, before) in now.iter().zip(&before) {
            ensure!(login.password != before.password, "it is the one before");
            login.opens(stage)?;
            ensure!(before.opens(stage).is_err(), "the one before opens, too");
        }
        Ok(())
    });
    stage.explained(made)?;
    stage.agent()?.set_clocks(clocks, Ahead::default())
}

fn uid(stage: &Stage, (kind, namespace, name): (&str, &str, &str)) -> Result<String> {
    let found = stage.platform.cluster.get(kind, namespace, name)?;
    let found = found.with_context(|| format!("there is no {kind} {namespace}/{name}"))?;
    Ok(text(&found["metadata"]["uid"]))
}
