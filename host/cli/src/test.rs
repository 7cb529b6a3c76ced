//! `reeve test`.

use clap::Args;
use std::process::ExitCode;

/// Run a plugin's scenarios offline
#[derive(Args)]
pub(crate) struct TestArgs {}

pub(crate) fn run(_: TestArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("being built")
}
