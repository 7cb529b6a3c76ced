//! The whole agent and what is outside of its cluster: a PostgreSQL server and Azure's
//! storage over TLS, and an HTTPS server that redirects, changes and is slow.
//!
//! The plugin is the guest `envoy`. Its effects must come about, be looked after and be
//! taken away, must survive a kill at any moment, and no credential may show anywhere.

mod canaries;
mod database;
mod documents;
mod names;
mod stage;

use anyhow::{Result, ensure};
use reeve_real::eventually;
use serde_json::json;

use canaries::Canaries;
use stage::{PROFILE, ROLE, Stage};

/// How the agent's own statement that makes the role begins.
const CREATE: &str = "CREATE ROLE \"reeve_alice\"";
const ALTER: &str = "ALTER ROLE \"reeve_alice\"";

#[test]
fn a_tenant_has_what_it_asks_for_outside() -> Result<()> {
    let mut stage = Stage::new(&json!({"service": true, "document": true}))?;
    // The key is wrong at first, and rotated while the agent runs.
    stage.store_key(&stage.canaries.wrong_storage_key)?;
    stage.start_agent()?;
    stage.add_profile()?;
    stage.wait_for_action("service", |action| {
        let message = action["message"].as_str().unwrap_or_default();
        ensure!(message.ends_with("the service answers 403"), "{action}");
        Ok(())
    })?;
    stage.store_key(&stage.canaries.storage_key)?;

    // The document is where the first URL leads.
    stage.wait_for_report("notes", "one")?;
    stage.documents.set("two");
    stage.wait_for_report("notes", "two")?;
    // From here on it never comes to an end.
    stage.documents.be_slow(true);

    stage.wait_until_in_place("database")?;
    let password = stage.password()?;
    stage.canaries.know(&password);
    let who = stage.log_in(&password, "SELECT current_user")?;
    ensure!(who.trim() == ROLE, "{who}");
    ensure!(stage.log_in("a-guess", "SELECT 1").is_err());
    stage.wait_until_in_place("service")?;
    let made = format!("\"PUT /reevetests/{PROFILE}?restype=container HTTP/1.1\" 201");
    ensure!(
        stage.storage()?.log()?.contains(&made),
        "the container is there"
    );
    stage.wait_for_report("database", &json!({"role": ROLE}).to_string())?;

    // Both are lost behind the agent's back, and made again; the password stays.
    stage
        .database
        .admin(&format!("DROP DATABASE {ROLE}; DROP ROLE {ROLE};"))?;
    ensure!(stage.log_in(&password, "SELECT 1").is_err());
    stage.storage()?.stop();
    stage.storage()?.resume()?;
    eventually("the database is made again", || {
        stage.log_in(&password, "SELECT 1").map(drop)
    })?;
    ensure!(stage.password()? == password, "nobody asked for another");
    eventually("the container is made again", || {
        let log = stage.storage()?.log()?;
        ensure!(log.matches(&made).count() == 2, "{log}");
        Ok(())
    })?;
    stage.wait_for_event("EffectGone")?;

    // What is slow is given up, and what was there before stays.
    stage.wait_for_stale(Some("did not answer within 30 s"))?;
    stage.wait_for_report("notes", "two")?;
    stage.documents.lead_astray(true);
    stage.documents.be_slow(false);
    stage.wait_for_stale(Some("/elsewhere is not granted"))?;
    stage.documents.lead_astray(false);
    stage.documents.set("three");
    stage.wait_for_report("notes", "three")?;
    stage.wait_for_stale(None)?;
    let (_, metrics) = stage.agent()?.ask("/metrics")?;
    for sample in [
        r#"reeve_action_calls_total{plugin="envoy",action="database",verb="apply",result="success"} 2"#,
        r#"reeve_action_calls_total{plugin="envoy",action="database",verb="verify",result="gone"} 1"#,
        r#"reeve_source_looks_total{plugin="envoy",source="notes",result="changed"} 3"#,
    ] {
        ensure!(metrics.contains(sample), "no {sample} in {metrics}");
    }

    // What somebody else has set is in the journal when it is overwritten.
    let theirs = r#"{"data": {"notes": "theirs"}}"#;
    stage.cluster.kubectl(&[
        "patch",
        "configmap",
        "report",
        "-n",
        PROFILE,
        "--type=merge",
        "-p",
        theirs,
    ])?;
    stage.wait_for_report("notes", "three")?;
    let seen = stage.everything()?;
    stage.canaries.are_not_in(&seen)?;
    let entries = seen
        .iter()
        .find(|(what, _)| what.contains("journalentries"));
    let entries = entries.map_or("", |(_, text)| text.as_str());
    ensure!(entries.contains("kind: JournalEntry"), "{entries}");
    let recorded = seen.iter().find(|(what, _)| what == "reeve record");
    let recorded = recorded.map_or("", |(_, text)| text.as_str());
    ensure!(recorded.contains("\"kind\": \"Recording\""), "{recorded}");
    ensure!(
        Canaries::of(&[password.as_str()])
            .are_not_in(&stage.secrets()?)
            .is_err(),
        "it was looked for"
    );

    // The tenant goes, and what it had.
    stage.cluster.kubectl(&["delete", "profile", PROFILE])?;
    eventually("nothing is left", || {
        let left = stage.database.admin(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'reeve_%' \
             UNION SELECT datname FROM pg_database WHERE datname LIKE 'reeve_%'",
        )?;
        ensure!(left.trim().is_empty(), "{left}");
        let gone = format!("\"DELETE /reevetests/{PROFILE}?restype=container HTTP/1.1\" 202");
        ensure!(
            stage.storage()?.log()?.contains(&gone),
            "the container is there"
        );
        ensure!(stage.unit()?.is_none(), "the Unit is there");
        Ok(())
    })?;
    let seen = stage.everything()?;
    stage.canaries.are_not_in(&seen)
}

