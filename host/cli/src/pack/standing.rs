//! How packs stand: what is wanted, what is there, and what is in the way.

mod warning;

use super::TargetArgs;
use super::document::Document;
use super::parts::{self, DESIRED_STATE, Part};
use super::stored::Place;
use crate::output::on_one_line;
use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use reeve_api::Unit;
use reeve_core::health::{Context, HealthStatus, health};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
pub(super) use warning::Warning;

/// What an entry of the desired state says of a pack, as its object does.
pub(super) const FIELDS: [&str; 7] = [
    "enabled",
    "suspend",
    "version",
    "wave",
    "dependsOn",
    "values",
    "patches",
];

/// The kind of the releases of packs.
const GROUP: &str = "helm.toolkit.fluxcd.io";
const VERSION: &str = "v2";
const KIND: &str = "HelmRelease";
/// The label with the pack that an object belongs to.
const PACK_LABEL: &str = "packs.reeve.dev/pack";
/// The annotation of a Pack with its place in the order of packs.
const WAVE: &str = "reeve.dev/wave";
/// The annotation of a Pack that a desired state has asked for.
pub(super) const ORIGIN: &str = "packs.reeve.dev/origin";

/// How everything stands.
pub(super) struct Standing {
    /// Where the desired state is.
    pub(super) place: Option<Place>,
    /// Why it is not known what it says.
    pub(super) unknown: Option<String>,
    /// Parts of the plugin that do not run, or not as they were delivered last.
    pub(super) halts: Vec<Trouble>,
    /// What is in the way of the desired state as a whole.
    pub(super) troubles: Vec<Trouble>,
    /// What is told of the desired state as a whole.
    pub(super) warnings: Vec<Warning>,
    /// In the order of their waves and names.
    pub(super) packs: Vec<PackStanding>,
}

/// How a pack stands.
pub(super) struct PackStanding {
    pub(super) name: String,
    pub(super) wave: Option<i64>,
    pub(super) version: Option<String>,
    pub(super) state: State,
    /// Whether the desired state says something else than is applied.
    pub(super) pending: bool,
    pub(super) troubles: Vec<Trouble>,
    pub(super) warnings: Vec<Warning>,
    pub(super) releases: Vec<Release>,
}

/// The state of a pack in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is in the desired state, which nobody has applied.
    NotApplied,
    /// It is being removed.
    Going,
    /// `enabled: false`.
    Disabled,
    /// `suspend: true`.
    Suspended,
    /// Another pack has to come first.
    Blocked,
    /// It is on its way.
    Waiting,
    /// It will not come by itself.
    Failed,
    /// All of it is there, and well.
    Ready,
}

/// What a part of the plugin says of a pack that is not well.
pub(super) struct Trouble {
    pub(super) plugin: String,
    pub(super) reason: String,
    pub(super) message: String,
    /// The object that the rest waits for.
    pub(super) blocked_by: Option<Value>,
    /// What waits to be approved.
    pub(super) plan: Option<String>,
}

/// A release of Flux.
pub(super) struct Release {
    pub(super) name: String,
    pub(super) ready: bool,
    pub(super) message: String,
}

impl Standing {
    /// Reads how everything stands. What may not be read of the desired state is said,
    /// and no error.
    ///
    /// # Errors
    ///
    /// When Packs or Units cannot be listed.
    pub(super) async fn read(client: &Client, target: &TargetArgs) -> anyhow::Result<Self> {
        let mut parts = parts::find(client, target).await?;
        parts::look(client, target, &mut parts).await?;
        let place = parts::desired_state(&parts).ok();
        let place = place.map(|part| Place::of(&part.config));
        let (document, unknown) = match &place {
            None => (None, None),
            Some(place) => match place.read(client).await {
                Ok(stored) => (stored.document, None),
                Err(error) => (None, Some(format!("{error:#}"))),
            },
        };
        let objects = packs(client).await?;
        let units: Api<Unit> = Api::namespaced(client.clone(), &target.connection.namespace);
        let units = units.list(&ListParams::default()).await;
        let units = units.context("cannot list units")?.items;
        let releases = releases(client).await?;
        Ok(Self {
            halts: parts.iter().filter_map(Trouble::of_part).collect(),
            troubles: troubles(&units, &parts, "PackSet", None),
            warnings: Warning::all(&units, &parts, "PackSet", None),
            packs: all(&objects, document.as_ref(), &units, &parts, &releases),
            place,
            unknown,
        })
    }

    /// Why it cannot be told whether what is wanted is what is there. What is in a file,
    /// only the agent reads, and says.
    pub(super) fn untold(&self) -> Option<&str> {
        let is_file = matches!(self.place, Some(Place::File(_)));
        self.unknown.as_deref().filter(|_| !is_file)
    }

