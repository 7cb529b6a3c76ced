//! `reeve reconcile`, `retry`, `sync`, `suspend`, `resume`, `approve`, `release` and `plugin
//! rollback`.

mod approve;
mod forget;
mod outcome;
mod release;
mod rollback;

pub(crate) use approve::{ApproveArgs, run as approve};
pub(crate) use forget::{ForgetArgs, run as forget};
pub(crate) use release::{ReleaseArgs, run as release};
pub(crate) use rollback::{RollbackArgs, run as rollback};

use crate::connection::ConnectionArgs;
use crate::looking::select;
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use outcome::{Goal, wait};
use reeve_api::{Plugin, RECONCILE_ANNOTATION, RETRY_ANNOTATION, SYNC_ANNOTATION, Unit};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

/// Field manager of what these commands write.
const FIELD_MANAGER: &str = "reeve-cli";

/// Which plugin, and how long to wait for what is asked of it.
#[derive(Args)]
pub(crate) struct TargetArgs {
    /// Name of the plugin
    pub(crate) plugin: String,
    /// Wait for what comes of it, and say how it went
    #[arg(long, short)]
    wait: bool,
    /// How long to wait, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "2m", requires = "wait", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Run the units of a plugin now
///
/// All of them, or one: the plugin is asked again and what differs is written. Units
/// that are well write nothing. Sets the annotation reeve.dev/reconcile-at of the
/// Plugin, for which you need get and patch on it.
#[derive(Args)]
#[command(after_help = WAITING)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Only the unit of this primary, such as alice or Profile/alice; for that you
    /// need list on the kind
    #[arg(long, value_name = "PRIMARY")]
    unit: Option<String>,
}

/// Try again now what failed, as if it had not failed before
///
/// Units that are not ready run at once and their back-off begins anew: waves that took
/// too long get their time again, and a sync that a hook has ended begins again, hooks
/// included. A plugin that could not be loaded is loaded again. Sets the annotation
/// reeve.dev/retry-at of the Plugin.
#[derive(Args)]
#[command(after_help = WAITING)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Only the unit of this primary, such as alice or Profile/alice; for that you
    /// need list on the kind
    #[arg(long, value_name = "PRIMARY")]
    unit: Option<String>,
}

/// Begin syncs anew, hooks included, also those that are complete
///
/// Hooks run again, and waves wait for one another again; what is as wanted is not
/// written. Without --unit that is so for all units of the plugin. Sets the annotation
/// reeve.dev/sync-at of the Plugin.
#[derive(Args)]
#[command(after_help = WAITING)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Only the unit of this primary, such as alice or Profile/alice; for that you
    /// need list on the kind
    #[arg(long, value_name = "PRIMARY")]
    unit: Option<String>,
}

/// Pause a plugin: nothing of it runs and nothing is written until it is resumed
///
/// What is under way ends; its objects stay. Sets spec.suspend of the Plugin.
#[derive(Args)]
#[command(after_help = WAITING)]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Let a paused plugin go on
///
/// All of its units run. Clears spec.suspend of the Plugin.
#[derive(Args)]
#[command(after_help = WAITING)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Waits until a version that was approved runs, if that is wanted. `before` is its plugin
/// as it was when it was not approved.
pub(crate) async fn await_approved(
    client: &Client,
    target: &TargetArgs,
    before: &Plugin,
    token: String,
) -> anyhow::Result<ExitCode> {
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let held_for = rollback::loaded(before).map(|loaded| loaded.reason.clone());
    let goal = Goal::VersionApproved {
        token,
        held_for: held_for.unwrap_or_default(),
    };
    wait(client, target, &goal).await
}

const WAITING: &str = "Exit codes: 0 it was asked, and with --wait it is done and all is well; 1 \
    with --wait, it is not well, or not done in time; 2 it could not be asked.";

pub(crate) async fn reconcile(args: ReconcileArgs) -> anyhow::Result<ExitCode> {
    ask(&args.target, args.unit.as_deref(), Request::Reconcile).await
}

pub(crate) async fn retry(args: RetryArgs) -> anyhow::Result<ExitCode> {
    ask(&args.target, args.unit.as_deref(), Request::Retry).await
}

pub(crate) async fn sync(args: SyncArgs) -> anyhow::Result<ExitCode> {
    ask(&args.target, args.unit.as_deref(), Request::Sync).await
}

/// What can be asked of units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Reconcile,
    Retry,
    Sync,
}

async fn ask(target: &TargetArgs, unit: Option<&str>, what: Request) -> anyhow::Result<ExitCode> {
    let client = target.connection.client().await?;
    let plugin = find(&client, target).await?;
    let name = &target.plugin;
    if plugin.spec.suspend {
        bail!("plugin {name} is suspended, so nothing runs; `reeve resume {name}` lets it go on");
    }
    let primary = match unit {
        Some(unit) => Some(find_unit(&client, &plugin, unit).await?),
        None => None,
    };
    let mut request = Timestamp::now().to_string();
    let annotation = match what {
        Request::Reconcile => RECONCILE_ANNOTATION,
        Request::Retry => RETRY_ANNOTATION,
        Request::Sync => SYNC_ANNOTATION,
    };
    let whom = match &primary {
        Some(primary) => {
            let unit = UnitKey::new(name.as_str(), primary.clone());
            request.push(' ');
            request.push_str(&unit.id());
            primary.to_string()
        }
        None if what == Request::Retry => "whatever is in trouble".to_owned(),
        None => "all units".to_owned(),
    };
    let patch = json!({"metadata": {"annotations": {annotation: request}}});
    change(&client, target, &patch).await?;
    output::tell(format_args!("{name}: asked to run {whom}"));
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let goal = Goal::Handled {
        request,
        what,
        primary,
    };
    wait(&client, target, &goal).await
}

