//! `reeve pack add`, `remove`, `suspend` and `resume`: changes of the desired state.

use super::TargetArgs;
use super::document::{Document, DocumentError};
use super::parts::{self, Part};
use super::standing::{self, FIELDS, ORIGIN};
use super::stored::{Maker, Place};
use crate::looking::{Output, print_json};
use crate::output;
use crate::plugin::read_config;
use anyhow::{Context as _, bail};
use clap::Args;
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt as _};
use reeve_api::{Plugin, SyncMode};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Add a pack to the desired state
///
/// It is applied by `reeve pack reconcile`, or at once where the part of the plugin that
/// reads the desired state is not on request. You need get and patch on the Secret or
/// ConfigMap that the desired state is in.
#[derive(Args)]
pub(super) struct AddArgs {
    /// Name of the pack
    name: String,
    /// Version of its charts, or a range of versions; the newest without it
    #[arg(long)]
    version: Option<String>,
    /// It waits for all packs with a lower wave; the pack's own without it
    #[arg(long, allow_negative_numbers = true)]
    wave: Option<i64>,
    /// Packs that it waits for, in the place of those that it needs by itself
    #[arg(long, value_name = "PACK", value_delimiter = ',')]
    depends_on: Option<Vec<String>>,
    /// Values of its releases, by the name of the release: YAML
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Patches of its objects: YAML, a list
    #[arg(long, value_name = "FILE")]
    patches: Option<PathBuf>,
    /// It stays as it is until it is resumed
    #[arg(long)]
    suspend: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

/// Take a pack out of the desired state, which uninstalls it
///
/// It goes when no other pack needs it; `reeve pack status` says which do.
#[derive(Args)]
pub(super) struct RemoveArgs {
    /// Name of the pack
    name: String,
    /// Also the last one
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

/// Let a pack stay as it is, whatever is wanted of it
#[derive(Args)]
pub(super) struct SuspendArgs {
    /// Name of the pack
    name: String,
    #[command(flatten)]
    change: ChangeArgs,
}

/// Let a suspended pack go on
#[derive(Args)]
pub(super) struct ResumeArgs {
    /// Name of the pack
    name: String,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Args)]
struct ChangeArgs {
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn add(args: AddArgs) -> anyhow::Result<ExitCode> {
    let mut says = Map::new();
    let mut say = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            says.insert(field.to_owned(), value);
        }
    };
    say("version", args.version.map(Value::from));
    say("wave", args.wave.map(Value::from));
    say("dependsOn", args.depends_on.map(Value::from));
    say("suspend", args.suspend.then_some(Value::Bool(true)));
    say(
        "values",
        read(args.values.as_ref(), "an object", Value::is_object)?,
    );
    say(
        "patches",
        read(args.patches.as_ref(), "a list", Value::is_array)?,
    );
    let name = &args.name;
    change(&args.change, name, "added", |document, began| {
        // Wanted by what was never stored: it is stored with the rest.
        if began && says.is_empty() && document.pack(name).is_some() {
            return Ok(false);
        }
        document.add(name, says).map(|()| true)
    })
    .await
}

pub(super) async fn remove(args: RemoveArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    change(&args.change, name, "removed", |document, _| {
        document.remove(name, args.allow_empty).map(|()| true)
    })
    .await
}

pub(super) async fn suspend(args: SuspendArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    change(&args.change, name, "suspended", |document, _| {
        document.suspend(name, true)
    })
    .await
}

pub(super) async fn resume(args: ResumeArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    change(&args.change, name, "resumed", |document, _| {
        document.suspend(name, false)
    })
    .await
}

/// A file with YAML of some form.
fn read(
    path: Option<&PathBuf>,
    expected: &str,
    fits: impl Fn(&Value) -> bool,
) -> anyhow::Result<Option<Value>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let value: Value = serde_json::from_slice(&read_config(path)?)?;
    if !fits(&value) {
        bail!("{}: expected {expected}", path.display());
    }
    Ok(Some(value))
}

async fn change(
    args: &ChangeArgs,
    name: &str,
    how: &str,
    edit: impl FnOnce(&mut Document, bool) -> Result<bool, DocumentError>,
) -> anyhow::Result<ExitCode> {
    let client = args.target.connection.client().await?;
    let parts = parts::find(&client, &args.target).await?;
    let part = parts::desired_state(&parts)?;
    let place = Place::of(&part.config);
    let stored = place.read(&client).await?;
    if let Some(Maker::ExternalSecret(maker)) = &stored.maker {
        bail!(
            "{place} is made by ExternalSecret {maker}, which would undo the change: make it in \
             the secret manager, then run `reeve pack reconcile`"
        );
    }
    let (mut document, began) = match &stored.document {
        Some(document) => (document.clone(), false),
        None => (before(&client, part).await?, true),
    };
    let wanted = document.packs().count();
    let is_new = edit(&mut document, began).with_context(|| place.to_string())?;
    if is_new || began {
        place.write(&client, &stored, &document).await?;
    }
    let helm = match stored.maker {
        Some(Maker::Helm(release)) => Some(release),
        _ => None,
    };
    let done = Done {
        pack: name,
        how,
        is_new,
        began: began.then_some(wanted),
        place: &place,
        helm,
        on_request: is_on_request(&client, args, part).await?,
    };
    match args.output {
        Output::Json => print_json(&done.json())?,
        Output::Text => done.tell(),
    }
    Ok(ExitCode::SUCCESS)
}

