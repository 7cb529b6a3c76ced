//! What is said of a plugin in its status.

use super::PluginState;
use super::told;
use crate::active::Active;
use crate::controller::load_job::Previous;
use crate::left::{self, Place};
use crate::needs::{Granting, needs};
use crate::run::approve_command;
use crate::version::VersionId;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{
    Capabilities, ConditionType, PluginSource, PluginStatus, Reason, UnitCounts, condition,
    remove_condition, set_condition, with_list,
};

impl PluginState {
    pub(crate) fn counts(&self) -> UnitCounts {
        UnitCounts {
            untold: u32::try_from(self.told.untold()).unwrap_or(u32::MAX),
            ..self.tally.counts()
        }
    }

    /// The status to report.
    pub(crate) fn status(&mut self, now: Timestamp) -> PluginStatus {
        let counts = self.counts();
        // Whoever deletes a plugin does not want it back when the next one is bad.
        if !self.is_installed() && self.unreadable.is_none() {
            self.last_good = None;
            self.left = Previous::default();
        }
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let mut conditions = std::mem::take(&mut self.conditions);
        let mut set = |kind: ConditionType, status: &str, reason: Reason, message: String| {
            let new = condition(
                kind.as_str(),
                status,
                reason.to_string(),
                message,
                generation,
                now,
            );
            set_condition(&mut conditions, new);
        };
        let (loaded, granted) = (ConditionType::Loaded, ConditionType::Granted);
        let canary = self.canary_problem();
        let stable = self.stable().cloned();
        let problem = self.problem.clone().or(canary);
        let blind = self.active.as_ref().and_then(|active| active.blind());
        match (&stable, &problem) {
            (Some(active), None) => {
                let digest = active.component.digest();
                set(loaded, "True", Reason::Running, format!("running {digest}"));
                set(
                    ConditionType::Ready,
                    "True",
                    Reason::Running,
                    ready_message(&counts),
                );
            }
            (Some(active), Some(problem)) => {
                let digest = active.component.digest();
                set(loaded, "False", problem.reason, problem.message.clone());
                let message = format!(
                    "{}; still running {digest}, the newest version is not: {}",
                    ready_message(&counts),
                    problem.message
                );
                set(ConditionType::Ready, "True", Reason::Running, message);
            }
            (None, Some(problem)) => {
                set(loaded, "False", problem.reason, problem.message.clone());
                set(
                    ConditionType::Ready,
                    "False",
                    problem.reason,
                    problem.message.clone(),
                );
            }
            (None, None) => {
                let message = "the component is being loaded".to_owned();
                set(loaded, "Unknown", Reason::Loading, message.clone());
                set(ConditionType::Ready, "False", Reason::Loading, message);
            }
        }
        // A version that cannot see what it works on is not ready, whatever it did.
        if let Some(problem) = blind {
            set(
                ConditionType::Ready,
                "False",
                problem.reason,
                problem.message,
            );
        }
        if self.is_suspended() {
            let message = format!(
                "{}; suspended by spec.suspend, nothing is written until it is false",
                ready_message(&counts)
            );
            set(ConditionType::Ready, "False", Reason::Suspended, message);
        }
        let blocked = self.problem.as_ref();
        let blocked = blocked.filter(|problem| problem.is_refusal());
        match (blocked, &self.active) {
            (Some(problem), _) => set(granted, "False", problem.reason, problem.message.clone()),
            (None, Some(_)) if self.standing.powerless.is_some() => {
                let why = self.standing.powerless.clone();
                set(granted, "False", Reason::Forbidden, why.unwrap_or_default());
            }
            (None, Some(_)) if self.rights_unknown.is_some() => {
                let why = self
                    .rights_unknown
                    .as_ref()
                    .map(|problem| problem.message.as_str());
                let message = format!(
                    "the API server does not say what is granted: {}; units go on for two minutes \
                     on what it said last, and then wait",
                    why.unwrap_or_default()
                );
                set(granted, "Unknown", Reason::Unreachable, message);
            }
            (None, Some(active)) if self.standing.ungranted.is_empty() => {
                match self.ungranted_outside(active) {
                    None => set(granted, "True", Reason::AllGranted, self.all_granted()),
                    Some(message) => set(granted, "False", Reason::Forbidden, message),
                }
            }
            (None, Some(_)) => set(
                granted,
                "Unknown",
                Reason::Forbidden,
                with_list(
                    "not granted: ",
                    &self.standing.ungranted,
                    &format!(
                        "; units that need it in a namespace that does not grant it either say \
                         so; {} grants it",
                        self.standing.grant_command
                    ),
                ),
            ),
            (None, None) => set(
                granted,
                "Unknown",
                Reason::Loading,
                "not known before the manifest is".to_owned(),
            ),
        }
        let (status, reason, message) = if let Some(active) = &self.active {
            let strangers = self.strangers.describe(active);
            left::condition(&self.name, &self.standing.left, strangers)
        } else {
            let message = "not known while no version runs".to_owned();
            ("Unknown", Reason::Loading, message)
        };
        set(ConditionType::Pruned, status, reason, message);
        self.set_progress(&mut conditions, &counts, now);
        self.conditions.clone_from(&conditions);
        let active = stable.as_ref();
        PluginStatus {
            observed_generation: generation,
            digest: active.map(|a| a.component.digest().to_string()),
            component: active.map(|a| a.metadata.name.clone()),
            version: active.map(|a| a.metadata.version.clone()),
            primary_kind: self.primary_kind.as_ref().map(ToString::to_string),
            source: self.is_installed().then(|| PluginSource {
                config_map: self
                    .config_map
                    .as_ref()
                    .map(|map| map.name().to_owned())
                    .unwrap_or_default(),
                artifact: self.artifact().and(self.tag.pulled.clone()),
                digest: self.newest.map(|digest| digest.to_string()),
            }),
            last_good: self.last_good.map(VersionId::to_status),
            previous: self.previous.version.map(VersionId::to_status),
            rolled_back_from: self.left.version.map(VersionId::to_status),
            shadow: self.shadow.clone(),
            canary: self.canary_status(),
            writes: self.places.iter().map(Place::to_status).collect(),
            contributes_to: self.contributions.kinds.iter().cloned().collect(),
            asks: self.asks.clone(),
            units: active.map(|_| counts),
            last_handled_reconcile_at: self.reconcile.handled.clone(),
            last_handled_retry_at: self.retry.handled.clone(),
            last_handled_sync_at: self.resync.handled.clone(),
            conditions,
        }
    }

