//! `reeve plugin grant`.

mod apply;

use super::describe::{Kinds, describe};
use super::source;
use crate::connection::ConnectionArgs;
use crate::output::print;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use kube::api::Api;
use reeve_api::Plugin;
use reeve_cluster::Cluster;
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, Manifest};
use serde_json::{Value, json};
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
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// ServiceAccount of the agent, in its namespace
    #[arg(long, value_name = "NAME", default_value = "reeve")]
    agent_service_account: String,
    /// The agent as a user, where it has no ServiceAccount
    #[arg(long, value_name = "USER", conflicts_with = "agent_service_account")]
    agent_user: Option<String>,
    /// Where the plugin writes in namespaces that follow from its primaries: only
    /// in those that this label selector selects
    #[arg(long, value_name = "SELECTOR", default_value = "")]
    namespace_selector: Selector,
    /// Leave out the ValidatingAdmissionPolicy: the cluster is older than 1.30
    #[arg(long)]
    without_policy: bool,
    /// Whether the plugin's account may put Reeve's finalizers on its primaries, so that
    /// they wait for the end of their units: hooks and order at deletion need that
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    hold_primaries: Hold,
    /// Apply the objects, and delete what was granted before and is no longer asked
    /// for
    #[arg(long)]
    apply: bool,
    /// Form of the objects
    #[arg(long, short, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    #[command(flatten)]
    connection: ConnectionArgs,
}

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
    let manifest = describe(&source).await?.manifest(&source).await?;
    let account = match args.service_account.clone() {
        Some(account) => account,
        None => named_account(&client, namespace, &name)
            .await?
            .unwrap_or_else(|| name.clone()),
    };
    if args.agent_user.is_none() && account == args.agent_service_account {
        bail!(
            "ServiceAccount {namespace}/{account} is the agent's own and can be no plugin's; name another with --service-account"
        );
    }
    let cluster = Cluster::new(client.clone());
    let kinds = Kinds::of(&cluster, &manifest).await?;
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
    let mut objects = grant::objects(&grantee, &manifest, served);
    if !args.without_policy {
        let tenants = &args.namespace_selector;
        objects.extend(grant::admission_policy(
            &grantee, &manifest, served, tenants,
        ));
    }
    let mut rules = grant::in_words(&grant::account_rules(&manifest, served));
    let mut cautions = grant::cautions(&manifest);
    let holding = Holding::of(&args, &grantee, &manifest, served);
    rules.extend(holding.rules);
    cautions.extend(holding.caution);
    objects.extend(holding.objects);
    if !args.apply {
        print(written(&objects, &rules, &cautions, args.output)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let changes = apply::apply(&client, &cluster, &grantee, &objects).await?;
    match args.output {
        Output::Json => print(format_args!(
            "{}\n",
            serde_json::to_string_pretty(&json!({
                "granted": rules, "cautions": cautions, "changes": changes,
            }))?
        ))?,
        Output::Yaml => {
            let granted = rules.iter().map(|rule| format!("granted: {rule}\n"));
            let cautions = cautions.iter().map(|line| format!("caution: {line}\n"));
            let changes = changes.iter().map(|line| format!("{line}\n"));
            print(granted.chain(cautions).chain(changes).collect::<String>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
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

/// The account that the policy of a plugin names.
async fn named_account(
    client: &kube::Client,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let plugins: Api<Plugin> = Api::namespaced(client.clone(), namespace);
    match plugins.get_opt(name).await {
        Ok(plugin) => Ok(plugin.and_then(|plugin| plugin.spec.service_account_name)),
        // The CRDs may come later.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read Plugin {namespace}/{name}")),
    }
}

/// The objects, and in YAML what they mean.
fn written(
    objects: &[Value],
    rules: &[String],
    cautions: &[String],
    output: Output,
) -> anyhow::Result<String> {
    if output == Output::Json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return Ok(serde_json::to_string_pretty(&list)? + "\n");
    }
    let mut text = String::new();
    for rule in rules {
        text.push_str(&format!("# grants: {rule}\n"));
    }
    for caution in cautions {
        text.push_str(&format!("# caution: {caution}\n"));
    }
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("cannot write YAML")?);
    }
    Ok(text)
}
