//! `reeve crds`.

use crate::output;
use anyhow::Context as _;
use clap::Args;
use std::process::ExitCode;

/// Print the CustomResourceDefinitions of Reeve as YAML
///
/// Install them with: reeve crds | kubectl apply --server-side -f -
#[derive(Args)]
pub(crate) struct CrdsArgs {}

pub(crate) fn run(_: &CrdsArgs) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for crd in reeve_api::crds() {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&crd).context("cannot write a CRD as YAML")?);
    }
    output::print(text)?;
    Ok(ExitCode::SUCCESS)
}
