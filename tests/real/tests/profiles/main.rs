//! The plugins of Profiles as a platform has them: installed by their chart on a real API
//! server with the true kinds, with real databases, storage and gateways around it.
//!
//! What should be there is told by [`expected`], from the description of the controllers.

mod databases;
mod drift;
mod ending;
mod expected;
mod gateways;
mod outages;
mod preset_main;
mod stage;
mod storage;
mod takeover;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{Azurite, eventually};
use reeve_test_platform::buckets::of_gateways;
use reeve_test_platform::tenants::{SOURCE_CONTROL, hundred};
use reeve_test_platform::{Preset, Tenant, World};
use reeve_test_support::skipped;
use serde_json::{Value, json};

use stage::{Stage, Told, text};

#[test]
fn a_hundred_profiles_have_what_they_should() -> Result<()> {
    let Some(definitions) = definitions() else {
        return Ok(());
    };
    let mut stage = Stage::new(&definitions)?;
    let mut tenants = hundred();
    ensure!(tenants.len() == 100);
    let mut world = World {
        preset: Preset::Readme,
        buckets: of_gateways(&tenants),
        ports: stage.platform.ports(),
        groups: &["support-b", "support-a", "support-b"],
        editors: Vec::new(),
        plugin: json!({}),
        artifacts: Value::Null,
    };
    stage.install(&world)?;
    outages::each_part_is_away_while_they_come(&mut stage, &tenants, &world)?;
    let count = stage.wait_until_as_specified(&tenants, &world)?;
    eprintln!("{count} objects of {} Profiles are there", tenants.len());
    stage.play_argocd()?;
    what_is_wrong_is_told(&stage, &tenants, LOST_EVENTS)?;
    databases_open(&stage, &tenants)?;
    containers_are_there(&stage, &tenants)?;
    outages::a_restart_writes_nothing(&mut stage, &tenants)?;
    drift::all_is_put_back(&stage, &tenants, &world)?;
    who_opts_out_keeps_its_gitea(&stage, &mut tenants, &world)?;
    gateways::a_reader_loses_its_volume(&stage, &tenants, &mut world)?;
    gateways::nothing_changes_without_answers(&mut stage, &tenants, &mut world)?;
    gateways::an_empty_answer_is_not_believed(&stage, &tenants, &world)?;
    keys_are_rotated(&mut stage, &mut tenants, &world)?;
    ending::nothing_of_theirs_is_left(&stage, &tenants)
}

/// Where the true kinds are, if all that is needed is there. Says so, loudly, if not.
fn definitions() -> Option<PathBuf> {
    let absent = match reeve_test_platform::absent() {
        Ok(folder) => return Some(folder),
        Err(absent) => absent,
    };
    skipped(&format!(
        "the plugins of Profiles are not run on a real cluster: {absent}"
    ));
    None
}

/// Events that outages may have cost.
const LOST_EVENTS: usize = 2;

/// Each in the unit that it is about, and with an event on the Profile; of all others
/// there is nothing to say.
fn what_is_wrong_is_told(stage: &Stage, tenants: &[Tenant], lost_events: usize) -> Result<()> {
    let expected = tenants.iter().flat_map(|tenant| {
        let of = tenant.told.iter();
        of.map(|(plugin, condition, words)| (*plugin, tenant.name.as_str(), *condition, words))
    });
    let expected: Vec<_> = expected.collect();
    let waited = eventually("what is wrong is told, and nothing else", || {
        let told = stage.told()?;
        for (plugin, profile, condition, words) in &expected {
            let mut of = told.iter().filter(|one| one.is_of(plugin, profile));
            ensure!(
                of.any(|one| one.condition == *condition && one.words.contains(words.as_str())),
                "{plugin} of {profile} does not say `{words}` in {condition}: {told:?}"
            );
        }
        let is_expected = |one: &Told| {
            let mut of = expected.iter().filter(|two| one.is_of(two.0, two.1));
            // What is not ready is stalled besides, or tried again.
            let besides = ["Stalled", "Reconciling"].contains(&&*one.condition);
            of.any(|two| one.condition == two.2 || (two.2 == "Ready" && besides))
        };
        let more: Vec<_> = told.iter().filter(|one| !is_expected(one)).collect();
        ensure!(more.is_empty(), "{more:?}");
        let events = stage.platform.cluster.list("events", "")?;
        let mut silent = Vec::new();
        for (plugin, profile, condition, words) in &expected {
            if *condition == "Ready" {
                continue;
            }
            let mut of = events.iter().filter(|event| {
                let about = &event["involvedObject"];
                about["kind"] == "Profile" && about["name"] == *profile
            });
            if !of.any(|event| text(&event["message"]).contains(words.as_str())) {
                silent.push(format!("{plugin} on {profile}: `{words}`"));
            }
        }
        // An event goes with the agent that is killed before it is sent, or with the server
        // that is to keep it, and is not sent twice.
        ensure!(silent.len() <= lost_events, "no event says: {silent:?}");
        Ok(())
    });
    stage.explained(waited)
}