pub(crate) async fn suspend(args: SuspendArgs) -> anyhow::Result<ExitCode> {
    set_suspended(&args.target, true).await
}

pub(crate) async fn resume(args: ResumeArgs) -> anyhow::Result<ExitCode> {
    set_suspended(&args.target, false).await
}

async fn set_suspended(target: &TargetArgs, suspend: bool) -> anyhow::Result<ExitCode> {
    let client = target.connection.client().await?;
    let plugin = find(&client, target).await?;
    let name = &target.plugin;
    let (now, already) = if suspend {
        ("suspended", "is suspended already")
    } else {
        ("resumed", "is not suspended")
    };
    if plugin.spec.suspend == suspend {
        output::tell(format_args!("{name}: {already}"));
    } else {
        let patch = json!({"spec": {"suspend": suspend}});
        change(&client, target, &patch).await?;
        output::tell(format_args!("{name}: {now}"));
    }
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let goal = if suspend {
        Goal::Suspended
    } else {
        Goal::Resumed
    };
    wait(&client, target, &goal).await
}

fn plugins(client: &Client, target: &TargetArgs) -> Api<Plugin> {
    Api::namespaced(client.clone(), &target.connection.namespace)
}

async fn find(client: &Client, target: &TargetArgs) -> anyhow::Result<Plugin> {
    let (name, namespace) = (&target.plugin, &target.connection.namespace);
    let found = plugins(client, target).get_opt(name).await;
    let found = found.with_context(|| format!("cannot read plugin {name}"))?;
    found.with_context(|| {
        format!(
            "there is no plugin {name} in namespace {namespace}; `reeve get plugins` lists those \
             that there are"
        )
    })
}

async fn change(
    client: &Client,
    target: &TargetArgs,
    patch: &serde_json::Value,
) -> anyhow::Result<()> {
    let name = &target.plugin;
    let changed = plugins(client, target)
        .patch(name, &patch_params(), &Patch::Merge(patch))
        .await;
    changed.with_context(|| format!("cannot change plugin {name}"))?;
    Ok(())
}

fn patch_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// The primary that somebody means.
async fn find_unit(
    client: &Client,
    plugin: &Plugin,
    text: &str,
) -> anyhow::Result<ObjectReference> {
    let name = plugin.name_any();
    // One that does not run remembers for what it ran.
    let status = plugin.status.as_ref().filter(|one| one.digest.is_some());
    let kind = status
        .and_then(|status| status.primary_kind.as_deref())
        .and_then(crate::kinds::parse);
    let kind = kind.with_context(|| {
        format!("plugin {name} does not run, so it has no units; see `reeve get plugins -o wide`")
    })?;
    let gvk = kube::core::GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let (resource, _) = kube::discovery::pinned_kind(client, &gvk)
        .await
        .with_context(|| format!("the cluster does not serve {kind}"))?;
    let primaries: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = primaries.list_metadata(&ListParams::default()).await;
    let listed = listed.with_context(|| format!("cannot list the primaries of plugin {name}"))?;
    let reference = |namespace: Option<String>, object: String| {
        ObjectReference::new(GroupVersionKind::clone(&kind), namespace, object)
    };
    let primaries = listed.items.iter();
    let mut units: BTreeSet<ObjectReference> = primaries
        .map(|object| reference(object.namespace(), object.name_any()))
        .collect();
    // Of a primary that is gone something may be left to do. Who may not list units means
    // one whose primary is there.
    let objects: Api<Unit> =
        Api::namespaced(client.clone(), &plugin.namespace().unwrap_or_default());
    let objects = objects.list(&ListParams::default()).await;
    let objects = objects.into_iter().flat_map(|list| list.items);
    let ours = objects.filter(|unit| unit.spec.plugin == name);
    let ours = ours.filter_map(|unit| primary_of(&unit));
    let ours = ours.filter(|primary| primary.kind.same_kind(&kind));
    units.extend(ours.map(|primary| reference(primary.namespace, primary.name)));
    let units: Vec<ObjectReference> = units.into_iter().collect();
    select(&units, text).with_context(|| format!("plugin {name}"))
}

/// The primary of a unit; none where its kind cannot be read.
fn primary_of(unit: &Unit) -> Option<ObjectReference> {
    let primary = &unit.spec.primary;
    let kind = GroupVersionKind::from_fields(&primary.api_version, &primary.kind)?;
    let (namespace, name) = (primary.namespace.clone(), primary.name.clone());
    Some(ObjectReference::new(kind, namespace, name))
}

/// `90s`, `5m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text
        .parse()
        .map_err(|error| format!("{error}; write it like 90s or 5m"))?;
    Duration::try_from(duration).map_err(|_| "it must not be negative".to_owned())
}
