//! `reeve cluster import`.

use crate::columns::counted;
use crate::output;
use crate::record::write;
use anyhow::{Context as _, bail};
use clap::Args;
use reeve_cluster::portable::{Export, Progress, Selection};
use reeve_cluster::{Cluster, ConnectOptions, connect};
use reeve_core::GroupVersionKind;
use reeve_sim::kinds;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Take the objects of a real cluster, to try things on their like
///
/// Reads with your own rights, writes nothing to the cluster, and makes a file of
/// objects in YAML: definitions and namespaces first, owners before what they own, each
/// with its status. What only that cluster can know is left out: uids, versions, times,
/// field managers, addresses of Services. Owners are named without their uid, which the
/// cluster that they are loaded into fills in, so that garbage collection leaves them
/// alone. Values of Secrets are replaced, their keys stay.
///
/// Without options, everything is read but what a cluster writes about itself (Nodes,
/// Leases, Events, Endpoints, default roles) and the namespaces kube-system,
/// kube-public and kube-node-lease.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 everything was read; 1 some kinds could not be read, the others \
    are in the file; 2 there is no file.\n\n\
    Examples:\n  \
    reeve cluster import prod.yaml --context prod\n  \
    reeve cluster import alice.yaml -n alice -n bob             two namespaces, and what defines their objects\n  \
    reeve cluster import profiles.yaml --kind Profile.kubeflow.org --kind Namespace\n  \
    reeve cluster load prod.yaml --kubeconfig cluster.yaml      into an embedded cluster\n  \
    given: {files: [prod.yaml]}                                 in a scenario of reeve test"
)]
pub(super) struct ImportArgs {
    /// Where to write the objects; `-` is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Kubeconfig of the cluster to read; the usual one if none
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// Only objects in this namespace, the namespace itself, and definitions of their
    /// kinds; may be repeated
    #[arg(long = "namespace", short, value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Only this kind, as Profile, profiles or Profile.kubeflow.org, with definitions
    /// and namespaces; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Not this kind; may be repeated
    #[arg(long = "without-kind", value_name = "KIND")]
    without: Vec<String>,
    /// Keep the values of Secrets
    #[arg(long)]
    keep_secrets: bool,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let to_stdout = args.file.as_os_str() == "-";
    if !to_stdout && !args.force && args.file.exists() {
        // Said before anything is read, which may take its time.
        bail!(
            "{} is there already; name another, or replace it with --force",
            args.file.display()
        );
    }
    let (client, _) = connect(&ConnectOptions {
        kubeconfig: args.kubeconfig,
        context: args.context,
    })
    .await?;
    let selection = Selection {
        namespaces: args.namespaces,
        kinds: args.kinds,
        without: args.without,
        keep_secrets: args.keep_secrets,
    };
    let usable =
        |kind: &GroupVersionKind| kinds::by_kind(&kind.group, &kind.version, &kind.kind).is_some();
    let export = Cluster::new(client)
        .export(&selection, &usable, &mut |progress| report(&progress))
        .await?;
    let text = yaml(&export.objects)?;
    if to_stdout {
        output::print(&text)?;
    } else {
        write(&args.file, text.as_bytes(), args.force, 0o600)?;
    }
    tell(&summary(&export, selection.keep_secrets));
    Ok(ExitCode::from(u8::from(!export.unread.is_empty())))
}

/// Says how far it is, on standard error: the objects may go to standard output.
fn report(progress: &Progress<'_>) {
    if progress.read > 0 && (progress.done || progress.read.is_multiple_of(5000)) {
        let more = if progress.done { "" } else { " so far" };
        tell(&format!(
            "  {}: {}{more}\n",
            progress.resource, progress.read
        ));
    }
}

fn tell(text: &str) {
    // Nothing depends on it.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("cannot write YAML")?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

fn summary(export: &Export, keeps_secrets: bool) -> String {
    let mut text = format!("imported: {}\n", counted(export.objects.len(), "object"));
    // Writing to a text cannot fail.
    for (why, count) in &export.left_out {
        let _ = writeln!(text, "left out: {}: {why}", counted(*count, "object"));
    }
    if export.orphans > 0 {
        let _ = writeln!(
            text,
            "{} without owners that were not imported",
            counted(export.orphans, "object")
        );
    }
    let secrets = export.objects.iter();
    let secrets = secrets.filter(|object| object["kind"] == "Secret").count();
    if secrets > 0 {
        let what = if keeps_secrets {
            "with their values: keep the file to yourself"
        } else {
            "with \"redacted\" for each value; --keep-secrets keeps them"
        };
        let _ = writeln!(text, "{} {what}", counted(secrets, "Secret"));
    }
    if !export.unusable.is_empty() {
        let kinds = export.unusable.join(", ");
        let _ = writeln!(
            text,
            "not read, since the embedded cluster would not serve them: {kinds}"
        );
    }
    for unread in &export.unread {
        let _ = writeln!(text, "not read: {}: {}", unread.what, unread.why);
    }
    text
}
