//! A cluster without its store, and an agent whose token is not valid any more.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use reeve_real::parts::HELPERS;

use crate::ground::{HONEST, check_honest};
use crate::stage::Stage;

/// The agent says that it is ready, or that it is not for this reason.
fn wait_for_readiness(stage: &Stage, ready: bool, text: &str) -> Result<()> {
    eventually(&format!("readiness is {ready}: {text}"), || {
        let (is_ready, said) = stage.agent()?.readiness()?;
        ensure!(is_ready == ready && said.contains(text), "it says {said}");
        Ok(())
    })
    .with_context(|| {
        stage
            .agent()
            .map(|agent| agent.log_tail())
            .unwrap_or_default()
    })
}

/// What is lost for a while is waited for.
pub(crate) fn check(stage: &mut Stage) -> Result<()> {
    wait_for_readiness(stage, true, "ok")?;

    // Without etcd the API server answers, with errors.
    stage.cluster.stop_etcd();
    let error = stage
        .cluster
        .kubectl(&["get", "profiles", "--request-timeout=3s"]);
    ensure!(error.is_err(), "the cluster does without etcd: {error:?}");
    stage.cluster.start_etcd()?;
    eventually("the API server has found its store again", || {
        stage
            .cluster
            .kubectl(&["get", "profiles", "--request-timeout=3s"])
    })?;
    check_honest(stage, "after-etcd")?;
    wait_for_readiness(stage, true, "ok")?;

    // The API server reads when it starts what the tokens of accounts are signed with.
    let key = stage.cluster.folder().join("signing.key");
    let before = fs::read_to_string(&key)?;
    let other = Command::new(HELPERS.get()?.join("signing-key"))
        .arg(&key)
        .status()?;
    ensure!(other.success() && fs::read_to_string(&key)? != before);
    stage.cluster.stop_api_server();
    stage.cluster.start_api_server()?;
    wait_for_readiness(stage, false, "token is not valid")?;
    ensure!(stage.agent_is_running()?, "the agent gave up");

    fs::write(&key, before)?;
    stage.cluster.stop_api_server();
    stage.cluster.start_api_server()?;
    wait_for_readiness(stage, true, "ok")?;
    check_honest(stage, "after-token")?;
    stage
        .wait_for_condition(HONEST, ("Ready", "True", "Running"))
        .map(drop)
}