/// An effect is recorded when it has been made, and its Secret is stored before it is:
/// so whenever the agent dies, the next one goes on with the same password.
#[test]
fn a_kill_amid_a_statement_strands_nothing() -> Result<()> {
    let mut stage = Stage::new(&json!({}))?;
    // Whoever makes a role waits for this, after the Secret and before the effect.
    let lock = stage
        .database
        .hold("BEGIN; LOCK TABLE pg_authid IN SHARE MODE;")?;
    stage.start_agent()?;
    stage.add_profile()?;

    // Killed before the effect: the server has not done it, and is kept from doing it.
    stage.wait_for_statement(CREATE)?;
    let secret = stage.login_secret()?;
    stage.kill_agent()?;
    stage.database.admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'reeve'",
    )?;
    stage.wait_for_no_statement()?;
    ensure!(!stage.has_role()?);
    ensure!(!stage.was_recorded()?, "{:?}", stage.unit()?);

    // Killed after it: the server does what it was told, and nobody has heard of it.
    stage.start_agent()?;
    stage.wait_for_statement(CREATE)?;
    stage.kill_agent()?;
    drop(lock);
    eventually("the server has made the role", || {
        ensure!(stage.has_role()?);
        Ok(())
    })?;
    ensure!(!stage.was_recorded()?, "{:?}", stage.unit()?);
    let password = stage.password()?;

    // At least once: it is made once more, as if it had not been, with that password.
    let told = |what: &str| -> Result<usize> { Ok(stage.database.log()?.matches(what).count()) };
    let (creates, alters) = (told(CREATE)?, told(ALTER)?);
    ensure!(alters == 0, "{creates} and {alters}");
    stage.start_agent()?;
    stage.wait_until_in_place("database")?;
    let told = |what: &str| -> Result<usize> { Ok(stage.database.log()?.matches(what).count()) };
    ensure!(told(CREATE)? == creates && told(ALTER)? > 0);
    stage.log_in(&password, "SELECT 1")?;
    ensure!(
        stage.login_secret()? == secret,
        "it is the Secret of the first attempt"
    );

    // Recorded, it is not repeated.
    let alters = told(ALTER)?;
    stage.kill_agent()?;
    stage.start_agent()?;
    stage.wait_until_ready()?;
    let told = |what: &str| -> Result<usize> { Ok(stage.database.log()?.matches(what).count()) };
    ensure!(told(CREATE)? == creates && told(ALTER)? == alters);
    stage.canaries.know(&password);
    stage.canaries.are_not_in(&stage.everything()?)
}
