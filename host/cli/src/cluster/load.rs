//! `reeve cluster load`.

use super::embedded;
use crate::columns::counted;
use crate::output::{complain, tell};
use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use reeve_cluster::Cluster;
use reeve_cluster::portable::Given;
use reeve_core::chain;
use reeve_sim::{Config, Server, is_snapshot, load_state};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Load what was saved or imported into an embedded cluster
///
/// A file of `reeve cluster save` makes a new state, as it was to the last version and
/// uid. A file of objects in YAML, as `reeve cluster import` and kubectl write them, is
/// applied to a cluster that runs or to a state, with the status of each object; owners
/// are found by their names.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 everything is loaded; 1 some objects were refused, \
    the others are loaded; 2 nothing is.",
    group(ArgGroup::new("cluster").required(true))
)]
pub(super) struct LoadArgs {
    /// What to load
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of the state; for what was saved, one that holds none yet
    #[arg(long, value_name = "FOLDER", group = "cluster")]
    state: Option<PathBuf>,
    /// Kubeconfig of an embedded cluster that runs; for objects only
    #[arg(long, value_name = "FILE", group = "cluster")]
    kubeconfig: Option<PathBuf>,
}

pub(super) async fn run(args: LoadArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.display();
    if is_snapshot(&args.file) {
        let Some(folder) = &args.state else {
            bail!(
                "{file} is a whole state, which a cluster that runs cannot become: load it with --state FOLDER, and run reeve cluster --state FOLDER"
            );
        };
        let objects = load_state(&args.file, folder)?;
        tell(format_args!(
            "loaded into {}: {}",
            folder.display(),
            counted(objects, "object")
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let objects = read(&args.file)?;
    let given = match (&args.state, &args.kubeconfig) {
        (Some(folder), _) => {
            let server = Server::open(Config::default(), folder)?;
            let given = give(server.client(), &objects).await;
            server.sync();
            given
        }
        (None, Some(kubeconfig)) => give(embedded(kubeconfig).await?, &objects).await,
        (None, None) => bail!("name a folder with --state, or a cluster with --kubeconfig"),
    };
    for (object, why) in &given.refused {
        complain(format_args!("{object}: {}", chain(why)));
    }
    tell(format_args!("loaded: {}", counted(given.made, "object")));
    Ok(ExitCode::from(u8::from(!given.refused.is_empty())))
}

async fn give(client: kube::Client, objects: &[Value]) -> Given {
    let mut told = |done: usize| {
        if done.is_multiple_of(5000) {
            tell(format_args!("  {done} of {}", objects.len()));
        }
    };
    Cluster::new(client).give(objects, &mut told).await
}

/// The objects of a file: several documents, and lists among them.
fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let documents = serde_saphyr::from_multiple::<Value>(&text);
    let documents = documents.with_context(|| format!("{} is no YAML", path.display()))?;
    let mut objects = Vec::new();
    for mut document in documents {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if document["kind"].as_str().is_some_and(is_list) => {
                objects.extend(items);
            }
            Some(items) => {
                document["items"] = items;
                objects.push(document);
            }
            None if document.is_null() => {}
            None => objects.push(document),
        }
    }
    if objects.is_empty() {
        bail!("{} holds no objects", path.display());
    }
    Ok(objects)
}

fn is_list(kind: &str) -> bool {
    kind.ends_with("List")
}