/// Whoever reads the Secret gets in, and whoever has none does not.
fn databases_open(stage: &Stage, tenants: &[Tenant]) -> Result<()> {
    let mut count = 0;
    for tenant in tenants.iter().filter(|tenant| tenant.has_gitea()) {
        for mut login in databases::logins(stage, tenant)? {
            login.opens(stage)?;
            count += 1;
            login.password = "a-guess".to_owned();
            ensure!(
                login.opens(stage).is_err(),
                "{} needs no password",
                tenant.name
            );
        }
    }
    for database in &stage.platform.databases {
        let names =
            database.admin("SELECT datname FROM pg_database WHERE datname LIKE 'gitea%'")?;
        let wanted = tenants.iter().filter(|tenant| tenant.has_gitea()).count();
        ensure!(names.lines().count() == wanted, "{names}");
    }
    eprintln!("{count} databases open");
    Ok(())
}

/// All of it but for the policy of the network, and its units say how to remove it.
fn who_opts_out_keeps_its_gitea(
    stage: &Stage,
    tenants: &mut [Tenant],
    world: &World,
) -> Result<()> {
    const PROFILE: &str = "team-08";
    let of = |tenant: &&mut Tenant| tenant.name == PROFILE;
    let tenant = tenants.iter_mut().find(of).context("no such Profile")?;
    ensure!(tenant.has_gitea());
    let logins = databases::logins(stage, tenant)?;
    *tenant = tenant.clone().label(SOURCE_CONTROL, "false");
    tenant.has_opted_out = true;
    let label = json!({"metadata": {"labels": {SOURCE_CONTROL: "false"}}});
    stage.patch(("profiles.kubeflow.org", "", PROFILE), &label)?;
    for plugin in ["gitea-unclassified", "gitea-protected-b"] {
        stage.explained(eventually(&format!("{plugin} says what it keeps"), || {
            let told = stage.told()?;
            let mut of = told.iter().filter(|one| one.is_of(plugin, PROFILE));
            let is_told = of.any(|one| one.condition == "KeptAfterOptOut");
            ensure!(is_told, "{told:?}");
            Ok(())
        }))?;
    }
    stage.wait_until_as_specified(tenants, world)?;
    logins.iter().try_for_each(|login| login.opens(stage))
}

/// Each Profile has its own in both accounts, and one that two would have is the first's.
fn containers_are_there(stage: &Stage, tenants: &[Tenant]) -> Result<()> {
    let wanted = tenants
        .iter()
        .filter(|tenant| !tenant.is_twin)
        .map(|tenant| (tenant.container(), tenant.name.clone()));
    let wanted: BTreeMap<String, String> = wanted.collect();
    for account in [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT] {
        let found = storage::containers(stage, account)?;
        ensure!(found == wanted, "{account}: {found:?}");
    }
    Ok(())
}

/// The same agent goes on with the new key.
fn keys_are_rotated(stage: &mut Stage, tenants: &mut Vec<Tenant>, world: &World) -> Result<()> {
    let late = Tenant::new("late");
    let before = stage.agent()?.process_id()?;
    stage.platform.rotate_key()?;
    stage.platform.add(std::slice::from_ref(&late))?;
    stage.explained(eventually("the old key is refused", || {
        let told = stage.told()?;
        let mut of_late = told.iter().filter(|one| one.is_of("blobcsi", &late.name));
        let refused = of_late.any(|one| one.words.contains("Azure answers 403"));
        ensure!(refused, "{told:?}");
        Ok(())
    }))?;
    stage.platform.store_keys()?;
    tenants.push(late);
    stage.wait_until_as_specified(tenants, world)?;
    containers_are_there(stage, tenants)?;
    ensure!(
        stage.agent()?.process_id()? == before,
        "the agent is another"
    );
    eprintln!("another key is used");
    Ok(())
}