/// What holds as long as nothing is stored: what the initial state of the configuration has
/// begun and will begin, unless something was stored before, and else the packs that are
/// there. Once something is stored, only what is in it is wanted.
async fn before(client: &Client, part: &Part) -> anyhow::Result<Document> {
    let packs = standing::packs(client).await?;
    let is_of = |pack: &DynamicObject, origin: &str| {
        let found = pack.annotations().get(ORIGIN);
        found.is_some_and(|found| found == origin)
    };
    if !packs.iter().any(|pack| is_of(pack, "stored"))
        && let Some(mut initial) = initial(client, part).await?
    {
        // What it has begun is as it is now.
        for pack in packs.iter().filter(|pack| is_of(pack, "initial")) {
            if pack.metadata.deletion_timestamp.is_none() {
                initial.put(&pack.name_any(), entry(pack));
            }
        }
        return Ok(initial);
    }
    Ok(Document::new(packs.iter().map(entry).collect()))
}

/// What a Pack says, as it stands in a desired state.
fn entry(pack: &DynamicObject) -> Value {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), Value::from(pack.name_any()));
    for field in FIELDS {
        let said = &pack.data["spec"][field];
        if !said.is_null() {
            entry.insert(field.to_owned(), said.clone());
        }
    }
    Value::Object(entry)
}

/// `initialDesiredState` of the configuration, which is JSON or a text with it.
async fn initial(client: &Client, part: &Part) -> anyhow::Result<Option<Document>> {
    const WHY: &str = "nothing is stored yet, so what is wanted now is looked for in the \
                       configuration";
    let place = Place::of_configuration(&part.config);
    let found = place.text(client).await.context(WHY)?;
    let Some(text) = found.and_then(|(_, text)| text) else {
        return Ok(None);
    };
    let configuration: Value = serde_json::from_str(&text)
        .ok()
        .with_context(|| format!("{place} is no JSON"))?;
    let text = match &configuration["initialDesiredState"] {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        Value::String(text) => text.clone(),
        document => document.to_string(),
    };
    let document = Document::parse(&text);
    let document = document.with_context(|| format!("initialDesiredState of {place}"))?;
    Ok(Some(document))
}

/// Whether somebody has to ask for a changed desired state.
async fn is_on_request(client: &Client, args: &ChangeArgs, part: &Part) -> anyhow::Result<bool> {
    let namespace = &args.target.connection.namespace;
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    let plugin = plugins.get_opt(&part.plugin).await;
    let plugin = plugin.with_context(|| format!("cannot read plugin {}", part.plugin))?;
    Ok(plugin.is_some_and(|plugin| plugin.spec.mode.unwrap_or_default() != SyncMode::Auto))
}

/// A change that was made.
struct Done<'a> {
    pack: &'a str,
    how: &'a str,
    /// Whether it was another way before.
    is_new: bool,
    /// Where nothing was stored before, how many packs were wanted all the same.
    began: Option<usize>,
    place: &'a Place,
    /// The release of Helm that has made the object.
    helm: Option<String>,
    on_request: bool,
}

impl Done<'_> {
    fn json(&self) -> Value {
        json!({
            "pack": self.pack, "change": self.how, "changed": self.is_new || self.began.is_some(),
            "place": self.place.to_string(), "began": self.began.is_some(),
            "onRequest": self.on_request, "helmRelease": self.helm,
        })
    }

    fn tell(&self) {
        let Self {
            pack, how, place, ..
        } = self;
        match (self.is_new, self.began) {
            (false, None) => {
                output::tell(format_args!("pack {pack} is {how} already in {place}"));
                return;
            }
            (false, Some(_)) => output::tell(format_args!(
                "pack {pack} was wanted already; all that was wanted stands in {place} now"
            )),
            (true, _) => output::tell(format_args!("pack {pack} was {how} in {place}")),
        }
        if self.is_new && self.began.is_some_and(|wanted| wanted > 0) {
            output::tell("nothing was stored before; the packs that were wanted stand in it, too");
        }
        if let Some(release) = &self.helm {
            output::tell(format_args!(
                "Helm's release {release} has made that: say the same in its values, or the next \
                 upgrade undoes the change"
            ));
        }
        output::tell(match self.on_request {
            true => "`reeve pack reconcile` applies it",
            false => "it is being applied; `reeve pack status` says how far it is",
        });
    }
}
