//! `reeve plugin grant`.

mod apply;

use super::describe::{Kinds, describe};
use super::{outside, source};
use crate::compile::CacheArgs;
use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::{Context as _, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use reeve_agent::needs;
use reeve_api::PluginStatus;
use reeve_cluster::{Cluster, ResolveError};
use reeve_core::asks::{self, Asks};
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::manifest::{ActionRule, WriteRule, is_dns_subdomain};
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, Manifest};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print or apply the rights that a plugin asks for, and no others
///
/// They are plain Kubernetes objects: the plugin's ServiceAccount, which agrees to
/// be used; what that account may read and write; what the agent may watch for it;
/// and the agent's right to act as that one account. Where RBAC can only say `in
/// all namespaces`, a ValidatingAdmissionPolicy says where not.
///
/// The plugin is one that is installed, or a component in a file that is not yet.
/// The cluster is asked how it serves the kinds of the manifest.
///
/// What the plugin needs outside of the cluster is granted in `spec.capabilities` of its
/// Plugin, which this never writes: it says what would have to stand there, and lets the
/// agent read the Secrets that are named there.
#[derive(Args)]
pub(crate) struct GrantArgs {
    /// Name of the plugin
    #[arg(required_unless_present = "component")]
    name: Option<String>,
    /// Take the component, or the ConfigMaps of the plugin, from this file
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// With --component: configuration of the plugin
    #[arg(long, value_name = "FILE", requires = "component")]
    config: Option<PathBuf>,
    /// ServiceAccount of the plugin; by default the one that the Plugin names, or
    /// that of the plugin's name
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    service_account: Option<String>,
    /// ServiceAccount of the agent, in its namespace
    #[arg(long, value_name = "NAME", default_value = grant::AGENT_SERVICE_ACCOUNT, value_parser = NonEmptyStringValueParser::new())]
    agent_service_account: String,
    /// The agent as a user, where it has no ServiceAccount
    #[arg(long, value_name = "USER", conflicts_with = "agent_service_account", value_parser = NonEmptyStringValueParser::new())]
    agent_user: Option<String>,
    /// Where the plugin writes in namespaces that follow from its primaries: only
    /// in those that this label selector selects
    #[arg(long, value_name = "SELECTOR", default_value = "")]
    namespace_selector: Selector,
    /// Leave out the ValidatingAdmissionPolicy: the cluster is older than 1.30
    #[arg(long)]
    without_policy: bool,
    /// Grant every kind that is served now where the plugin declares every kind of a group
    /// and version; the agent has to run with the same flag
    #[arg(long)]
    allow_wildcards: bool,
    /// Whether the plugin's account may put Reeve's finalizers on its primaries, so that
    /// they wait for the end of their units: hooks and order at deletion need that
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    hold_primaries: Hold,
    /// Apply the objects, and delete what was granted before and is no longer asked
    /// for
    #[arg(long)]
    apply: bool,
    /// With --apply: take away at once what a version that runs has beyond this one
    #[arg(long, requires = "apply")]
    take_away: bool,
    /// Form of the objects
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// The account that Kubernetes gives to pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Hold {
    /// Where a policy keeps the right to just these finalizers: RBAC can only grant
    /// patch on the whole primary
    #[default]
    Auto,
    /// Also where no policy does
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
}