    /// What it asks for of the outside that is granted just so far.
    fn outside_granted(&self, active: &Active, standing: Granting) -> Vec<String> {
        let none = Capabilities::default();
        let policy = self.policy.as_ref();
        let capabilities = policy.and_then(|(spec, _)| spec.capabilities.as_ref());
        // Which namespace a Secret without one is in plays no part in this.
        let needs = needs(&active.manifest, capabilities.unwrap_or(&none), "");
        let such = needs.iter().filter(|need| need.standing == standing);
        such.map(|need| match &need.by[..] {
            [] => format!("{}: to {}", need.who, need.what),
            by => format!("{}: to {} ({})", need.who, need.what, by.join(" and ")),
        })
        .collect()
    }

    /// That nothing grants some of what it asks for of the outside.
    fn ungranted_outside(&self, active: &Active) -> Option<String> {
        let lacking = self.outside_granted(active, Granting::Nothing);
        (!lacking.is_empty()).then(|| {
            with_list(
                "everything that the manifest asks for of the cluster is granted; of the outside \
                 is not granted: ",
                &lacking,
                &format!(
                    "; `reeve plugin grant {}` says what spec.capabilities of the Plugin would \
                     have to have",
                    self.name
                ),
            )
        })
    }

    /// That it has all it asks for, and what it may need besides.
    fn all_granted(&self) -> String {
        let mut granted = "everything that the manifest asks for is granted".to_owned();
        let Some(active) = &self.active else {
            return granted;
        };
        let part = self.outside_granted(active, Granting::Part);
        if !part.is_empty() {
            granted.push_str(&format!(", in part only: {}", part.join("; ")));
        }
        if self.standing.may_hold {
            return granted;
        }
        let kind = &active.manifest.primary().kind;
        let resource = active.resource(kind);
        let resource = resource.map_or_else(|| kind.to_string(), ToString::to_string);
        format!(
            "{granted}. Primaries do not wait for the end of their units, since {} may not patch \
             {resource} cluster-wide: what is to go in order, is elsewhere or has hooks needs that",
            active.identity
        )
    }

