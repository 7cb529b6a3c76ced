//! Names whose addresses change while the agent runs.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result, ensure};
use reeve_real::{Names, eventually};
use serde_json::json;

use crate::stage::{DOCUMENTS, Stage};

/// Where clouds tell a machine its credentials.
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// How often the agent has looked for the document in vain.
fn failures(stage: &Stage) -> Result<u32> {
    let (_, metrics) = stage.agent()?.ask("/metrics")?;
    let sample = r#"reeve_source_looks_total{plugin="envoy",source="notes",result="failed"} "#;
    let count = metrics.lines().find_map(|line| line.strip_prefix(sample));
    Ok(count.context("no such sample")?.parse()?)
}

#[test]
fn a_name_is_believed_once_and_its_addresses_are_looked_at_each_time() -> Result<()> {
    let Some(names) = Names::serve(DOCUMENTS) else {
        return Ok(());
    };
    let mut stage = Stage::with_names(&json!({"document": true}), Some(names))?;
    // Each look needs a connection, and that an address.
    stage.documents.hang_up(true);
    stage.start_agent()?;
    stage.add_profile()?;
    stage.wait_for_stale(Some(DOCUMENTS))?;
    stage.names()?.set(&[Ipv4Addr::LOCALHOST]);
    stage.wait_for_report("notes", "one")?;
    stage.wait_for_stale(None)?;

    // The name leads to what was not granted: the document is what it was.
    stage.names()?.set(&[METADATA]);
    let refused = "169.254.169.254, which is not in the networks that are granted";
    stage.wait_for_stale(Some(refused))?;
    stage.documents.set("two");
    let before = failures(&stage)?;
    eventually("it looks twice more", || {
        ensure!(failures(&stage)? > before + 1);
        Ok(())
    })?;
    stage.wait_for_report("notes", "one")?;

    // Of several addresses those are tried that may be.
    stage.names()?.set(&[METADATA, Ipv4Addr::LOCALHOST]);
    stage.wait_for_report("notes", "two")?;
    stage.wait_for_stale(None)?;

    // There is no such name any more, and then there is.
    stage.names()?.set(&[]);
    stage.wait_for_stale(Some(DOCUMENTS))?;
    stage.documents.set("three");
    stage.names()?.set(&[Ipv4Addr::LOCALHOST]);
    stage.wait_for_report("notes", "three")?;
    stage.wait_for_stale(None)
}