pub(crate) async fn run(args: GrantArgs) -> anyhow::Result<ExitCode> {
    let client = args.connection.client().await?;
    let namespace = &args.connection.namespace;
    let source = match (&args.component, &args.name) {
        (Some(path), name) => source::from_file(path, name.as_deref(), args.config.as_deref())?,
        (None, Some(name)) => source::from_cluster(&client, namespace, name).await?,
        (None, None) => bail!("name a plugin, or a file with --component"),
    };
    // What a file's ConfigMap calls itself is its name in the cluster too.
    let name = source.name.clone();
    let cluster = Cluster::new(client.clone());
    let manifest = describe(&source, &args.cache)
        .await?
        .manifest(&source, args.allow_wildcards.then_some(&cluster))
        .await?;
    if let Some(what) = manifest.writes_in(namespace) {
        bail!(
            "plugin {name}: {what}: namespace {namespace} is the agent's own, in which no plugin may write; the agent refuses it, so nothing is granted"
        );
    }
    let plugin = outside::plugin(&client, namespace, &name).await?;
    let (policy, status) =
        plugin.map_or_else(Default::default, |plugin| (plugin.spec, plugin.status));
    let named = args.service_account.clone();
    let named = named.or_else(|| policy.service_account_name.clone());
    let account = named.unwrap_or_else(|| name.clone());
    if !is_dns_subdomain(&account) {
        bail!(
            "`{account}` is no name of a ServiceAccount: use lower-case letters, digits, `-` and `.`, 253 at most"
        );
    }
    if args.agent_user.is_none() && account == args.agent_service_account {
        bail!(
            "ServiceAccount {namespace}/{account} is the agent's own and can be no plugin's; name another with --service-account"
        );
    }
    let status = status.unwrap_or_default();
    let running = runs_beyond(&status, &manifest);
    let kept = args.apply && !args.take_away && !running.is_empty();
    // Policies restrict one account, whichever version acts as it: they must let both do what
    // they are granted.
    let both = match kept {
        true => with_running(&cluster, &manifest, &status).await?,
        false => manifest.clone(),
    };
    let kinds = Kinds::of(&cluster, &both).await?;
    if let Some(problem) = manifest.misplaced(|kind| kinds.namespaced(kind)) {
        bail!("plugin {name}: {problem}; the agent refuses it, so nothing is granted");
    }
    let served = |kind: &_| kinds.served(kind);
    let agent = match &args.agent_user {
        Some(user) => Subject::User(user),
        None => Subject::ServiceAccount(&args.agent_service_account),
    };
    let grantee = Grantee {
        plugin: &name,
        namespace,
        service_account: &account,
        agent,
    };
    let unseen = apply::check_account(&cluster, &grantee, args.apply).await?;
    let mut objects = grant::objects(&grantee, &manifest, served);
    if !args.without_policy {
        let tenants = &args.namespace_selector;
        objects.extend(grant::admission_policy(&grantee, &both, served, tenants));
    }
    let holding = Holding::of(&args, &grantee, &both, served);
    objects.extend(holding.objects);
    // What the policy grants of the outside needs Secrets, which the agent reads.
    let capabilities = policy.capabilities.unwrap_or_default();
    let mut secrets = needs::secrets(&capabilities, namespace);
    // The agent pulls with the login of one, always of its own namespace.
    let login = policy
        .artifact
        .and_then(|artifact| artifact.pull_secret_name);
    secrets.extend(login.map(|name| (namespace.clone(), name)));
    objects.extend(grant::secrets(&grantee, &secrets));
    let needs = needs::needs(&manifest, &capabilities, namespace);
    let mut rules = grant::in_words(&grant::account_rules(&manifest, served));
    rules.extend(holding.rules);
    let mut cautions = grant::cautions(&manifest);
    cautions.extend(kinds.cautions());
    cautions.extend(holding.caution);
    cautions.extend(unseen);
    if account == DEFAULT_ACCOUNT {
        cautions.push(format!(
            "ServiceAccount {namespace}/{account} is that of every pod there which names none: \
             what is granted to it, all of these may do"
        ));
    }
    if !args.apply && !running.is_empty() {
        cautions.push(format!(
            "a version of {name} runs that asks for more: {}. Applied with kubectl, these objects take that away at once; --apply keeps it until the new version has taken over",
            running.join("; ")
        ));
    }
    let said = Said {
        rules,
        secrets: secrets
            .iter()
            .map(|(namespace, name)| format!("get secrets/{name} in namespace {namespace}"))
            .collect(),
        cautions,
        outside: outside::lines(&needs, true),
        outside_json: outside::in_json(&needs, true),
        to_add: outside::to_add(&needs)?,
        plugin: format!("{namespace}/{name}"),
    };
    if !args.apply {
        print(written(&objects, &said, args.output)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut changes = apply::apply(&client, &cluster, &grantee, &objects, kept).await?;
    let is_whole = !changes.iter().any(|change| change.starts_with(apply::LEFT));
    if kept {
        changes.push(format!(
            "kept: what the version of {name} that runs asks for beyond this ({}); grant again when the new one has taken over (`reeve get plugins`), and it is taken away, or at once with --take-away",
            running.join("; ")
        ));
    }
    match args.output {
        Output::Json => print(format_args!(
            "{}\n",
            serde_json::to_string_pretty(&json!({
                "granted": said.rules, "grantedToAgent": said.secrets,
                "outside": said.outside_json, "cautions": said.cautions, "changes": changes,
            }))?
        ))?,
        Output::Yaml => {
            let mut text = String::new();
            for (title, lines) in [
                ("granted", &said.rules),
                ("granted to the agent", &said.secrets),
                ("outside", &said.outside),
                ("caution", &said.cautions),
            ] {
                for line in lines {
                    text.push_str(&format!("{title}: {line}\n"));
                }
            }
            for change in changes {
                text.push_str(&change);
                text.push('\n');
            }
            if let Some(to_add) = &said.to_add {
                text.push_str(&said.what_to_add());
                text.push_str(to_add);
            }
            print(text)?;
        }
    }
    Ok(match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// What a version that runs asks for and this one does not: it goes on until this one takes
/// over, which may never be. Nothing where none runs.
fn runs_beyond(status: &PluginStatus, manifest: &Manifest) -> Vec<String> {
    // There just while one runs, also where that is suspended, or sees nothing, and so is
    // not ready.
    let runs = status.digest.is_some();
    if !runs {
        return Vec::new();
    }
    let asks = asked_by_running(status);
    let beyond = asks::lines_beyond(&asks, &Asks::of(manifest).lines());
    beyond.into_iter().map(str::to_owned).collect()
}

/// What is asked for by what runs: two versions, while some units have a newer one.
fn asked_by_running(status: &PluginStatus) -> Vec<String> {
    let canary = status.canary.iter().flat_map(|canary| &canary.asks);
    let mut lines: Vec<String> = status
        .asks
        .iter()
        .flatten()
        .chain(canary)
        .cloned()
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// A manifest that also writes what the version that runs does, of kinds that are served, and
/// has Secrets generated where that one has.
async fn with_running(
    cluster: &Cluster,
    manifest: &Manifest,
    status: &PluginStatus,
) -> anyhow::Result<Manifest> {
    let mut both = manifest.clone();
    let lines = asked_by_running(status);
    let kinds = status.writes.iter().map(|written| {
        GroupVersionKind::from_fields(&written.api_version, &written.kind)
            .with_context(|| format!("{} is no API version", written.api_version))
    });
    for kind in kinds.collect::<anyhow::Result<BTreeSet<_>>>()? {
        match cluster.resolve(&kind).await {
            Err(ResolveError::NotServed { .. }) => continue,
            resolved => resolved?,
        };
        let rules = asks::written(&lines, &kind).into_iter();
        let rules = rules.map(|scope| WriteRule {
            kind: kind.clone(),
            scope,
        });
        both.writes.extend(rules);
    }
    let secrets = asks::generated(&lines);
    if !secrets.is_empty() {
        both.actions.push(ActionRule {
            name: String::new(),
            description: String::new(),
            http: Vec::new(),
            sql: Vec::new(),
            secrets,
        });
    }
    Ok(both)
}

/// The part of a grant that lets primaries wait for the end of their units.
#[derive(Default)]
struct Holding {
    objects: Vec<Value>,
    /// In words.
    rules: Vec<String>,
    caution: Option<String>,
}

impl Holding {
    fn of(
        args: &GrantArgs,
        grantee: &Grantee<'_>,
        manifest: &Manifest,
        served: impl Fn(&GroupVersionKind) -> Served,
    ) -> Self {
        let rules = grant::in_words(&grant::holding_rules(manifest, &served));
        if rules.is_empty() || args.hold_primaries == Hold::Never {
            return Self::default();
        }
        let policy = match args.without_policy {
            true => Vec::new(),
            false => grant::holding_policy(grantee, manifest, &served),
        };
        let rules = rules.join("; ");
        if policy.is_empty() && args.hold_primaries == Hold::Auto {
            let caution = format!(
                "its primaries do not wait for the end of their units: that takes {rules}, which \
                 no policy keeps to finalizers here; --hold-primaries=always grants it all the same"
            );
            return Self {
                caution: Some(caution),
                ..Self::default()
            };
        }
        let (rules, caution) = match policy.is_empty() {
            false => (
                format!("{rules}, by policy for Reeve's finalizers only"),
                None,
            ),
            true => (
                rules,
                Some(
                    "it may change all of its primaries, and not just Reeve's finalizers"
                        .to_owned(),
                ),
            ),
        };
        let mut objects = grant::holding(grantee, manifest, served);
        objects.extend(policy);
        Self {
            objects,
            rules: vec![rules],
            caution,
        }
    }
}

/// What a grant means.
struct Said {
    /// What the plugin's account may do.
    rules: Vec<String>,
    /// What the agent may do for it.
    secrets: Vec<String>,
    cautions: Vec<String>,
    /// What the plugin needs of the outside, and whether that is granted.
    outside: Vec<String>,
    outside_json: Value,
    /// What grants the rest of that.
    to_add: Option<String>,
    /// Namespace and name of the Plugin.
    plugin: String,
}

impl Said {
    /// Only an operator knows which Secrets to name there.
    fn what_to_add(&self) -> String {
        format!(
            "to grant what is not, add to Plugin {}, as narrowly as it can be, and grant again:\n",
            self.plugin
        )
    }
}

/// The objects, and in YAML what they mean.
fn written(objects: &[Value], said: &Said, output: Output) -> anyhow::Result<String> {
    if output == Output::Json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return Ok(serde_json::to_string_pretty(&list)? + "\n");
    }
    let mut text = String::new();
    for (title, lines) in [
        ("grants", &said.rules),
        ("grants to the agent", &said.secrets),
        ("outside", &said.outside),
        ("caution", &said.cautions),
    ] {
        for line in lines {
            text.push_str(&format!("# {title}: {line}\n"));
        }
    }
    if let Some(to_add) = &said.to_add {
        text.push_str(&format!("# {}", said.what_to_add()));
        for line in to_add.lines() {
            text.push_str(&format!("#   {line}\n"));
        }
    }
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("cannot write YAML")?);
    }
    Ok(text)
}
