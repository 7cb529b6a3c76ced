//! `reeve plugin push`.

use super::registry::RegistryArgs;
use super::source;
use crate::output::print;
use anyhow::bail;
use clap::{Args, ValueEnum};
use reeve_engine::interfaces;
use reeve_outside::ImageReference;
use reeve_outside::registry::Wanted;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Push a component to an OCI registry
///
/// It becomes an artifact of one layer, in the layout of the CNCF for WebAssembly, which
/// other tools read, too. A `Plugin` whose spec.artifact.image names it runs it. The
/// answer is the digest to pin it by.
#[derive(Args)]
pub(crate) struct PushArgs {
    /// Its name, with a tag: registry.example/team/plugin:1.0
    #[arg(value_name = "IMAGE")]
    image: ImageReference,
    /// The component; one compressed with zstd or gzip is unpacked
    #[arg(value_name = "FILE")]
    component: PathBuf,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) async fn run(args: PushArgs) -> anyhow::Result<ExitCode> {
    let Wanted::Tag(tag) = args.image.wanted() else {
        bail!(
            "{}: what is pushed gets its digest by that; name a tag",
            args.image
        );
    };
    let source = source::from_file(&args.component, Some("plugin"), None)?;
    let component = source.package.component;
    let found = interfaces(&component)?;
    let registry = args.registry.open(&args.image)?;
    let pushed = registry.push(&tag, &component, &found.imports, &found.exports);
    let digest = pushed.await?;
    let (host, repository) = (args.image.host(), args.image.repository());
    let pinned = format!("{host}/{repository}@{digest}");
    match args.output {
        Output::Text => print(format_args!(
            "pushed {}\n  component {}, {} bytes\n  pin it as {pinned}\n",
            args.image,
            source.package.digest,
            component.len(),
        ))?,
        Output::Json => {
            let said = json!({
                "image": args.image.to_string(), "digest": digest.to_string(),
                "component": source.package.digest.to_string(), "pinned": pinned,
            });
            print(format_args!("{}\n", serde_json::to_string_pretty(&said)?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
