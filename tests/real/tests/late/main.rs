//! Requests that arrive late, or twice: on their way to a real API server each is held
//! back until the cluster has become another than it was when the request was sent.

#[path = "../faults/gate.rs"]
#[expect(dead_code, reason = "the faults use the rest")]
mod gate;
mod stage;

use anyhow::{Context as _, Result, ensure};
use hyper::Method;

use stage::{Stage, config_map};

#[test]
fn what_arrives_late_or_twice_changes_nothing_for_good() -> Result<()> {
    let mut stage = Stage::new()?;
    what_is_made_anew_while_it_is_deleted_stays(&stage)?;
    what_is_made_anew_while_it_is_changed_stays(&stage)?;
    an_apply_that_arrives_twice_changes_nothing(&stage)?;
    a_deletion_that_arrives_twice_deletes_once(&stage)?;
    writes_that_arrive_when_another_leads(&mut stage)?;
    stage.gate.holds_nothing()
}

/// The plugin withdraws two objects, and the agent has read each and is about to delete
/// it. Somebody deletes them first, and makes others of their names: one that has nothing
/// to do with the plugin, and one that has all that the first one had, as from a backup.
fn what_is_made_anew_while_it_is_deleted_stays(stage: &Stage) -> Result<()> {
    let names = ["replaced", "restored"];
    stage.bundle("withdrawing", &names.map(|name| (name, "ours")))?;
    for name in names {
        stage.wait_for_text(name, "ours")?;
        stage.gate.hold(Method::DELETE, &Stage::path(name));
    }
    let mut backup = stage.object("restored")?;
    if let Some(metadata) = backup["metadata"].as_object_mut() {
        metadata
            .retain(|field, _| ["name", "namespace", "labels", "annotations"].contains(&&**field));
    }
    ensure!(
        backup["metadata"]["labels"]["reeve.dev/plugin"].is_string(),
        "{backup}"
    );
    stage.bundle("withdrawing", &[])?;
    let mut all = Vec::new();
    for anew in [config_map("replaced", "theirs"), backup] {
        let name = anew["metadata"]["name"].as_str().context("no name")?;
        let mut deletion = stage.gate.held(&Stage::path(name))?;
        let theirs = stage.make_anew(&anew)?;
        let status = stage.gate.deliver(&mut deletion)?;
        ensure!(status == 409, "{name}: {status}");
        all.push(theirs);
    }
    stage.wait_until_calm("after-withdrawing")?;
    for (name, theirs) in names.into_iter().zip(all) {
        let left = stage.object(name)?;
        ensure!(left == theirs, "{theirs:#} became {left:#}");
        // It was found to be another one, and not asked for again.
        let asked = stage.answers("delete", name)?;
        ensure!(asked == [409], "{name}: {asked:?}");
    }
    Ok(())
}

/// The same, of an object that the plugin wants to be another: one that somebody else has
/// made since is not the plugin's to write into.
fn what_is_made_anew_while_it_is_changed_stays(stage: &Stage) -> Result<()> {
    let name = "changing";
    stage.bundle("changing", &[(name, "first")])?;
    stage.wait_for_text(name, "first")?;
    stage.gate.hold(Method::PATCH, &Stage::path(name));
    stage.bundle("changing", &[(name, "second")])?;
    let mut change = stage.gate.held(&Stage::path(name))?;
    let theirs = stage.make_anew(&config_map(name, "theirs"))?;
    let status = stage.gate.deliver(&mut change)?;
    ensure!(status == 409, "{status}");
    stage.wait_until_said("changing", "Conflict")?;
    let left = stage.object(name)?;
    ensure!(left == theirs, "{theirs:#} became {left:#}");
    // It is given up again.
    stage.bundle("changing", &[])?;
    stage.wait_until_calm("after-changing")?;
    ensure!(stage.object(name)? == theirs);
    let asked = stage.answers("delete", name)?;
    ensure!(asked.is_empty(), "{asked:?}");
    Ok(())
}