    /// Whether all packs are ready and nothing waits, as far as it is known.
    pub(super) fn is_well(&self) -> bool {
        let well = |pack: &PackStanding| {
            !pack.pending && matches!(pack.state, State::Ready | State::Disabled)
        };
        self.halts.is_empty() && self.troubles.is_empty() && self.packs.iter().all(well)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "desiredState": {
                "place": self.place.as_ref().map(ToString::to_string),
                "unknown": self.unknown,
                "troubles": troubles_json(&self.troubles),
                "warnings": warnings_json(&self.warnings),
            },
            "parts": troubles_json(&self.halts),
            "ready": self.is_well() && self.untold().is_none(),
            "packs": self.packs.iter().map(PackStanding::json).collect::<Vec<_>>(),
        })
    }
}

impl PackStanding {
    fn json(&self) -> Value {
        let releases = self.releases.iter().map(
            |release| json!({"name": release.name, "ready": release.ready, "message": release.message}),
        );
        json!({
            "name": self.name, "wave": self.wave, "version": self.version,
            "state": format!("{:?}", self.state), "pending": self.pending,
            "troubles": troubles_json(&self.troubles),
            "warnings": warnings_json(&self.warnings),
            "releases": releases.collect::<Vec<_>>(),
        })
    }
}

fn troubles_json(troubles: &[Trouble]) -> Vec<Value> {
    let troubles = troubles.iter().map(|trouble| {
        json!({
            "plugin": trouble.plugin, "reason": trouble.reason, "message": trouble.message,
            "blockedBy": trouble.blocked_by, "plan": trouble.plan,
        })
    });
    troubles.collect()
}

fn warnings_json(warnings: &[Warning]) -> Vec<Value> {
    warnings.iter().map(Warning::json).collect()
}

/// All Packs of the cluster.
///
/// # Errors
///
/// When they cannot be listed.
pub(super) async fn packs(client: &Client) -> anyhow::Result<Vec<DynamicObject>> {
    let kind = GroupVersionKind::gvk("packs.reeve.dev", "v1alpha1", "Pack");
    let resource = ApiResource::from_gvk_with_plural(&kind, "packs");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => anyhow::bail!(
            "the cluster serves no Pack.v1alpha1.packs.reeve.dev; `kubectl apply -f \
             charts/packs/crds` installs the definition"
        ),
        Err(error) => Err(error).context("cannot list Packs"),
    }
}

/// The HelmReleases of packs; none before Flux is there, or where they may not be read.
async fn releases(client: &Client) -> anyhow::Result<Vec<DynamicObject>> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, "helmreleases");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let marked = ListParams::default().labels(PACK_LABEL);
    match api.list(&marked).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => Ok(Vec::new()),
        Err(error) => Err(error).context("cannot list HelmReleases"),
    }
}

