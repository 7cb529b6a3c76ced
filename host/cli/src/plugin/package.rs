//! `reeve plugin package`.

use super::describe::describe;
use super::source;
use crate::compile::CacheArgs;
use crate::output::print;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reeve_agent::delivery::{CLIENT_SIDE_BYTES, PackOptions, SERVER_SIDE_BYTES, pack};
use reeve_core::manifest::{is_dns_label, is_dns_subdomain};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the ConfigMaps that deliver a component
///
/// The component is compressed, and split over several ConfigMaps where it is too
/// large for one: by default so that `kubectl apply` takes them, which keeps a copy
/// of each in an annotation. Apply them all; the plugin's own comes last and makes
/// the version take effect. Parts of versions before stay until they are deleted.
#[derive(Args)]
pub(crate) struct PackageArgs {
    /// The component; one compressed with zstd or gzip is packed anew
    #[arg(value_name = "FILE")]
    component: PathBuf,
    /// Name of the plugin; by default that of the file
    #[arg(long)]
    name: Option<String>,
    /// Namespace to write into the ConfigMaps
    #[arg(long)]
    namespace: Option<String>,
    /// Configuration of the plugin, YAML, about which the component is asked
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Make larger ConfigMaps, for `kubectl apply --server-side`
    #[arg(long)]
    server_side: bool,
    /// Form of the ConfigMaps
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

pub(crate) async fn run(args: PackageArgs) -> anyhow::Result<ExitCode> {
    let config = args.config.as_deref();
    let source = source::from_file(&args.component, args.name.as_deref(), config)?;
    source.check()?;
    if !is_dns_subdomain(&source.name) {
        anyhow::bail!(
            "`{}` is no name of a ConfigMap: use lower-case letters, digits and `-`, 253 at most, and give it with --name",
            source.name
        );
    }
    if let Some(namespace) = args.namespace.as_deref().filter(|name| !is_dns_label(name)) {
        anyhow::bail!(
            "`{namespace}` is no name of a namespace: use lower-case letters, digits and `-`, 63 at most"
        );
    }
    let config = match &args.config {
        None => None,
        Some(path) => {
            let described = describe(&source, &args.cache).await?;
            let declared = described.declared(&source).await;
            declared.with_context(|| format!("no agent would run it with {}", path.display()))?;
            Some(std::fs::read_to_string(path)?)
        }
    };
    let maps = pack(
        &source.package.component,
        &PackOptions {
            name: &source.name,
            namespace: args.namespace.as_deref(),
            config: config.as_deref(),
            part_bytes: if args.server_side {
                SERVER_SIDE_BYTES
            } else {
                CLIENT_SIDE_BYTES
            },
        },
    )?;
    match args.output {
        Output::Yaml => {
            let mut text = String::new();
            for map in &maps {
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(map).context("cannot write YAML")?);
            }
            print(text)?;
        }
        Output::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": maps});
            print(format_args!("{}\n", serde_json::to_string_pretty(&list)?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
