//! `reeve cluster save`.

use super::embedded;
use crate::columns::counted;
use crate::output::tell;
use crate::record::write;
use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use reeve_sim::save_state;
use std::path::PathBuf;
use std::process::ExitCode;

/// Save everything in an embedded cluster to a file
///
/// The file has all objects with their versions and uids, as they are at one moment.
/// `reeve cluster load` makes the state of another cluster of it. Tokens, certificate
/// and port are not in it. Secrets are, as they are: only you can read the file.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it is saved; 2 it is not.",
    group(ArgGroup::new("cluster").required(true))
)]
pub(super) struct SaveArgs {
    /// Where to write it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Kubeconfig of the cluster, which goes on running
    #[arg(long, value_name = "FILE", group = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// State of the cluster, which does not run
    #[arg(long, value_name = "FOLDER", group = "cluster")]
    state: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(args: SaveArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display();
    if let Some(folder) = &args.state {
        if !args.force && args.file.exists() {
            bail!("{file} is there already; name another, or replace it with --force");
        }
        let objects = save_state(folder, &args.file)?;
        tell(format_args!(
            "saved to {file}: {}",
            counted(objects, "object")
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(kubeconfig) = &args.kubeconfig else {
        bail!("name a cluster with --kubeconfig, or a folder with --state");
    };
    let client = embedded(kubeconfig).await?;
    let request = http::Request::get("/debug/snapshot").body(kube::client::Body::empty())?;
    let cannot = || format!("the cluster of {} gives no snapshot", kubeconfig.display());
    let answer = client.send(request).await.with_context(cannot)?;
    if !answer.status().is_success() {
        bail!("{}: {}", cannot(), answer.status());
    }
    let bytes = answer.into_body().collect_bytes().await;
    let bytes = bytes.with_context(cannot)?;
    write(&args.file, &bytes, args.force, 0o600)?;
    tell(format_args!("saved to {file}: {} bytes", bytes.len()));
    Ok(ExitCode::SUCCESS)
}