/// Every pack that is there or wanted.
fn all(
    objects: &[DynamicObject],
    document: Option<&Document>,
    units: &[Unit],
    parts: &[Part],
    releases: &[DynamicObject],
) -> Vec<PackStanding> {
    // Who does not run has nothing to say of a pack, and that is no good news. Who makes Packs
    // says nothing of one that is there.
    let stops = |part: &Part| {
        part.role != DESIRED_STATE && part.trouble.as_ref().is_some_and(|halt| !halt.runs)
    };
    let all_run = !parts.iter().any(stops);
    let mut packs: Vec<PackStanding> = objects
        .iter()
        .map(|object| {
            let name = object.name_any();
            let troubles = troubles(units, parts, "Pack", Some(&name));
            let own = releases
                .iter()
                .filter(|release| release.labels().get(PACK_LABEL) == Some(&name));
            let said = object.data["spec"].as_object().cloned().unwrap_or_default();
            let wave = object.annotations().get(WAVE);
            let wave = wave.and_then(|wave| wave.parse().ok());
            // One that somebody has made by hand is nothing that the document takes away.
            let is_asked_for = object.annotations().contains_key(ORIGIN);
            let pending = document.is_some_and(|document| match document.pack(&name) {
                Some(entry) => differs(entry, &said),
                None => is_asked_for,
            });
            PackStanding {
                wave: wave.or_else(|| said.get("wave").and_then(Value::as_i64)),
                version: version(&said),
                state: state(object, &said, &troubles, all_run),
                pending,
                releases: own.map(Release::of).collect(),
                warnings: Warning::all(units, parts, "Pack", Some(&name)),
                troubles,
                name,
            }
        })
        .collect();
    for (name, entry) in document.into_iter().flat_map(Document::packs) {
        if packs.iter().any(|pack| pack.name == name) {
            continue;
        }
        packs.push(PackStanding {
            name: name.to_owned(),
            wave: entry.get("wave").and_then(Value::as_i64),
            version: version(entry),
            state: State::NotApplied,
            pending: true,
            troubles: Vec::new(),
            warnings: Vec::new(),
            releases: Vec::new(),
        });
    }
    // What has not been applied has no wave yet, unless it says so.
    packs.sort_by(|one, other| {
        let waves = match (one.wave, other.wave) {
            (Some(one), Some(other)) => one.cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        waves.then_with(|| one.name.cmp(&other.name))
    });
    packs
}

fn version(said: &Map<String, Value>) -> Option<String> {
    let version = said.get("version").and_then(Value::as_str);
    version.map(str::to_owned)
}

/// Whether an entry of the desired state says something else than the object does.
fn differs(entry: &Map<String, Value>, said: &Map<String, Value>) -> bool {
    let field = |fields: &Map<String, Value>, name: &str| {
        let value = fields.get(name).filter(|value| !value.is_null());
        value.cloned()
    };
    FIELDS
        .iter()
        .any(|name| field(entry, name) != field(said, name))
}

fn state(
    object: &DynamicObject,
    said: &Map<String, Value>,
    troubles: &[Trouble],
    all_run: bool,
) -> State {
    let is = |field: &str, value: bool| said.get(field) == Some(&Value::Bool(value));
    if object.metadata.deletion_timestamp.is_some() {
        return State::Going;
    }
    if is("enabled", false) {
        return match troubles.is_empty() {
            true => State::Disabled,
            false => State::Going,
        };
    }
    if is("suspend", true) {
        return State::Suspended;
    }
    if troubles.is_empty() {
        return match all_run {
            true => State::Ready,
            false => State::Waiting,
        };
    }
    if troubles.iter().any(|one| one.reason == "Terminal") {
        return State::Failed;
    }
    match troubles
        .iter()
        .any(|one| one.message.starts_with("blocked by "))
    {
        true => State::Blocked,
        false => State::Waiting,
    }
}

/// What the parts say of a primary that is not well.
fn troubles(units: &[Unit], parts: &[Part], kind: &str, name: Option<&str>) -> Vec<Trouble> {
    let units = units.iter().filter(|unit| is_of(unit, parts, kind, name));
    let mut troubles: Vec<Trouble> = units.filter_map(Trouble::of).collect();
    troubles.sort_by(|one, other| one.plugin.cmp(&other.plugin));
    troubles
}

/// Whether a unit is one of the parts, for a primary of this kind and, if one is meant, name.
fn is_of(unit: &Unit, parts: &[Part], kind: &str, name: Option<&str>) -> bool {
    let primary = &unit.spec.primary;
    parts.iter().any(|part| part.plugin == unit.spec.plugin)
        && primary.kind == kind
        && name.is_none_or(|name| primary.name == name)
}

impl Trouble {
    /// That a part does not run, or an earlier version of it.
    fn of_part(part: &Part) -> Option<Self> {
        let halt = part.trouble.as_ref()?;
        Some(Self {
            plugin: part.plugin.clone(),
            reason: halt.reason.clone(),
            message: halt.said(),
            blocked_by: None,
            plan: None,
        })
    }

    /// None of a unit that is well and only tells something.
    fn of(unit: &Unit) -> Option<Self> {
        let status = unit.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
        let ready: Option<&Condition> = ready.filter(|one| one.status != "True");
        let ready = ready?;
        let waits = ready.reason == "AwaitingApproval";
        let blocked = status.sync.and_then(|sync| sync.blocked_by);
        Some(Self {
            plugin: unit.spec.plugin.clone(),
            reason: ready.reason.clone(),
            message: on_one_line(&ready.message),
            blocked_by: blocked.map(|blocked| json!(blocked)),
            plan: status.plan.filter(|_| waits).map(|plan| plan.id),
        })
    }
}

impl Release {
    /// As the agent reads it, which lets packs wait for one another.
    fn of(object: &DynamicObject) -> Self {
        let mut whole = object.data.clone();
        // Items of a list need not say what they are.
        whole["apiVersion"] = json!(format!("{GROUP}/{VERSION}"));
        whole["kind"] = json!(KIND);
        whole["metadata"] = json!(object.metadata);
        let health = health(&whole, &Context::at(Timestamp::now()));
        let message = match health.status {
            HealthStatus::Healthy => said(&whole, "Ready"),
            HealthStatus::Suspended => {
                "suspended; `flux resume helmrelease` lets it go on".to_owned()
            }
            _ => health.message,
        };
        let namespace = object.namespace().unwrap_or_default();
        Self {
            name: format!("{namespace}/{}", object.name_any()),
            ready: health.status == HealthStatus::Healthy,
            message: on_one_line(&message),
        }
    }
}

/// What a condition says.
fn said(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == kind);
    let text = |field: &str| {
        found
            .and_then(|one| one[field].as_str())
            .unwrap_or_default()
    };
    format!("{}: {}", text("reason"), text("message"))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests;