/// Neither the one that was sent last, which says what there is, nor earlier ones.
fn an_apply_that_arrives_twice_changes_nothing(stage: &Stage) -> Result<()> {
    let name = "repeated";
    let mut applies = Vec::new();
    for text in ["made", "changed"] {
        stage.gate.hold(Method::PATCH, &Stage::path(name));
        stage.bundle("repeated", &[(name, text)])?;
        let mut apply = stage.gate.held(&Stage::path(name))?;
        let status = stage.gate.deliver(&mut apply)?;
        ensure!(status.is_success(), "{status}");
        applies.push(apply);
        stage.wait_for_text(name, text)?;
        stage.wait_until_calm(&format!("after-{text}"))?;
        let (before, asked) = (stage.object(name)?, stage.answers("patch", name)?);
        for apply in &mut applies {
            stage.gate.deliver(apply)?;
        }
        stage.wait_until_calm(&format!("after-{text}-twice"))?;
        // With the same version, and the same owners of the same fields.
        let after = stage.object(name)?;
        ensure!(before == after, "{before:#} became {after:#}");
        let repeated = stage.answers("patch", name)?;
        ensure!(
            repeated.len() == asked.len() + applies.len(),
            "{asked:?} became {repeated:?}"
        );
    }
    Ok(())
}

/// What the plugin has withdrawn and wants again is another object.
fn a_deletion_that_arrives_twice_deletes_once(stage: &Stage) -> Result<()> {
    let name = "returning";
    stage.bundle("returning", &[(name, "first")])?;
    stage.wait_for_text(name, "first")?;
    stage.gate.hold(Method::DELETE, &Stage::path(name));
    stage.bundle("returning", &[])?;
    let mut deletion = stage.gate.held(&Stage::path(name))?;
    let status = stage.gate.deliver(&mut deletion)?;
    ensure!(status.is_success(), "{status}");
    stage.wait_until_gone(name)?;
    stage.bundle("returning", &[(name, "second")])?;
    stage.wait_for_text(name, "second")?;
    stage.wait_until_calm("after-returning")?;
    let before = stage.object(name)?;
    let status = stage.gate.deliver(&mut deletion)?;
    ensure!(status == 409, "{status}");
    stage.wait_until_calm("after-returning-twice")?;
    let after = stage.object(name)?;
    ensure!(before == after, "{before:#} became {after:#}");
    Ok(())
}

/// A leader is killed whose writes are on their way. They arrive when another leads, and
/// when what they were for is over: what they can still do is put right.
fn writes_that_arrive_when_another_leads(stage: &mut Stage) -> Result<()> {
    stage.bundle("older", &[("outdated", "first")])?;
    stage.bundle("wanted", &[("wanted-again", "first")])?;
    stage.wait_for_text("outdated", "first")?;
    stage.wait_for_text("wanted-again", "first")?;
    stage.start_second()?;

    stage.gate.hold(Method::PATCH, &Stage::path("outdated"));
    stage.gate.hold(Method::PATCH, &Stage::path("not-wanted"));
    stage
        .gate
        .hold(Method::DELETE, &Stage::path("wanted-again"));
    stage.bundle("older", &[("outdated", "second")])?;
    stage.bundle("unwanted", &[("not-wanted", "first")])?;
    stage.bundle("wanted", &[])?;
    let mut change = stage.gate.held(&Stage::path("outdated"))?;
    let mut making = stage.gate.held(&Stage::path("not-wanted"))?;
    let mut deletion = stage.gate.held(&Stage::path("wanted-again"))?;

    // The world goes on before another takes over, so that there is nothing to be done
    // for two of them.
    stage.bundle("older", &[("outdated", "third")])?;
    stage.bundle("unwanted", &[])?;
    stage.bundle("wanted", &[("wanted-again", "first")])?;
    stage.second_takes_over()?;
    stage.wait_for_text("outdated", "third")?;
    stage.wait_until_calm("after-the-first")?;

    // An older revision is not for what has become of the object.
    let (before, wanted) = (stage.object("outdated")?, stage.object("wanted-again")?);
    stage.gate.deliver(&mut change)?;
    // An object that nobody wants any more cannot know that, and goes again.
    let made = stage.gate.deliver(&mut making)?;
    ensure!(made == 201, "{made}");
    stage.wait_until_gone("not-wanted")?;
    // One that is wanted again is the same as ever, so it goes, and is made anew.
    let deleted = stage.gate.deliver(&mut deletion)?;
    ensure!(deleted == 200, "{deleted}");
    stage.wait_for_text("wanted-again", "first")?;

    stage.wait_until_calm("after-all")?;
    let after = stage.object("outdated")?;
    ensure!(before == after, "{before:#} became {after:#}");
    let anew = stage.object("wanted-again")?;
    ensure!(anew["metadata"]["uid"] != wanted["metadata"]["uid"]);
    for name in ["not-wanted", "wanted-again"] {
        let asked = stage.answers("delete", name)?;
        ensure!(asked == [200], "{name}: {asked:?}");
    }
    Ok(())
}
