//! What gateways answer, and that they do not.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use serde_json::json;

use crate::drift::WHOLE;
use crate::expected::{CLAIMS, VOLUMES};
use crate::stage::Stage;
use reeve_test_platform::{Tenant, World};

type Uids = BTreeMap<(String, String), String>;

/// Two of a Profile go, and all others are the same.
pub(crate) fn a_reader_loses_its_volume(
    stage: &Stage,
    tenants: &[Tenant],
    world: &mut World,
) -> Result<()> {
    let mut kept = stage.uids_of_volumes()?;
    let bucket = &mut world.buckets[0];
    let before = bucket.readers.len();
    bucket.readers.retain(|reader| reader != WHOLE);
    ensure!(bucket.readers.len() == before - 1);
    stage.platform.describe(world)?;
    for kind in [VOLUMES, CLAIMS] {
        stage.wait_for_kind(kind, tenants, world)?;
    }
    for gone in [
        (String::new(), format!("{WHOLE}-fdi-unclassified-reports")),
        (WHOLE.to_owned(), "fdi-reports-unclassified".to_owned()),
    ] {
        kept.remove(&gone).context("it was not there")?;
    }
    are_the_same(stage, &kept)
}

/// Neither while they are away, nor for an agent that has never had an answer of them. What
/// has changed meanwhile counts when they are back.
pub(crate) fn nothing_changes_without_answers(
    stage: &mut Stage,
    tenants: &[Tenant],
    world: &mut World,
) -> Result<()> {
    let before = stage.uids_of_volumes()?;
    for gateway in &mut stage.platform.gateways {
        gateway.stop();
    }
    stage.wait_for_condition("blobcsi", "SourcesStale", "SourceFailing")?;
    are_the_same(stage, &before)?;
    stage.kill_agent()?;
    wait_until_told(stage, "SourcesUsable")?;
    are_the_same(stage, &before)?;
    eprintln!("{} volumes and claims stay without answers", before.len());

    world.buckets[0].readers.push(WHOLE.to_owned());
    stage.platform.describe(world)?;
    for gateway in &mut stage.platform.gateways {
        gateway.resume()?;
    }
    for kind in [VOLUMES, CLAIMS] {
        stage.wait_for_kind(kind, tenants, world)?;
    }
    wait_until_not_told(stage, "SourcesUsable")?;
    let mut after = stage.uids_of_volumes()?;
    after.retain(|key, _| before.contains_key(key));
    ensure!(after == before, "some are others");
    Ok(())
}

/// One that has lost everything looks just like one that means it.
pub(crate) fn an_empty_answer_is_not_believed(
    stage: &Stage,
    tenants: &[Tenant],
    world: &World,
) -> Result<()> {
    let before = stage.uids_of_volumes()?;
    stage.platform.gateways[0].set(&json!({"httpapi": {"authz": {}}}))?;
    wait_until_told(stage, "KeptOnEmptyAnswer")?;
    are_the_same(stage, &before)?;
    stage.platform.describe(world)?;
    wait_until_not_told(stage, "KeptOnEmptyAnswer")?;
    stage.wait_for_kind(VOLUMES, tenants, world)?;
    are_the_same(stage, &before)?;
    eprintln!(
        "{} volumes and claims stay after an empty answer",
        before.len()
    );
    Ok(())
}

fn are_the_same(stage: &Stage, uids: &Uids) -> Result<()> {
    let now = stage.uids_of_volumes()?;
    ensure!(now == *uids, "{now:?}, not {uids:?}");
    Ok(())
}

fn wait_until_told(stage: &Stage, condition: &str) -> Result<()> {
    stage.explained(eventually(&format!("{condition} is told"), || {
        ensure!(is_told(stage, condition)?, "{:?}", stage.told()?);
        Ok(())
    }))
}

fn wait_until_not_told(stage: &Stage, condition: &str) -> Result<()> {
    stage.explained(eventually(&format!("{condition} is not told"), || {
        ensure!(!is_told(stage, condition)?, "{:?}", stage.told()?);
        Ok(())
    }))
}

fn is_told(stage: &Stage, condition: &str) -> Result<bool> {
    let told = stage.told()?;
    let mut of = told.iter().filter(|one| one.is_of("blobcsi", WHOLE));
    Ok(of.any(|one| one.condition == condition))
}