    /// What is wrong with its outside documents.
    fn set_sources(&self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let kind = ConditionType::SourcesStale;
        let active = self.active.as_ref();
        let Some((forbidden, message)) = active.and_then(|active| active.sources.problem()) else {
            remove_condition(conditions, kind);
            return;
        };
        let reason = match forbidden {
            true => Reason::SourceForbidden,
            false => Reason::SourceFailing,
        };
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let reason = reason.to_string();
        let new = condition(kind.as_str(), "True", reason, message, generation, now);
        set_condition(conditions, new);
    }

    /// Why it is not known whether what runs is the newest that its tag names.
    fn set_artifact(&self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let kind = ConditionType::ArtifactStale;
        let Some(problem) = &self.tag.stale else {
            remove_condition(conditions, kind);
            return;
        };
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let (reason, message) = (problem.reason.to_string(), &problem.message);
        let message = format!("{message}; what was pulled before runs on");
        let new = condition(kind.as_str(), "True", reason, message, generation, now);
        set_condition(conditions, new);
    }

    /// What of its units cannot be written down.
    fn set_unwritten(&self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let kind = ConditionType::UnitsUnwritten;
        let Some(message) = self.unwritten.clone() else {
            remove_condition(conditions, kind);
            return;
        };
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let reason = Reason::UnitRefused.to_string();
        let new = condition(kind.as_str(), "True", reason, message, generation, now);
        set_condition(conditions, new);
    }

    /// What of all units waits for a person's word.
    fn set_held(&self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let Some(hold) = self.guard.lock().hold() else {
            // Not known yet whether it still is so.
            if !self.was_holding {
                remove_condition(conditions, ConditionType::DeletionsHeld);
            }
            return;
        };
        let command = approve_command(&self.name, &hold.token);
        let new = condition(
            ConditionType::DeletionsHeld.as_str(),
            "True",
            Reason::DeletionHeld.to_string(),
            format!("{hold}: {command}"),
            self.policy.as_ref().and_then(|(_, generation)| *generation),
            now,
        );
        set_condition(conditions, new);
    }

    /// The two conditions that stand only while they are true.
    fn set_progress(&self, conditions: &mut Vec<Condition>, counts: &UnitCounts, now: Timestamp) {
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let waiting = counts.total - counts.ready;
        let progress = match &self.problem {
            _ if self.is_suspended() => None,
            Some(problem) if problem.retries || self.loading.is_some() || self.is_held_early() => {
                Some((
                    ConditionType::Reconciling,
                    problem.reason,
                    problem.message.clone(),
                ))
            }
            Some(problem) => Some((
                ConditionType::Stalled,
                problem.reason,
                problem.message.clone(),
            )),
            None if self.active.is_none() || self.loading.is_some() => Some((
                ConditionType::Reconciling,
                Reason::Loading,
                "the component is being loaded".to_owned(),
            )),
            None if self.canary.is_some() => self
                .canary_problem()
                .map(|problem| (ConditionType::Reconciling, problem.reason, problem.message)),
            None if waiting > 0 => Some((
                ConditionType::Reconciling,
                Reason::UnitsNotReady,
                ready_message(counts),
            )),
            None => None,
        };
        self.set_held(conditions, now);
        self.set_sources(conditions, now);
        self.set_artifact(conditions, now);
        self.set_unwritten(conditions, now);
        for kind in [ConditionType::Reconciling, ConditionType::Stalled] {
            match &progress {
                Some((holds, reason, message)) if *holds == kind => {
                    let new = condition(
                        kind.as_str(),
                        "True",
                        reason.to_string(),
                        message.clone(),
                        generation,
                        now,
                    );
                    set_condition(conditions, new);
                }
                _ => {
                    remove_condition(conditions, kind);
                }
            }
        }
    }
}

fn ready_message(counts: &UnitCounts) -> String {
    let UnitCounts {
        total,
        ready,
        failing,
        waiting,
        untold,
    } = counts;
    let mut text = format!("{ready} of {total} units ready");
    for (count, how) in [(waiting, "waiting"), (failing, "failing")] {
        if *count > 0 {
            text.push_str(&format!(", {count} {how}"));
        }
    }
    if *waiting > 0 || *failing > 0 {
        text.push_str(": see `kubectl get units`");
    }
    if *untold > 0 {
        text.push_str(&format!(
            "; {untold} have no Unit object, since {} of the plugin tell of others: they get theirs \
             as those are well again",
            told::MOST
        ));
    }
    text
}
